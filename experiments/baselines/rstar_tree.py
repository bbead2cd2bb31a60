"""R*-tree (Beckmann et al.: SIGMOD 1990) by libspatialindex, through `rtree`, over all attributes at once.

A subscription is a box, an event a point; an attribute that either lacks spans the whole domain, so a query finds a superset, which
is verified. The base is bulk loaded (STR), as a base of 20 dimensions built by insertion would take longer than everything else
together; insertions and deletions that are measured are the R*-tree's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from rtree import index

from experiments.baselines.posting_lists import holds

Dense = NDArray[np.float64]


class RStarTree:
    """Boxes [lo, hi] by number. NaN and infinite ends mean the whole domain."""

    def __init__(self, lo: Dense, hi: Dense) -> None:
        self.lo, self.hi = _closed(lo, -1.0), _closed(hi, 2.0)
        settings = index.Property(dimension=lo.shape[1], variant=index.RT_Star, leaf_capacity=100, index_capacity=100)
        self.tree = index.Index(self._stream(), properties=settings, interleaved=True)

    @property
    def nbytes(self) -> int:
        """What the entries alone need, two ends a dimension, a number and a length; libspatialindex does not say what it takes."""
        return len(self.lo) * (16 * self.lo.shape[1] + 12)

    def _stream(self) -> Iterator[tuple[int, list[float], None]]:
        for number, (lo, hi) in enumerate(zip(self.lo, self.hi, strict=True)):
            yield number, [*lo.tolist(), *hi.tolist()], None

    def insert(self, number: int, lo: Dense, hi: Dense) -> None:
        self.tree.insert(number, [*_closed(lo, -1.0).tolist(), *_closed(hi, 2.0).tolist()])

    def delete(self, number: int, lo: Dense, hi: Dense) -> None:
        self.tree.delete(number, [*_closed(lo, -1.0).tolist(), *_closed(hi, 2.0).tolist()])

    def touching(self, lo: Dense, hi: Dense) -> list[int]:
        return list(self.tree.intersection([*_closed(lo, -1.0).tolist(), *_closed(hi, 2.0).tolist()]))


def match_event(tree: RStarTree, lo: Dense, hi: Dense, value: Dense) -> list[int]:
    """Subscriptions (rows of lo, hi) in the tree that an event satisfies."""
    return [number for number in tree.touching(value, value) if holds(lo[number], hi[number], value)]


def match_clause(tree: RStarTree, values: Dense, lo: Dense, hi: Dense) -> list[int]:
    """Events (rows of values) in the tree that satisfy a subscription."""
    return [number for number in tree.touching(lo, hi) if holds(lo, hi, values[number])]


def _closed(ends: Dense, outside: float) -> Dense:
    return np.where(np.isfinite(ends), ends, outside)
