"""What flows through a topic, for whoever looks: counts of all that is published, and a sample of it.

A page cannot draw thousands of events a second, nor need it: each watcher gets, a few times a second, how many events came and how
many notifications were told, a fair sample of the events that were told of and of those that were not, and the newest
notifications. The samples are reservoirs, so every event of a stretch has the same chance to be shown. While nobody looks nothing
is kept; a look costs the writer about a microsecond an event.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tidings.match.answers.results import Notification
from tidings.model.door.event import Event
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.hosting.plain_json import event_json
from tidings.topic.publications import Publications

SHOWN = 60
"""Events of each kind in one look."""
NEWEST = 20
"""Notifications in one look."""
SANE = 60_000_000
"""Microseconds: a topic whose clock is further from the wall's goes by given times, of which no wait can be said."""
Told = Counter[str]


class Looking(Protocol):
    """Somebody who looks; called in the writer's thread."""

    def see(self, events: Sequence[Event], told: Told, notes: Sequence[Notification], waited: float | None) -> None: ...


class Flow:
    def __init__(self, hosted: HostedTopic) -> None:
        self._hosted = hosted
        self.schema, self.key = hosted.topic.schema, hosted.topic.key
        self._looking: set[Looking] = set()
        self._over = asyncio.Event()
        hosted.topic.record.seen = self.seen

    def seen(self, published: Publications | None, notes: Sequence[Notification]) -> None:
        """In the writer's thread, after the commit."""
        if not self._looking:
            return
        events = [] if published is None else list({event.id: event for event in published.events()}.values())
        clock = self._hosted.topic.publisher.clock
        waited = None if clock is None else time.time_ns() // 1000 - clock
        told = Counter(note.event for note in notes)
        for looking in tuple(self._looking):
            looking.see(events, told, notes, waited / 1000 if waited is not None and 0 <= waited < SANE else None)

    def enter(self, looking: Looking) -> None:
        self._looking = self._looking | {looking}

    def leave(self, looking: Looking) -> None:
        self._looking = self._looking - {looking}

    def end(self) -> None:
        """Nobody looks any more."""
        self._over.set()

    async def rest(self, seconds: float) -> bool:
        """Wait so long; whether it goes on."""
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return True
        return False


class Reservoir:
    """A fair sample of at most SHOWN of all that was put in."""

    def __init__(self) -> None:
        self.kept: list[Event] = []
        self._seen = 0

    def put(self, event: Event) -> None:
        self._seen += 1
        if len(self.kept) < SHOWN:
            self.kept.append(event)
        elif (place := int(random.random() * self._seen)) < SHOWN:
            self.kept[place] = event


class Sample:
    """What came since it was last taken."""

    def __init__(self, flow: Flow) -> None:
        self._schema, self._key = flow.schema, flow.key
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._since = time.monotonic()
        self._events = self._notes = 0
        self._heard, self._unheard = Reservoir(), Reservoir()
        self._told: Told = Counter()
        self._newest: deque[tuple[Notification, Event | None]] = deque(maxlen=NEWEST)
        self._waits: list[float] = []

    def see(self, events: Sequence[Event], told: Told, notes: Sequence[Notification], waited: float | None) -> None:
        with self._lock:
            self._events, self._notes = self._events + len(events), self._notes + len(notes)
            for event in events:
                (self._heard if event.id in told else self._unheard).put(event)
            newest = notes[-NEWEST:]
            wanted = {note.event for note in newest}
            bodies = {event.id: event for event in events if event.id in wanted}
            self._newest.extend((note, bodies.get(note.event)) for note in newest)
            self._told.update({event.id: told[event.id] for event in self._heard.kept if event.id in told})
            if waited is not None and events:
                self._waits.append(waited)

    def taken(self) -> dict[str, Any]:
        """It as JSON, and a new one is begun. Notifications come newest first; waits are milliseconds from publishing to commit."""
        with self._lock:
            shown = [(event, self._told[event.id]) for event in self._heard.kept] + [(event, 0) for event in self._unheard.kept]
            since, newest, waits = self._since, list(self._newest), sorted(self._waits)
            said = {"events": self._events, "told": self._notes}
            self._begin()
        return said | {
            "seconds": round(time.monotonic() - since, 4),
            "waits": [round(waits[len(waits) // 2], 3), round(waits[-1], 3)] if waits else None,
            "sample": [{"event": self._written(event), "told": told} for event, told in shown],
            "newest": [_note(note, None if event is None else self._written(event)) for note, event in reversed(newest)],
        }

    def _written(self, event: Event) -> dict[str, Any]:
        return event_json(self._schema, event, self._key)


def _note(note: Notification, body: dict[str, Any] | None) -> dict[str, Any]:
    said = {"subscription": note.subscription, "event": note.event, "score": note.score, "rank": note.rank, "why": note.why}
    return said | {"at": note.at.isoformat(), "body": body}


Taking = Callable[[], dict[str, Any]]
