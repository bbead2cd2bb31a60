"""The updatable SOPT-R-tree: a few static segments of doubling sizes, dead marks in them, and an IR-tree for what is new.

An insert goes to the IR-tree; when that holds `memtable` intervals they become a segment, together with every segment that is not
at least twice as large as what has been gathered so far. So there are O(log n) segments, and an interval is rebuilt O(log n) times
in its life. A delete marks a row dead; a segment half dead is rebuilt. A new score is a delete and an insert. A query takes the
best k of every part and merges them.

| array      | shape, dtype     | meaning                                                             |
|------------|------------------|---------------------------------------------------------------------|
| `_home`    | numbers, int32   | where a number lives: NOWHERE, MEMTABLE or the key of its segment    |
| `_score`   | numbers, float64 | its score                                                           |

A segment's rows ascend by number, so a number's row is found by bisection.

Beyond the paper, whose section 3.2 leaves updates of SOPT-R-trees open.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

import numpy as np
from numpy.typing import NDArray

from tidings.index.scored.ir_tree import IRTree
from tidings.index.scored.sopt_rtree import SOPTRTree

NOWHERE, MEMTABLE = -2, -1
Float64 = NDArray[np.float64]
Columns = tuple[NDArray[np.int64], Float64, Float64, Float64]
"""number, lo, hi, score"""


class ScoredSegments:
    """Answers `ScoredIntervals`, and changes. Numbers are small integers of the caller's choice."""

    def __init__(self, memtable: int = 4096) -> None:
        self.limit = memtable
        self.segments: dict[int, SOPTRTree] = {}
        self._live: dict[int, int] = {}
        self._memtable = IRTree()
        self._home, self._score = np.empty(0, np.int32), np.empty(0)
        self._next = 0

    @classmethod
    def build(cls, lo: Float64, hi: Float64, score: Float64, memtable: int = 4096) -> ScoredSegments:
        """Intervals numbered 0, 1, ... as one segment."""
        result = cls(memtable)
        result._home, result._score = np.full(len(lo), NOWHERE, np.int32), np.array(score, np.float64)
        if len(lo):
            result._add((np.arange(len(lo)), np.array(lo, np.float64), np.array(hi, np.float64), result._score.copy()))
        return result

    def __len__(self) -> int:
        return len(self._memtable) + sum(self._live.values())

    def __contains__(self, number: int) -> bool:
        return 0 <= number < self._home.size and bool(self._home[number] != NOWHERE)

    def insert(self, number: int, lo: float, hi: float, score: float) -> None:
        if number in self:
            raise ValueError(f"interval {number} is there already; delete it first or update its score")
        self._memtable.insert(number, lo, hi, score)
        if number >= self._home.size:
            more = max(64, number + 1, 2 * self._home.size) - self._home.size
            self._home = np.concatenate([self._home, np.full(more, NOWHERE, np.int32)])
            self._score = np.concatenate([self._score, np.full(more, np.nan)])
        self._home[number], self._score[number] = MEMTABLE, score
        if len(self._memtable) >= self.limit:
            self.flush()

    def delete(self, number: int) -> None:
        self._remove(number)
        self._home[number] = NOWHERE

    def update_score(self, number: int, score: float) -> None:
        if number in self and self._home[number] == MEMTABLE:
            self._memtable.update_score(number, score)
            self._score[number] = score
        else:
            lo, hi = self._remove(number)
            self._home[number] = NOWHERE
            self.insert(number, lo, hi, score)

    def flush(self) -> None:
        """Make a segment of the memtable and of the segments that have become too small to stand beside it."""
        gathered = [self._memtable.drain()]
        size = len(gathered[0][0])
        for key in sorted(self.segments, key=self._live.__getitem__):
            if self._live[key] < 2 * size:
                gathered.append(self._dissolve(key))
                size += len(gathered[-1][0])
        if size:
            number, lo, hi, score = (np.concatenate(columns) for columns in zip(*gathered, strict=True))
            order = np.argsort(number)
            self._add((number[order], lo[order], hi[order], score[order]))

    def topk(self, q: float, k: int) -> NDArray[np.int64]:
        return self._best([part.topk(q, k) for part in self._parts()], k)

    def topk_range(self, qlo: float, qhi: float, k: int) -> NDArray[np.int64]:
        """The best k of the intervals that share a point with [qlo, qhi]."""
        return self._best([part.topk_range(qlo, qhi, k) for part in self._parts()], k)

    def topk_batch(self, q: Float64, k: int) -> NDArray[np.int64]:
        """One row for each query, padded with -1."""
        found = np.concatenate([part.topk_batch(q, k) for part in self._parts()], axis=1)
        worst_first = np.where(found >= 0, -self._score[found], np.inf) if self._score.size else np.zeros(found.shape)
        order = np.lexsort((found, found < 0, worst_first), axis=1)[:, :k]
        return np.take_along_axis(found, order, axis=1)

    def getnext(self, q: float) -> Iterator[int]:
        """Nothing may change while this is iterated."""
        return merge(*(part.getnext(q) for part in self._parts()), key=self._place)

    def check(self) -> None:
        self._memtable.check()
        homes = dict.fromkeys(self._memtable.numbers().tolist(), MEMTABLE)
        for key, segment in self.segments.items():
            segment.check()
            alive = segment.tree.alive
            live = segment.number[alive] if alive.size else segment.number
            assert np.all(segment.number[1:] > segment.number[:-1])
            assert self._live[key] == len(live)
            assert 2 * len(live) >= len(segment)
            assert homes.keys().isdisjoint(live.tolist())
            homes.update(dict.fromkeys(live.tolist(), key))
            assert np.array_equal(self._score[live], segment.bounds.score[np.searchsorted(segment.number, live)])
        assert homes == {int(number): int(self._home[number]) for number in np.flatnonzero(self._home != NOWHERE)}

    @property
    def nbytes(self) -> int:
        """Everything, the segments' columns included."""
        segments = sum(array.nbytes for segment in self.segments.values() for array in segment.arrays().values())
        return segments + self._memtable.nbytes + self._home.nbytes + self._score.nbytes

    def _parts(self) -> list[IRTree | SOPTRTree]:
        return [self._memtable, *self.segments.values()]

    def _place(self, number: int) -> tuple[float, int]:
        return -float(self._score[number]), number

    def _best(self, found: list[NDArray[np.int64]], k: int) -> NDArray[np.int64]:
        numbers = np.concatenate(found)
        return numbers[np.lexsort((numbers, -self._score[numbers]))[: max(k, 0)]]

    def _remove(self, number: int) -> tuple[float, float]:
        """Take a number out of where it lives; its ends."""
        if number not in self:
            raise KeyError(number)
        key = int(self._home[number])
        if key == MEMTABLE:
            lo, hi, _ = self._memtable.interval(number)
            self._memtable.delete(number)
            return lo, hi
        segment = self.segments[key]
        row = int(np.searchsorted(segment.number, number))
        segment.delete_row(row)
        lo, hi = float(segment.tree.lo[row]), float(segment.tree.hi[row])
        self._live[key] -= 1
        if 2 * self._live[key] < len(segment):
            self._home[number] = NOWHERE
            columns = self._dissolve(key)
            if len(columns[0]):
                self._add(columns)
        return lo, hi

    def _dissolve(self, key: int) -> Columns:
        """Take a segment away; its live intervals."""
        segment = self.segments.pop(key)
        del self._live[key]
        lo, hi, alive = segment.tree.lo, segment.tree.hi, segment.tree.alive
        rows = np.flatnonzero(alive) if alive.size else np.arange(len(segment))
        return segment.number[rows], lo[rows], hi[rows], segment.bounds.score[rows]

    def _add(self, columns: Columns) -> None:
        number, lo, hi, score = columns
        key, self._next = self._next, self._next + 1
        self.segments[key] = SOPTRTree.build(lo, hi, score, number)
        self._live[key] = len(number)
        self._home[number] = key
