"""Events: published, alone or many, in any form; and searched."""

from __future__ import annotations

import time as wall_clock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.durable.hearing import taken
from tidings.errors import EventError
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.vague_events import unpublishable
from tidings.model.door.event import Event, parse_json
from tidings.serve.access.callers import PUBLISH, READ
from tidings.serve.app.answers import ARROW, json_answer, notification_json, rows_answer
from tidings.serve.app.bodies import EVENT_FORMS, SMALL, body_of, events_of, form_of, table_of
from tidings.serve.app.documents import TIME, body, gives, parameters
from tidings.serve.app.requests import bytes_of, caller_of, flag, instant, service_of, text, topic_of
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.hosting.plain_json import rows_json
from tidings.serve.hosting.writing import Taken

router = APIRouter(tags=["events"])
TAKEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "events": {"type": "integer", "description": "How many were published."},
        "told": {"type": "integer", "description": "How many notifications are due for them."},
        "repeated": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Ids that were taken before; not published again.",
        },
        "notifications": {"type": "array", "items": {"type": "object"}},
    },
}


@router.post(
    "/topics/{topic}/events",
    responses=gives("They are committed; what was told is due.", TAKEN, many=True),
    openapi_extra={
        "parameters": parameters(
            notifications=("flag", "Give the notifications themselves; such a request has a commit of its own."),
            again=("flag", "Publish an event again though its id was taken before."),
            **TIME,
        )
    }
    | body(*EVENT_FORMS),
    summary="Publish events",
)
async def publish(topic: str, request: Request) -> Response:
    caller = caller_of(request, PUBLISH)
    hosted = topic_of(request)
    form = form_of(request, EVENT_FORMS)
    content = await body_of(request, bytes_of(request, caller))
    at, asked, again = instant(request), flag(request, "notifications"), flag(request, "again")
    if form == ARROW:
        table = await hosted.ask(lambda: table_of(content))
        service_of(request).meters.events(caller, len(table))
        answer, notes = await hosted.change(lambda: publish_table(hosted, table, at, again))
    else:
        events = await read(hosted, request, form, content)
        service_of(request).meters.events(caller, len(events))
        if not (asked or again or at is not None):
            return taken_answer(await hosted.publish(events))
        answer, notes = await hosted.change(lambda: publish_alone(hosted, events, at, again))
    if not asked:
        return taken_answer(answer)
    more = {"events": answer.events, "told": answer.told, "repeated": answer.repeated}
    return await hosted.ask(lambda: rows_answer(request, "notifications", map(notification_json, notes), notes.table, **more))


async def read(hosted: HostedTopic, request: Request, form: str, content: bytes) -> list[Event]:
    """The events of a body; a long one is read aside."""
    if len(content) <= SMALL:
        return publishable(hosted, events_of(hosted, request, form, content))
    return await hosted.ask(lambda: publishable(hosted, events_of(hosted, request, form, content)))


def publishable(hosted: HostedTopic, events: list[Event]) -> list[Event]:
    now = wall_clock.time_ns() // 1000
    for event in events:
        if event.vague:
            raise unpublishable(event)
    return events if hosted.retention is None else [hosted.kept(event, now) for event in events]


def publish_alone(hosted: HostedTopic, events: list[Event], at: Any, again: bool) -> tuple[Taken, Notifications]:
    """A change of its own, for who wants to know the notifications or says the time."""
    before = {} if again or hosted.topic.key is not None else taken(hosted.topic.registry, [event.id for event in events])
    fresh = [event for event in events if event.id not in before]
    notes = Notifications([])
    if len(fresh) == 1:
        notes = hosted.topic.publish(fresh[0], time=at)
    elif fresh:
        notes = hosted.topic.publish_batch(fresh, time=at)
    return Taken(len(fresh), len(notes), list(before)), notes


def publish_table(hosted: HostedTopic, table: pa.Table, at: Any, again: bool) -> tuple[Taken, Notifications]:
    """A table of events; without ids they are all new."""
    repeated: list[str] = []
    if hosted.retention is not None:
        table = with_expiry(table, hosted.retention)
    if "id" in table.column_names and hosted.topic.key is None and not again:
        try:
            ids = table["id"].cast(pa.string())
        except pa.ArrowException:
            raise EventError(f"column id is {table['id'].type}: a column of strings is accepted") from None
        repeated = list(taken(hosted.topic.registry, [id for id in ids.to_pylist() if id is not None]))
        if repeated:
            table = table.filter(pc.invert(pc.is_in(ids, pa.array(repeated, pa.string()))))
    notes = hosted.topic.publish_batch(table, time=at) if len(table) else Notifications([])
    return Taken(len(table), len(notes), repeated), notes


def with_expiry(table: pa.Table, retention: int) -> pa.Table:
    """Rows that have no end get one, counted from now: a table's own times may be of any type."""
    end = pa.scalar(wall_clock.time_ns() // 1000 + retention, pa.timestamp("us", "UTC"))
    if "expires" not in table.column_names:
        return table.append_column("expires", pa.repeat(end, len(table)))
    column = table["expires"]
    if not pa.types.is_timestamp(column.type):
        return table
    return table.set_column(table.column_names.index("expires"), "expires", pc.fill_null(column, end.cast(column.type)))


def taken_answer(answer: Taken) -> Response:
    said: dict[str, Any] = {"events": answer.events, "told": answer.told}
    return json_answer(said | {"repeated": answer.repeated} if answer.repeated else said)


@router.get(
    "/topics/{topic}/events",
    responses=gives("The live events that match, by id.", many=True),
    openapi_extra={"parameters": parameters(filter=("text", "CQL2, text or JSON; every live event without it."), **TIME)},
    summary="Search the live events",
)
async def search(topic: str, request: Request) -> Response:
    caller_of(request, READ)
    hosted, at, filter = topic_of(request), instant(request), text(request, "filter")
    asked = parse_json(filter) if filter is not None and filter.lstrip().startswith("{") else filter

    def written() -> Response:
        found = hosted.search(asked, at)
        return rows_answer(request, "events", rows_json(hosted.topic.schema, found, hosted.topic.key), lambda: found)

    return await hosted.ask(written)
