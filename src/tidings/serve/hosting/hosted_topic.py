"""One topic that is served: its writer's lane, its readers' lane, who owns what.

Changes are made in the writer's lane, one thread, in the order in which they came; questions in the readers' lane, which waits for
no commit. `listeners` are called in the writer's thread after each change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from tidings.durable.hearing import Hearing, trim
from tidings.durable.opening import DurableTopic
from tidings.errors import SubscriptionError, shown
from tidings.model.door.event import Event, EventReader
from tidings.model.door.subscription import Subscription, known_id
from tidings.model.values.window import parse_window
from tidings.serve.hosting.lanes import Lane
from tidings.serve.hosting.owners import Owners
from tidings.serve.hosting.pace import Pace
from tidings.serve.hosting.writing import Publish, Taken, Writing
from tidings.serve.refusals import NotFound, Unacceptable

Result = TypeVar("Result")
READERS = 2
LINGER = 0.002
"""Seconds that a commit waits for more publishes, under load: less than the disk takes for it."""
TRIMMED = 4096
"""The outbox is trimmed once in so many commits."""
ADVANCE = 1.0
"""Seconds between looks at the clock: what time brings is told though nobody publishes."""
WALL, GIVEN = "wall", "given"


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """`retention` is how long an event without `expires` is live, as "7 days"; None for ever. `clock` is "wall" if time passes by
    itself, "given" if only those who publish and advance say what time it is."""

    retention: str | None = None
    clock: str = WALL

    def __post_init__(self) -> None:
        if self.clock not in (WALL, GIVEN):
            raise Unacceptable(f"clock is {shown(self.clock)}: 'wall' or 'given' is accepted")
        if self.retention is not None:
            try:
                window = parse_window(self.retention)
            except SubscriptionError:
                window = None
            if window is None or window.duration is None or not isinstance(self.retention, str):
                raise Unacceptable(f"retention is {shown(self.retention)}: a duration as '7 days' is accepted")


class HostedTopic:
    def __init__(self, topic: DurableTopic, settings: TopicSettings, *, backlog: int, remembered: int) -> None:
        """The outbox keeps the newest `backlog` notifications, and knows the newest `remembered` events again."""
        self.topic = topic
        self.name = topic.name
        self.use(settings)
        self.backlog, self.remembered = backlog, remembered
        self.read = EventReader(topic.schema, topic.key)
        self.owners = Owners.of(topic.store)
        topic.record.hearing = Hearing(self.owners, lambda record: orjson.dumps(record).decode())
        self.listeners: list[Callable[[], None]] = []
        self.writing = Writing(topic, self._committed)
        self.writer = Lane(f"the writer of {self.name}", self.writing, linger=LINGER)
        self.readers = Lane(f"the readers of {self.name}", threads=READERS)
        self.pace = Pace()
        self._commits = 0

    def use(self, settings: TopicSettings) -> None:
        self.settings = settings
        self.retention = None if settings.retention is None else parse_window(settings.retention).duration

    @property
    def folder(self) -> Path:
        return self.topic.folder

    def _committed(self) -> None:
        self._commits += 1
        if self._commits % TRIMMED == 0:
            trim(self.topic.registry, self.backlog, self.remembered)
        for listener in self.listeners:
            listener()

    def change(self, call: Callable[[], Result]) -> Awaitable[Result]:
        return self.writer.do(call)

    def ask(self, call: Callable[[], Result]) -> Awaitable[Result]:
        return self.readers.do(call)

    async def ask_small(self, call: Callable[[], Result]) -> Result:
        """The same of a question that is answered quickly: handing it over would cost more than the answer. So it is answered here,
        in the event loop, unless subscriptions are being changed, or it was not quick the last time."""
        lock = self.topic.store.lock
        if not self.pace.quick or not lock.acquire(blocking=False):
            return await self.ask(call)
        began = time.thread_time()
        try:
            return call()
        finally:
            lock.release()
            self.pace.took(time.thread_time() - began)

    def search(self, filter: Any, at: Any) -> pa.Table:
        """The live events that match, in a reader's lane."""
        return self.topic.search(filter, time=at)

    async def publish(self, events: Sequence[Event]) -> Taken:
        """Publish, in one commit with whatever else waits."""
        subject = Publish(events)
        return await self.writer.do(lambda: self.writing.publish([events])[0], subject)

    def kept(self, event: Event, now: int) -> Event:
        """The event, with the end that the topic's retention gives it if it has none."""
        if self.retention is None or event.expires is not None:
            return event
        return replace(event, expires=(now if event.time is None else event.time) + self.retention)

    def subscription(self, id: str, owner: str | None = None) -> Subscription:
        """One that is there, and is this owner's if one is named; another's is as if it were not there."""
        found = self.topic.store.get(known_id(id))
        if found is None or (owner is not None and found.owner != owner):
            raise NotFound(f"there is no subscription {id!r}", kind="SubscriptionError")
        return found

    async def follow_clock(self) -> None:
        """Let time pass while nobody publishes: promotions and expiries are told when they are due."""
        while True:
            await asyncio.sleep(ADVANCE)
            publisher = self.topic.publisher
            if self.settings.clock == WALL and publisher.clock is not None and publisher.next_instant <= time.time_ns() // 1000:
                await self.change(lambda: self.topic.advance(datetime.now(UTC)))

    def describe(self) -> dict[str, Any]:
        said: dict[str, Any] = {"name": self.name, "schema": self.topic.schema.to_dict(), "key": self.topic.key}
        return said | asdict(self.settings) | {"subscriptions": len(self.topic)}

    async def close(self) -> None:
        """Do what waits, then let go of the folder."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self.readers.close()
        self.writer.close()
        self.topic.close()
