"""What publishing does: each match goes through its subscription's ranking and becomes a notification, or not.

A subscription without k and window hears of every match (`matched`). One with either has a window (`windows`); it is activated when
it matches for the first time, with the time at which it was registered, so a million idle subscriptions cost nothing. In a keyed
topic every subscription has a board (`boards`): the k best current objects, by its relevance or else its score.
"""

from __future__ import annotations

import copy
import heapq
import json
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.boards.boards import Boards
from tidings.boards.changes import Changes
from tidings.errors import StorageWarning
from tidings.match.answers.notifications import ENTERED, LEFT, PROMOTED, UPDATED, Notifications, Part
from tidings.match.answers.results import Match, Notification, instant
from tidings.match.store.hits import Hits
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema
from tidings.rank.nearness import ideal_point
from tidings.rank.relevance import relevance_of
from tidings.topic.live_events import LiveEvents
from tidings.topic.publications import Publications
from tidings.topic.ranked_matches import RankedMatches, parted
from tidings.windows.entries import Entries
from tidings.windows.memory import BEGINNING, CLOCK
from tidings.windows.near.ideal_points import POINTS, IdealPoints
from tidings.windows.windows import Candidate, Windows

BOARD_WHY = np.array([LEFT, ENTERED, UPDATED], np.int8)
"""What the reasons of boards are called here."""


class Publisher:
    def __init__(self, schema: Schema, key: str | None, matching: Callable[[Values], Iterable[str]] | None = None) -> None:
        """`matching` gives the subscriptions that an object's values satisfy; boards of a keyed topic ask it."""
        self.schema = schema
        self.events = LiveEvents(schema)
        self.windows = Windows()
        self.near = IdealPoints()
        self.boards = Boards(schema, matching=matching) if key is not None else None
        self.ranked = RankedMatches(schema, self._expires_at)
        if self.boards is not None:
            self.boards.failures = self.ranked.failures
        self._expires: dict[str, int] = {}
        """of those that have a window and an end: from when on they hear nothing"""
        self._expiring: list[tuple[int, str]] = []
        self._gone: list[str] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Publisher:
        """To go on from; boards are left out, which `restore_boards` makes of the objects."""
        made = copy.copy(self)
        made.events, made.windows = copy.deepcopy(self.events, memo), copy.deepcopy(self.windows, memo)
        made.near = copy.deepcopy(self.near, memo)
        made._expires, made._expiring, made._gone = dict(self._expires), list(self._expiring), list(self._gone)
        made.ranked = RankedMatches(self.schema, made._expires_at, self.ranked.failures)
        made.boards = None
        return made

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
            # A score without a finite value is no match, and matching counts it.
            return of_changes(self.boards.watch(s.id, s.clauses, s.k, None, s.score_of, s.expires, counted=False), time)
        if not by.lstrip().startswith("{") and not s.terms:
            return of_changes(self.boards.watch(s.id, s.clauses, s.k, by, None, s.expires), time)
        relevance = relevance_of(self.schema, by)

        def known(values: Values) -> float:
            """Of a match: what has no finite score is none, whatever it is ranked by."""
            value = relevance(values, 0) if not s.terms or math.isfinite(s.score_of(values)) else None
            return math.nan if value is None else value

        return of_changes(self.boards.watch(s.id, s.clauses, s.k, None, known, s.expires), time)

    def knows(self, id: str) -> bool:
        """Whether there is anything of this subscription's here that a change of it may concern."""
        return self.boards is not None or id in self._expires or id in self.windows or id in self.near

    def register(self, subscription: Subscription, time: int, replay: bool) -> list[Notification]:
        """Begin, or begin anew; `replay` tells of the live events. A keyed topic's list is told anyway."""
        self.deactivate(subscription.id)
        notes = self.activate(subscription, time)
        return notes + self.replay(subscription, time) if replay and self.boards is None else notes

    def register_many(self, replaced: Sequence[str], subscriptions: Sequence[Subscription], time: int) -> list[Notification]:
        for id in replaced:
            self.deactivate(id)
        return [note for subscription in subscriptions for note in self.activate(subscription, time)]

    def deactivate(self, id: str) -> None:
        if self.boards is not None and id in self.boards:
            self.boards.unwatch(id)
        self._expires.pop(id, None)
        if id in self.windows:
            self.windows.deactivate(id)
        if id in self.near:
            self.near.deactivate(id)

    def change(self, before: Subscription, after: Subscription, time: int) -> list[Notification]:
        """An update keeps the window and what it has delivered, unless the window itself is another; a board starts anew."""
        if self.boards is None and same_window(before, after):
            if after.id in self.windows:
                self._expires_at(after.id, after.expires)
            return []
        self.deactivate(before.id)
        return self.activate(after, time)

    def publish(self, events: Publications, hits: Hits) -> Notifications:
        """Publish in this order: who is told, and what time brought on the way, in order of time."""
        if not len(events):
            return Notifications([])
        first = self.windows.publications + 1
        told = self.told(events, hits)
        events.join(self.events, first)
        self.events.expire(int(self.windows.memory.meter[CLOCK]))
        return told

    def told(self, events: Publications, hits: Hits) -> Notifications:
        """The same, without putting them among the live ones."""
        if not len(events):
            return Notifications([])
        before = self.windows.publications
        plain, ranked = parted(hits)
        told = []
        if ranked or len(self.windows):
            concerned = self.ranked.concerned(self.windows, ranked, events)
            told.append(self.windows.publish_batch(events.ids, events.at, events.expires, *concerned))
        else:
            self.windows.pass_by(events.at)
        told += self.near.publish(events.ids, events.at, events.expires, events.column)
        return self._hearing(in_order(events.plain(plain), before + 1, told))

    def published(self, events: Iterable[Event]) -> list[tuple[Event, tuple[int, int]]]:
        """Those of the events that are live, with when they were published."""
        return [(event, self.events.published(event.id)) for event in events if not event.deleted and event.id in self.events]

    def replay(self, subscription: Subscription, time: int) -> list[Notification]:
        """The live events that a new subscription is told of: every match, or its list as it would stand, which it then has."""
        s, now = subscription, time if self.clock is None else max(time, self.clock)
        if s.expires is not None and s.expires <= now:
            return []
        live = self.events.search(s.clauses, now)
        if not s.is_ranked:
            scores = [(event, s.score_of(event.values)) for event in live]
            return [Notification(s.id, e.id, score, None, "matched", instant(now)) for e, score in scores if math.isfinite(score)]
        candidates = self._candidates(s, live, now)
        told = candidates if s.k is None else candidates[: s.k]
        if s.k and told:
            self._begin(s)
            self.windows.fill(s.id, [c._replace(told=nth < s.k) for nth, c in enumerate(candidates)])
        ranks = [None] * len(told) if s.k is None else range(1, len(told) + 1)
        return [
            Notification(s.id, c.event, c.relevance, rank, "entered", instant(now)) for c, rank in zip(told, ranks, strict=True)
        ]

    def _candidates(self, subscription: Subscription, live: Sequence[Event], now: int) -> list[Candidate]:
        """Of the live matches those within the window, best first."""
        s, window = subscription, subscription.window
        oldest = BEGINNING if window is None or window.duration is None else now - window.duration
        first = BEGINNING if window is None or window.count is None else self.windows.publications - window.count
        judge, found = None if s.by is None else relevance_of(self.schema, s.by), []
        for event in live:
            at, number = self.events.published(event.id)
            if at > oldest and number > first:
                relevance = s.score_of(event.values) if judge is None else judge(event.values, at)
                if relevance is not None and math.isfinite(relevance):
                    found.append(Candidate(event.id, relevance, at, event.expires, number, False))
        return sorted(found, key=lambda c: (-c.relevance, c.time, c.event, c.number))

    def _hearing(self, notes: Notifications) -> Notifications:
        """Without what would reach a subscription from its end on; its window is given up."""
        if self.clock is None or not self._expiring or self._expiring[0][0] > self.clock:
            return notes
        ended: dict[str, datetime] = {}
        while self._expiring and self._expiring[0][0] <= self.clock:
            expires, id = heapq.heappop(self._expiring)
            if self._expires.get(id) == expires:
                ended[id] = instant(expires)
        for id in ended:
            self.deactivate(id)
        self._gone += ended
        return Notifications.of([n for n in notes if n.subscription not in ended or n.at < ended[n.subscription]])

    def _expires_at(self, id: str, expires: int | None) -> None:
        self._expires.pop(id, None)
        if expires is not None:
            self._expires[id] = expires
            heapq.heappush(self._expiring, (expires, id))

    def gone_state(self) -> list[str]:
        """What need not be kept any more."""
        gone, self._gone = self._gone + self.near.gone_state(), []
        return [id for id in gone if id not in self.windows]

    def _begin(self, subscription: Subscription) -> None:
        s = subscription
        assert s.since is not None
        self.windows.activate(s.id, s.k, s.window, s.since, s.error)
        self._expires_at(s.id, s.expires)

    def replace_all(self, events: Publications) -> Notifications:
        """Objects of a keyed topic: those of one instant are one change of the boards."""
        parts: list[Part] = []
        for instant_of, group in groupby(zip(events.at.tolist(), events.events(), strict=True), key=itemgetter(0)):
            parts += self._replace([event for _, event in group], instant_of)
        return Notifications(parts)

    def replace(self, events: Sequence[Event], at: int) -> Notifications:
        """Changes of a keyed topic's objects at one instant: their net effect on every board."""
        return Notifications(self._replace(events, at))

    def _replace(self, events: Sequence[Event], at: int) -> list[Part]:
        told = self._pass(at)
        now = at if self.clock is None else max(at, self.clock)
        puts: list[tuple[str, Values | None]] = []
        for event in events:
            if event.deleted or (event.expires is not None and event.expires <= now):
                self.events.remove(event.id)
                puts.append((event.id, None))
            else:
                self.events.put(event)
                self.events.note([event.id], [at], 0)
                puts.append((event.id, event.values))
        return told if self.boards is None else told + parts_of(self.boards.publish_batch(puts, at), at)

    def advance(self, time: int) -> Notifications:
        """What happens by itself up to and including `time`: promotions, and objects that expire."""
        if self.boards is not None:
            return Notifications(self._pass(time))
        told = in_order(None, 0, [self.windows.advance(time), *self.near.advance(time)])
        self.events.expire(time)
        return self._hearing(told)

    def _pass(self, time: int) -> list[Part]:
        """The same of a keyed topic, which has no windows; boards may be left out (`__deepcopy__`)."""
        self.windows.advance(time)
        told: list[Part] = []
        for instant_of, key in self.events.expire(time):
            if self.boards is not None:
                told += parts_of(self.boards.publish(key, None, instant_of), instant_of)
        if self.boards is not None:
            self.boards.expire(time)
        return told

    @property
    def next_instant(self) -> int:
        """Nothing happens by itself before it."""
        return min(self.windows.next_instant, self.near.next_instant, self.events.next_expiry)

    def top(self, subscription: Subscription, time: int) -> list[Match]:
        """A subscription's list at `time`, best first."""
        id = subscription.id
        if subscription.expires is not None and subscription.expires <= time:
            return []
        if self.boards is not None:
            found = self.boards.top(id, self.events.ended(time)) if id in self.boards else []
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
        self,
        clock: int | None,
        publications: int,
        states: Iterable[tuple[str, str]],
        near: Iterable[Subscription] = (),
        get: Callable[[str], Subscription | None] = lambda id: None,
    ) -> None:
        """`near` are the subscriptions that are nothing but an ideal point; `get` gives any."""
        saved: dict[str, Any] = {id: _read(body) for id, body in states}
        problems = self.near.restore(clock, publications, saved, near)
        matched = {id: state for id, state in saved.items() if id not in self.near and not id.startswith(POINTS)}
        self.ranked.forget_slots()
        self.windows, lost = Windows.restore({"clock": clock, "publications": publications, "subscriptions": matched})
        for id in matched:
            subscription = get(id)
            if id in self.windows and subscription is not None:
                self._expires_at(id, subscription.expires)
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


def told_part(entries: Entries) -> Part:
    """Names are looked up at once: a slot may have another owner when somebody asks."""
    names = entries.names
    subscription = [names[slot] for slot in entries.slot.tolist()]
    why = np.where(entries.promoted, PROMOTED, ENTERED).astype(np.int8)
    return Part(subscription, entries.ids, entries.relevance, entries.rank, why, entries.at)


def in_order(plain: tuple[NDArray[np.integer], Part] | None, first: int, told: Sequence[Entries]) -> Notifications:
    """By how much had been published, then by time: of what a publication brings, plain matches first.

    A plain match comes with the row of its event, the rows being the publications from `first` on, and is older than all that
    happens after it.
    """
    told = [entries for entries in told if len(entries)]
    parts = [told_part(entries) for entries in told]
    if plain is None:
        numbers, times = [], []
    else:
        row, part = plain
        parts.insert(0, part)
        numbers, times = [row + np.int64(first)], [np.full(len(row), BEGINNING)]
    if len(parts) < 2:
        return Notifications(parts)
    numbers += [entries.number for entries in told]
    times += [entries.at for entries in told]
    return Notifications(parts, np.lexsort((np.concatenate(times), np.concatenate(numbers))))


def _read(body: str) -> Any:
    """A state's body; what is no JSON is no state, and `restore` says so."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def of_changes(changes: Changes, at: int) -> list[Notification]:
    return [note for part in parts_of(changes, at) for note in part.rows()]


def parts_of(changes: Changes, at: int) -> list[Part]:
    return [
        Part(part.subscription, part.key, part.score, part.rank, BOARD_WHY[part.why], np.full(len(part.key), at))
        for part in changes.parts
    ]
