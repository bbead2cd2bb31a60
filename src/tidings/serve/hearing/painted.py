"""A keyed topic's changes as the messages that range top-k paints: rectangles of the plane (l, r), each with what it tells.

A watcher of [l, r] is a point of the plane; a message is for the watchers in its rectangle (`tidings.boards.paint`). The product
keeps lists by another way; this paints beside it, from the objects as they stood when somebody began to look. The writer only
notes what came; it is painted where a look is taken, in a thread of its own, so that nobody who publishes waits for it. What came
of one object between two looks is one change.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from tidings.boards.paint.paint import PaintDense, paint_each
from tidings.boards.paint.tiles import Messages
from tidings.errors import SchemaError, shown
from tidings.index.points.objects import ObjectIndex
from tidings.match.answers.results import Notification
from tidings.model.door.event import Event
from tidings.model.filter.clause import Values
from tidings.model.filter.operands import compile_number
from tidings.model.values.schema import Number, Schema
from tidings.serve.hearing.flow import Told

NEWEST = 12
"""Changes in one look."""
RECTANGLES = 200
"""Of one change."""


class Painted:
    def __init__(self, schema: Schema, attribute: str, by: str, k: int) -> None:
        if not isinstance(schema.get(attribute), Number):
            raise SchemaError(f"attribute is {shown(attribute)}: the name of a number is accepted")
        self._attribute, self._by = attribute, compile_number(schema, by)
        self._objects = ObjectIndex()
        self._painter = PaintDense(self._objects, k)
        self._number: dict[str, int] = {}
        self._name: list[str] = []
        self._lock = threading.Lock()
        self._first: list[Event] = []
        self._waiting: dict[str, Event] = {}
        self._events, self._since = 0, time.monotonic()

    def begin(self, events: Iterable[Event]) -> None:
        """From the objects that are there, in the writer's thread."""
        self._first = list(events)

    def _stands(self, values: Values) -> tuple[float, float]:
        """Its x, and its y, which ascends as relevance descends; infinite for what is in no list."""
        x, y = float(values.get(self._attribute, math.nan)), -self._by.value(values)
        return (x, y) if math.isfinite(x) and math.isfinite(y) else (0.0, math.inf)

    def _put(self, event: Event) -> tuple[Messages, float, float] | None:
        number = self._number.setdefault(event.id, len(self._name))
        if number == len(self._name):
            self._name.append(event.id)
        x, y = (0.0, math.inf) if event.deleted else self._stands(event.values)
        if y == math.inf and number not in self._objects:
            return None
        [messages] = paint_each(self._objects, [self._painter], number, x, y)
        return messages, x, y

    def see(self, events: Sequence[Event], told: Told, notes: Sequence[Notification], waited: float | None) -> None:
        with self._lock:
            self._events += len(events)
            for event in events:
                self._waiting.pop(event.id, None)
                self._waiting[event.id] = event

    def taken(self) -> dict[str, Any]:
        """The newest changes, newest first; a rectangle is [least l, least r, greatest l, greatest r], null where it is open."""
        with self._lock:
            said: dict[str, Any] = {"events": self._events, "seconds": round(time.monotonic() - self._since, 4)}
            first, self._first = self._first, []
            waiting, self._waiting = self._waiting, {}
            self._events, self._since = 0, time.monotonic()
        for event in first:
            self._put(event)
        changes: deque[dict[str, Any]] = deque(maxlen=NEWEST)
        for event in waiting.values():
            if (put := self._put(event)) is not None:
                changes.appendleft(_change(event.id, *put))
        return said | {"objects": len(self._objects), "changes": list(changes)}


def _change(object: str, messages: Messages, x: float, y: float) -> dict[str, Any]:
    tiles = [[_finite(end) for end in row[:4]] for row in messages[:RECTANGLES].tolist()]
    at = {"x": x, "y": None if y == math.inf else -y}
    return {"object": object, **at, "messages": len(messages), "rectangles": tiles}


def _finite(end: float) -> float | None:
    return end if math.isfinite(end) else None
