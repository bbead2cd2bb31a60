"""What publishing does: each match goes through its subscription's ranking and becomes a notification, or not.

A subscription without k and window hears of every match (`matched`). One with either has a window (`windows`); it is activated when
it matches for the first time, with the time at which it was registered, so a million idle subscriptions cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tidings.engine.live_events import LiveEvents
from tidings.engine.results import Match, Notification, instant
from tidings.engine.windows import Entry, Windows
from tidings.errors import SchemaError
from tidings.model.clause import Values
from tidings.model.event import Event
from tidings.model.operands import compile_number
from tidings.model.schema import Schema
from tidings.model.subscription import Subscription

Ranked = tuple[Subscription, float]
"""A subscription that has a window, and the score of its match."""


class Publisher:
    def __init__(self, schema: Schema, key: str | None) -> None:
        self.schema = schema
        self.events = LiveEvents(schema)
        self.windows = Windows()
        if key is not None:
            raise SchemaError("keyed topics are not built yet: leave key out")
        self._relevance: dict[str, Callable[[Values], float] | None] = {}

    def deactivate(self, id: str) -> None:
        self._relevance.pop(id, None)
        if id in self.windows:
            self.windows.deactivate(id)

    def change(self, before: Subscription, after: Subscription) -> None:
        """An update keeps the window and what it has delivered, unless the window itself is another."""
        ranking = ("k", "window", "by", "error", "since")
        if any(getattr(before, name) != getattr(after, name) for name in ranking):
            self.deactivate(before.id)

    def publish(self, event: Event, at: int, plain: Sequence[Match], ranked: Sequence[Ranked]) -> list[Notification]:
        """`plain` and `ranked` are all matches of the event; what time brought until `at` comes first."""
        notes = self.advance(at)
        concerned = [(s.id, self._relevant(s, event, score)) for s, score in ranked]
        self.events.put(event)
        notes += [Notification(m.subscription, m.event, m.score, None, "matched", instant(at)) for m in plain]
        return notes + _of_entries(self.windows.publish(event.id, at, event.expires, concerned))

    def _relevant(self, subscription: Subscription, event: Event, score: float) -> float:
        id = subscription.id
        if id not in self._relevance:
            self._relevance[id] = compile_number(self.schema, subscription.by).value if subscription.by is not None else None
            if id not in self.windows:
                assert subscription.since is not None
                self.windows.activate(id, subscription.k, subscription.window, subscription.since, subscription.error)
        relevance = self._relevance[id]
        return score if relevance is None else relevance(event.values)

    def advance(self, time: int) -> list[Notification]:
        """What happens by itself up to and including `time`: promotions, and objects that expire."""
        notes = _of_entries(self.windows.advance(time))
        self.events.expire(time)
        return notes

    def top(self, subscription: Subscription, time: int) -> list[Match]:
        """A subscription's list at `time`, best first."""
        id = subscription.id
        return [Match(event, id, score) for event, score in self.windows.top(id, time)] if id in self.windows else []

    @property
    def clock(self) -> int | None:
        return self.windows.clock

    def changed_state(self) -> list[tuple[str, str]]:
        """The windows that changed since last asked, by subscription, as JSON."""
        return [(id, json.dumps(self.windows.state_of(id))) for id in self.windows.changed()]

    def restore(self, clock: int | None, publications: int, states: Iterable[tuple[str, str]]) -> None:
        saved: dict[str, Any] = {id: json.loads(body) for id, body in states}
        self.windows = Windows.restore({"clock": clock, "publications": publications, "subscriptions": saved})


def is_ranked(subscription: Subscription) -> bool:
    return subscription.k is not None or subscription.window is not None


def _of_entries(entries: Iterable[Entry]) -> list[Notification]:
    return [Notification(e.subscription, e.event, e.relevance, e.rank or None, e.why, instant(e.at)) for e in entries]
