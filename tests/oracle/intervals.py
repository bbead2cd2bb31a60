"""Scored intervals by definition: look at all of them, keep those that contain the query, sort.

A score may depend on the event: `base + sum of coefficient * attribute`, the terms added from left to right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


class IntervalOracle:
    """Closed intervals with scores, by number. Answers `tidings.index.packed.protocol.ScoredIntervals`."""

    def __init__(self, intervals: Iterable[tuple[int, float, float, float]] = ()) -> None:
        self.intervals: dict[int, tuple[float, float, float]] = {}
        for number, lo, hi, score in intervals:
            self.insert(number, lo, hi, score)

    def insert(self, number: int, lo: float, hi: float, score: float) -> None:
        self.intervals[number] = (lo, hi, score)

    def delete(self, number: int) -> None:
        del self.intervals[number]

    def update_score(self, number: int, score: float) -> None:
        lo, hi, _ = self.intervals[number]
        self.intervals[number] = (lo, hi, score)

    def getnext(self, q: float) -> Iterator[int]:
        return self.getnext_range(q, q)

    def getnext_range(self, qlo: float, qhi: float) -> Iterator[int]:
        met = [(-score, number) for number, (lo, hi, score) in self.intervals.items() if lo <= qhi and qlo <= hi]
        return (number for _, number in sorted(met))

    def topk(self, q: float, k: int) -> NDArray[np.int64]:
        return self.topk_range(q, q, k)

    def topk_range(self, qlo: float, qhi: float, k: int) -> NDArray[np.int64]:
        return np.asarray(list(self.getnext_range(qlo, qhi))[:k], np.int64)

    def check(self) -> None:
        for lo, hi, score in self.intervals.values():
            assert lo <= hi
            assert not math.isnan(score)

    @property
    def nbytes(self) -> int:
        return 32 * len(self.intervals)


def event_score(base: float, coefficients: Sequence[float], attributes: Sequence[float]) -> float:
    """A score that depends on the event."""
    total = base
    for coefficient, attribute in zip(coefficients, attributes, strict=True):
        total += coefficient * attribute
    return total
