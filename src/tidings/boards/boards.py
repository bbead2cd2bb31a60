"""Boards: on a keyed topic, every watcher's list of the k best current objects within its filter, and each change of it.

The order is (relevance desc, key asc), where relevance is the `by` expression of an object's values. An object for which `by` has
no finite value (an attribute is missing, a division by zero, an overflow) is in no list; one that lacks a filtered attribute does
not match. A watcher hears `entered`, `left` and `updated` (the object stays in the list and any of its values has changed), one
change an object and publication; a batch gives the net changes. A watcher that has expired hears nothing more. With a window an
object counts while its last update lies in it (`advance` tells who has left), with groups only the best of each, and a filter may
ask for the values before the last update (`plain.Counts`).

Two ways to one answer:
- a filter of nothing but closed intervals, `by` one attribute or its negative: kept together with those alike, as columns
  (`ranges`). Without a filter, `by`'s own attribute serves as the interval's, unbounded;
- anything else: a sorted list of all its matches for each watcher (`plain`).

Cost: a change of an object scans the columns of its families, in blocks; a plain watcher costs nothing if neither it holds the
object nor `matching` (the topic's index) names it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

import numpy as np

from tidings.boards.changes import Change, Changes, Columns
from tidings.boards.key_order import KeyOrder
from tidings.boards.lists import Net
from tidings.boards.plain import EVERYTHING, Counts, PlainBoard
from tidings.boards.ranges import Axis, Move, RangeBoards, axis_of
from tidings.errors import SubscriptionError
from tidings.index.packed.sentinels import NEVER
from tidings.model.filter.clause import PREVIOUS, Clause, Values
from tidings.model.filter.operands import compile_number
from tidings.model.values.schema import Schema

Relevance = Callable[[Values], float]
UNBOUNDED = 2**62
"""The k of who hears of everything."""


class Boards:
    def __init__(self, schema: Schema, matching: Callable[[Values], Iterable[str]] | None = None) -> None:
        """`matching(values)` gives the subscriptions (at least the plain ones) whose clauses the values satisfy."""
        self.schema = schema
        self.failures = Counter[str]()
        """by subscription, objects within its filter that have no finite relevance to it"""
        self._matching = matching
        self._objects: dict[str, Values] = {}
        self._keys: KeyOrder[str] = KeyOrder()
        self._families: dict[Axis, RangeBoards] = {}
        self._home: dict[str, RangeBoards] = {}
        self._plain: dict[str, PlainBoard] = {}
        self._holders: dict[str, set[str]] = {}
        """By key, the plain watchers whose filter it matches."""
        self._attentive: set[str] = set()
        """Plain watchers whose lists may change with an update that changes no value."""
        self._leaving: list[tuple[int, str, str]] = []
        """A heap of (instant, subscription, key); what a board's `ends` does not say is stale."""
        self._expires: dict[str, int] = {}
        self._ends: list[tuple[int, str]] = []
        """A heap of (expires, subscription); what `_expires` does not say is stale."""

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._home or subscription in self._plain

    def watch(
        self,
        subscription: str,
        clauses: Sequence[Clause],
        k: int | None,
        by: str | None,
        relevance: Relevance | None = None,
        expires: int | None = None,
        counted: bool = True,
        counts: Counts = EVERYTHING,
        past: Mapping[str, Values] | None = None,
        time: int | None = None,
    ) -> Changes:
        """Start a watcher and give its list. `relevance` is used in place of `by`, which may then be None; `counted`: its failures
        are counted here. It is `time`, and `past` is what the board recalled before."""
        if subscription in self:
            raise SubscriptionError(f"subscription {subscription!r} already watches")
        if by is None and relevance is None:
            raise SubscriptionError(f"subscription {subscription!r}: a watcher needs by, as '-price'")
        expression = compile_number(self.schema, by) if relevance is None and by is not None else None
        found = axis_of(self.schema, clauses, expression) if expression is not None and counts == EVERYTHING else None
        if found is not None:
            family = self._family(found[0])
            family.add(subscription, UNBOUNDED if k is None else k, found[1])
            self._home[subscription] = family
        else:
            value = relevance if expression is None else expression.value
            assert value is not None
            board = PlainBoard(subscription, tuple(clauses), k, value, self.failures if counted else None, counts)
            for key, values in self._objects.items():
                self._put(board, key, {**values, **(past or {}).get(key, {})}, time)
            self._plain[subscription] = board
            if counts.hears_everything:
                self._attentive.add(subscription)
        if expires is not None:
            self._expires[subscription] = expires
            heapq.heappush(self._ends, (expires, subscription))
        top = self.top(subscription)
        begins = Changes()
        begins.add(Change(subscription, key, score, rank, "entered") for rank, (key, score) in enumerate(top, 1))
        return begins

    def unwatch(self, subscription: str) -> None:
        self._expires.pop(subscription, None)
        if len(self._ends) > 2 * len(self._expires) + 16:
            self._ends = [(expires, id) for id, expires in self._expires.items()]
            heapq.heapify(self._ends)
        if subscription in self._plain:
            board = self._plain.pop(subscription)
            self._attentive.discard(subscription)
            for key in board:
                self._holders[key].discard(subscription)
            return
        family = self._home.pop(subscription)
        family.remove(subscription)
        if not len(family):
            del self._families[family.axis]

    def expire(self, time: int) -> None:
        """Let the watchers go whose time has come."""
        while self._ends and self._ends[0][0] <= time:
            expires, subscription = heapq.heappop(self._ends)
            if self._expires.get(subscription) == expires:
                self.unwatch(subscription)

    def publish(self, key: str, values: Values | None, time: int) -> Changes:
        """Put an object in place of the one of the same key; None takes it away. Objects do not expire here: see the caller."""
        return self.publish_batch([(key, values)], time)

    def publish_batch(self, changes: Iterable[tuple[str, Values | None]], time: int) -> Changes:
        """Many publications at one time, the last of a key counting: their net changes, for those who have not expired."""
        self.expire(time)
        given = dict(changes)
        net = {key: values for key, values in given.items() if self._objects.get(key) != values}
        told = Changes()
        if net or (given and self._attentive):
            moves = [Move(self._keys.add(key), self._objects.get(key), values) for key, values in net.items()]
            for family in self._families.values() if net else ():
                self._tell(told, family, family.move(moves, self._keys.tie))
                self.failures.update(family.lacking(moves))
            told.add(self._publish_plain(given, net, time))
            for key, values in net.items():
                self._settle(key, values)
        return told

    def advance(self, time: int) -> Iterator[tuple[int, Changes]]:
        """What windows bring up to and including `time`, instant by instant: objects leave whose last update lies too far back."""
        while self._leaving and self._leaving[0][0] <= time:
            instant, left = self._leaving[0][0], dict[str, set[str]]()
            self.expire(instant)
            while self._leaving and self._leaving[0][0] == instant:
                _, subscription, key = heapq.heappop(self._leaving)
                board = self._plain.get(subscription)
                if board is not None and board.ends.get(key) == instant:
                    left.setdefault(subscription, set()).add(key)
            told = Changes()
            for subscription, keys in left.items():
                board = self._plain[subscription]
                before = dict(board.top())
                for key in keys:
                    self._put(board, key, None, instant)
                told.add(board.changes(before, ()))
            if len(told):
                yield instant, told

    def seen(self, key: str, values: Values) -> Values:
        """The values of an object that would be put now, and those of the one that is there under the names that filters recall."""
        old = self._objects.get(key) if self._attentive else None
        return values if old is None else {**values, **{f"{PREVIOUS}{name})": value for name, value in old.items()}}

    @property
    def next_instant(self) -> int:
        """Nobody leaves a window before it."""
        return self._leaving[0][0] if self._leaving else NEVER

    def past_of(self, subscription: str) -> Mapping[str, Values]:
        """What a watcher recalls of its matches; it comes of publications alone, so it has to be kept."""
        board = self._plain.get(subscription)
        return {} if board is None else board.past

    @property
    def recalls(self) -> bool:
        """Whether any filter may ask for values before the last update."""
        return bool(self._attentive)

    def changed(self) -> list[str]:
        """The watchers of whom `past_of` is not what it was when last asked."""
        names = [id for id in self._attentive if self._plain[id].changed]
        for id in names:
            self._plain[id].changed = False
        return names

    def top(self, subscription: str, without: Set[str] = frozenset(), time: int | None = None) -> list[tuple[str, float]]:
        """(key, relevance) of a watcher's list, best first; as it would be at `time` if the objects `without` were gone."""
        if subscription in self._plain:
            return self._plain[subscription].top(without, time)
        gone = {self._keys.number[key] for key in without}
        return [(self._keys.key[number], 0.0 - y) for number, y in self._home[subscription].top(subscription, gone)]

    def check(self) -> None:
        self._keys.check()
        assert set(self._keys.number) == set(self._objects)
        for family in self._families.values():
            family.check()
        held = {(key, id) for id, board in self._plain.items() for key in board}
        assert held == {(key, id) for key, ids in self._holders.items() for id in ids}
        assert len(self._ends) <= 2 * len(self._expires) + 16

    def _family(self, axis: Axis) -> RangeBoards:
        if axis not in self._families:
            family = RangeBoards(axis)
            if self._objects:
                family.move([Move(self._keys.number[key], None, values) for key, values in self._objects.items()], self._keys.tie)
            self._families[axis] = family
        return self._families[axis]

    def _tell(self, told: Changes, family: RangeBoards, net: Net) -> None:
        if len(net.watcher):
            subscription, key = family.name[net.watcher].tolist(), self._keys.key[net.object].tolist()
            told.parts.append(Columns(subscription, key, 0.0 - net.y, net.rank.astype(np.int64), net.why))

    def _publish_plain(self, given: Mapping[str, Values | None], net: Mapping[str, Values | None], time: int) -> list[Change]:
        concerned: dict[str, list[str]] = {}
        for key, values in given.items():
            for id in self._concerned(key, values):
                if key in net or id in self._attentive:
                    concerned.setdefault(id, []).append(key)
        changes: list[Change] = []
        for id, keys in concerned.items():
            board = self._plain[id]
            before = dict(board.top())
            for key in keys:
                values = given[key]
                self._put(board, key, None if values is None else board.seen(values, self._objects.get(key)), time)
            changes += board.changes(before, net.keys() & keys)
        return changes

    def _concerned(self, key: str, values: Values | None) -> set[str]:
        """Plain watchers that hold the key or may gain it."""
        found = set(self._holders.get(key, ()))
        if values is not None and self._plain:
            found |= (
                self._plain.keys() if self._matching is None else self._plain.keys() & set(self._matching(self.seen(key, values)))
            )
        return found

    def _put(self, board: PlainBoard, key: str, values: Values | None, time: int | None) -> None:
        """`values` as the board has `seen` them; it is `time`, and who has left a window before is no match."""
        ends = board.counts.ends
        over = values is None or (ends is not None and time is not None and ends(key) <= time)
        board.put(key, values if not over and values is not None and board.matches(self.schema, values) else None)
        if key in board:
            self._holders.setdefault(key, set()).add(board.subscription)
            if ends is not None:
                heapq.heappush(self._leaving, (board.ends[key], board.subscription, key))
        elif key in self._holders:
            self._holders[key].discard(board.subscription)

    def _settle(self, key: str, values: Values | None) -> None:
        if values is None:
            self._objects.pop(key, None)
            self._holders.pop(key, None)
            self._keys.remove(key)
        else:
            self._objects[key] = dict(values)
