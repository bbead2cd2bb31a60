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
from typing import Any, overload

from tidings.boards.boards import Boards
from tidings.errors import StorageWarning
from tidings.match.answers.notifications import Notifications, Part
from tidings.match.answers.results import Match, Notification, instant
from tidings.match.store.hits import Hits
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values
from tidings.model.values.groups import group_of
from tidings.model.values.schema import Schema
from tidings.rank.nearness import ideal_point
from tidings.topic.candidates import candidates_of, first_of_groups
from tidings.topic.gates import GATE, Gates, state_json
from tidings.topic.live.live_events import LiveEvents
from tidings.topic.publications import Publications, event_group
from tidings.topic.ranked_matches import RankedMatches, parted
from tidings.topic.relisting import asks_otherwise, goes_on, known_of, listed_anew, lists, reached
from tidings.topic.telling import differences, in_order, of_changes, parts_of
from tidings.topic.watching import begin_board
from tidings.windows.memory import CLOCK
from tidings.windows.near.ideal_points import POINTS, IdealPoints
from tidings.windows.windows import Windows


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
        self.gates = Gates(key is not None)
        self.touched: set[str] | None = None
        """keys of objects that were put or taken away, for whoever paints; None if nobody does"""
        self.past: dict[str, dict[str, Values]] = {}
        """what boards that are to be made anew recalled: see `restore_boards`"""

    def __deepcopy__(self, memo: dict[int, Any]) -> Publisher:
        """To go on from; boards are left out, which `restore_boards` makes of the objects."""
        made = copy.copy(self)
        made.events, made.windows = copy.deepcopy(self.events, memo), copy.deepcopy(self.windows, memo)
        made.near, made.gates = copy.deepcopy(self.near, memo), copy.deepcopy(self.gates, memo)
        made._expires, made._expiring, made._gone = dict(self._expires), list(self._expiring), list(self._gone)
        made.ranked = RankedMatches(self.schema, made._expires_at, self.ranked.failures)
        made.boards, made.touched = None, None
        return made

    def activate(self, subscription: Subscription, time: int) -> list[Notification]:
        """Begin a board, which starts with its current list, or an ideal point; other windows begin with their first match."""
        if self.boards is None:
            point = ideal_point(subscription)
            if point is not None:
                self.near.activate(subscription, point)
            return []
        s = subscription
        if s.expires is not None and s.expires <= time:
            return []
        return of_changes(begin_board(self.schema, self.boards, self.events, s, self.past.pop(s.id, None), self._now(time)), time)

    def knows(self, id: str) -> bool:
        """Whether there is anything of this subscription's here that a change of it may concern."""
        return self.boards is not None or id in self._expires or id in self.windows or id in self.near or id in self.gates

    def register(self, subscription: Subscription, time: int, replay: bool) -> list[Notification]:
        """Begin, or begin anew; `replay` tells of the live events. A keyed topic's list is told anyway."""
        self.deactivate(subscription.id)
        self.gates.begin(subscription)
        notes = self.activate(subscription, time)
        return self._paced(notes + self.replay(subscription, time) if replay and self.boards is None else notes, None)

    def register_many(self, replaced: Sequence[str], subscriptions: Sequence[Subscription], time: int) -> list[Notification]:
        """Those of a table that begin at once: all of a keyed topic, else ideal points and who has a pace."""
        for id in replaced:
            self.deactivate(id)
            self.gates.drop(id)
        for subscription in subscriptions:
            self.gates.begin(subscription)
        return self._paced([note for subscription in subscriptions for note in self.activate(subscription, time)], None)

    @overload
    def _paced(self, notes: Notifications, events: Publications | None, until: int | None = None) -> Notifications: ...

    @overload
    def _paced(self, notes: list[Notification], events: None) -> list[Notification]: ...

    def _paced(
        self, notes: Notifications | list[Notification], events: Publications | None, until: int | None = None
    ) -> Notifications | list[Notification]:
        """What is heard of these notifications where some have a pace, and of what time brings to gates up to `until`."""
        if not self.gates:
            return notes
        waits = until is not None and self.gates.next_instant is not None and self.gates.next_instant <= until
        if not waits and not any(note.subscription in self.gates for note in notes):
            return notes
        published = {} if events is None else {event.id: event for event in events.events()}

        def group(note: Notification) -> int:
            event = published.get(note.event) or self.events.get(note.event)
            per = self.gates.per(note.subscription)
            return group_of(note.event) if event is None or per is None else event_group(event, per)

        heard = self.gates.through(notes, until, group)
        return Notifications.of(heard) if isinstance(notes, Notifications) else heard

    def deactivate(self, id: str) -> None:
        if self.boards is not None and id in self.boards:
            self.boards.unwatch(id)
        self._expires.pop(id, None)
        if id in self.windows:
            self.windows.deactivate(id)
        if id in self.near:
            self.near.deactivate(id)

    def change(self, before: Subscription, after: Subscription, time: int) -> list[Notification]:
        """What differs. An update keeps the window and what it has delivered, unless the window itself is another."""
        self.gates.go_on(after)
        if self.boards is not None:
            listed = dict(self.boards.top(before.id)) if before.id in self.boards else {}
            if before.clauses == after.clauses and before.by == after.by:
                self.past[before.id] = dict(self.boards.past_of(before.id))
            self.deactivate(before.id)
            return self._paced(differences(after.id, listed, self.activate(after, time), instant(time)), None)
        now = self._now(time)
        if lists(before, after):
            return self._paced(self._relisted(before, after, now), None)
        plain = before.listed is None and after.listed is None and before.similarity is None and after.similarity is None
        told = reached(self.schema, self.events, before, after, now) if plain else []
        if not goes_on(before, after):
            self.deactivate(before.id)
            self.activate(after, time)
        elif after.id in self.windows:
            self._expires_at(after.id, after.expires)
        return self._paced(told, None)

    def _relisted(self, before: Subscription, after: Subscription, now: int) -> list[Notification]:
        """How a list of the k best differs that has other terms, or asks for something else."""
        id = after.id
        if not asks_otherwise(before, after) or not after.is_live(now):
            self._expires_at(id, after.expires if id in self.windows else None)
            return []
        known = known_of(self.schema, self.events, self.windows, self.near, before, now)
        found, told = listed_anew(self.schema, self.events, self.windows.publications, before, after, known, now)
        active = id in self.windows
        self.deactivate(id)
        if ideal_point(after) is not None:
            self.activate(after, now)
        elif active or found:
            self._begin(after)
            self.windows.fill(id, found)
        return told

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
        return self._paced(self._hearing(in_order(events.plain(plain), before + 1, told)), events, self.clock)

    def published(self, events: Iterable[Event]) -> list[tuple[Event, tuple[int, int]]]:
        """Those of the events that are live, with when they were published."""
        return [(event, self.events.published(event.id)) for event in events if not event.deleted and event.id in self.events]

    def replay(self, subscription: Subscription, time: int) -> list[Notification]:
        """The live events that a new subscription is told of: every match, or its list as it would stand, which it then has."""
        s, now = subscription, self._now(time)
        if s.expires is not None and s.expires <= now:
            return []
        live = self.events.search(s.clauses, now)
        if not s.is_ranked:
            scores = [(event, s.score_of(event.values)) for event in live]
            return [Notification(s.id, e.id, score, None, "matched", instant(now)) for e, score in scores if math.isfinite(score)]
        candidates = candidates_of(self.schema, self.events, self.windows.publications, s, live, now)
        k = s.listed
        told = candidates if k is None else first_of_groups(candidates)[:k]
        if k and told:
            self._begin(s)
            heard = {c.number for c in told}
            self.windows.fill(s.id, [c._replace(told=c.number in heard) for c in candidates])
        ranks = [None] * len(told) if k is None else range(1, len(told) + 1)
        return [
            Notification(s.id, c.event, c.relevance, rank, "entered", instant(now)) for c, rank in zip(told, ranks, strict=True)
        ]

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
        self.windows.activate(s.id, s.listed, s.window, s.since, s.error, s.per, s.tz)
        self._expires_at(s.id, s.expires)

    def replace_all(self, events: Publications) -> Notifications:
        """Objects of a keyed topic: those of one instant are one change of the boards."""
        groups = groupby(zip(events.at.tolist(), events.events(), strict=True), key=itemgetter(0))
        instants = [(instant_of, [event for _, event in group]) for instant_of, group in groups]
        if self.gates:
            return Notifications.of([note for instant_of, group in instants for note in self.replace(group, instant_of)])
        return Notifications(
            [part for instant_of, group in instants for part in self._pass(instant_of) + self._put(group, instant_of)]
        )

    def replace(self, events: Sequence[Event], at: int) -> Notifications:
        """Changes of a keyed topic's objects at one instant: their net effect on every board."""
        heard = self._paced(Notifications(self._pass(at)), None, at)
        return Notifications.of([*heard, *self._paced(Notifications(self._put(events, at)), None)])

    def _put(self, events: Sequence[Event], at: int) -> list[Part]:
        now = self._now(at)
        puts: list[tuple[str, Values | None]] = []
        for event in events:
            if event.deleted or (event.expires is not None and event.expires <= now):
                self.events.remove(event.id)
                puts.append((event.id, None))
            else:
                self.events.put(event, at, 0)
                puts.append((event.id, event.values))
        if self.touched is not None:
            self.touched.update(key for key, _ in puts)
        return [] if self.boards is None else parts_of(self.boards.publish_batch(puts, now), at)

    def advance(self, time: int) -> Notifications:
        """What happens by itself up to and including `time`: promotions, and objects that expire."""
        if self.boards is not None:
            return self._paced(Notifications(self._pass(time)), None, time)
        told = in_order(None, 0, [self.windows.advance(time), *self.near.advance(time)])
        heard = self._paced(self._hearing(told), None, time)
        self.events.expire(time)
        return heard

    def _pass(self, time: int) -> list[Part]:
        """The same of a keyed topic, which has no windows; boards may be left out (`__deepcopy__`)."""
        self.windows.advance(time)
        told: list[Part] = []
        for instant_of, key in self.events.expire(time):
            if self.touched is not None:
                self.touched.add(key)
            if self.boards is not None:
                told += self._left(self.boards, instant_of - 1)
                told += parts_of(self.boards.publish(key, None, instant_of), instant_of)
        if self.boards is not None:
            told += self._left(self.boards, time)
            self.boards.expire(time)
        return told

    @staticmethod
    def _left(boards: Boards, time: int) -> list[Part]:
        """Objects whose last update no longer lies in a window."""
        return [part for instant_of, changes in boards.advance(time) for part in parts_of(changes, instant_of)]

    @property
    def next_instant(self) -> int:
        """Nothing happens by itself before it."""
        others = [self.gates.next_instant, None if self.boards is None else self.boards.next_instant]
        due = [instant_of for instant_of in others if instant_of is not None]
        return min(self.windows.next_instant, self.near.next_instant, self.events.next_expiry, *due)

    def top(self, subscription: Subscription, time: int) -> list[Match]:
        """A subscription's list at `time`, best first."""
        id = subscription.id
        if subscription.expires is not None and subscription.expires <= time:
            return []
        if self.boards is not None:
            found = self.boards.top(id, self.events.ended(time), time) if id in self.boards else []
            return [Match(key, id, score) for key, score in found]
        lists = self.near if id in self.near else self.windows
        return [Match(event, id, score) for event, score in lists.top(id, time)] if id in lists else []

    @property
    def clock(self) -> int | None:
        return self.windows.clock

    def _now(self, time: int) -> int:
        return time if self.clock is None else max(time, self.clock)

    def changed_state(self) -> list[tuple[str, str]]:
        """The windows that changed since last asked, by subscription, as JSON."""
        windows = [(id, json.dumps(self.windows.state_of(id))) for id in self.windows.changed()]
        return windows + list(self.near.changed_state()) + self.changed_boards()

    def changed_boards(self) -> list[tuple[str, str]]:
        """What boards recall and where gates stand, of those that changed since last asked, as JSON."""
        boards, gates = self.boards, self.gates.changed()
        return gates if boards is None else gates + [(id, json.dumps({"past": boards.past_of(id)})) for id in boards.changed()]

    def restore(
        self,
        clock: int | None,
        publications: int,
        states: Iterable[tuple[str, str]],
        near: Iterable[Subscription] = (),
        get: Callable[[str], Subscription | None] = lambda id: None,
    ) -> None:
        """`near` are the subscriptions that are nothing but an ideal point; `get` gives any."""
        states = list(states)
        self.gates.restore([(name, body) for name, body in states if name.startswith(GATE)])
        saved: dict[str, Any] = {id: state_json(body) for id, body in states if not id.startswith(GATE)}
        if self.boards is not None:
            self.past = {id: state["past"] for id, state in saved.items() if isinstance(state, dict) and "past" in state}
            saved = {id: state for id, state in saved.items() if id not in self.past}
        problems = self.near.restore(clock, publications, saved, near)
        matched = {id: state for id, state in saved.items() if id not in self.near and not id.startswith(POINTS)}
        self.ranked.forget_slots()
        self.windows, lost = Windows.restore({"clock": clock, "publications": publications, "subscriptions": matched})
        for id in matched:
            subscription = get(id)
            if id in self.windows and subscription is not None:
                self._expires_at(id, subscription.expires)
        for id in list(self.gates.saved) if self.boards is None else ():
            subscription = get(id)
            if subscription is not None:
                self.gates.go_on(subscription)
        for problem in problems + lost:
            warnings.warn(problem, StorageWarning, stacklevel=2)

    def restore_boards(self, subscriptions: Iterable[Subscription]) -> None:
        """Boards hold nothing that objects and subscriptions do not say, but for what they recall (`past`)."""
        if self.boards is not None:
            clock = 0 if self.clock is None else self.clock
            self.events.expire(clock)
            self.boards.publish_batch([(event.id, event.values) for event in self.events], clock)
            for subscription in subscriptions:
                self.gates.go_on(subscription)
                self.activate(subscription, clock)
            self.changed_boards()
