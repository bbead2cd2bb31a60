"""Objects split over several servers along x: each keeps a zone and knows its left and right neighbour.

A question starts at the server of its place and walks on to the neighbours while it is not answered: `first_k` until k objects
are found, `min_y` as far as the interval reaches. `hops` counts the servers that questions moved on to; with `questions` it is the
measure of Fig. 20.
`PaintSplit` is Paint-Dense over such servers.

Cost: that of ObjectIndex at each server visited. Paper: range-topk, appendix C, Alg. 1 and 2. Deviation: the servers are objects of
one process; the walk between them is a call, and counted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidings.boards.paint.tiles import Messages, Place, emit, empty_messages, insert_neighbour, paint_exposed, paint_ir
from tidings.index.points.object_questions import EAST, WEST
from tidings.index.points.objects import ObjectIndex

INF = math.inf


class SplitObjects:
    """`cuts` are the zones' inner bounds, ascending: zone i holds cuts[i - 1] <= x < cuts[i]."""

    def __init__(self, cuts: Sequence[float]) -> None:
        self.cuts = list(cuts)
        self.zones = [ObjectIndex() for _ in range(len(cuts) + 1)]
        self.hops = self.questions = 0
        self._zone_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._zone_of)

    def insert(self, number: int, x: float, y: float, tie: float) -> None:
        zone = self._zone_of[number] = bisect_right(self.cuts, x)
        self.zones[zone].insert(number, x, y, tie)

    def delete(self, number: int) -> None:
        self.zones[self._zone_of.pop(number)].delete(number)

    def place(self, number: int) -> tuple[float, float, float]:
        """(x, y, tie)"""
        arrays = self.zones[self._zone_of[number]].arrays
        return float(arrays.x[number]), float(arrays.y[number]), float(arrays.tie[number])

    def first_k(self, x: float, y: float, tie: float, side: int, k: int) -> list[float]:
        """[range-topk, Alg. 1]"""
        self.questions += 1
        at = bisect_right(self.cuts, x)
        found = self.zones[at].first_k(x, y, side, k, tie)
        while len(found) < k and 0 <= at + side < len(self.zones):
            at += side
            self.hops += 1
            found += self.zones[at].first_k(x, y, side, k - len(found), tie)
        return found

    def min_y(self, lo: float, hi: float, y: float, tie: float, start: float) -> int:
        """The object of least rank after (y, tie) in [lo, hi], asked at the server of `start`; -1 if none. [range-topk, Alg. 2]"""
        self.questions += 1
        home = bisect_right(self.cuts, start)
        first, last = min(home, bisect_right(self.cuts, lo)), max(home, bisect_right(self.cuts, hi))
        self.hops += last - first
        best = [zone.min_y(lo, hi, y, tie) for zone in self.zones[first : last + 1]]
        return min((number for number in best if number >= 0), key=lambda n: self.place(n)[1:], default=-1)

    def check(self) -> None:
        for at, zone in enumerate(self.zones):
            zone.check()
            lo, hi = self.cuts[at - 1] if at else -INF, self.cuts[at] if at < len(self.cuts) else INF
            for number, home in self._zone_of.items():
                if home == at:
                    assert number in zone
                    assert lo <= zone.arrays.x[number] < hi


class PaintSplit:
    """Changes of y, insertions and deletions; a change of x is a deletion and an insertion."""

    def __init__(self, objects: SplitObjects, k: int) -> None:
        self.objects, self.k = objects, k

    def paint(self, number: int, old: Place, new: Place, tie: float) -> Messages:
        """Messages of one move of an object that the servers do not hold. [range-topk, Alg. 3]"""
        if old[1] < INF and new[1] < INF and old[0] != new[0]:
            return np.concatenate([self.paint(number, old, (old[0], INF), tie), self.paint(number, (new[0], INF), new, tie)])
        sinks = old[1] < INF and new[1] > old[1]
        start = old if sinks else new
        west, wests = self._neighbours(start, tie, WEST)
        east, easts = self._neighbours(start, tie, EAST)
        tile, strip = np.empty((self.k + 1, 2, 2)), np.empty(self.k + 1, np.int64)
        out, count = empty_messages(), 0
        y, passed = start[1], tie
        while sinks:
            lo = math.nextafter(west[self.k - 1], INF) if wests == self.k else -INF
            hi = math.nextafter(east[self.k - 1], -INF) if easts == self.k else INF
            exposed = self.objects.min_y(lo, hi, y, passed, start[0])
            if exposed < 0 or self.objects.place(exposed)[1:] >= (new[1], tie):
                break
            x, y, passed = self.objects.place(exposed)
            tiles = paint_exposed(west, wests, east, easts, start[0], x, self.k, tile, strip)
            out, count = emit(out, count, tile, tiles, exposed, x, y, number, new)
            if x <= start[0]:
                _, wests = insert_neighbour(west, wests, self.k, x, WEST)
            else:
                _, easts = insert_neighbour(east, easts, self.k, x, EAST)
        tiles = paint_ir(west, wests, east, easts, start[0], self.k, tile, strip)
        out, count = emit(out, count, tile, tiles, number, new[0], new[1], -1, new)
        return out[:count]

    def _neighbours(self, place: Place, tie: float, side: int) -> tuple[NDArray[np.float64], int]:
        found = self.objects.first_k(*place, tie, side, self.k)
        return np.array([*found, *[0.0] * (self.k + 1 - len(found))]), len(found)
