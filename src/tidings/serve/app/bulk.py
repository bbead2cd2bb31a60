"""Many subscriptions at once, as one change: NDJSON or an Arrow stream."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.errors import BulkError, EventError, SubscriptionError, shown
from tidings.model.door.event import parse_json
from tidings.model.door.subscription import known_id
from tidings.serve.access.callers import ADMIN, OWNER, Caller
from tidings.serve.app.answers import ARROW, JSON, NDJSON, json_answer
from tidings.serve.app.bodies import body_of, form_of, object_of, table_of
from tidings.serve.app.documents import TIME, body, gives, parameters
from tidings.serve.app.problems import SHOWN
from tidings.serve.app.requests import bytes_of, caller_of, instant, service_of, text, topic_of
from tidings.serve.app.subscriptions import quietly
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.refusals import Conflict, Forbidden, Unacceptable

router = APIRouter(tags=["subscriptions"])
ON_ERROR = ("raise", "skip")


@router.post(
    "/topics/{topic}/subscriptions",
    responses=gives("How many were taken; with on_error=skip also which rows were not, and why."),
    openapi_extra={
        "parameters": parameters(on_error=("text", "raise: one bad row refuses all; skip: bad rows are left out."), **TIME)
    }
    | body(NDJSON, ARROW),
    summary="Subscribe many",
)
async def post(topic: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, service = topic_of(request), service_of(request)
    form = form_of(request, (NDJSON, ARROW))
    content = await body_of(request, bytes_of(request, caller))
    on_error, at = text(request, "on_error") or "raise", instant(request)
    if on_error not in ON_ERROR:
        raise Unacceptable(f"on_error is {shown(on_error)}: 'raise' or 'skip' is accepted")
    table = await hosted.ask(lambda: owned(caller, table_of(content) if form == ARROW else table_of_lines(content)))

    def change() -> dict[str, Any]:
        must_be_free(hosted, caller, table)
        service.door.price_many(hosted, caller, table)
        return load(hosted, table, on_error, at)

    return json_answer(await hosted.change(change))


def load(hosted: HostedTopic, table: pa.Table, on_error: str, at: Any) -> dict[str, Any]:
    refused: list[tuple[int, str]] = []
    try:
        taken = quietly(lambda: hosted.topic.subscribe_many(table, time=at))
    except BulkError as error:
        if on_error == "raise":
            raise
        refused = error.rows
        taken = quietly(lambda: hosted.topic.subscribe_many(table, on_error="skip", time=at))
    note_owners(hosted, table, {row for row, _ in refused})
    said: dict[str, Any] = {"taken": taken}
    if refused:
        said |= {"refused": len(refused), "rows": [{"row": row, "detail": sentence} for row, sentence in refused[:SHOWN]]}
    return said


def note_owners(hosted: HostedTopic, table: pa.Table, refused: set[int]) -> None:
    ids = table["id"].to_pylist()
    owners = table["owner"].to_pylist() if "owner" in table.column_names else [None] * len(ids)
    for row, (id, owner) in enumerate(zip(ids, owners, strict=True)):
        if row not in refused:
            hosted.owners.set(known_id(id), owner)


def owned(caller: Caller, table: pa.Table) -> pa.Table:
    """An owner loads his own."""
    mine = caller.changes()
    if mine is None:
        return table
    if "owner" in table.column_names:
        others = {owner for owner in table["owner"].to_pylist() if owner not in (None, mine)}
        if others:
            raise Forbidden(f"owner is {shown(min(map(str, others)))}: this key subscribes for {mine!r} alone")
        table = table.drop_columns(["owner"])
    return table.append_column("owner", pa.repeat(mine, len(table)))


def must_be_free(hosted: HostedTopic, caller: Caller, table: pa.Table) -> None:
    mine = caller.changes()
    if mine is None or "id" not in table.column_names:
        return
    ids = [known_id(id) for id in table["id"].to_pylist() if isinstance(id, str | int) and id != ""]
    for id in hosted.topic.store.existing(pa.array(ids, pa.string())):
        if hosted.owners(id) != mine:
            raise Conflict(f"subscription id {id!r} is taken: choose another; nothing was applied")


def table_of_lines(content: bytes) -> pa.Table:
    """NDJSON rows as columns: a filter as text, weights as columns of their own, everything else as it stands."""
    rows, refused = [], []
    for number, line in enumerate(line for line in content.split(b"\n") if line.strip()):
        try:
            rows.append(row_of(parse_json(line)))
        except (EventError, SubscriptionError) as error:
            refused.append((number, str(error)))
    if refused:
        raise BulkError("subscriptions", refused)
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    return pa.table({name: column_of(name, values) for name, values in columns.items()} or {"id": pa.array([], pa.string())})


def row_of(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise SubscriptionError(f"subscription {shown(said)}: an object with id and filter is accepted")
    row = dict(said)
    for name in ("filter", "by"):
        if isinstance(row.get(name), dict):
            row[name] = json.dumps(row[name])
    weights = row.pop("weights", None) or {}
    if not isinstance(weights, dict):
        raise SubscriptionError(f"weights is {shown(weights)}: an object with a number of 0 or more for each attribute is accepted")
    return row | {f"{name}.weight": weight for name, weight in weights.items()}


def column_of(name: str, values: list[Any]) -> pa.Array:
    """A column of one type; numbers among strings are written out, as a score that is a number and one that is a formula."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    if all(value is None or isinstance(value, str | int | float) for value in values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    kinds = sorted({type(value).__name__ for value in values if value is not None})
    raise SubscriptionError(f"{name} has values of the kinds {', '.join(kinds)}: one kind in all rows is accepted")


@router.post(
    "/topics/{topic}/unsubscribe",
    responses=gives("How many of them were there and are gone."),
    openapi_extra=body(
        JSON, schema={"type": "object", "required": ["ids"], "properties": {"ids": {"type": "array", "items": {"type": "string"}}}}
    ),
    summary="Unsubscribe many",
)
async def unsubscribe(topic: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted = topic_of(request)
    content = await object_of(request, bytes_of(request, caller))
    ids, mine = content.get("ids"), caller.changes()
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids) or set(content) != {"ids"}:
        raise Unacceptable(f"the body is {shown(content)}: an object with ids, a list of strings, is accepted")

    def change() -> int:
        his = [id for id in map(known_id, ids) if mine is None or hosted.owners(id) == mine]
        removed = hosted.topic.unsubscribe_many(his)
        for id in his:
            hosted.owners.set(id, None)
        return removed

    return json_answer({"removed": await hosted.change(change)})
