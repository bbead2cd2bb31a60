"""What goes over the line: values as JSON or Arrow, answers as the objects that `Topic` gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.match.answers.explain import Explanation
from tidings.match.answers.notifications import WHY, Notifications, Part
from tidings.match.answers.results import Match, Notification, with_body
from tidings.model.door.single_values import read_time
from tidings.model.door.subscription import Subscription
from tidings.model.door.subscription_record import from_record
from tidings.model.values.schema import Schema
from tidings.model.values.vague import Between, Uncertain
from tidings.model.values.window import parse_window
from tidings.topic.preview import Preview

JSON, NDJSON, ARROW, EVENTS = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream", "text/event-stream"


class Heard(NamedTuple):
    """A notification as it is delivered: `event` is the event itself, or None if the service no longer has it, `number` its place
    in the topic's outbox, by which one goes on later, and `digest` what a digest tells together."""

    number: int
    id: str
    subscription: str
    owner: str | None
    event: dict[str, Any] | None
    score: float
    rank: int | None
    why: str
    at: datetime
    digest: tuple[dict[str, Any], ...] = ()


def encoded(value: Any) -> bytes:
    return json.dumps(value, default=_plain, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    """What JSON has no form for, as the service's door reads it."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(parse_window(value))
    if isinstance(value, Between):
        return {"lo": value.lo, "hi": value.hi}
    if isinstance(value, Uncertain):
        return {"values": list(value.weights), "weights": list(value.weights.values())}
    if hasattr(value, "__geo_interface__"):
        return dict(value.__geo_interface__)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{value!r} has no form in JSON")


def lines(rows: Any) -> bytes:
    """An object a line; texts are JSON already."""
    return b"\n".join(row if isinstance(row, bytes) else row.encode() if isinstance(row, str) else encoded(row) for row in rows)


def time_text(time: Any) -> str | None:
    """An instant as the service's addresses have it."""
    return time.isoformat() if isinstance(time, datetime | date) else None if time is None else str(time)


def is_table(value: Any) -> bool:
    return hasattr(value, "__arrow_c_stream__")


def arrow_bytes(table: Any) -> bytes:
    """An Arrow stream of anything that is a table."""
    known = table if isinstance(table, pa.Table) else pa.table(table)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, known.schema) as writer:
        writer.write_table(known)
    done: bytes = sink.getvalue().to_pybytes()
    return done


def table_of(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


def matches_of(rows: list[dict[str, Any]]) -> list[Match]:
    return [Match(row["event"], row["subscription"], row["score"]) for row in rows]


def notification_of(row: Mapping[str, Any]) -> Notification:
    at = datetime.fromisoformat(row["at"])
    note = Notification(row["subscription"], row["event"], row["score"], row["rank"], row["why"], at)
    return with_body(note, {"digest": row["digest"]}) if "digest" in row else note


def notifications_of(table: pa.Table) -> Notifications:
    """Columns stay columns."""
    table = table.combine_chunks()
    if not len(table):
        return Notifications([])
    column = {name: table[name].chunk(0) for name in table.column_names}
    part = Part(
        column["subscription"],
        column["event"],
        column["score"].to_numpy(zero_copy_only=False),
        pc.fill_null(column["rank"], 0).to_numpy(zero_copy_only=False),
        pc.index_in(column["why"], pa.array(WHY)).to_numpy(zero_copy_only=False).astype(np.int8),
        column["at"].cast(pa.int64()).to_numpy(zero_copy_only=False),
    )
    return Notifications([part])


def heard_of(row: Mapping[str, Any]) -> Heard:
    at = datetime.fromisoformat(row["at"])
    fields = (row["number"], row["id"], row["subscription"], row["owner"], row["event"], row["score"], row["rank"], row["why"])
    return Heard(*fields, at, tuple(row.get("digest", ())))


def subscription_of(schema: Schema, row: Mapping[str, Any]) -> Subscription:
    record = dict(row)
    for name in ("expires", "since"):
        if name in record:
            record[name] = read_time(name, record[name])
    return from_record(schema, record)


def explanation_of(row: Mapping[str, Any]) -> Explanation:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    del fields["text"]
    return Explanation(**fields)


def preview_of(row: Mapping[str, Any]) -> Preview:
    first = [with_body(notification_of(note), note["body"]) if "body" in note else notification_of(note) for note in row["first"]]
    since, until = (read_time(name, row[name]) or 0 for name in ("since", "until"))
    return Preview(
        row["events"], row["told"], since, until, row["by_day"], tuple(first), tuple(note["reason"] for note in row["first"])
    )
