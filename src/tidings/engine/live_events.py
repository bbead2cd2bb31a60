"""The live events of a topic: what `search` and `replay` look through. An event is live while the clock is before its `expires`."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from tidings.model.clause import Clause
from tidings.model.event import Event
from tidings.model.schema import Schema


class LiveEvents:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._events: dict[str, Event] = {}
        self._expiry: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events.values())

    def get(self, id: str) -> Event | None:
        return self._events.get(id)

    def put(self, event: Event) -> None:
        self._events[event.id] = event
        if event.expires is not None:
            heapq.heappush(self._expiry, (event.expires, event.id))

    def remove(self, id: str) -> None:
        self._events.pop(id, None)

    def expire(self, time: int) -> list[Event]:
        """Drop and give back what is no longer live at `time`, in the order of expiry."""
        gone = []
        while self._expiry and self._expiry[0][0] <= time:
            expires, id = heapq.heappop(self._expiry)
            event = self._events.get(id)
            if event is not None and event.expires == expires:
                gone.append(self._events.pop(id))
        return gone

    def search(self, clauses: Iterable[Clause], time: int) -> list[Event]:
        """The live events that satisfy any of the clauses, by id."""
        wanted = list(clauses)
        found = [
            event
            for event in self._events.values()
            if (event.expires is None or time < event.expires)
            and any(clause.holds(self._schema, event.values) for clause in wanted)
        ]
        return sorted(found, key=lambda event: event.id)
