"""Each call of a topic as the request that asks it and how its answer is read; nothing is sent here.

`safe` calls may be sent again when a connection breaks: they change nothing, or the same thing again.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar
from urllib.parse import quote

import pyarrow as pa

from tidings.client import wire
from tidings.client.wire import ARROW, JSON, NDJSON
from tidings.errors import DroppedWarning, NeverMatchesWarning
from tidings.match.answers.explain import Explanation
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.results import Match, Notification
from tidings.model.door.subscription import Subscription
from tidings.model.values.schema import Schema
from tidings.topic.preview import Preview

Result = TypeVar("Result")


class Fields(TypedDict, total=False):
    """What a subscription may say beside its id and filter; in a change, None puts a part back to its default."""

    score: float | str | None
    weights: Mapping[str, float] | None
    similarity: tuple[float, float] | None
    k: int | None
    window: str | int | timedelta | None
    by: str | Mapping[str, Any] | None
    per: str | None
    tz: str | None
    budget: str | None
    cooldown: str | timedelta | None
    dwell: str | timedelta | None
    digest: str | None
    error: float | None
    expires: Any
    owner: str | None
    tags: Sequence[str] | None
    within: tuple[Sequence[float], float | str] | None


class Changes(Fields, total=False):
    filter: str | Mapping[str, Any] | None


class Answer(Protocol):
    @property
    def content(self) -> bytes: ...


class Posted(NamedTuple):
    """What became of events: how many were new, how many notifications are due for them, and the ids that were taken before."""

    events: int
    told: int
    repeated: list[str]


class Page(NamedTuple):
    """Notifications, and the cursor after which the next page begins."""

    notifications: list[wire.Heard]
    cursor: int


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    method: str
    path: str
    read: Callable[[Answer], Result]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    form: str = JSON
    accept: str = JSON
    safe: bool = False

    def request(self) -> dict[str, Any]:
        """As httpx takes it."""
        headers = {"Accept": self.accept} | ({} if self.body is None else {"Content-Type": self.form})
        return {"method": self.method, "url": self.path, "params": dict(self.query), "content": self.body, "headers": headers}


def query(**named: Any) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in named.items() if value is not None
    }


def content(answer: Answer) -> Any:
    return json.loads(answer.content)


def nothing(answer: Answer) -> None:
    return None


def described(answer: Answer) -> dict[str, Any]:
    said: dict[str, Any] = content(answer)
    return said


def topics() -> Call[list[dict[str, Any]]]:
    return Call("GET", "/topics", lambda answer: list(content(answer)["topics"]), safe=True)


def make(name: str, schema: Schema | Mapping[str, Any], settings: Mapping[str, Any]) -> Call[dict[str, Any]]:
    known = schema if isinstance(schema, Schema) else Schema(schema)
    said = {"schema": known.to_dict()} | {name: value for name, value in settings.items() if value is not None}
    return Call("PUT", f"/topics/{quote(name, safe='')}", described, body=wire.encoded(said), safe=True)


class TopicCalls:
    """The calls of one topic."""

    def __init__(self, name: str) -> None:
        self.root = f"/topics/{quote(name, safe='')}"

    def _of(self, id: str) -> str:
        part = quote(str(id), safe="")
        return f"{self.root}/subscriptions/{part if part.strip('.') else part.replace('.', '%2E')}"

    def describe(self) -> Call[dict[str, Any]]:
        return Call("GET", self.root, described, safe=True)

    def drop(self) -> Call[None]:
        return Call("DELETE", self.root, nothing)

    # Subscriptions

    def subscribe(self, id: str, said: Mapping[str, Any], replay: bool, time: Any) -> Call[list[Notification]]:
        asked = query(replay=replay or None, time=wire.time_text(time))
        return Call("PUT", self._of(id), changed, asked, wire.encoded(said), safe=not replay)

    def update(self, id: str, changes: Mapping[str, Any], time: Any) -> Call[list[Notification]]:
        return Call("PATCH", self._of(id), changed, query(time=wire.time_text(time)), wire.encoded(changes))

    def move(self, id: str, point: Sequence[float], time: Any) -> Call[list[Notification]]:
        body = wire.encoded({"point": list(point)})
        return Call("POST", f"{self._of(id)}/move", changed, query(time=wire.time_text(time)), body)

    def unsubscribe(self, id: str) -> Call[None]:
        return Call("DELETE", self._of(id), nothing)

    def unsubscribe_many(self, ids: Sequence[str]) -> Call[int]:
        body = wire.encoded({"ids": list(ids)})
        return Call("POST", f"{self.root}/unsubscribe", lambda answer: int(content(answer)["removed"]), body=body)

    def subscribe_many(self, table: Any, on_error: str, time: Any) -> Call[int]:
        rows = wire.is_table(table)
        body, form = (wire.arrow_bytes(table), ARROW) if rows else (wire.lines(table), NDJSON)
        asked = query(on_error=on_error, time=wire.time_text(time))
        return Call("POST", f"{self.root}/subscriptions", lambda answer: int(content(answer)["taken"]), asked, body, form)

    def subscription(self, id: str, schema: Schema) -> Call[Subscription]:
        return Call("GET", self._of(id), lambda answer: wire.subscription_of(schema, content(answer)), safe=True)

    def subscriptions(
        self, schema: Schema, owner: str | None, tag: str | None, after: str | None, limit: int
    ) -> Call[list[Subscription]]:
        def read(answer: Answer) -> list[Subscription]:
            return [wire.subscription_of(schema, row) for row in content(answer)["subscriptions"]]

        return Call("GET", f"{self.root}/subscriptions", read, query(owner=owner, tag=tag, cursor=after, limit=limit), safe=True)

    def top(self, id: str, time: Any) -> Call[list[Match]]:
        def read(answer: Answer) -> list[Match]:
            return wire.matches_of(content(answer)["top"])

        return Call("GET", f"{self._of(id)}/top", read, query(time=wire.time_text(time)), safe=True)

    def withheld(self, id: str) -> Call[int]:
        return Call("GET", f"{self._of(id)}/withheld", lambda answer: int(content(answer)["withheld"]), safe=True)

    # Events

    def publish(self, event: Any, time: Any) -> Call[Notifications]:
        asked = query(notifications=True, again=True, time=wire.time_text(time))
        return Call("POST", f"{self.root}/events", told, asked, one(event))

    def publish_batch(self, events: Any, time: Any) -> Call[Notifications]:
        asked = query(notifications=True, again=True, time=wire.time_text(time))
        body, form = many(events)

        def read(answer: Answer) -> Notifications:
            return wire.notifications_of(wire.table_of(answer.content))

        return Call("POST", f"{self.root}/events", read, asked, body, form, ARROW)

    def post(self, events: Any) -> Call[Posted]:
        body, form = (one(events), JSON) if isinstance(events, Mapping | str | bytes) else many(events)

        def read(answer: Answer) -> Posted:
            said = content(answer)
            return Posted(said["events"], said["told"], said.get("repeated", []))

        return Call("POST", f"{self.root}/events", read, body=body, form=form, safe=True)

    def advance(self, time: Any) -> Call[Notifications]:
        return Call("POST", f"{self.root}/advance", told, query(time=wire.time_text(time)))

    def search(self, filter: str | Mapping[str, Any] | None, time: Any) -> Call[pa.Table]:
        said = filter if filter is None or isinstance(filter, str) else wire.encoded(filter).decode()
        asked = query(filter=said, time=wire.time_text(time))
        return Call("GET", f"{self.root}/events", lambda answer: wire.table_of(answer.content), asked, accept=ARROW, safe=True)

    # Questions

    def match(self, event: Any, k: int | None, relaxed: bool, aggregate: str, time: Any) -> Call[list[Match]]:
        def read(answer: Answer) -> list[Match]:
            return wire.matches_of(content(answer)["matches"])

        return Call("POST", f"{self.root}/match", read, asked_of(k, relaxed, aggregate, time), one(event), safe=True)

    def match_batch(self, events: Any, k: int | None, relaxed: bool, aggregate: str, time: Any) -> Call[pa.Table]:
        body, form = many(events)

        def read(answer: Answer) -> pa.Table:
            return wire.table_of(answer.content)

        return Call("POST", f"{self.root}/match", read, asked_of(k, relaxed, aggregate, time), body, form, ARROW, safe=True)

    def explain(self, event: Any, subscription: str | None, k: int, time: Any) -> Call[Explanation]:
        asked = query(subscription=subscription, k=k, time=wire.time_text(time))
        return Call("POST", f"{self.root}/explain", lambda a: wire.explanation_of(content(a)), asked, one(event), safe=True)

    def preview(self, said: Mapping[str, Any], time: Any) -> Call[Preview]:
        asked = query(time=wire.time_text(time))
        return Call("POST", f"{self.root}/preview", lambda a: wire.preview_of(content(a)), asked, wire.encoded(said), safe=True)

    # Hearing

    def page(self, whose: Mapping[str, str], after: int | None, limit: int, wait: int) -> Call[Page]:
        def read(answer: Answer) -> Page:
            said = content(answer)
            return Page([wire.heard_of(row) for row in said["notifications"]], said["cursor"])

        asked = dict(whose) | query(after=after, limit=limit, wait=wait or None)
        return Call("GET", f"{self.root}/notifications", read, asked, safe=True)

    def add_consumer(self, name: str, said: Mapping[str, Any]) -> Call[dict[str, Any]]:
        return Call("PUT", f"{self.root}/consumers/{quote(name, safe='')}", described, body=wire.encoded(said), safe=True)

    def acknowledge(self, cursor: int, consumer: str | None) -> Call[None]:
        whose = "notifications" if consumer is None else f"consumers/{quote(consumer, safe='')}"
        return Call("POST", f"{self.root}/{whose}/acknowledge", nothing, body=wire.encoded({"cursor": cursor}), safe=True)

    # The rest

    def stats(self) -> Call[dict[str, Any]]:
        return Call("GET", f"{self.root}/stats", described, safe=True)

    def flush(self) -> Call[None]:
        return Call("POST", f"{self.root}/flush", nothing, safe=True)

    def merge(self) -> Call[None]:
        return Call("POST", f"{self.root}/merge", nothing, safe=True)


def asked_of(k: int | None, relaxed: bool, aggregate: str, time: Any) -> dict[str, str]:
    return query(k=k, relaxed=relaxed or None, aggregate=aggregate, time=wire.time_text(time))


def one(event: Any) -> bytes:
    """An event as the body of a request; a text is JSON already."""
    return event if isinstance(event, bytes) else event.encode() if isinstance(event, str) else wire.encoded(event)


def many(events: Any) -> tuple[bytes, str]:
    """Events as a body: columns as they are, objects a line each."""
    if wire.is_table(events):
        return wire.arrow_bytes(events), ARROW
    rows: Iterable[Any] = events
    return wire.lines(rows), NDJSON


def changed(answer: Answer) -> list[Notification]:
    """The notifications of a change; what of it has no effect is said, as a topic says it."""
    said = content(answer)
    for sentence in said.get("warnings", ()):
        warnings.warn(sentence, NeverMatchesWarning if sentence.endswith("never match") else DroppedWarning, stacklevel=4)
    return [wire.notification_of(row) for row in said["notifications"]]


def told(answer: Answer) -> Notifications:
    return Notifications.of([wire.notification_of(row) for row in content(answer)["notifications"]])
