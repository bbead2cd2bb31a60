"""IR-tree: the best k of the scored intervals that contain a point, while intervals and scores come and go.

An interval tree whose every node indexes its intervals by an R-tree in score order (`scored_blocks`). All intervals of an inner
node contain its centre, so an R-tree entry that is stabbed always leads to a stabbed interval, and the next best of a node costs
one descent. A query opens the R-trees on one path and merges them: O((k + log n) 64 log64 n).

Layout: the pool of R-tree blocks is told in `scored_blocks`, the tree of nodes, the intervals and the balance in
`interval_skeleton`. Numbers are small integers of the caller's choice: memory grows with the greatest.
Ends in blocks are rounded to float32; an entry whose end equals the rounded query is asked again in float64.

[ranked, section 3.1]

Deviations. A subtree of at most 64 intervals is one leaf without a centre, one block of an R-tree: the paper's nodes with two or
three intervals would waste most of a block each. b is 64. The paper says that the structure is incrementally updatable and not how:
the order-keeping R-trees, the balance and the subtree maxima (for events that are ranges) are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import overlap64, trailing_zeros
from tidings.index.packed.types import Float64, Int64, Uint64
from tidings.index.scored.interval_skeleton import (
    MAX_PATH,
    TOP,
    Intervals,
    Skeleton,
    build_all,
    delete,
    grown_skeleton,
    insert,
    longer,
    new_skeleton,
    rebuild,
    rescore,
)
from tidings.index.scored.ir_tree_check import Walk
from tidings.index.scored.scored_blocks import FREE, MAX_HEIGHT, WIDTH, Pool, grown_pool, new_pool
from tidings.rank.bounded_heap import accepts, better, offer, sort_best_first


class Cursors(NamedTuple):
    """For each R-tree of a path: block[path, level] and unread hits[path, level], its height, the entry it stands at."""

    block: Int64
    hits: Uint64
    height: Int64
    entry: Int64


class IRTree:
    """Answers `ScoredIntervals`, and changes."""

    def __init__(self) -> None:
        self._pool = new_pool(16)
        self._skeleton = new_skeleton(16)
        self._intervals = Intervals(np.empty(0), np.empty(0), np.empty(0))
        self._size = 0

    @classmethod
    def build(cls, lo: Float64, hi: Float64, score: Float64) -> IRTree:
        """Intervals numbered 0, 1, ... at once."""
        tree = cls()
        tree._intervals = Intervals(np.array(lo, np.float64), np.array(hi, np.float64), np.array(score, np.float64))
        tree._size = len(lo)
        if tree._size:
            tree._reserve(tree._size)
            build_all(tree._pool, tree._skeleton, tree._intervals)
            tree._trim()
        return tree

    def __len__(self) -> int:
        return self._size

    def __contains__(self, number: int) -> bool:
        score = self._intervals.score
        return 0 <= number < score.size and not np.isnan(score[number])

    def interval(self, number: int) -> tuple[float, float, float]:
        """(lo, hi, score)"""
        lo, hi, score = (float(column[number]) for column in self._intervals)
        return lo, hi, score

    def numbers(self) -> Int64:
        """All numbers in use, ascending."""
        return np.flatnonzero(~np.isnan(self._intervals.score))

    def drain(self) -> tuple[Int64, Float64, Float64, Float64]:
        """(number, lo, hi, score) of every interval, by number; the tree is empty afterwards."""
        numbers = self.numbers()
        lo, hi, score = (column[numbers] for column in self._intervals)
        self._pool, self._skeleton, self._size = new_pool(16), new_skeleton(16), 0
        self._intervals.score[numbers] = np.nan
        return numbers, lo, hi, score

    def insert(self, number: int, lo: float, hi: float, score: float) -> None:
        if number in self:
            raise ValueError(f"interval {number} is in the tree already; delete it first or update its score")
        if not lo <= hi or np.isnan(score) or number < 0:
            raise ValueError(f"interval {number} is [{lo}, {hi}] with score {score}: it needs lo <= hi and a number for each")
        if number >= self._intervals.score.size:
            self._intervals = longer(self._intervals, max(64, number + 1, 2 * self._intervals.score.size))
        for column, value in zip(self._intervals, (lo, hi, score), strict=True):
            column[number] = value
        self._reserve(0)
        self._size += 1
        self._rebalance(insert(self._pool, self._skeleton, self._intervals, int(number)))

    def delete(self, number: int) -> None:
        if number not in self:
            raise KeyError(number)
        broken = delete(self._pool, self._skeleton, self._intervals, int(number))
        self._intervals.score[number] = np.nan
        self._size -= 1
        self._rebalance(broken)

    def update_score(self, number: int, score: float) -> None:
        """Moves the interval within the R-tree of its node; the interval tree itself does not change."""
        if number not in self:
            raise KeyError(number)
        if np.isnan(score):
            raise ValueError(f"interval {number} cannot have score {score}: it needs a number")
        self._reserve(0)
        rescore(self._pool, self._skeleton, self._intervals, int(number), float(score))

    def topk(self, q: float, k: int) -> Int64:
        out = np.empty(max(k, 0), np.int64)
        cursors = new_cursors()
        path = open_path(self._pool, self._skeleton, self._intervals, float(q), cursors)
        found, _ = pull(self._pool, self._intervals, float(q), cursors, path, out)
        return out[:found]

    def topk_batch(self, q: Float64, k: int) -> Int64:
        """One row for each query, padded with NONE."""
        out = np.empty((len(q), k), np.int64)
        stab_batch(self._pool, self._skeleton, self._intervals, np.ascontiguousarray(q, np.float64), new_cursors(), out)
        return out

    def topk_range(self, qlo: float, qhi: float, k: int) -> Int64:
        """The best k of the intervals that share a point with [qlo, qhi]."""
        scores, numbers = np.empty(max(k, 0)), np.empty(max(k, 0), np.int64)
        nodes = np.empty(self._skeleton.centre.size + 1, np.int64)
        size = overlap_topk(
            self._pool, self._skeleton, self._intervals, float(qlo), float(qhi), new_cursors(), nodes, scores, numbers
        )
        return numbers[:size]

    def getnext(self, q: float) -> Iterator[int]:
        """The tree must not change while this is iterated."""
        cursors = new_cursors()
        path = open_path(self._pool, self._skeleton, self._intervals, float(q), cursors)
        portion = 16
        while path:
            out = np.empty(portion, np.int64)
            found, path = pull(self._pool, self._intervals, float(q), cursors, path, out)
            yield from out[:found].tolist()
            portion = min(2 * portion, 4096)

    def check(self) -> None:
        """Every interval once and in its place, orders, extents, weights, maxima, balance, free lists."""
        Walk(self._pool, self._skeleton, self._intervals).check(self._size)

    @property
    def nbytes(self) -> int:
        """Everything: unlike a static structure this one owns its intervals."""
        return sum(array.nbytes for part in (self._pool, self._skeleton, self._intervals) for array in part)

    def _rebalance(self, node: int) -> None:
        if node >= 0:
            self._reserve(int(self._skeleton.weight[node]))
            rebuild(self._pool, self._skeleton, self._intervals, node)

    def _reserve(self, intervals: int) -> None:
        """Enough free blocks and nodes for one insert, or to rebuild a subtree of so many intervals.

        A level of a rebuilt subtree has at most intervals / 64 inner nodes and their number halves, so it has at most
        intervals / 16 nodes; each has one unfilled block, and the full ones hold FILL intervals.
        """
        nodes = 4 + intervals // 16
        blocks = MAX_HEIGHT + nodes + intervals // 50
        if self._pool.state[FREE] < blocks:
            had = self._pool.used.size
            self._pool = grown_pool(self._pool, max(had + blocks, had * 3 // 2))
        if self._skeleton.state[FREE] < nodes:
            had = self._skeleton.centre.size
            self._skeleton = grown_skeleton(self._skeleton, max(had + nodes, had * 3 // 2))

    def _trim(self) -> None:
        """After a build: give back what was reserved and not used. Blocks and nodes are taken in ascending order."""
        blocks = self._pool.used.size - int(self._pool.state[FREE])
        nodes = self._skeleton.centre.size - int(self._skeleton.state[FREE])
        pool, skeleton = self._pool, self._skeleton
        entries = blocks * WIDTH
        self._pool = Pool(
            *(pool.lo32[:entries].copy(), pool.hi32[:entries].copy(), pool.item[:entries].copy(), pool.score[:entries].copy()),
            *(pool.used[:blocks].copy(), pool.free[:blocks].copy(), np.zeros(1, np.int64)),
        )
        state = np.asarray([0, skeleton.state[TOP]], np.int64)
        self._skeleton = Skeleton._make(array[:nodes].copy() for array in skeleton)._replace(state=state)


def new_cursors() -> Cursors:
    shape, path = (MAX_PATH, MAX_HEIGHT), MAX_PATH
    return Cursors(np.empty(shape, np.int64), np.empty(shape, np.uint64), np.empty(path, np.int64), np.empty(path, np.int64))


@kernel
def open_cursor(pool: Pool, cursors: Cursors, path: int, root: int, height: int, qlo: float, qhi: float) -> None:
    blocks, hits, heights = cursors.block, cursors.hits, cursors.height
    hits[path, : height + 1] = 0
    heights[path] = height
    blocks[path, height] = root
    hits[path, height] = overlap64(pool.lo32, pool.hi32, root * WIDTH, np.float32(qlo), np.float32(qhi))


@kernel
def advance(pool: Pool, intervals: Intervals, cursors: Cursors, path: int, qlo: float, qhi: float) -> bool:
    """Move the cursor to the next interval of its R-tree that meets [qlo, qhi]; False at the end.

    [ranked, section 3.1]
    """
    lo32, hi32, items = pool.lo32, pool.hi32, pool.item
    lo, hi = intervals.lo, intervals.hi
    blocks, hits, heights, entries = cursors
    low, high = np.float32(qlo), np.float32(qhi)
    level = 0
    while level <= heights[path]:
        rest = hits[path, level]
        if rest == np.uint64(0):
            level += 1
            continue
        entry = blocks[path, level] * WIDTH + trailing_zeros(rest)
        hits[path, level] = rest & (rest - np.uint64(1))
        if level > 0:
            level -= 1
            blocks[path, level] = items[entry]
            hits[path, level] = overlap64(lo32, hi32, items[entry] * WIDTH, low, high)
            continue
        number = items[entry]
        if (lo32[entry] == high or hi32[entry] == low) and not (lo[number] <= qhi and qlo <= hi[number]):
            continue
        entries[path] = entry
        return True
    return False


@kernel
def open_path(pool: Pool, skeleton: Skeleton, intervals: Intervals, q: float, cursors: Cursors) -> int:
    """Open the R-trees on the way to q, each at its best stabbed interval; how many have one."""
    centre, left, right = skeleton.centre, skeleton.left, skeleton.right
    root, height, state = skeleton.root, skeleton.height, skeleton.state
    node = state[TOP]
    path = 0
    while node >= 0:
        if root[node] >= 0:
            open_cursor(pool, cursors, path, root[node], height[node], q, q)
            path += advance(pool, intervals, cursors, path, q, q)
        if q < centre[node]:
            node = left[node]
        elif q > centre[node]:
            node = right[node]
        else:
            break
    return path


@kernel
def pull(pool: Pool, intervals: Intervals, q: float, cursors: Cursors, path: int, out: Int64) -> tuple[int, int]:
    """The next `out.size` stabbed intervals over all open cursors: (how many, cursors still open).

    [ranked, section 3.1]
    """
    items, scores = pool.item, pool.score
    blocks, hits, heights, entries = cursors
    found = 0
    while path > 0 and found < out.size:
        chosen = 0
        for other in range(1, path):
            a, b = entries[other], entries[chosen]
            if better(scores[a], items[a], scores[b], items[b]):
                chosen = other
        out[found] = items[entries[chosen]]
        found += 1
        if not advance(pool, intervals, cursors, chosen, q, q):
            path -= 1
            blocks[chosen], hits[chosen] = blocks[path], hits[path]
            heights[chosen], entries[chosen] = heights[path], entries[path]
    return found, path


@kernel
def stab_batch(pool: Pool, skeleton: Skeleton, intervals: Intervals, q: Float64, cursors: Cursors, out: Int64) -> None:
    for query in range(q.size):
        path = open_path(pool, skeleton, intervals, q[query], cursors)
        found, _ = pull(pool, intervals, q[query], cursors, path, out[query])
        out[query, found:] = NONE


@kernel
def overlap_topk(
    pool: Pool,
    skeleton: Skeleton,
    intervals: Intervals,
    qlo: float,
    qhi: float,
    cursors: Cursors,
    nodes: Int64,
    scores: Float64,
    numbers: Int64,
) -> int:
    """The best intervals that meet [qlo, qhi], best first, into (scores, numbers); how many.

    Subtrees whose best score cannot enter are passed over; of two children the better is walked first.
    """
    centre, left, right, root = skeleton.centre, skeleton.left, skeleton.right, skeleton.root
    height, best, state = skeleton.height, skeleton.best, skeleton.state
    nodes[0], waiting, size = state[TOP], 1 if state[TOP] >= 0 else 0, 0
    while waiting > 0:
        waiting -= 1
        node = nodes[waiting]
        if not accepts(scores, numbers, size, best[node], -1):
            continue
        if root[node] >= 0:
            open_cursor(pool, cursors, 0, root[node], height[node], qlo, qhi)
            while advance(pool, intervals, cursors, 0, qlo, qhi):
                entry = cursors.entry[0]
                if not accepts(scores, numbers, size, pool.score[entry], pool.item[entry]):
                    break
                size = offer(scores, numbers, size, pool.score[entry], pool.item[entry])
        if np.isnan(centre[node]):
            continue
        first, second = left[node], right[node]
        if qlo >= centre[node]:
            first = NONE
        if qhi <= centre[node]:
            second = NONE
        if first >= 0 and second >= 0 and best[first] > best[second]:
            first, second = second, first
        for child in (first, second):
            if child >= 0:
                nodes[waiting] = child
                waiting += 1
    sort_best_first(scores, numbers, size)
    return size
