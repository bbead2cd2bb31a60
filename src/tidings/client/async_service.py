"""The same, awaited: `td.connect_async(url)["deals"]` has the calls of `Topic` for programs with an event loop."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar, Unpack

import httpx
import pyarrow as pa

from tidings.client import calls
from tidings.client.calls import Call, Changes, Fields, Page, Posted
from tidings.client.connection import headers_of
from tidings.client.listening import QUIET, EventLines, whose
from tidings.client.problems import AGAIN, problem_of
from tidings.client.remote_topic import ACKNOWLEDGE, PAGE
from tidings.client.retrying import Tries
from tidings.client.wire import Heard
from tidings.match.answers.explain import Explanation
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.results import Match, Notification
from tidings.model.door.subscription import Subscription
from tidings.model.values.schema import Schema
from tidings.topic.preview import Preview

Result = TypeVar("Result")


class AsyncService:
    """A service at `url`, of one event loop."""

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60.0) -> None:
        self.url = url
        self.http = httpx.AsyncClient(base_url=url, headers=headers_of(key), timeout=timeout)

    async def do(self, call: Call[Result]) -> Result:
        tries = Tries(self.url, call.safe)
        while True:
            try:
                answer = await self.http.request(**call.request())
            except httpx.TransportError as error:
                wait = tries.broken(error)
            else:
                if answer.status_code < 400:
                    return call.read(answer)
                wait = tries.refused(answer)
            await asyncio.sleep(wait)

    async def topics(self) -> list[dict[str, Any]]:
        return await self.do(calls.topics())

    async def make(
        self,
        name: str,
        schema: Schema | Mapping[str, Any],
        *,
        key: str | None = None,
        retention: str | None = None,
        clock: str = "wall",
    ) -> AsyncTopic:
        await self.do(calls.make(name, schema, {"key": key, "retention": retention, "clock": clock}))
        return self[name]

    async def drop(self, name: str) -> None:
        await self.do(calls.TopicCalls(name).drop())

    def __getitem__(self, name: str) -> AsyncTopic:
        return AsyncTopic(self, name)

    async def close(self) -> None:
        await self.http.aclose()

    async def __aenter__(self) -> AsyncService:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<tidings at {self.url}, awaited>"


class AsyncTopic:
    """What `RemoteTopic` has, to be awaited."""

    def __init__(self, service: AsyncService, name: str) -> None:
        self.service, self.name = service, name
        self._calls = calls.TopicCalls(name)
        self._do = service.do
        self._schema: Schema | None = None

    async def schema(self) -> Schema:
        if self._schema is None:
            self._schema = Schema.from_dict((await self._do(self._calls.describe()))["schema"])
        return self._schema

    # Subscriptions

    async def subscribe(
        self,
        id: str,
        filter: str | Mapping[str, Any] | None = None,
        *,
        replay: bool = False,
        time: Any = None,
        **fields: Unpack[Fields],
    ) -> list[Notification]:
        said = {"filter": filter} | {name: value for name, value in fields.items() if value is not None}
        return await self._do(self._calls.subscribe(id, said, replay, time))

    async def subscribe_many(self, table: Any, *, on_error: str = "raise", time: Any = None) -> int:
        return await self._do(self._calls.subscribe_many(table, on_error, time))

    async def update(self, id: str, *, time: Any = None, **changes: Unpack[Changes]) -> list[Notification]:
        return await self._do(self._calls.update(id, changes, time))

    async def move(self, id: str, point: Sequence[float], *, time: Any = None) -> list[Notification]:
        return await self._do(self._calls.move(id, point, time))

    async def unsubscribe(self, id: str) -> None:
        await self._do(self._calls.unsubscribe(id))

    async def unsubscribe_many(self, ids: Sequence[str]) -> int:
        return await self._do(self._calls.unsubscribe_many(ids))

    async def subscription(self, id: str) -> Subscription:
        return await self._do(self._calls.subscription(id, await self.schema()))

    async def subscriptions(
        self, *, owner: str | None = None, tag: str | None = None, after: str | None = None, limit: int = PAGE
    ) -> list[Subscription]:
        return await self._do(self._calls.subscriptions(await self.schema(), owner, tag, after, limit))

    async def top(self, id: str, *, time: Any = None) -> list[Match]:
        return await self._do(self._calls.top(id, time))

    async def withheld(self, id: str) -> int:
        """How many notifications a subscription's budget and cooldown have kept back."""
        return await self._do(self._calls.withheld(id))

    async def __aiter__(self) -> AsyncIterator[Subscription]:
        page = await self.subscriptions()
        while page:
            for subscription in page:
                yield subscription
            page = await self.subscriptions(after=page[-1].id)

    async def count(self) -> int:
        """How many subscriptions there are: `len` cannot be awaited."""
        return int((await self._do(self._calls.describe()))["subscriptions"])

    # Events

    async def publish(self, event: Any, *, time: Any = None) -> Notifications:
        return await self._do(self._calls.publish(event, time))

    async def publish_batch(self, events: Any, *, time: Any = None) -> Notifications:
        return await self._do(self._calls.publish_batch(events, time))

    async def post(self, events: Any) -> Posted:
        return await self._do(self._calls.post(events))

    async def advance(self, time: Any) -> Notifications:
        return await self._do(self._calls.advance(time))

    async def search(self, filter: str | Mapping[str, Any] | None = None, *, time: Any = None) -> pa.Table:
        return await self._do(self._calls.search(filter, time))

    # Questions

    async def match(
        self, event: Any, k: int | None = None, *, relaxed: bool = False, aggregate: str = "sum", time: Any = None
    ) -> list[Match]:
        return await self._do(self._calls.match(event, k, relaxed, aggregate, time))

    async def match_batch(
        self, events: Any, k: int | None = None, *, relaxed: bool = False, aggregate: str = "sum", time: Any = None
    ) -> pa.Table:
        return await self._do(self._calls.match_batch(events, k, relaxed, aggregate, time))

    async def explain(self, event: Any, subscription: str | None = None, *, k: int = 10, time: Any = None) -> Explanation:
        return await self._do(self._calls.explain(event, subscription, k, time))

    async def preview(
        self,
        filter: str | Mapping[str, Any] | None = None,
        *,
        over: str | timedelta | None = "7 days",
        first: int = 10,
        time: Any = None,
        **fields: Unpack[Fields],
    ) -> Preview:
        said = {"filter": filter, "over": over, "first": first} | {
            name: value for name, value in fields.items() if value is not None
        }
        return await self._do(self._calls.preview(said, time))

    # Hearing

    async def listen(
        self, subscription: str | None = None, *, owner: str | None = None, consumer: str | None = None, after: int | None = None
    ) -> AsyncIterator[Heard]:
        lines, said = EventLines(after), clock.monotonic()
        done: int | None = None
        try:
            async for note in self._stream(whose(subscription, owner, consumer), lines):
                yield note
                done = note.number
                if consumer is not None and clock.monotonic() - said > ACKNOWLEDGE:
                    await self.acknowledge(done, consumer=consumer)
                    done, said = None, clock.monotonic()
        finally:
            if consumer is not None and done is not None:
                await self.acknowledge(done, consumer=consumer)

    async def _stream(self, asked: Mapping[str, str], lines: EventLines) -> AsyncIterator[Heard]:
        while True:
            try:
                async with self.service.http.stream(
                    "GET",
                    f"{self._calls.root}/notifications",
                    params=dict(asked),
                    headers=lines.headers(),
                    timeout=httpx.Timeout(QUIET),
                ) as answer:
                    if answer.status_code >= 400:
                        problem = problem_of(answer.status_code, answer.headers, await answer.aread())
                        if answer.status_code not in AGAIN:
                            raise problem
                    else:
                        async for line in answer.aiter_lines():
                            note = lines.take(line)
                            if note is not None:
                                yield note
            except httpx.TransportError:
                pass
            await asyncio.sleep(lines.pauses.next())

    async def notifications(
        self,
        subscription: str | None = None,
        *,
        owner: str | None = None,
        consumer: str | None = None,
        after: int | None = None,
        limit: int = PAGE,
        wait: int = 0,
    ) -> Page:
        return await self._do(self._calls.page(whose(subscription, owner, consumer), after, limit, wait))

    async def add_consumer(
        self, name: str, *, subscription: str | None = None, owner: str | None = None, after: int | None = None
    ) -> dict[str, Any]:
        return await self._do(self._calls.add_consumer(name, {"subscription": subscription, "owner": owner, "after": after}))

    async def acknowledge(self, number: int, *, consumer: str | None = None) -> None:
        await self._do(self._calls.acknowledge(number, consumer))

    # The rest

    async def stats(self) -> dict[str, Any]:
        return await self._do(self._calls.stats())

    async def flush(self) -> None:
        await self._do(self._calls.flush())

    async def merge(self) -> None:
        await self._do(self._calls.merge())

    def __repr__(self) -> str:
        return f"<Topic {self.name!r} at {self.service.url}, awaited>"
