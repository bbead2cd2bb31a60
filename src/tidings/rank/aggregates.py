"""How the weights of the dimensions that hold become one score, for relaxed matching.

A score starts at `start` and takes in one held weight after the other, by ascending dimension. `threshold` bounds what a
subscription not met yet can score, given for every dimension a bound on its weight there (-inf: none can hold it). For `sum`
and `max` that is the aggregate itself; for `min` the best unseen subscription holds one dimension only, so the greatest bound
counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel

SUM, MAX, MIN = 0, 1, 2
AGGREGATES = {"sum": SUM, "max": MAX, "min": MIN}


def aggregate_code(name: str) -> int:
    if name not in AGGREGATES:
        raise ValueError(f"aggregate {name!r}: an aggregate is one of {', '.join(AGGREGATES)}")
    return AGGREGATES[name]


def combined(aggregate: str, weights: Sequence[float]) -> float:
    """The score of held weights, one after the other."""
    score: float = start(AGGREGATES[aggregate])
    for weight in weights:
        score = take_in(AGGREGATES[aggregate], score, weight)
    return score


@kernel
def start(aggregate: int) -> float:
    if aggregate == SUM:
        return 0.0
    return -np.inf if aggregate == MAX else np.inf


@kernel
def take_in(aggregate: int, score: float, weight: float) -> float:
    if aggregate == SUM:
        return score + weight
    return max(score, weight) if aggregate == MAX else min(score, weight)


@kernel
def threshold(aggregate: int, bounds: NDArray[np.float64]) -> float:
    """-inf when no dimension is left that could hold. Added in the order of `take_in`, so never rounded below a score."""
    if bounds.max() == -np.inf:
        return -np.inf
    if aggregate != SUM:
        return float(bounds.max())
    total = 0.0
    for bound in bounds:
        total += max(bound, 0.0)
    return total
