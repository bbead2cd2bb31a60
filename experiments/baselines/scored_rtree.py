"""Scored R-tree: intervals in the order of their scores under an R-tree, searched left first.

The same packed tree as the SOPT-R-tree, so that only the order differs: here it is the score's alone, and extents have holes.
[ranked, section 2.2.3]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidings.index.scored.packed_rtree import Tree, next_stabbed, pack, stab_batch
from tidings.index.scored.sopt_rtree import NO_NUMBERS, best_first


class ScoredRTree:
    """Answers `ScoredIntervals`."""

    def __init__(self, lo, hi, score):
        self.score = score
        row = best_first(score, NO_NUMBERS)
        self.tree = Tree(*pack(lo[row], hi[row]), row, lo, hi, np.empty(0, np.bool_))

    def topk(self, q, k):
        out = np.empty(k, np.int64)
        found, _, _ = next_stabbed(self.tree, q, 0, out)
        return out[:found]

    def topk_batch(self, q, k):
        out = np.empty((len(q), k), np.int64)
        stab_batch(self.tree, q, out)
        return out

    def getnext(self, q) -> Iterator[int]:
        at = 0
        while at >= 0:
            out = np.empty(64, np.int64)
            found, at, _ = next_stabbed(self.tree, q, at, out)
            yield from out[:found].tolist()

    def check(self):
        lo32, hi32, offset, row, lo, hi, _ = self.tree
        assert np.all(np.diff(self.score[row]) <= 0)
        for stored, wanted in zip((lo32, hi32, offset), pack(lo[row], hi[row]), strict=True):
            assert np.array_equal(stored, wanted, equal_nan=True)

    @property
    def nbytes(self):
        return sum(array.nbytes for array in self.tree[:4])
