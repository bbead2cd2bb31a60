"""Boards of ranges: the watchers that filter by intervals of the same attributes and rank by the same one, kept together.

A family's objects are numbered; an object's place is its values of the filtered attributes, its rank `y` ascends as relevance
descends, and (y, tie) is the order. An object that lacks one of these attributes is not in the family. Its watchers are rows
(`watch_columns`), each with its own k and its own list (`lists`).

A change of an object is followed by the watchers that it may concern, one by one: the object is taken out of the list that had it,
and put where it belongs. Only a list that was full and gave one up has to ask for the next best (`next_best`).

Invariant: a list shorter than its k holds every object of its watcher's ranges; a full one the k best.

| array   | shape, dtype   | meaning                                                              |
|---------|----------------|----------------------------------------------------------------------|
| `place` | n x d, float64 | an object's values of the filtered attributes; the first is `objects.x` |
| `stamp` | m, int64       | the last batch in which the watcher's list was saved                 |
| `changed`, `mark` | n, bool and int8 | room for `net`, False and 0 between batches               |

Cost: a change scans the watchers (`concerned`), then O(k) for each that it concerns and O(k log n) for a next best (of several
attributes, a pass over the objects in the first interval whose block may hold a better one).

Painting (`paint`, range-topk III) finds the same watchers by rectangles; `benchmarks/range_topk_boards.py` sets the two beside each
other. In kernels alone neither wins at every size, and no result of a quiet machine is stored yet. Here one family takes every k
and any number of intervals, lists grow with what they hold, and a batch gives its net changes as columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, kernel
from tidings.boards import lists as pool
from tidings.boards import watch_columns as columns
from tidings.boards.lists import (
    ListArrays,
    Net,
    lacks_space,
    net,
    no_saved,
    position,
    put_in,
    save,
    take_out,
    with_room,
    with_space,
)
from tidings.boards.watch_columns import WatchArrays, concerned, inside, place_row, set_bound
from tidings.index.points.object_arrays import ObjectArrays
from tidings.index.points.object_questions import above, locate, min_y, precedes
from tidings.index.points.objects import ObjectIndex, delete_object, insert_object
from tidings.model.filter.clause import Clause, Values
from tidings.model.filter.operands import NumberExpression
from tidings.model.values.schema import Category, Schema

ABSENT = math.nan
FEW = 64
"""Up to so many, the next best are asked for one by one; more are sorted."""
NOBODY = np.empty(0, np.int64)


class Move(NamedTuple):
    """An object's values before and after; None where it is absent."""

    number: int
    old: Values | None
    new: Values | None


@dataclass(frozen=True, slots=True)
class Axis:
    """Filtered by `attributes`, ranked by `y`, greatest first (`sign` 1) or least first (-1)."""

    attributes: tuple[str, ...]
    y: str
    sign: float

    def stands(self, values: Values | None) -> tuple[float, ...]:
        """The object's y and place."""
        if values is None or self.y not in values or any(name not in values for name in self.attributes):
            return ABSENT, *[0.0] * len(self.attributes)
        return -self.sign * float(values[self.y]), *(float(values[name]) for name in self.attributes)


def axis_of(schema: Schema, clauses: Sequence[Clause], by: NumberExpression) -> tuple[Axis, NDArray[np.float64]] | None:
    """The family and intervals (d x 2) of a watcher of ranges; None if it is another kind."""
    if by.linear is None or len(clauses) != 1 or clauses[0] != Clause(ranges=clauses[0].ranges):
        return None
    base, coefficients = by.linear
    if base != 0.0 or len(coefficients) != 1 or abs(next(iter(coefficients.values()))) != 1.0:
        return None
    ((y, sign),) = coefficients.items()
    ranges = clauses[0].ranges or {y: (-math.inf, math.inf)}
    if any(isinstance(schema[name], Category) for name in ranges):
        return None
    return Axis(tuple(sorted(ranges)), y, sign), np.array([ranges[name] for name in sorted(ranges)])


class Scratch(NamedTuple):
    stamp: NDArray[np.int64]
    found: NDArray[np.int32]
    changed: NDArray[np.bool_]
    mark: NDArray[np.int8]


class RangeBoards:
    def __init__(self, axis: Axis) -> None:
        attributes = len(axis.attributes)
        self.axis, self.objects = axis, ObjectIndex()
        self.row: dict[str, int] = {}
        self.name = np.full(columns.BLOCK, None, object)
        self._place = np.zeros((0, attributes))
        self._watchers = columns.empty_watchers(attributes, columns.BLOCK)
        self._lists = pool.empty_lists(columns.BLOCK)
        self._stamp = np.zeros(columns.BLOCK, np.int64)
        self._changed, self._mark = np.zeros(0, np.bool_), np.zeros(0, np.int8)
        self._free: list[int] = []
        self._next, self._unarranged, self._batch = 0, 0, 0

    def __len__(self) -> int:
        return len(self.row)

    def add(self, subscription: str, k: int, ranges: NDArray[np.float64]) -> None:
        """Nothing is changed that anybody sees until the list is made."""
        if not self._free and self._next == len(self.name):
            self._lay_out(np.arange(self._next), 2 * self._next)
        row = self._free[-1] if self._free else self._next
        most = min(k, len(self.objects))
        best = self._sorted_in(ranges)[:most] if most > FEW else NOBODY
        self._lists = admit(self._watchers, self._lists, self.objects.arrays, self._place, row, k, ranges, best)
        if self._free:
            self._free.pop()
        else:
            self._next += 1
        self.row[subscription], self.name[row] = row, subscription
        self._unarranged += 1

    def remove(self, subscription: str) -> None:
        row = self.row.pop(subscription)
        columns.free_row(self._watchers, row)
        self._lists.size[row], self._lists.room[row] = 0, 0
        self.name[row] = None
        self._free.append(row)

    def move(self, moves: Sequence[Move], ties: NDArray[np.float64]) -> Net:
        """Follow the moves, at most one an object, and give the net changes. `ties` are the objects' tie-breaks, by number."""
        if self._unarranged > max(4 * columns.BLOCK, len(self.row) // 8):
            self._lay_out(columns.arranged(self._watchers, np.fromiter(self.row.values(), np.int64)), 5 * len(self.row) // 4)
            self._unarranged = 0
        self._reserve(len(ties))
        self.objects.retie(ties)
        self._batch += 1
        stands = np.array([self.axis.stands(move.new) for move in moves])
        numbers = np.array([move.number for move in moves], np.int64)
        scratch = Scratch(self._stamp, np.empty(len(self.name), np.int32), self._changed, self._mark)
        self._lists, changes = follow_all(
            self._watchers, self._lists, self.objects.arrays, self._place, numbers, stands, scratch, self._batch
        )
        return changes

    def lacking(self, moves: Sequence[Move]) -> Iterator[str]:
        """The watchers, once an object, within whose ranges an object has come that lacks what they rank by."""
        y, attributes, w = self.axis.y, self.axis.attributes, self._watchers
        for move in moves:
            if move.new is not None and y not in move.new and all(name in move.new or name == y for name in attributes):
                held = np.ones(len(w.bound), np.bool_)
                for d, name in enumerate(attributes):
                    # Who has no filter has all of y for an interval.
                    unbounded = (w.lo[d] == -math.inf) & (w.hi[d] == math.inf)
                    held &= unbounded if name == y else (w.lo[d] <= move.new[name]) & (move.new[name] <= w.hi[d])
                yield from self.name[held].tolist()

    def top(self, subscription: str, without: Set[int] = frozenset()) -> list[tuple[int, float]]:
        """(number, y) of a watcher's list, best first; as it would be if the objects `without` were gone."""
        a, row = self._lists, self.row[subscription]
        held = a.held[a.start[row] : a.start[row] + a.size[row]].tolist()
        if not without.isdisjoint(held):
            every = self._sorted_in(np.column_stack([self._watchers.lo[:, row], self._watchers.hi[:, row]]))
            held = every[~np.isin(every, list(without))][: a.k[row]].tolist()
        return list(zip(held, self.objects.arrays.y[held].tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self._watchers, *self._lists, *self.objects.arrays, self._place))

    def check(self) -> None:
        self.objects.check()
        columns.check_watchers(self._watchers)
        tie = self.objects.arrays.tie
        for subscription, row in self.row.items():
            held = [(y, tie[number]) for number, y in self.top(subscription)]
            assert held == sorted(set(held))
            assert self.name[row] == subscription
            assert len(held) <= self._lists.k[row]
            full = len(held) == self._lists.k[row]
            assert self._watchers.bound[row] == ((held[-1][0] if held else -math.inf) if full else math.inf)
        assert not self._mark.any()
        assert not self._changed.any()

    def _sorted_in(self, ranges: NDArray[np.float64]) -> NDArray[np.int64]:
        """All objects in these ranges, best first."""
        a = self.objects.arrays
        there = np.flatnonzero(a.block_of[: len(self._place)] >= 0)
        place = self._place[there]
        there = there[((ranges[:, 0] <= place) & (place <= ranges[:, 1])).all(1)]
        return there[np.lexsort((a.tie[there], a.y[there]))]

    def _lay_out(self, rows: NDArray[np.int64], count: int) -> None:
        """Let these rows be rows 0, 1, ... of `count` or a few more."""
        self._watchers = columns.with_rows(self._watchers, rows, max(count, len(rows) + 1))
        count = len(self._watchers.bound)
        self._lists = pool.moved_pool(pool.with_rows(self._lists, rows, count), 0)  # neighbours' lists lie side by side
        names = np.full(count, None, object)
        names[: len(rows)] = self.name[rows]
        self.name, self._stamp = names, np.zeros(count, np.int64)
        if len(rows) < self._next or (rows[:-1] > rows[1:]).any():
            self.row = {name: row for row, name in enumerate(names[: len(rows)].tolist()) if name is not None}
            self._free = []
        self._next = len(rows)

    def _reserve(self, objects: int) -> None:
        if objects > len(self._place):
            self.objects.reserve(objects)
            wider = np.zeros((max(objects, 2 * len(self._place)), self._place.shape[1]))
            wider[: len(self._place)] = self._place
            self._place = wider
            self._changed, self._mark = np.zeros(len(wider), np.bool_), np.zeros(len(wider), np.int8)


@borrowing_kernel
def next_best(objects: ObjectArrays, place: NDArray[np.float64], w: WatchArrays, row: int, height: float, mark: float) -> int:
    """The best object in a watcher's ranges that ranks after (height, mark); -1 if none."""
    lo, hi = w.lo[0, row], w.hi[0, row]
    if len(w.lo) == 1:
        return min_y(objects, lo, hi, height, mark)
    y, tie, tree = objects.y, objects.tie, objects.tree
    leaves = len(tree) >> 1
    best = -1
    for at in range(locate(objects, lo, True), locate(objects, hi, False) + 1):
        if precedes(y, tie, tree[leaves + at], best):  # else nothing in the block ranks before the best so far
            block = objects.order[at]
            for j in range(objects.size[block]):
                number = objects.member[block, j]
                better = precedes(y, tie, number, best) and above(y, tie, number, height, mark)
                if better and inside(w.lo, w.hi, row, place[number]):
                    best = number
    return best


@kernel
def admit(
    w: WatchArrays,
    a: ListArrays,
    objects: ObjectArrays,
    place: NDArray[np.float64],
    row: int,
    k: int,
    ranges: NDArray[np.float64],
    best: NDArray[np.int64],
) -> ListArrays:
    """Let a free row be a watcher's. `best` is its list, NOBODY if that is to be asked for. Its bound comes last."""
    place_row(w, row, ranges)
    a.k[row], a.size[row], a.room[row] = k, 0, 0
    if not len(best):
        best = best_of(objects, place, w, row, min(k, FEW))
    if len(best):
        a = with_room(a, row, len(best))
    start = a.start[row]
    for j in range(len(best)):
        a.held[start + j], a.y[start + j] = best[j], objects.y[best[j]]
    a.size[row] = len(best)
    bind(w, a, row)
    return a


@kernel
def best_of(objects: ObjectArrays, place: NDArray[np.float64], w: WatchArrays, row: int, most: int) -> NDArray[np.int64]:
    found = np.empty(most, np.int64)
    height, mark = -np.inf, -np.inf
    for count in range(most):
        number = next_best(objects, place, w, row, height, mark)
        if number < 0:
            return found[:count]
        found[count] = number
        height, mark = objects.y[number], objects.tie[number]
    return found


@borrowing_kernel
def bind(w: WatchArrays, a: ListArrays, row: int) -> None:
    """The bound that a list's length and last member mean."""
    size = a.size[row]
    if size < a.k[row]:
        set_bound(w, row, np.inf)
    else:
        set_bound(w, row, a.y[a.start[row] + size - 1] if size else -np.inf)


@borrowing_kernel
def follow(
    w: WatchArrays,
    a: ListArrays,
    objects: ObjectArrays,
    place: NDArray[np.float64],
    row: int,
    number: int,
    old_y: float,
    new_y: float,
) -> None:
    """Let one watcher's list follow an object, which stands at its new place in the index, or nowhere if `new_y` is NaN.

    The list has room for one more, or k."""
    tie, k = objects.tie, a.k[row]
    mark = tie[number]
    full = a.size[row] == k
    if old_y == old_y:
        j = position(a, tie, row, old_y, mark)
        if j < a.size[row] and a.held[a.start[row] + j] == number:
            take_out(a, row, j)
    size = a.size[row]
    if new_y == new_y and inside(w.lo, w.hi, row, place[number]):
        j = position(a, tie, row, new_y, mark)
        if j < size or not full:  # after the last of what was full there may be better ones than this
            put_in(a, row, j, number, new_y)
    if full and a.size[row] < k:
        height, after = -np.inf, -np.inf
        if size:
            last = a.start[row] + size - 1
            height, after = a.y[last], tie[a.held[last]]
        best = next_best(objects, place, w, row, height, after)
        if best >= 0:
            put_in(a, row, size, best, objects.y[best])
    bind(w, a, row)


@kernel
def follow_all(
    w: WatchArrays,
    a: ListArrays,
    objects: ObjectArrays,
    place: NDArray[np.float64],
    numbers: NDArray[np.int64],
    stands: NDArray[np.float64],
    s: Scratch,
    batch: int,
) -> tuple[ListArrays, Net]:
    """`stands` has each object's new y and place. The lists, and their net changes."""
    saved, count = no_saved(), 0
    old = np.empty(place.shape[1])
    for i in range(len(numbers)):
        number, new_y, new = numbers[i], stands[i, 0], stands[i, 1:]
        s.changed[number] = True
        old_y = np.nan
        if objects.block_of[number] >= 0:
            old[:] = place[number]
            old_y = objects.y[number]
            delete_object(objects, number)
        if new_y == new_y:
            place[number] = new
            insert_object(objects, number, new[0], new_y)
        for at in range(concerned(w, old, old_y, new, new_y, s.found)):
            row = s.found[at]
            if s.stamp[row] != batch:
                s.stamp[row] = batch
                if lacks_space(saved, count, a.size[row]):
                    saved = with_space(saved, count, a.size[row])
                save(saved, count, a, row)
                count += 1
            if a.size[row] == a.room[row] < a.k[row]:
                a = with_room(a, row, a.size[row] + 1)
            follow(w, a, objects, place, row, number, old_y, new_y)
    changes = net(a, saved, count, s.changed, s.mark)
    s.changed[numbers] = False
    return a, changes
