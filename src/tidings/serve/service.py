"""A folder of topics that is served: who opens them, makes them, drops them, and closes them."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tidings.durable.opening import open_topic
from tidings.durable.registry import REGISTRY
from tidings.errors import shown
from tidings.model.values.schema import Schema
from tidings.serve.access.callers import EVERYBODY, Caller
from tidings.serve.access.keys import Keys
from tidings.serve.access.meters import Meters
from tidings.serve.access.prices import Door
from tidings.serve.access.tokens import Tokens
from tidings.serve.delivery.couriers import Couriers
from tidings.serve.delivery.letters import Letters
from tidings.serve.delivery.sinks import Sinks
from tidings.serve.hearing.consumers import Consumers
from tidings.serve.hearing.flow import Flow
from tidings.serve.hearing.tail import Tail
from tidings.serve.hosting.hosted_topic import HostedTopic, TopicSettings
from tidings.serve.hosting.ledger import Ledger
from tidings.serve.refusals import Conflict, NotFound, NotReady, Unacceptable, Unauthorized
from tidings.serve.settings import Settings

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")

BEAT = 15
"""Seconds."""


OPENING = 600
"""Seconds that a stream waits for topics to be opened."""


class Service:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ledger = Ledger(settings.folder)
        self.keys, self.meters, self.door = Keys(self.ledger), Meters(), Door()
        self.tokens = None if settings.provider is None else Tokens(settings.provider)
        self._renewing: asyncio.Task[None] | None = None
        self.consumers = Consumers(self.ledger)
        self.topics: dict[str, HostedTopic] = {}
        self.tails: dict[str, Tail] = {}
        self.flows: dict[str, Flow] = {}
        self.ready = False
        self._opened = asyncio.Event()
        self._making, self.changing_sinks = asyncio.Lock(), asyncio.Lock()
        self.couriers = Couriers(Sinks(self.ledger), Letters(self.ledger), settings.allow)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Open every topic of the folder."""
        self._tasks["beat"] = asyncio.create_task(self._beat())
        self._tasks["save"] = asyncio.create_task(self.couriers.keep_saving())
        for folder in sorted(self.settings.folder.iterdir()):
            if (folder / REGISTRY).is_file() and NAME.fullmatch(folder.name):
                self._host(await asyncio.to_thread(self._open, folder.name))
                self.couriers.open(self.tails[folder.name], self.couriers.sinks.all(folder.name))
        self._is_open()

    def _is_open(self) -> None:
        self.ready = True
        self._opened.set()

    async def opened(self) -> None:
        """Until every topic is open, or it takes too long. A browser takes any refusal of a stream for the last word and never
        comes back, so streams wait where other requests are told to come later."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._opened.wait(), OPENING)

    def _open(self, name: str, schema: Schema | None = None, key: str | None = None) -> HostedTopic:
        topic = open_topic(self.settings.folder / name, None if schema is None else name, schema, key=key)
        kept = TopicSettings(**self.ledger.settings(name))
        return HostedTopic(topic, kept, backlog=self.settings.backlog, remembered=self.settings.remembered)

    def _host(self, hosted: HostedTopic) -> None:
        name = hosted.folder.name
        self.topics[name] = hosted
        self.tails[name] = Tail(hosted, asyncio.get_running_loop())
        self.flows[name] = Flow(hosted)
        self._tasks[f"clock {name}"] = asyncio.create_task(hosted.follow_clock())

    async def _beat(self) -> None:
        """Streams on which nothing happens say so, and that they are still there."""
        while True:
            await asyncio.sleep(BEAT)
            for tail in self.tails.values():
                tail.wake_all()

    def caller(self, authorization: str | None) -> Caller:
        """Who calls, by what stands in the header `Authorization`."""
        if authorization is None:
            if self.settings.open:
                return EVERYBODY
            raise Unauthorized("no key was given: send it as `Authorization: Bearer td_...`")
        kind, _, text = authorization.partition(" ")
        text = text.strip()
        if kind.lower() != "bearer" or not text:
            raise Unauthorized("the header Authorization is not understood: `Bearer` and a key is accepted")
        known = self.keys.caller(text)
        if known is not None:
            return known
        if self.tokens is None or text.count(".") != 2:
            raise Unauthorized("the key is not known: it was withdrawn, or never made here")
        if not self.tokens.knows(text) and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.create_task(asyncio.to_thread(self.tokens.renew))
        return self.tokens.caller(text)

    def topic(self, name: str) -> HostedTopic:
        found = self.topics.get(name)
        if found is None:
            if not self.ready:
                raise NotReady("the service is opening its topics")
            raise NotFound(f"there is no topic {shown(name)}")
        return found

    async def make(self, name: str, schema: Schema, key: str | None, settings: TopicSettings) -> tuple[HostedTopic, bool]:
        """The topic, and whether it is new. One that is there must have this schema and key; its settings may change."""
        if not NAME.fullmatch(name):
            raise Unacceptable(
                f"a topic cannot be named {shown(name)}: up to 100 letters, digits, '_', '.' and '-' that begin with a letter or "
                "digit are accepted"
            )
        async with self._making:
            there = self.topics.get(name)
            if there is not None:
                return await self._settle(there, schema, key, settings), False
            await asyncio.to_thread(self.ledger.set, name, **asdict(settings))
            hosted = await asyncio.to_thread(self._open, name, schema, key)
            self._host(hosted)
            return hosted, True

    async def _settle(self, there: HostedTopic, schema: Schema, key: str | None, settings: TopicSettings) -> HostedTopic:
        if dict(schema) != dict(there.topic.schema) or key != there.topic.key:
            raise Conflict(
                f"topic {there.name!r} is there with another schema or key: drop it first, or make one of another name",
                schema=there.topic.schema.to_dict(),
                key=there.topic.key,
            )
        await asyncio.to_thread(self.ledger.set, there.folder.name, **asdict(settings))
        there.use(settings)
        return there

    async def drop(self, name: str) -> None:
        async with self._making:
            hosted = self.topic(name)
            del self.topics[name]
            await self._let_go(name, hosted)
            await asyncio.to_thread(self._remove, hosted.folder, name)

    def _remove(self, folder: Path, name: str) -> None:
        """Renamed first, so that a crash in the middle leaves no half of a topic."""
        self.ledger.forget(name)
        gone = folder.with_name(f".gone-{name}")
        shutil.rmtree(gone, ignore_errors=True)
        folder.rename(gone)
        shutil.rmtree(gone)

    async def _let_go(self, name: str, hosted: HostedTopic) -> None:
        await self._end(f"clock {name}")
        await self.couriers.close(name)
        tail = self.tails.pop(name)
        tail.end()
        if name in self.flows:
            self.flows.pop(name).end()
        await hosted.close()
        await asyncio.to_thread(tail.close)

    async def _end(self, name: str) -> None:
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def end_streams(self) -> None:
        """Streams never end by themselves: a service that stops says goodbye to them first."""
        self.ready = False
        for tail in self.tails.values():
            tail.end()
        for flow in self.flows.values():
            flow.end()

    def cursors(self, topic: str) -> list[int]:
        """How far those who must not miss anything have come."""
        consumers = [consumer.cursor for consumer in self.consumers.all(topic)]
        return consumers + [sink.cursor for sink in self.couriers.of(topic)]

    async def stop(self) -> None:
        """Finish what waits and close every topic."""
        self.end_streams()
        await self._end("beat")
        await self._end("save")
        for name, hosted in list(self.topics.items()):
            await self._let_go(name, hosted)
        await self.couriers.http.close()
        self.ledger.close()

    def describe(self) -> Mapping[str, Any]:
        return {"topics": [hosted.describe() for _, hosted in sorted(self.topics.items())]}
