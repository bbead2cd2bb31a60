"""Boards: on a keyed topic, every watcher's list of the k best current objects within its filter, and each change of it.

The order is (relevance desc, key asc), where relevance is the `by` expression of an object's values. An object for which `by` has
no value (an attribute is missing, a division by zero) is in no list; one that lacks a filtered attribute does not match. A watcher
hears `entered`, `left` and `updated` (the object stays in the list and any of its values has changed), one change an object and
publication; a batch gives the net changes.

Two ways to one answer:
- a filter of one closed interval on one attribute, `by` one attribute or its negative: painted (`paint`). Such watchers are grouped
  by (attribute, by) and k. Without a filter, `by`'s own attribute serves as the interval's, unbounded;
- anything else, and k = None (every matching object): a sorted list of all its matches for each watcher (`plain_boards`).

Cost: a painted publication is sublinear in the watchers that it does not concern; a plain one asks `matching` (the topic's
index), or else tries every plain watcher.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidings.engine.board_changes import Change, changes_of
from tidings.engine.key_order import KeyOrder
from tidings.engine.paint import PaintSparse, paint_each
from tidings.engine.paint_batch import paint_batch
from tidings.engine.plain_boards import PlainBoard
from tidings.engine.watch_lists import WatchLists
from tidings.errors import SubscriptionError
from tidings.index.object_index import ObjectIndex
from tidings.index.watch_index import WatchIndex
from tidings.model.clause import Clause, Values
from tidings.model.operands import NumberExpression, compile_number
from tidings.model.schema import Category, Schema

Relevance = Callable[[Values], float]
Place = tuple[float, float]
ABSENT = (0.0, math.inf)


@dataclass(frozen=True, slots=True)
class Axis:
    """What a family of watchers shares: the filtered attribute, the ranked one, and 1 (greatest first) or -1 (least first)."""

    x: str
    y: str
    sign: float

    def place(self, values: Values | None) -> Place:
        """(x, rank) of an object, ABSENT without both attributes. Rank ascends as relevance descends."""
        if values is None or self.x not in values or self.y not in values:
            return ABSENT
        return float(values[self.x]), -self.sign * float(values[self.y])


class Group:
    """Watchers of one family that share k."""

    def __init__(self, objects: ObjectIndex, k: int) -> None:
        self.watchers, self.lists = WatchIndex(), WatchLists(k)
        self.painter = PaintSparse(objects, k, self.watchers)
        self.number: dict[str, int] = {}
        self.name: dict[int, str] = {}
        self._free: list[int] = []

    def add(self, subscription: str, l: float, r: float) -> int:
        number = self._free.pop() if self._free else len(self.number)
        self.number[subscription], self.name[number] = number, subscription
        self.watchers.insert(number, (l, r))
        objects = self.painter.objects
        best: list[int] = []
        rank, tie = -math.inf, -math.inf
        while len(best) < self.painter.k and (found := objects.min_y(l, r, rank, tie)) >= 0:
            rank, tie = float(objects.arrays.y[found]), float(objects.arrays.tie[found])
            best.append(found)
        self.lists.reset(number, l, r, best, [float(objects.arrays.y[o]) for o in best])
        return number

    def remove(self, subscription: str) -> None:
        number = self.number.pop(subscription)
        del self.name[number]
        self._free.append(number)
        self.watchers.delete(number)


@dataclass(slots=True)
class Family:
    axis: Axis
    objects: ObjectIndex
    groups: dict[int, Group] = field(default_factory=dict)
    version: int = 0


class Boards:
    """`x` names the only attribute whose intervals are painted; None lets every attribute's be."""

    def __init__(self, schema: Schema, x: str | None = None, matching: Callable[[Values], Iterable[str]] | None = None) -> None:
        """`matching(values)` gives the subscriptions (at least the plain ones) whose clauses the values satisfy."""
        self.schema, self.x = schema, x
        self._matching = matching
        self._objects: dict[str, Values] = {}
        self._keys = KeyOrder()
        self._families: dict[Axis, Family] = {}
        self._plain: dict[str, PlainBoard] = {}
        self._home: dict[str, tuple[Family, Group]] = {}

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._home or subscription in self._plain

    def watch(
        self, subscription: str, clauses: Sequence[Clause], k: int | None, by: str | None, relevance: Relevance | None = None
    ) -> list[Change]:
        """Start a watcher and give its list. `relevance` is used in place of `by`, which may then be None."""
        if subscription in self:
            raise SubscriptionError(f"subscription {subscription!r} already watches")
        if by is None and relevance is None:
            raise SubscriptionError(f"subscription {subscription!r}: a watcher needs by, as '-price'")
        expression = compile_number(self.schema, by) if relevance is None and by is not None else None
        span = self._span(clauses, k, expression)
        if span is None:
            value = relevance if expression is None else expression.value
            assert value is not None
            board = PlainBoard(subscription, tuple(clauses), k, value)
            for key, values in self._objects.items():
                board.put(key, values if board.matches(self.schema, values) else None)
            self._plain[subscription] = board
            return board.start()
        assert k is not None
        axis, l, r = span
        family = self._family(axis)
        group = family.groups.setdefault(k, Group(family.objects, k))
        group.add(subscription, l, r)
        self._home[subscription] = family, group
        return [Change(subscription, key, score, rank, "entered") for rank, (key, score) in enumerate(self.top(subscription), 1)]

    def unwatch(self, subscription: str) -> None:
        if subscription in self._plain:
            del self._plain[subscription]
            return
        family, group = self._home.pop(subscription)
        group.remove(subscription)
        if not group.number:
            del family.groups[group.painter.k]
        if not family.groups:
            del self._families[family.axis]

    def publish(self, key: str, values: Values | None, time: int = 0) -> list[Change]:
        """Put an object in place of the one of the same key; None takes it away. `time` is the caller's: nothing here expires."""
        old = self._objects.get(key)
        if old == values:
            return []
        number = self._keys.add(key)
        changes: list[Change] = []
        for family in self._families.values():
            changes += self._paint(family, number, family.axis.place(old), family.axis.place(values))
        changes += self._publish_plain({key: values})
        self._settle(key, values)
        return changes

    def publish_batch(self, changes: Iterable[tuple[str, Values | None]], time: int = 0) -> list[Change]:
        """Many publications at once, the last of a key counting: their net changes."""
        net = {key: values for key, values in dict(changes).items() if self._objects.get(key) != values}
        for key in net:
            self._keys.add(key)
        result: list[Change] = []
        for family in self._families.values():
            result += self._paint_batch(family, net)
        result += self._publish_plain(net)
        for key, values in net.items():
            self._settle(key, values)
        return result

    def top(self, subscription: str) -> list[tuple[str, float]]:
        """(key, relevance) of a watcher's list, best first."""
        if subscription in self._plain:
            return self._plain[subscription].top()
        _, group = self._home[subscription]
        return [(self._keys.key[number], _relevance(rank)) for number, rank in group.lists.top(group.number[subscription])]

    def check(self) -> None:
        self._keys.check()
        for family in self._families.values():
            family.objects.check()
            assert len(family.objects) == sum(family.axis.place(v) != ABSENT for v in self._objects.values())
            for group in family.groups.values():
                group.watchers.check()
                group.lists.check(family.objects.arrays.tie)

    def _span(self, clauses: Sequence[Clause], k: int | None, by: NumberExpression | None) -> tuple[Axis, float, float] | None:
        """The family and interval of a watcher that can be painted."""
        if not k or by is None or by.linear is None or len(clauses) != 1:
            return None
        base, coefficients = by.linear
        if base != 0.0 or len(coefficients) != 1 or abs(next(iter(coefficients.values()))) != 1.0:
            return None
        ((y, sign),) = coefficients.items()
        ranges = clauses[0].ranges or {y: (-math.inf, math.inf)}
        if clauses[0] != Clause(ranges=clauses[0].ranges) or len(ranges) != 1:
            return None
        ((x, (l, r)),) = ranges.items()
        if isinstance(self.schema[x], Category) or (self.x is not None and x != self.x):
            return None
        return Axis(x, y, sign), l, r

    def _family(self, axis: Axis) -> Family:
        if axis not in self._families:
            places = [(self._keys.number[key], *axis.place(values)) for key, values in self._objects.items()]
            present = np.array([p for p in places if p[2] < math.inf]).reshape(-1, 3)
            objects = ObjectIndex(len(self._keys.tie))
            numbers = present[:, 0].astype(np.int64)
            objects.insert_many(numbers, present[:, 1].copy(), present[:, 2].copy(), self._keys.tie[numbers])
            self._families[axis] = Family(axis, objects, version=self._keys.version)
        return self._families[axis]

    def _order_ties(self, family: Family) -> None:
        """Give the family's index the ties of all keys, if they have been spread anew or numbers were added."""
        family.objects.reserve(len(self._keys.tie))
        family.objects.retie(self._keys.tie)

    def _paint(self, family: Family, number: int, old: Place, new: Place) -> list[Change]:
        if old == new == ABSENT:
            return []
        self._order_ties(family)
        groups = list(family.groups.values())
        told = paint_each(family.objects, [g.painter for g in groups], number, *new, float(self._keys.tie[number]))
        changes: list[Change] = []
        for group, messages in zip(groups, told, strict=True):
            rows = group.lists.apply(messages, group.watchers, family.objects.arrays.tie)
            changes += self._changes(group, rows, family.objects, {number: old[1]}, {number})
        return changes

    def _paint_batch(self, family: Family, net: dict[str, Values | None]) -> list[Change]:
        self._order_ties(family)
        before = family.objects.copy()
        moves = [
            (self._keys.number[key], *family.axis.place(self._objects.get(key)), *family.axis.place(v)) for key, v in net.items()
        ]
        table = np.array([m for m in moves if m[2] < math.inf or m[4] < math.inf]).reshape(-1, 5)
        numbers, x, y = table[:, 0].astype(np.int64), table[:, 3].copy(), table[:, 4].copy()
        old = dict(zip(numbers.tolist(), table[:, 2].tolist(), strict=True))
        changes: list[Change] = []
        for group in family.groups.values():
            family.objects.arrays = before.copy().arrays
            messages = paint_batch(group.painter, before, numbers, x, y)
            rows = group.lists.apply(messages, group.watchers, family.objects.arrays.tie)
            changes += self._changes(group, rows, family.objects, old, set(old))
        return changes

    def _changes(
        self, group: Group, rows: NDArray[np.int32], objects: ObjectIndex, old: dict[int, float], changed: set[int]
    ) -> list[Change]:
        """Rows of (watcher, object, was, is) as net changes; `old` has the former ranks of the changed objects."""
        return changes_of(
            rows,
            changed,
            lambda watcher: group.name[watcher],
            lambda number: self._keys.key[number],
            lambda number: _relevance(old[number] if number in old else float(objects.arrays.y[number])),
            lambda watcher: [(number, _relevance(rank)) for number, rank in group.lists.top(watcher)],
        )

    def _publish_plain(self, net: dict[str, Values | None]) -> list[Change]:
        if not self._plain:
            return []
        concerned: dict[str, dict[str, Values | None]] = {}
        for key, values in net.items():
            for id in self._concerned(key, values):
                board = self._plain[id]
                concerned.setdefault(id, {})[key] = values if values is not None and board.matches(self.schema, values) else None
        return [change for id, puts in concerned.items() for change in self._plain[id].put_many(puts)]

    def _concerned(self, key: str, values: Values | None) -> set[str]:
        """Plain watchers that may hold the key or gain it."""
        found = {id for id, board in self._plain.items() if key in board}
        if values is not None:
            found |= set(self._plain) if self._matching is None else set(self._matching(values)) & set(self._plain)
        return found

    def _settle(self, key: str, values: Values | None) -> None:
        if values is None:
            self._objects.pop(key, None)
            self._keys.remove(key)
        else:
            self._objects[key] = dict(values)


def _relevance(rank: float) -> float:
    return 0.0 - rank
