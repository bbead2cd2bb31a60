"""The generator of the ranked paper's experiments, with the parameters of its Table 1.

Points: each of d dimensions has `cells` cells; `regions` hyper-rectangles, each of 1/20 of the volume, share the points by a
Zipf law (skew 0: evenly). Within a region a point's cell in a dimension is drawn by a Zipf law (skew 1) over the cells ranked
by distance from the region's middle, and the point is uniform in its cell. Subscriptions: a point and, in every dimension, a
length l drawn by a Zipf law over `LENGTHS` equal parts of (0, 1); the interval is [point - l, point + l] and its score 1 - l.

The paper does not say how regions are shaped (here: equal sides), how its Zipf law treats several dimensions (here: each by
itself) nor into how many parts lengths are divided (here: 1000).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LENGTHS = 1000


@dataclass(frozen=True, slots=True)
class Parameters:
    """[ranked, Table 1]"""

    k: int = 20
    intervals: int = 1_000_000
    queries: int = 1000
    dimensions: int = 1
    skew_length: float = 0.75
    warm_up: int = 100
    regions: int = 10
    cells: int = 100
    volume: float = 1 / 20
    skew_across: float = 0.0
    skew_within: float = 1.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Workload:
    """`lo`, `hi`, `score`: float64[d, n]; `query`: float64[queries, d]."""

    lo: np.ndarray
    hi: np.ndarray
    score: np.ndarray
    query: np.ndarray


def zipf(rng, ranks, skew, size):
    """Ranks 0..ranks - 1, rank r with a probability proportional to (r + 1) ** -skew."""
    weight = np.arange(1, ranks + 1) ** -float(skew)
    return np.searchsorted(np.cumsum(weight) / weight.sum(), rng.random(size)).clip(0, ranks - 1)


def points(rng, corner, side, p, count):
    """count x d points of [0, 1)^d."""
    region = zipf(rng, p.regions, p.skew_across, count)
    rank = zipf(rng, side, p.skew_within, (count, p.dimensions))
    offset = np.where(rank % 2 == 1, (rank + 1) // 2, -(rank // 2))
    cell = (corner[region] + side // 2 + offset).clip(0, p.cells - 1)
    return (cell + rng.random((count, p.dimensions))) / p.cells


def generate(p: Parameters) -> Workload:
    rng = np.random.default_rng(p.seed)
    side = max(1, round(p.cells * p.volume ** (1 / p.dimensions)))
    corner = rng.integers(0, p.cells - side + 1, (p.regions, p.dimensions))
    middle = points(rng, corner, side, p, p.intervals).T
    length = (zipf(rng, LENGTHS, p.skew_length, (p.dimensions, p.intervals)) + rng.random((p.dimensions, p.intervals))) / LENGTHS
    query = points(rng, corner, side, p, p.warm_up + p.queries)
    return Workload(np.ascontiguousarray(middle - length), np.ascontiguousarray(middle + length), 1 - length, query)
