"""Families of painted watchers: those that filter and rank by the same attributes. Each keeps its objects, and its watchers by k.

`Family` serves l <= x <= r; `Family15` serves that together with z <= c (or z >= c, mirrored). `axis` says by which attributes. An
object's place is (x, rank) or (x, z, rank); rank ascends as relevance descends, and is inf for an object that lacks an attribute.
`move` and `move_batch` bring the family up to date and give, for each k, the changed rows of `watch_lists`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tidings.boards.paint.batch import paint_batch
from tidings.boards.paint.one_and_a_half import Objects15, Paint15
from tidings.boards.paint.paint import PaintSparse, paint_each
from tidings.boards.paint.watch_lists import WatchLists
from tidings.index.points.objects import ObjectIndex
from tidings.index.points.watchers import WatchIndex
from tidings.model.filter.clause import Clause, Values
from tidings.model.filter.operands import NumberExpression
from tidings.model.values.schema import Category, Schema

INF = math.inf
Rows = NDArray[np.int32]
Ties = NDArray[np.float64]


class Move(NamedTuple):
    """An object's values before and after; None where it is absent."""

    number: int
    old: Values | None
    new: Values | None


@dataclass(frozen=True, slots=True)
class Axis:
    """`y` is ranked, greatest first (`sign` 1) or least first (-1). `z` is a second one, `mirror` -1 if bounded from below."""

    x: str
    y: str
    sign: float
    z: str | None = None
    mirror: float = 1.0

    def place(self, values: Values | None) -> tuple[float, float, float]:
        """(x, z, rank); z is 0 without a second attribute."""
        if values is None or self.x not in values or self.y not in values or (self.z is not None and self.z not in values):
            return 0.0, 0.0, INF
        z = 0.0 if self.z is None else self.mirror * float(values[self.z])
        return float(values[self.x]), z, -self.sign * float(values[self.y])


def painted_axis(schema: Schema, clauses: Sequence[Clause], by: NumberExpression) -> tuple[Axis, tuple[float, ...]] | None:
    """The axis and point of a watcher that can be painted; None if it cannot."""
    if by.linear is None or len(clauses) != 1 or clauses[0] != Clause(ranges=clauses[0].ranges):
        return None
    base, coefficients = by.linear
    if base != 0.0 or len(coefficients) != 1 or abs(next(iter(coefficients.values()))) != 1.0:
        return None
    ((y, sign),) = coefficients.items()
    ranges = clauses[0].ranges or {y: (-INF, INF)}
    if len(ranges) > 2 or any(isinstance(schema[name], Category) for name in ranges):
        return None
    if len(ranges) == 1:
        ((x, span),) = ranges.items()
        return Axis(x, y, sign), span
    for z, x in (tuple(ranges), tuple(ranges)[::-1]):
        lo, hi = ranges[z]
        if lo == -INF:
            return Axis(x, y, sign, z), (*ranges[x], hi)
        if hi == INF:
            return Axis(x, y, sign, z, -1.0), (*ranges[x], -lo)
    return None


class Group:
    """Watchers of one family that share k: their points, their lists, and their numbers."""

    def __init__(self, k: int, dimensions: int) -> None:
        self.k, self.watchers, self.lists = k, WatchIndex(dimensions), WatchLists(k)
        self.number: dict[str, int] = {}
        self.name: dict[int, str] = {}
        self._free: list[int] = []

    def add(self, subscription: str, point: tuple[float, ...], objects: list[int], ranks: list[float]) -> None:
        number = self._free.pop() if self._free else len(self.number)
        self.number[subscription], self.name[number] = number, subscription
        self.watchers.insert(number, point)
        self.lists.reset(number, point[0], point[1], objects, ranks)

    def remove(self, subscription: str) -> None:
        number = self.number.pop(subscription)
        del self.name[number]
        self._free.append(number)
        self.watchers.delete(number)


class AnyFamily(Protocol):
    axis: Axis
    groups: dict[int, Group]

    def add(self, subscription: str, k: int, point: tuple[float, ...]) -> Group: ...

    def move(self, move: Move, ties: Ties) -> Iterator[tuple[Group, Rows]]: ...

    def move_batch(self, moves: Sequence[Move], ties: Ties) -> Iterator[tuple[Group, Rows]]: ...

    def rank(self, number: int) -> float: ...

    def check(self) -> None: ...


class Family:
    def __init__(self, axis: Axis) -> None:
        self.axis, self.objects = axis, ObjectIndex()
        self.groups: dict[int, Group] = {}
        self._painters: dict[int, PaintSparse] = {}

    def add(self, subscription: str, k: int, point: tuple[float, ...]) -> Group:
        if k not in self.groups:
            self.groups[k] = Group(k, 2)
            self._painters[k] = PaintSparse(self.objects, k, self.groups[k].watchers)
        best = self.objects.best(point[0], point[1], k)
        self.groups[k].add(subscription, point, best, [self.rank(number) for number in best])
        return self.groups[k]

    def move(self, move: Move, ties: Ties) -> Iterator[tuple[Group, Rows]]:
        old, new = self.axis.place(move.old), self.axis.place(move.new)
        if old[2] == new[2] == INF:
            return
        self._take(ties)
        groups = list(self.groups.values())
        told = paint_each(self.objects, [self._painters[g.k] for g in groups], move.number, new[0], new[2], ties[move.number])
        for group, messages in zip(groups, told, strict=True):
            yield group, group.lists.apply(messages, group.watchers, self.objects.arrays.tie)

    def move_batch(self, moves: Sequence[Move], ties: Ties) -> Iterator[tuple[Group, Rows]]:
        places = [(m.number, self.axis.place(m.old)[2], *self.axis.place(m.new)) for m in moves]
        table = np.array([p for p in places if p[1] < INF or p[4] < INF]).reshape(-1, 5)
        self._take(ties)
        before = self.objects.copy()
        numbers = table[:, 0].astype(np.int64)
        for k, group in self.groups.items():
            self.objects.arrays = before.copy().arrays
            messages = paint_batch(self._painters[k], before, numbers, table[:, 2].copy(), table[:, 4].copy())
            yield group, group.lists.apply(messages, group.watchers, self.objects.arrays.tie)

    def rank(self, number: int) -> float:
        return float(self.objects.arrays.y[number])

    def _take(self, ties: Ties) -> None:
        self.objects.reserve(len(ties))
        self.objects.retie(ties)

    def check(self) -> None:
        self.objects.check()
        for group in self.groups.values():
            group.watchers.check()
            group.lists.check(self.objects.arrays.tie)


class Family15:
    def __init__(self, axis: Axis) -> None:
        self.axis, self.objects = axis, Objects15()
        self.groups: dict[int, Group] = {}
        self._painters: dict[int, Paint15] = {}

    def add(self, subscription: str, k: int, point: tuple[float, ...]) -> Group:
        if k not in self.groups:
            self.groups[k] = Group(k, 3)
            self._painters[k] = Paint15(self.objects, k, self.groups[k].watchers)
        best = self.objects.best(k, (point[0], point[1]), point[2])
        self.groups[k].add(subscription, point, best, [self.rank(number) for number in best])
        return self.groups[k]

    def move(self, move: Move, ties: Ties) -> Iterator[tuple[Group, Rows]]:
        old, new = self.axis.place(move.old), self.axis.place(move.new)
        if old[2] == new[2] == INF:
            return
        if old[2] < INF:
            self.objects.delete(move.number)
        old, new = (new[0], new[1], INF) if old[2] == INF else old, (old[0], old[1], INF) if new[2] == INF else new
        told = [(g, self._painters[k].paint(move.number, old, new, float(ties[move.number]))) for k, g in self.groups.items()]
        if new[2] < INF:
            self.objects.insert(move.number, new, float(ties[move.number]))
        for group, (boxes, messages) in told:
            yield group, group.lists.apply(messages, group.watchers, ties, boxes)

    def move_batch(self, moves: Sequence[Move], ties: Ties) -> Iterator[tuple[Group, Rows]]:
        """One by one: there is no Paint-Batch in 1.5 dimensions. The caller nets the rows."""
        rows: dict[int, list[Rows]] = {k: [] for k in self.groups}
        for move in moves:
            for group, changed in self.move(move, ties):
                rows[group.k].append(changed)
        for k, group in self.groups.items():
            yield group, np.concatenate([np.empty((0, 4), np.int32), *rows[k]])

    def rank(self, number: int) -> float:
        return self.objects.place[number][2]

    def check(self) -> None:
        self.objects.check()
        for group in self.groups.values():
            group.watchers.check()
