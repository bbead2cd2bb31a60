"""A topic of a service, waited for: the calls of `Topic`, and what a service adds."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any, Unpack

import httpx
import pyarrow as pa

from tidings.client import calls
from tidings.client.calls import Changes, Fields, Page, Posted
from tidings.client.connection import Connection
from tidings.client.listening import QUIET, EventLines, whose
from tidings.client.problems import AGAIN, problem_of
from tidings.client.wire import Heard
from tidings.errors import SubscriptionError
from tidings.match.answers.explain import Explanation
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.results import Match, Notification
from tidings.model.door.subscription import Subscription
from tidings.model.values.schema import Schema
from tidings.topic.preview import Preview

PAGE = 1000
ACKNOWLEDGE = 1.0
"""Seconds between acknowledgements of a consumer that listens."""


class RemoteTopic:
    """A topic of a service. Calls, arguments and results are those of `Topic`; `post` and `listen` are what a service adds.

    >>> import tidings as td
    >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
    >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
    >>> notes = deals.subscribe("ann", "price < 5", k=3, window="1 day", time=0)
    >>> [match.subscription for match in deals.match({"id": "e1", "price": 3}, time=1)]
    ['ann']
    >>> service.drop("deals"); service.close()
    """

    def __init__(self, service: Connection, name: str) -> None:
        self.service, self.name = service, name
        self._calls = calls.TopicCalls(name)
        self._do = service.do

    @cached_property
    def _described(self) -> dict[str, Any]:
        return self._do(self._calls.describe())

    @cached_property
    def schema(self) -> Schema:
        return Schema.from_dict(self._described["schema"])

    @property
    def key(self) -> str | None:
        key: str | None = self._described["key"]
        return key

    # Subscriptions

    def subscribe(
        self,
        id: str,
        filter: str | Mapping[str, Any] | None = None,
        *,
        replay: bool = False,
        time: Any = None,
        **fields: Unpack[Fields],
    ) -> list[Notification]:
        said = {"filter": filter} | {name: value for name, value in fields.items() if value is not None}
        return self._do(self._calls.subscribe(id, said, replay, time))

    def subscribe_many(self, table: Any, *, on_error: str = "raise", time: Any = None) -> int:
        """Of a table, or of objects as `subscribe` takes them."""
        return self._do(self._calls.subscribe_many(table, on_error, time))

    def update(self, id: str, *, time: Any = None, **changes: Unpack[Changes]) -> list[Notification]:
        return self._do(self._calls.update(id, changes, time))

    def move(self, id: str, point: Sequence[float], *, time: Any = None) -> list[Notification]:
        return self._do(self._calls.move(id, point, time))

    def unsubscribe(self, id: str) -> None:
        self._do(self._calls.unsubscribe(id))

    def unsubscribe_many(self, ids: Sequence[str]) -> int:
        return self._do(self._calls.unsubscribe_many(ids))

    def subscription(self, id: str) -> Subscription:
        return self._do(self._calls.subscription(id, self.schema))

    def subscriptions(
        self, *, owner: str | None = None, tag: str | None = None, after: str | None = None, limit: int = PAGE
    ) -> list[Subscription]:
        return self._do(self._calls.subscriptions(self.schema, owner, tag, after, limit))

    def top(self, id: str, *, time: Any = None) -> list[Match]:
        return self._do(self._calls.top(id, time))

    def withheld(self, id: str) -> int:
        """How many notifications a subscription's budget and cooldown have kept back."""
        return self._do(self._calls.withheld(id))

    def __iter__(self) -> Iterator[Subscription]:
        page = self.subscriptions()
        while page:
            yield from page
            page = self.subscriptions(after=page[-1].id)

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str):
            return False
        try:
            self.subscription(id)
        except SubscriptionError:
            return False
        return True

    def __len__(self) -> int:
        return int(self._do(self._calls.describe())["subscriptions"])

    # Events

    def publish(self, event: Any, *, time: Any = None) -> Notifications:
        return self._do(self._calls.publish(event, time))

    def publish_batch(self, events: Any, *, time: Any = None) -> Notifications:
        return self._do(self._calls.publish_batch(events, time))

    def post(self, events: Any) -> Posted:
        """Publish one event, several or a table without asking who was told: the quick way, since the service commits what comes
        at once together. An event whose id was taken before is not published again, so this is tried again after a break.

        >>> import tidings as td
        >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
        >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> deals.post([{"id": "e1", "price": 3}, {"id": "e2", "price": 9}])
        Posted(events=2, told=1, repeated=[])
        >>> deals.post({"id": "e1", "price": 3}).repeated
        ['e1']
        >>> service.drop("deals"); service.close()
        """
        return self._do(self._calls.post(events))

    def advance(self, time: Any) -> Notifications:
        return self._do(self._calls.advance(time))

    def search(self, filter: str | Mapping[str, Any] | None = None, *, time: Any = None) -> pa.Table:
        return self._do(self._calls.search(filter, time))

    # Questions

    def match(
        self, event: Any, k: int | None = None, *, relaxed: bool = False, aggregate: str = "sum", time: Any = None
    ) -> list[Match]:
        return self._do(self._calls.match(event, k, relaxed, aggregate, time))

    def match_batch(
        self, events: Any, k: int | None = None, *, relaxed: bool = False, aggregate: str = "sum", time: Any = None
    ) -> pa.Table:
        return self._do(self._calls.match_batch(events, k, relaxed, aggregate, time))

    def explain(self, event: Any, subscription: str | None = None, *, k: int = 10, time: Any = None) -> Explanation:
        return self._do(self._calls.explain(event, subscription, k, time))

    def preview(
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
        return self._do(self._calls.preview(said, time))

    # Hearing

    def listen(
        self, subscription: str | None = None, *, owner: str | None = None, consumer: str | None = None, after: int | None = None
    ) -> Iterator[Heard]:
        """Notifications as they come, for ever; a broken stream goes on where it was. A consumer goes on where it was the last
        time: what the loop has dealt with is acknowledged.

        >>> import tidings as td
        >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
        >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> told = deals.publish({"id": "e1", "price": 3}, time=1)
        >>> heard = deals.listen("ann", after=0)
        >>> next(heard).event["id"]
        'e1'
        >>> heard.close()
        >>> service.drop("deals"); service.close()
        """
        lines, said = EventLines(after), clock.monotonic()
        done: int | None = None
        try:
            for note in self._stream(whose(subscription, owner, consumer), lines):
                yield note
                done = note.number
                if consumer is not None and clock.monotonic() - said > ACKNOWLEDGE:
                    self.acknowledge(done, consumer=consumer)
                    done, said = None, clock.monotonic()
        finally:
            if consumer is not None and done is not None:
                self.acknowledge(done, consumer=consumer)

    def _stream(self, asked: Mapping[str, str], lines: EventLines) -> Iterator[Heard]:
        while True:
            try:
                with self.service.http.stream(
                    "GET",
                    f"{self._calls.root}/notifications",
                    params=dict(asked),
                    headers=lines.headers(),
                    timeout=httpx.Timeout(QUIET),
                ) as answer:
                    if answer.status_code >= 400:
                        problem = problem_of(answer.status_code, answer.headers, answer.read())
                        if answer.status_code not in AGAIN:
                            raise problem
                    else:
                        for line in answer.iter_lines():
                            note = lines.take(line)
                            if note is not None:
                                yield note
            except httpx.TransportError:
                pass
            clock.sleep(lines.pauses.next())

    def notifications(
        self,
        subscription: str | None = None,
        *,
        owner: str | None = None,
        consumer: str | None = None,
        after: int | None = None,
        limit: int = PAGE,
        wait: int = 0,
    ) -> Page:
        """A page of them; an empty one waits up to `wait` seconds for its first.

        >>> import tidings as td
        >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
        >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> told = deals.publish({"id": "e1", "price": 3}, time=1)
        >>> [note.event["id"] for note in deals.notifications("ann", after=0).notifications]
        ['e1']
        >>> service.drop("deals"); service.close()
        """
        return self._do(self._calls.page(whose(subscription, owner, consumer), after, limit, wait))

    def add_consumer(
        self, name: str, *, subscription: str | None = None, owner: str | None = None, after: int | None = None
    ) -> dict[str, Any]:
        """A consumer by name, of one subscription or one owner, who goes on where he was; from number `after` on.

        >>> import tidings as td
        >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
        >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> deals.add_consumer("mail", subscription="ann")["name"]
        'mail'
        >>> service.drop("deals"); service.close()
        """
        return self._do(self._calls.add_consumer(name, {"subscription": subscription, "owner": owner, "after": after}))

    def acknowledge(self, number: int, *, consumer: str | None = None) -> None:
        """`consumer` is done with the notifications up to and including `number`.

        >>> import tidings as td
        >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
        >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> consumer = deals.add_consumer("mail", after=0)
        >>> told = deals.publish({"id": "e1", "price": 3}, time=1)
        >>> [last] = deals.notifications(consumer="mail").notifications
        >>> deals.acknowledge(last.number, consumer="mail")
        >>> deals.notifications(consumer="mail").notifications
        []
        >>> service.drop("deals"); service.close()
        """
        self._do(self._calls.acknowledge(number, consumer))

    # The rest

    def stats(self) -> dict[str, Any]:
        return self._do(self._calls.stats())

    def flush(self) -> None:
        self._do(self._calls.flush())

    def merge(self) -> None:
        self._do(self._calls.merge())

    def close(self) -> None:
        """The service goes on; `Service.close` ends the connection."""

    def __enter__(self) -> RemoteTopic:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Topic {self.name!r} at {self.service.url}>"
