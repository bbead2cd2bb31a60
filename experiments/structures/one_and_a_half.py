"""Paint in 1.5 dimensions: watchers of l <= x <= r and z <= c, told of objects (x, z, y).

A watcher is the point (l, r, c). As c grows, more objects count: the influence region of an object is a stack of *slabs*, in each
of which c reaches the same objects and the region is the staircase of `paint.tiles`. The slabs of an object i start at u = z of
i; each further one starts at the z of the next object that ranks before i and lies between the slab's outermost neighbours. A
sweep of i to a lower rank exposes objects slab by slab; an object exposed in one slab is exposed in every higher one in which it
still lies between the neighbours, and the slab is divided where its z falls.

Ranks are (y, tie), made distinct numbers by `KeyOrder`, so that boxes can ask for them. Objects are points (x, -x, z, rank) of a
`PointTree`; the least -x is the nearest to the west.

A message is a box of the subscription space (2 x 3) and a row of `paint.tiles` (whose first four columns are its l and r).

Cost: for each exposed object a few k-d searches a slab it lies in; the bookkeeping is plain Python.

The paper's structure, for its experiments: as boards of a topic the watchers' columns (`tidings.boards.ranges`) were far cheaper at
1,000 watchers, which `benchmarks/range_topk_boards.py` measures; no result is stored yet, and larger numbers were not tried.

Paper: range-topk, appendix D, Alg. 6 to 11.

Deviations. (1) The slabs' staircases, searches and merges are those of Alg. 7 to 11; the bookkeeping of cached exposed objects is a
recomputation for the slabs that changed. (2) A change of x or z is a deletion and an insertion. (3) Equal x and z are allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.boards.key_order import KeyOrder
from tidings.boards.paint.sparse import merge_tiles, snap_tiles
from tidings.boards.paint.tiles import WIDTH, Messages, insert_neighbour, paint_exposed, paint_ir
from tidings.index.points.tree import PointTree
from tidings.index.points.watchers import WatchIndex

INF = math.inf
X, MIRROR, Z, RANK = 0, 1, 2, 3
Place = tuple[float, float, float]
"""(x, z, y); y = inf is absent."""
Told = tuple[NDArray[np.float64], Messages]
"""Boxes (m x 2 x 3) and rows of messages."""


def after(value: float) -> float:
    return math.nextafter(value, INF)


def before(value: float) -> float:
    return math.nextafter(value, -INF)


class Objects15:
    """Objects by number; `rank` ascends with (y, tie)."""

    def __init__(self) -> None:
        self.place: dict[int, Place] = {}
        self.tie: dict[int, float] = {}
        self._order: KeyOrder[tuple[float, float, int]] = KeyOrder()
        self._tree = PointTree(4)
        self._version = 0

    def insert(self, number: int, place: Place, tie: float) -> None:
        self.place[number], self.tie[number] = place, tie
        self._order.add(self._key(number))
        if self._order.version != self._version:
            self._version = self._order.version
            points = np.array([self._point(n) for n in self.place])
            self._tree = PointTree.build(np.fromiter(self.place, np.int32), points)
        else:
            self._tree.insert(number, self._point(number))

    def delete(self, number: int) -> None:
        self._tree.delete(number)
        self._order.remove(self._key(number))
        del self.place[number], self.tie[number]

    def rank(self, number: int) -> float:
        return float(self._order.tie[self._order.number[self._key(number)]])

    def rank_before(self, y: float, tie: float) -> float:
        """A number not below the ranks of the objects before (y, tie) and below those of the others."""
        return self._order.floor((y, tie, -1))

    def _key(self, number: int) -> tuple[float, float, int]:
        return self.place[number][2], self.tie[number], number

    def _point(self, number: int) -> tuple[float, float, float, float]:
        x, z, _ = self.place[number]
        return x, -x, z, self.rank(number)

    def least(self, axis: int, x: tuple[float, float], z: tuple[float, float], rank: tuple[float, float]) -> int:
        """The object least on an axis with x, z and rank in closed intervals; -1 if none."""
        return self._tree.least((x[0], -x[1], z[0], rank[0]), (x[1], -x[0], z[1], rank[1]), axis)

    def all_in(self, x: tuple[float, float], z: tuple[float, float], rank: tuple[float, float]) -> list[int]:
        return [int(n) for n in self._tree.report((x[0], -x[1], z[0], rank[0]), (x[1], -x[0], z[1], rank[1]))]

    def first_k(self, x: float, z: float, rank: float, side: int, k: int) -> list[float]:
        """x of the first k objects to the west (<= x) or east (> x), with z at most z and rank at most rank."""
        found: list[float] = []
        span = (-INF, x) if side < 0 else (after(x), INF)
        while len(found) < k:
            nearest = self.least(MIRROR if side < 0 else X, span, (-INF, z), (-INF, rank))
            if nearest < 0:
                break
            at = self.place[nearest][0]
            found += [at] * len(self.all_in((at, at), (-INF, z), (-INF, rank)))
            span = (-INF, before(at)) if side < 0 else (after(at), INF)
        return found[:k]

    def retie(self, ties: NDArray[np.float64]) -> None:
        """New ties in the order of the old ones."""
        for number, place in list(self.place.items()):
            self.delete(number)
            self.insert(number, place, float(ties[number]))

    def check(self) -> None:
        self._tree.check()
        self._order.check()
        assert len(self._tree) == len(self.place)
        by_rank = sorted(self.place, key=self.rank)
        assert by_rank == sorted(self.place, key=self._key)

    def best(self, k: int, x: tuple[float, float], z: float) -> list[int]:
        """The k objects of least rank with x in the interval and z at most z."""
        found: list[int] = []
        rank = -INF
        while len(found) < k and (number := self.least(RANK, x, (-INF, z), (rank, INF))) >= 0:
            found.append(number)
            rank = after(self.rank(number))
        return found


@dataclass(slots=True)
class Slab:
    """Where c is at least u and below the next slab's u. `west`, `east` have room for k + 1; `next` is the next object exposed in
    it, None if not yet sought."""

    u: float
    west: NDArray[np.float64]
    wests: int
    east: NDArray[np.float64]
    easts: int
    next: int | None = None

    def interval(self, k: int) -> tuple[float, float]:
        """Strictly between the outermost neighbours, closed."""
        lo = after(float(self.west[k - 1])) if self.wests == k else -INF
        return lo, before(float(self.east[k - 1])) if self.easts == k else INF

    def divided(self, u: float) -> Slab:
        return Slab(u, self.west.copy(), self.wests, self.east.copy(), self.easts)

    def same(self, other: Slab) -> bool:
        lists = self.wests == other.wests and self.easts == other.easts
        return (
            lists
            and (self.west[: self.wests] == other.west[: self.wests]).all()
            and (self.east[: self.easts] == other.east[: self.easts]).all()
        )


class Paint15:
    """Paint-Dense in 1.5 dimensions; with `watchers`, Paint-Sparse."""

    def __init__(self, objects: Objects15, k: int, watchers: WatchIndex | None = None) -> None:
        self.objects, self.k, self.watchers = objects, k, watchers
        self.searches = 0

    def paint(self, number: int, old: Place, new: Place, tie: float) -> Told:
        """Messages of a move; the index does not hold the object. [range-topk, Alg. 11]"""
        told: list[Told] = []
        if old[2] < INF and new[2] < INF and old[:2] != new[:2]:
            return _joined([self.paint(number, old, (*old[:2], INF), tie), self.paint(number, (*new[:2], INF), new, tie)])
        sinks = old[2] < INF and new[2] > old[2]
        slabs = self._slabs(old if sinks else new, tie)
        if sinks:
            told += self._sweep(slabs, number, old, new, tie)
        told.append(self._message(self._tile_all(slabs, old if sinks else new), number, new, -1, new))
        return _joined(told)

    def _slabs(self, place: Place, tie: float) -> list[Slab]:
        """The influence rectilinear polygon, slab by slab. [range-topk, Alg. 7]"""
        x, u, y = place
        k, rank = self.k, self.objects.rank_before(y, tie)
        lists = [self.objects.first_k(x, u, rank, side, k) for side in (-1, 1)]
        west, east = (np.array([*found, *[0.0] * (k + 1 - len(found))]) for found in lists)
        slabs = [Slab(u, west, len(lists[0]), east, len(lists[1]))]
        while True:
            span = slabs[-1].interval(k)
            self.searches += 1
            active = self.objects.least(Z, span, (after(slabs[-1].u), INF), (-INF, rank))
            if active < 0:
                return slabs
            z = self.objects.place[active][1]
            slab = slabs[-1].divided(z)
            for other in self.objects.all_in(span, (z, z), (-INF, rank)):
                self._count_in(slab, x, self.objects.place[other][0])
            slabs.append(slab)

    def _count_in(self, slab: Slab, x: float, neighbour: float) -> None:
        """[range-topk, Alg. 6]"""
        if neighbour <= x:
            _, slab.wests = insert_neighbour(slab.west, slab.wests, self.k, neighbour, -1)
        else:
            _, slab.easts = insert_neighbour(slab.east, slab.easts, self.k, neighbour, 1)
        slab.next = None

    def _sweep(self, slabs: list[Slab], number: int, old: Place, new: Place, tie: float) -> list[Told]:
        """Sink the object from its old to its new rank and tell of what it exposes. [range-topk, Alg. 11, from line 14]"""
        told: list[Told] = []
        passed, limit = self.objects.rank_before(old[2], tie), self.objects.rank_before(new[2], tie)
        while (found := self._next_exposed(slabs, old[0], passed, limit)) is not None:
            at, exposed = found
            x, z, y = self.objects.place[exposed]
            if z > slabs[at].u:
                slabs.insert(at + 1, slabs[at].divided(z))
                at += 1
                slabs[at - 1].next = None
            tiles: list[list[NDArray[np.float64]]] = []
            s = at
            while s < len(slabs) and slabs[s].interval(self.k)[0] <= x <= slabs[s].interval(self.k)[1]:
                tiles.append(self._lift(slabs, s, self._gain(slabs[s], old[0], x)))
                self._count_in(slabs[s], old[0], x)
                s += 1
            told.append(self._message(merged(tiles), exposed, (x, z, y), number, new))
            for later in range(min(s, len(slabs) - 1), max(at, 1) - 1, -1):
                if slabs[later].same(slabs[later - 1]):
                    del slabs[later]
                    slabs[later - 1].next = None
            passed = self.objects.rank(exposed)
        return told

    def _next_exposed(self, slabs: list[Slab], x: float, passed: float, limit: float) -> tuple[int, int] | None:
        """(slab, object) of least rank in (passed, limit] that lies in the polygon."""
        best: tuple[float, int, int] | None = None
        for at, slab in enumerate(slabs):
            stale = slab.next is not None and slab.next >= 0 and self.objects.rank(slab.next) <= passed
            if slab.next is None or stale:
                slab.next = self._search(slabs, at, x, passed, limit)
            if slab.next >= 0:
                candidate = self.objects.rank(slab.next), at, slab.next
                best = candidate if best is None else min(best, candidate)
        return None if best is None else best[1:]

    def _search(self, slabs: list[Slab], at: int, x: float, passed: float, limit: float) -> int:
        lo, hi = slabs[at].interval(self.k)
        above = slabs[at + 1].u if at + 1 < len(slabs) else INF
        if self.watchers is not None:
            tight = self.watchers.snap((lo, x, slabs[at].u), (x, hi, INF))  # an object of this slab may interest higher ones only
            if tight is None:
                return -1
            lo, hi = max(lo, tight[0][0]), min(hi, tight[1][1])
        self.searches += 1
        floor = slabs[at].u if at else -INF
        return self.objects.least(RANK, (lo, hi), (floor, before(above) if above < INF else INF), (after(passed), limit))

    def _gain(self, slab: Slab, x: float, exposed_x: float) -> NDArray[np.float64]:
        tile, strip = np.empty((self.k + 1, 2, 2)), np.empty(self.k + 1, np.int64)
        return tile[: paint_exposed(slab.west, slab.wests, slab.east, slab.easts, x, exposed_x, self.k, tile, strip)]

    def _tile_all(self, slabs: list[Slab], place: Place) -> NDArray[np.float64]:
        stacks = []
        for s, slab in enumerate(slabs):
            tile, strip = np.empty((self.k + 1, 2, 2)), np.empty(self.k + 1, np.int64)
            count = paint_ir(slab.west, slab.wests, slab.east, slab.easts, place[0], self.k, tile, strip)
            stacks.append(self._lift(slabs, s, tile[:count]))
        return merged(stacks)

    def _lift(self, slabs: list[Slab], s: int, tiles: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Tiles of one slab with its third side. [range-topk, Alg. 8 and 9]"""
        top = before(slabs[s + 1].u) if s + 1 < len(slabs) else INF
        return [np.column_stack([tile, [slabs[s].u, top]]) for tile in tiles]

    def _message(self, tiles: NDArray[np.float64], number: int, place: Place, moved: int, new: Place) -> Told:
        if self.watchers is not None and len(tiles):
            count = snap_tiles(self.watchers.arrays, tiles, np.empty(0, np.int64), len(tiles))
            tiles = tiles[: merge_tiles(self.watchers.arrays, tiles, count)]
        rows = np.empty((len(tiles), WIDTH))
        rows[:, :4] = tiles[:, :, :2].reshape(-1, 4)
        rows[:, 4:] = number, place[0], place[2], moved, new[0], new[2]
        return tiles, rows


def merged(stacks: list[list[NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Boxes of adjacent slabs that differ only in their third side become one. [range-topk, Alg. 10]"""
    done: list[NDArray[np.float64]] = []
    open_boxes: dict[bytes, NDArray[np.float64]] = {}
    for stack in stacks:
        still: dict[bytes, NDArray[np.float64]] = {}
        for box in stack:
            name = box[:, :2].tobytes()
            known = open_boxes.get(name)
            if known is None:
                known = box
                done.append(box)
            else:
                known[1, 2] = box[1, 2]
            still[name] = known
        open_boxes = still
    return np.array(done).reshape(-1, 2, 3)


def _joined(told: list[Told]) -> Told:
    return np.concatenate([boxes for boxes, _ in told]), np.concatenate([rows for _, rows in told])
