"""Score-sorted interval tree: the lists of an interval tree in the order of scores, scanned past what is not stabbed.

`by_score` int32[n]: rows by node, then (score desc, row asc); `low`, `high` float64[nodes]: least and greatest end of a node's
intervals, so that a node out of reach is not scanned. The rest as in `interval_tree`.
[ranked, section 2.2.2]

The paper's heap of the nodes on the path is a scan for the best of at most 64 heads.
"""

from __future__ import annotations

import numpy as np

from experiments.baselines.interval_tree import skeleton
from tidings._jit import kernel
from tidings.index.scored.sopt_rtree import NO_NUMBERS, best_first
from tidings.rank.bounded_heap import better

MAX_PATH = 64


@kernel
def seek(by_score, lo, hi, q, at, end):
    """The next place of a list whose interval is stabbed; `end` if there is none."""
    while at < end and not (lo[by_score[at]] <= q <= hi[by_score[at]]):
        at += 1
    return at


@kernel
def open_path(tree, lo, hi, q, heads, ends):
    """Each list on the way to q, at its first stabbed interval; how many have one."""
    by_score, low, high, centre, left, right, first, last = tree
    node = 0 if centre.size > 0 else -1
    path = 0
    while node >= 0:
        if low[node] <= q <= high[node]:
            heads[path], ends[path] = seek(by_score, lo, hi, q, first[node], last[node]), last[node]
            path += heads[path] < ends[path]
        if q == centre[node]:
            break
        node = left[node] if q < centre[node] else right[node]
    return path


@kernel
def pull(tree, lo, hi, score, q, heads, ends, path, out):
    """The next stabbed intervals over all lists: (how many, lists still open)."""
    by_score = tree[0]
    found = 0
    while path > 0 and found < out.size:
        chosen = 0
        for other in range(1, path):
            a, b = by_score[heads[other]], by_score[heads[chosen]]
            if better(score[a], a, score[b], b):
                chosen = other
        out[found] = by_score[heads[chosen]]
        found += 1
        heads[chosen] = seek(by_score, lo, hi, q, heads[chosen] + 1, ends[chosen])
        if heads[chosen] == ends[chosen]:
            path -= 1
            heads[chosen], ends[chosen] = heads[path], ends[path]
    return found, path


@kernel
def pull_batch(tree, lo, hi, score, q, heads, ends, out):
    for query in range(q.size):
        path = open_path(tree, lo, hi, q[query], heads, ends)
        found, _ = pull(tree, lo, hi, score, q[query], heads, ends, path, out[query])
        out[query, found:] = -1


class ScoreSortedIntervalTree:
    """Answers `ScoredIntervals`."""

    def __init__(self, lo, hi, score):
        self.lo, self.hi, self.score = lo, hi, score
        by_score, centre, left, right, first, last = skeleton(lo, hi, best_first(score, NO_NUMBERS))
        members = [by_score[a:b] for a, b in zip(first, last, strict=True)]
        low, high = np.asarray([lo[m].min() for m in members]), np.asarray([hi[m].max() for m in members])
        self.tree = (by_score, low, high, centre, left, right, first, last)

    def topk(self, q, k):
        found = self.topk_batch(np.asarray([q]), k)[0]
        return found[found >= 0]

    def topk_batch(self, q, k):
        out = np.empty((len(q), k), np.int64)
        pull_batch(self.tree, self.lo, self.hi, self.score, q, *new_path(), out)
        return out

    def getnext(self, q):
        heads, ends = new_path()
        path = open_path(self.tree, self.lo, self.hi, q, heads, ends)
        out = np.empty(64, np.int64)
        while path:
            found, path = pull(self.tree, self.lo, self.hi, self.score, q, heads, ends, path, out)
            yield from out[:found].tolist()

    def check(self):
        by_score, low, high, centre, _, _, first, last = self.tree
        assert np.array_equal(np.sort(by_score), np.arange(len(self.lo)))
        for node in range(len(centre)):
            members = by_score[first[node] : last[node]]
            assert np.all((self.lo[members] <= centre[node]) & (centre[node] <= self.hi[members]))
            assert np.all(np.diff(self.score[members]) <= 0)
            assert (low[node], high[node]) == (self.lo[members].min(), self.hi[members].max())

    @property
    def nbytes(self):
        return sum(array.nbytes for array in self.tree)


def new_path():
    return np.empty(MAX_PATH, np.int64), np.empty(MAX_PATH, np.int64)
