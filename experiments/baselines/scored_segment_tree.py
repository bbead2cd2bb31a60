"""Scored segment tree: every interval is stored in the nodes it covers whole, each node's list in the order of scores.

The elementary segments of u distinct ends v are, from left to right, (-inf, v0), [v0], (v0, v1), [v1], ..., (v, inf): 2u + 1 of
them, the leaves of a binary tree in heap order (node i has children 2i and 2i + 1; `leaves` is a power of two). The interval
[v_a, v_b] covers segments 2a + 1 .. 2b + 1.

| array   | shape, dtype       | meaning                                                        |
|---------|--------------------|----------------------------------------------------------------|
| `value` | u, float64         | distinct ends, ascending                                       |
| `first` | 2 leaves + 1, int64| a node's list is entry[first[node]:first[node + 1]]            |
| `entry` | O(n log n), int32  | rows by (score desc, row asc) within a node                    |
| `score` | O(n log n), float64| their scores, as in the paper's lists of scored intervals      |

[ranked, section 2.2.1]

The paper's heap of the nodes on the path is a scan for the best of at most 64 heads, whose scores stand side by side.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from experiments.baselines.score_sorted_interval_tree import new_path
from tidings._jit import kernel
from tidings.index.scored.sopt_rtree import NO_NUMBERS, best_first


@kernel
def cover(order, start, end, leaves, first, entry):
    """Visit every (node, row) with the node covered by the row's interval: count them, or, given room, store them by score."""
    store = entry.size > 0
    for row in order:
        low, high = leaves + start[row], leaves + end[row] + 1
        while low < high:
            if low & 1:
                if store:
                    entry[first[low]] = row
                first[low] += 1
                low += 1
            if high & 1:
                high -= 1
                if store:
                    entry[first[high]] = row
                first[high] += 1
            low >>= 1
            high >>= 1


@kernel
def open_path(tree, q, heads, ends, top):
    """The lists from the leaf of q up to the root that are not empty; how many. `top` are the scores at their heads."""
    value, first, _, score = tree
    leaves = (first.size - 1) >> 1
    at = np.searchsorted(value, q)
    segment = 2 * at + 1 if at < value.size and value[at] == q else 2 * at
    node = leaves + segment
    path = 0
    while node > 0:
        heads[path], ends[path] = first[node], first[node + 1]
        if heads[path] < ends[path]:
            top[path] = score[heads[path]]
            path += 1
        node >>= 1
    return path


@kernel
def pull(tree, heads, ends, top, path, out):
    """The next intervals over all lists: (how many, lists still open)."""
    _, _, entry, score = tree
    found = 0
    while path > 0 and found < out.size:
        chosen = 0
        for other in range(1, path):
            if top[other] > top[chosen] or (top[other] == top[chosen] and entry[heads[other]] < entry[heads[chosen]]):
                chosen = other
        out[found] = entry[heads[chosen]]
        found += 1
        heads[chosen] += 1
        if heads[chosen] == ends[chosen]:
            path -= 1
            heads[chosen], ends[chosen], top[chosen] = heads[path], ends[path], top[path]
        else:
            top[chosen] = score[heads[chosen]]
    return found, path


@kernel
def pull_batch(tree, q, heads, ends, top, out):
    for query in range(q.size):
        path = open_path(tree, q[query], heads, ends, top)
        found, _ = pull(tree, heads, ends, top, path, out[query])
        out[query, found:] = -1


class ScoredSegmentTree:
    """Answers `ScoredIntervals`."""

    def __init__(self, lo, hi, score):
        self.lo, self.hi, self.score = lo, hi, score
        value = np.unique(np.concatenate([lo, hi]))
        start, end = 2 * np.searchsorted(value, lo) + 1, 2 * np.searchsorted(value, hi) + 1
        leaves = 1 << int(2 * value.size).bit_length()
        order = best_first(score, NO_NUMBERS)
        count = np.zeros(2 * leaves, np.int64)
        cover(order, start, end, leaves, count, np.empty(0, np.int32))
        first = np.concatenate([[0], np.cumsum(count)])
        entry = np.empty(max(first[-1], 1), np.int32)
        cover(order, start, end, leaves, first[:-1].copy(), entry)
        self.tree = (value, first, entry, score[entry] if len(score) else np.empty(1))

    def topk(self, q, k):
        found = self.topk_batch(np.asarray([q]), k)[0]
        return found[found >= 0]

    def topk_batch(self, q, k):
        out = np.empty((len(q), k), np.int64)
        pull_batch(self.tree, q, *new_path(), np.empty(64), out)
        return out

    def getnext(self, q):
        heads, ends = new_path()
        top = np.empty(64)
        path = open_path(self.tree, q, heads, ends, top)
        out = np.empty(64, np.int64)
        while path:
            found, path = pull(self.tree, heads, ends, top, path, out)
            yield from out[:found].tolist()

    def check(self):
        _, first, entry, _ = self.tree
        assert np.all(np.diff(first) >= 0)
        for a, b in pairwise(first):
            assert np.all(np.diff(self.score[entry[a:b]]) <= 0)

    @property
    def nbytes(self):
        return sum(array.nbytes for array in self.tree)
