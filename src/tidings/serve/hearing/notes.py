"""A notification as it is delivered: the event itself, the subscription and its owner, score, rank, why and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from tidings.durable.outbox import OutboxReader
from tidings.durable.waiting import Waiting
from tidings.model.values.schema import Schema
from tidings.serve.hosting.plain_json import record_json

EVENTS = 4096
"""Events that are kept as JSON because more of their notifications may follow."""


@dataclass(frozen=True, eq=False)
class Note:
    """`waiting` is the outbox's row, `event` the event as JSON or null if it is no longer kept."""

    topic: str
    waiting: Waiting
    event: bytes

    @property
    def number(self) -> int:
        return self.waiting.number

    def fields(self) -> dict[str, Any]:
        w = self.waiting
        said: dict[str, Any] = {
            "id": w.id,
            "number": w.number,
            "topic": self.topic,
            "subscription": w.subscription,
            "owner": w.owner,
        }
        said |= {"score": w.score, "rank": w.rank, "why": w.why, "at": w.at, "event": orjson.Fragment(self.event)}
        return said if w.digest is None else said | {"digest": w.digest}

    @cached_property
    def body(self) -> bytes:
        return orjson.dumps(self.fields())

    @cached_property
    def as_event(self) -> bytes:
        """One Server-Sent Event."""
        return b"id: %d\nevent: notification\ndata: %b\n\n" % (self.number, self.body)


class Notes:
    """Makes notes of outbox rows; the events they are about are read together, and once."""

    def __init__(self, topic: str, schema: Schema, key: str | None, reader: OutboxReader) -> None:
        self._topic, self._schema, self._key, self._reader = topic, schema, key, reader
        self._events: dict[str, bytes] = {}

    def of(self, rows: Sequence[Waiting]) -> list[Note]:
        wanted = dict.fromkeys(row.event for row in rows)
        keep = self._key is None
        missing = [id for id in wanted if not keep or id not in self._events]
        if missing:
            records = self._reader.records(missing)
            made = {id: orjson.dumps(record_json(self._schema, body, self._key)) for id, body in records.items()}
            if len(self._events) + len(made) > EVENTS:
                self._events = {id: self._events[id] for id in wanted if id in self._events}
            self._events |= made
        return [Note(self._topic, row, self._events.get(row.event, b"null")) for row in rows]
