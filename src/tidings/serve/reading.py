"""A service that only reads: what a reader process has beside the writer's. It follows the writer and forwards to it.

Topics of the folder are opened to read as they come, and let go as they are dropped. What others wrote is looked for every LOOK
seconds: notifications are heard from the outbox at once, subscriptions are mapped anew when they changed. Mapping costs what
changed and what is live, so a reader spends at most a fifth of its time on it, and lags so much behind.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidings.durable.opening import DurableTopic, open_topic
from tidings.durable.registry import REGISTRY
from tidings.errors import StorageError, StorageWarning
from tidings.serve.hearing.tail import Tail
from tidings.serve.hosting.hosted_topic import HostedTopic, TopicSettings
from tidings.serve.service import NAME, Service

LOOK = 0.05
FOLDERS = 0.25
SHARE = 4
"""A refresh is followed by a rest of so many times its length."""


class ReadingService(Service):
    async def start(self) -> None:
        self._marks: dict[str, int] = {}
        await self._look_for_topics()
        self._tasks["beat"] = asyncio.create_task(self._beat())
        self._tasks["topics"] = asyncio.create_task(self._keep_looking())
        self._is_open()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(FOLDERS)
            await self._look_for_topics()

    async def _look_for_topics(self) -> None:
        """Open what is new, let go of what is gone or was made anew."""
        there = await asyncio.to_thread(self._marked)
        for name in [name for name, mark in self._marks.items() if there.get(name) != mark]:
            await self._let_go(name, self.topics.pop(name))
            del self._marks[name]
        for name in there.keys() - self._marks.keys():
            try:
                topic = await asyncio.to_thread(self._map, self.settings.folder / name)
            except StorageError:
                continue
            self._follow(name, topic, there[name])

    def _marked(self) -> dict[str, int]:
        """The topics of the folder, each with what tells it from another of the same name."""
        found: dict[str, int] = {}
        for folder in self.settings.folder.iterdir():
            registry = folder / REGISTRY
            if NAME.fullmatch(folder.name) and registry.is_file():
                found[folder.name] = registry.stat().st_ino
        return found

    def _map(self, folder: Path) -> DurableTopic:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StorageWarning)
            return open_topic(folder, mode="r")

    def _follow(self, name: str, topic: DurableTopic, mark: int) -> None:
        settings = TopicSettings(**self.ledger.settings(name))
        hosted = FollowedTopic(topic, settings, backlog=self.settings.backlog, remembered=self.settings.remembered)
        self._marks[name] = mark
        self.topics[name] = hosted
        self.tails[name] = Tail(hosted, asyncio.get_running_loop(), looks=True)
        self._tasks[f"clock {name}"] = asyncio.create_task(hosted.follow_writer())

    async def stop(self) -> None:
        self.end_streams()
        for name in ("beat", "topics"):
            await self._end(name)
        for name, hosted in list(self.topics.items()):
            await self._let_go(name, hosted)
        await self.couriers.http.close()
        self.ledger.close()


class FollowedTopic(HostedTopic):
    """A topic that another process writes."""

    _looked, _cost = 0.0, 0.0
    """when it was last made to see what changed, and how long that took"""

    def search(self, filter: Any, at: Any) -> pa.Table:
        if time.monotonic() - self._looked > max(LOOK, SHARE * self._cost):
            self._refresh()
        return super().search(filter, at)

    async def follow_writer(self) -> None:
        seen, rest = -1, 0.0
        while True:
            await asyncio.sleep(max(LOOK, rest))
            rest = 0.0
            try:
                version = await asyncio.to_thread(self.topic.registry.version)
                if version != seen:
                    seen = version
                    rest = await asyncio.to_thread(self._follow) * SHARE
            except StorageError:
                rest = 1.0

    def _follow(self) -> float:
        """See changes of subscriptions, which matching needs; how long it took. New events are seen when somebody searches."""
        if self.topic.registry.last_seq() == self.topic.store.snapshot.seq:
            return 0.0
        self._refresh()
        return self._cost

    def _refresh(self) -> None:
        began = time.monotonic()
        self.topic.refresh()
        self._looked = time.monotonic()
        self._cost = self._looked - began
