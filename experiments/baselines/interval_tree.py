"""The conventional interval tree: lists by end, every stabbed interval produced, the best k kept.

A node holds the intervals that contain its centre, the median end of what reached it; those before go left, those after right.

| array      | shape, dtype   | meaning                                                             |
|------------|----------------|---------------------------------------------------------------------|
| `centre`   | nodes, float64 |                                                                     |
| `left`, `right` | nodes, int32 | children, -1: none                                               |
| `first`, `last` | nodes, int64 | a node's lists are [first[node], last[node])                     |
| `by_lo`, `by_hi` | n, int32 | conventional: rows by (lower end asc), by (upper end desc)           |
"""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel
from tidings.index.scored.interval_skeleton import middle_end, split
from tidings.rank.bounded_heap import offer, sort_best_first


@kernel
def interval_tree(rows, lo, hi, centre, left, right, first, last):
    """Build over `rows`, which are reordered so that a node's intervals are adjacent; the number of nodes.

    [ranked, section 2.1.1]
    """
    nodes = 1
    placed = 0
    numbers = np.empty_like(rows)
    todo = [(0, 0, rows.size)]
    while len(todo) > 0:
        node, begin, end = todo.pop()
        part = rows[begin:end]
        centre[node] = middle_end(part, lo, hi)
        here, before = split(part, lo, hi, centre[node])
        first[node] = placed
        numbers[placed : placed + here] = part[:here]
        placed += here
        last[node] = placed
        left[node], right[node] = -1, -1
        if before > here:
            left[node] = nodes
            todo.append((nodes, begin + here, begin + before))
            nodes += 1
        if before < part.size:
            right[node] = nodes
            todo.append((nodes, begin + before, end))
            nodes += 1
    rows[:] = numbers
    return nodes


def skeleton(lo, hi, rows):
    """(rows by node, centre, left, right, first, last) of the tree over `rows`, whose order is kept within a node."""
    rows = rows.astype(np.int32)
    arrays = [np.empty(len(rows), dtype) for dtype in (np.float64, np.int32, np.int32, np.int64, np.int64)]
    nodes = interval_tree(rows, lo, hi, *arrays) if len(rows) else 0
    return rows, *(array[:nodes].copy() for array in arrays)


@kernel
def stabbed(tree, lo, hi, score, q, scores, numbers):
    """All stabbed intervals, the best of them kept in a heap of k; how many.

    [ranked, section 2.2.2, conventional]
    """
    by_lo, by_hi, centre, left, right, first, last = tree
    node = 0 if centre.size > 0 else -1
    size = 0
    while node >= 0:
        if q <= centre[node]:
            for row in by_lo[first[node] : last[node]]:
                if lo[row] > q:
                    break
                size = offer(scores, numbers, size, score[row], row)
            node = left[node] if q < centre[node] else -1
        else:
            for row in by_hi[first[node] : last[node]]:
                if hi[row] < q:
                    break
                size = offer(scores, numbers, size, score[row], row)
            node = right[node]
    sort_best_first(scores, numbers, size)
    return size


@kernel
def stabbed_batch(tree, lo, hi, score, q, out):
    scores = np.empty(out.shape[1])
    for query in range(q.size):
        found = stabbed(tree, lo, hi, score, q[query], scores, out[query])
        out[query, found:] = -1


class IntervalTree:
    """The conventional interval tree; answers `ScoredIntervals`."""

    def __init__(self, lo, hi, score):
        self.lo, self.hi, self.score = lo, hi, score
        by_lo, *rest = skeleton(lo, hi, np.argsort(lo, kind="stable"))
        by_hi = skeleton(lo, hi, np.argsort(-hi, kind="stable"))[0]
        self.tree = (by_lo, by_hi, *rest)

    def topk(self, q, k):
        scores, numbers = np.empty(k), np.empty(k, np.int64)
        return numbers[: stabbed(self.tree, self.lo, self.hi, self.score, q, scores, numbers)]

    def topk_batch(self, q, k):
        out = np.empty((len(q), k), np.int64)
        stabbed_batch(self.tree, self.lo, self.hi, self.score, q, out)
        return out

    def getnext(self, q):
        """All stabbed intervals are found and ranked before the first is given."""
        return iter(self.topk(q, len(self.lo)).tolist())

    def check(self):
        by_lo, by_hi, centre, _, _, first, last = self.tree
        assert np.array_equal(np.sort(by_lo), np.arange(len(self.lo)))
        for node in range(len(centre)):
            members = by_lo[first[node] : last[node]]
            assert np.array_equal(np.sort(members), np.sort(by_hi[first[node] : last[node]]))
            assert np.all((self.lo[members] <= centre[node]) & (centre[node] <= self.hi[members]))
            falling = self.hi[by_hi[first[node] : last[node]]]
            assert np.all(self.lo[members][1:] >= self.lo[members][:-1])
            assert np.all(falling[1:] <= falling[:-1])

    @property
    def nbytes(self):
        return sum(array.nbytes for array in self.tree)
