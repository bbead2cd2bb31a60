"""The k best of a sum of weights by passing over everybody, branch-free, in columns of float32 that bound the score from above.

Where every clause is plain ranges, one a dimension, and an event is certain, no tree of bounds pays before some hundred thousand
clauses: the pass costs less than a nanosecond a clause and dimension. Columns, by dimension that any clause asks for:

| array    | shape, dtype   | meaning                                                                             |
|----------|----------------|-------------------------------------------------------------------------------------|
| `dim`    | u, int64       | the dimension                                                                       |
| `lo`     | u x n, float32 | lower end, rounded down; inf without a range there                                  |
| `hi`     | u x n, float32 | upper end, rounded up; -inf without one                                             |
| `weight` | u x n, float32 | rounded up; 0 where it is negative                                                  |

Invariant: a clause's score is at most SLACK times the sum of the weights that seem to hold. Whoever may be among the k best by that
is scored exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import inlined, kernel
from tidings.compiling.pinned import Pinned, opened
from tidings.index.packed.record import Events
from tidings.index.packed.simd import single_of_bits
from tidings.index.packed.types import Bool, Float64, Int32, Int64
from tidings.index.relaxed.terms import Terms
from tidings.rank.bounded_heap import accepts, offer, offer_distinct, sort_best_first

Float32 = NDArray[np.float32]
SLACK = np.float32(1.0001)
"""More than the rounding of a sum of a hundred float32."""
BLOCK, PART = 512, 64
MOST = 100
"""Dimensions up to which SLACK is enough."""


class ScanColumns(NamedTuple):
    dim: Int64
    lo: Float32
    hi: Float32
    weight: Float32


def scan_columns(terms: Terms) -> ScanColumns:
    """Of clauses that are all plain ranges."""
    n = len(terms.start) - 1
    clause = np.repeat(np.arange(n), np.diff(terms.start))
    dim, place = np.unique(terms.dim, return_inverse=True)
    lo, hi = np.full((len(dim), n), np.inf, np.float32), np.full((len(dim), n), -np.inf, np.float32)
    weight = np.zeros((len(dim), n), np.float32)
    lo[place, clause], hi[place, clause] = rounded_down(terms.lo), -rounded_down(-terms.hi)
    weight[place, clause] = -rounded_down(-np.maximum(terms.weight, 0.0))
    return ScanColumns(dim.astype(np.int64), lo, hi, weight)


def rounded_down(values: Float64) -> Float32:
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


@kernel
def scan_best(
    columns: ScanColumns,
    terms: Terms,
    owner: Int32,
    shared: Bool,
    hidden: Bool,
    low: Float64,
    high: Float64,
    scores: Float64,
    best: Int64,
) -> int:
    """The best owners, best first, into (scores, best); how many. Dimension j of the event is [low[j], high[j]]."""
    if scores.size == 0:
        return 0
    size = 0
    bounds = np.empty(BLOCK, np.float32)
    bits = bounds.view(np.int32)
    below, above = np.empty(columns.dim.size, np.float32), np.empty(columns.dim.size, np.float32)
    for j in range(columns.dim.size):
        below[j], above[j] = outward(low[columns.dim[j]], high[columns.dim[j]])
    for first in range(0, owner.size, BLOCK):
        n = min(BLOCK, owner.size - first)
        bounds[:] = 0.0
        for j in range(columns.dim.size):
            lo, hi, weight = (
                columns.lo[j, first : first + n],
                columns.hi[j, first : first + n],
                columns.weight[j, first : first + n],
            )
            add_bounds(lo, hi, weight, below[j], above[j], bounds)
        for part in range(0, n, PART):
            if size == scores.size and single_of_bits(greatest(bits, part)) * SLACK < scores[0]:
                continue
            for i in range(part, min(part + PART, n)):
                if size < scores.size or bounds[i] * SLACK >= scores[0]:
                    size = offer_clause(terms, owner, shared, hidden, first + i, low, high, scores, best, size)
    sort_best_first(scores, best, size)
    return size


@inlined
def offer_clause(
    terms: Terms,
    owner: Int32,
    shared: Bool,
    hidden: Bool,
    clause: int,
    low: Float64,
    high: Float64,
    scores: Float64,
    best: Int64,
    size: int,
) -> int:
    """Score a clause exactly, and offer it; how many stand now."""
    if hidden.size > 0 and hidden[owner[clause]]:
        return size
    matched, score = exact(terms, clause, low, high)
    if not matched or not accepts(scores, best, size, score, owner[clause]):
        return size
    if shared[clause]:
        return offer_distinct(scores, best, size, score, owner[clause])
    return offer(scores, best, size, score, owner[clause])


@inlined
def greatest(bits: Int32, part: int) -> np.int32:
    """Of PART bounds as bits, which order as the bounds do, since none is negative. Of integers: a loop in lanes, as of floats is
    none."""
    most = np.int32(0)
    for i in range(part, part + PART):
        most = max(most, bits[i])
    return most


class Scanned(NamedTuple):
    """All that a scan reads: what a single event's call is given as one address."""

    columns: ScanColumns
    terms: Terms
    owner: Int32
    shared: Bool


@kernel
def scan_event(scanned: Pinned[Scanned], asked: Pinned[Events], k: int, hidden: Bool) -> tuple[Int32, Float64]:
    """(owner, score) of the k best for the one event that is asked about, best first."""
    columns, terms, owner, shared = opened(scanned)
    events = opened(asked)
    low, high = events.value[0].copy(), events.value[0].copy()
    # The place's one alternative is its x range, as in `plain_event`.
    place = low.size - 2
    if not np.isnan(low[place]):
        low[place], high[place] = events.box[0, 0], events.box[0, 2]
    scores, best = np.empty(k), np.empty(k, np.int64)
    size = scan_best(columns, terms, owner, shared, hidden, low, high, scores, best)
    return best[:size].astype(np.int32), scores[:size]


@kernel
def add_bounds(lo: Float32, hi: Float32, weight: Float32, least: np.float32, most: np.float32, bounds: Float32) -> None:
    """Add the weights of the ranges that [least, most] meets. No branch, and every load happens: the loop runs in lanes."""
    for i in range(lo.size):
        own = weight[i]
        bounds[i] += own if (lo[i] <= most) & (least <= hi[i]) else np.float32(0.0)


@kernel
def outward(low: float, high: float) -> tuple[np.float32, np.float32]:
    """A range of float32 around one of float64."""
    least, most = np.float32(low), np.float32(high)
    if least > low:
        least = np.nextafter(least, np.float32(-np.inf))
    if most < high:
        most = np.nextafter(most, np.float32(np.inf))
    return least, most


@kernel
def exact(terms: Terms, clause: int, low: Float64, high: Float64) -> tuple[bool, float]:
    """As `clause_score`, of plain ranges."""
    score, hits = 0.0, False
    for term in range(terms.start[clause], terms.start[clause + 1]):
        dim = terms.dim[term]
        held = terms.lo[term] <= high[dim] and low[dim] <= terms.hi[term]
        if held:
            score += terms.weight[term]
            hits = True
    return hits, score
