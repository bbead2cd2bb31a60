"""What publishing does: each match goes through its subscription's ranking and becomes a notification, or not.

A subscription without k and window hears of every match (`matched`). One with either has a window (`windows`); it is activated when
it matches for the first time, with the time at which it was registered, so a million idle subscriptions cost nothing. In a keyed
topic every subscription has a board (`boards`): the k best current objects, by its relevance or else its score.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from tidings.boards.boards import Boards
from tidings.boards.changes import Changes
from tidings.errors import StorageWarning
from tidings.match.answers.results import Match, Notification, instant
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema
from tidings.rank.nearness import ideal_point
from tidings.rank.relevance import Relevance, relevance_of
from tidings.topic.live_events import LiveEvents
from tidings.windows.entries import Entries
from tidings.windows.memory import BEGINNING, NEVER
from tidings.windows.near.ideal_points import POINTS, IdealPoints
from tidings.windows.windows import Windows

Ranked = tuple[Subscription, float]
"""A subscription that has a window, and the score of its match."""
Concerned = tuple[Sequence[Match], Sequence[Ranked]]
"""The matches of one event: of subscriptions that have no window, and of those that have."""


class Publisher:
    def __init__(self, schema: Schema, key: str | None, matching: Callable[[Values], Iterable[str]] | None = None) -> None:
        """`matching` gives the subscriptions that an object's values satisfy; boards of a keyed topic ask it."""
        self.schema = schema
        self.events = LiveEvents(schema)
        self.windows = Windows()
        self.near = IdealPoints()
        self.boards = Boards(schema, matching=matching) if key is not None else None
        self._relevance: dict[str, Relevance | None] = {}

    def activate(self, subscription: Subscription, time: int) -> list[Notification]:
        """Begin a board, which starts with its current list, or an ideal point; other windows begin with their first match."""
        if self.boards is None:
            point = ideal_point(subscription)
            if point is not None:
                self.near.activate(subscription, point)
            return []
        s, by = subscription, subscription.by
        if s.expires is not None and s.expires <= time:
            return []
        if by is None:
            return of_changes(self.boards.watch(s.id, s.clauses, s.k, None, s.score_of, s.expires), time)
        if not by.lstrip().startswith("{"):
            return of_changes(self.boards.watch(s.id, s.clauses, s.k, by, None, s.expires), time)
        relevance = relevance_of(self.schema, by)

        def known(values: Values) -> float:
            value = relevance(values, 0)
            return math.nan if value is None else value

        return of_changes(self.boards.watch(s.id, s.clauses, s.k, None, known, s.expires), time)

    def deactivate(self, id: str) -> None:
        if self.boards is not None and id in self.boards:
            self.boards.unwatch(id)
        self._relevance.pop(id, None)
        if id in self.windows:
            self.windows.deactivate(id)
        if id in self.near:
            self.near.deactivate(id)

    def change(self, before: Subscription, after: Subscription, time: int) -> list[Notification]:
        """An update keeps the window and what it has delivered, unless the window itself is another; a board starts anew."""
        if self.boards is None and same_window(before, after):
            return []
        self.deactivate(before.id)
        return self.activate(after, time)

    def publish(self, events: Sequence[Event], at: Sequence[int], concerned: Sequence[Concerned]) -> list[Notification]:
        """Publish in this order: who is told, and what time brought on the way, in order of time."""
        before = self.windows.publications
        slots, relevances, starts = [], [], [0]
        for event, time, (_, ranked) in zip(events, at, concerned, strict=True):
            for subscription, score in ranked:
                relevance = self._relevant(subscription, event, score, time)
                if relevance is not None and math.isfinite(relevance):
                    slots.append(self.windows.slot(subscription.id))
                    relevances.append(relevance)
            starts.append(len(slots))
            self.events.expire(time)
            self.events.put(event)
        if not events:
            return []
        expires = [NEVER if event.expires is None else event.expires for event in events]
        told = self.windows.publish_batch([event.id for event in events], at, expires, starts, slots, relevances)
        plain = [
            (before + 1 + nth, Notification(m.subscription, m.event, m.score, None, "matched", instant(time)))
            for nth, (time, (matches, _)) in enumerate(zip(at, concerned, strict=True))
            for m in matches
        ]
        return in_order(plain, [told, *self.near.publish(events, at)])

    def _relevant(self, subscription: Subscription, event: Event, score: float, at: int) -> float | None:
        id = subscription.id
        if id not in self._relevance:
            self._relevance[id] = relevance_of(self.schema, subscription.by) if subscription.by is not None else None
            if id not in self.windows:
                assert subscription.since is not None
                self.windows.activate(id, subscription.k, subscription.window, subscription.since, subscription.error)
        relevance = self._relevance[id]
        return score if relevance is None else relevance(event.values, at)

    def replace(self, events: Sequence[Event], at: int) -> list[Notification]:
        """Changes of a keyed topic's objects at one instant: their net effect on every board."""
        assert self.boards is not None
        notes = self.advance(at)
        now = at if self.clock is None else max(at, self.clock)
        puts: list[tuple[str, Values | None]] = []
        for event in events:
            if event.deleted or (event.expires is not None and event.expires <= now):
                self.events.remove(event.id)
                puts.append((event.id, None))
            else:
                self.events.put(event)
                puts.append((event.id, event.values))
        return notes + of_changes(self.boards.publish_batch(puts, at), at)

    def advance(self, time: int) -> list[Notification]:
        """What happens by itself up to and including `time`: promotions, and objects that expire."""
        notes = in_order([], [self.windows.advance(time), *self.near.advance(time)])
        for event in self.events.expire(time):
            if self.boards is not None and event.expires is not None:
                notes += of_changes(self.boards.publish(event.id, None, event.expires), event.expires)
        if self.boards is not None:
            self.boards.expire(time)
        return notes

    def top(self, subscription: Subscription, time: int) -> list[Match]:
        """A subscription's list at `time`, best first."""
        id = subscription.id
        if self.boards is not None:
            expired = subscription.expires is not None and subscription.expires <= time
            found = self.boards.top(id, self.events.ended(time)) if id in self.boards and not expired else []
            return [Match(key, id, score) for key, score in found]
        lists = self.near if id in self.near else self.windows
        return [Match(event, id, score) for event, score in lists.top(id, time)] if id in lists else []

    @property
    def clock(self) -> int | None:
        return self.windows.clock

    def changed_state(self) -> list[tuple[str, str]]:
        """The windows that changed since last asked, by subscription, as JSON."""
        return [(id, json.dumps(self.windows.state_of(id))) for id in self.windows.changed()] + list(self.near.changed_state())

    def restore(
        self, clock: int | None, publications: int, states: Iterable[tuple[str, str]], near: Iterable[Subscription] = ()
    ) -> None:
        """`near` are the subscriptions that are nothing but an ideal point."""
        saved: dict[str, Any] = {id: _read(body) for id, body in states}
        problems = self.near.restore(clock, publications, saved, near)
        matched = {id: state for id, state in saved.items() if id not in self.near and not id.startswith(POINTS)}
        self.windows, lost = Windows.restore({"clock": clock, "publications": publications, "subscriptions": matched})
        for problem in problems + lost:
            warnings.warn(problem, StorageWarning, stacklevel=2)

    def restore_boards(self, subscriptions: Iterable[Subscription]) -> None:
        """Boards hold nothing that objects and subscriptions do not say."""
        if self.boards is not None:
            clock = 0 if self.clock is None else self.clock
            self.events.expire(clock)
            self.boards.publish_batch([(event.id, event.values) for event in self.events], clock)
            for subscription in subscriptions:
                self.activate(subscription, clock)


def same_window(before: Subscription, after: Subscription) -> bool:
    """Whether an update leaves the window, and what it has delivered, as it was.

    What is nothing but an ideal point keeps no list of its matches, so a filter given to it, or taken away, makes another window.
    """
    a, b = before, after
    if a.by is not None and (ideal_point(a) is None) != (ideal_point(b) is None):
        return False
    return a.k == b.k and a.window == b.window and a.by == b.by and a.error == b.error and a.since == b.since


def in_order(plain: Sequence[tuple[int, Notification]], told: Sequence[Entries]) -> list[Notification]:
    """By how much had been published, then by time: of what a publication brings, plain matches first.

    A plain match comes with the number of its publication, and is older than all that happens after it.
    """
    notes = [note for _, note in plain]
    for entries in told:
        notes += [Notification(s, event, score, rank or None, why, instant(at)) for s, event, score, rank, why, at in entries]
    if sum(map(len, told)) in (0, len(notes)) and len(told) == 1:
        return notes
    numbers = np.concatenate([np.array([number for number, _ in plain], np.int64), *(entries.number for entries in told)])
    times = np.concatenate([np.full(len(plain), BEGINNING), *(entries.at for entries in told)])
    return [notes[i] for i in np.lexsort((times, numbers)).tolist()]


def _read(body: str) -> Any:
    """A state's body; what is no JSON is no state, and `restore` says so."""
    try:
        return json.loads(body)
    except ValueError:
        return None


_notification = partial(tuple.__new__, Notification)
"""From a row of its fields, at a third of the price of calling the class."""


def of_changes(changes: Changes, at: int) -> list[Notification]:
    return list(map(_notification, zip(*changes.columns, repeat(instant(at)), strict=False)))
