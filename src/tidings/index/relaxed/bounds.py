"""Bounds for relaxed matching: a 64-ary tree without pointers over clauses, and in every node what its clauses can score at most.

Level 0 are the clauses, in an order that keeps alike ones together (`clause_order`). Levels 1, 2, ... stand one after the other
in the columns below, each padded to a multiple of 64; entry e of a level covers entries 64 e .. 64 e + 63 of the level beneath.

| array    | shape, dtype          | meaning                                                                               |
|----------|-----------------------|---------------------------------------------------------------------------------------|
| `offset` | levels + 1, int64     | level l + 1 is the slice offset[l]:offset[l + 1] of the entries                       |
| `low`    | d + 2 x entries, float32 | least lower end of the terms in a dimension, rounded; NaN when nothing is there     |
| `high`   | d + 2 x entries, float32 | greatest upper end, rounded; sets of codes count as the range they span             |
| `gain`   | d + 2 x entries, float64 | greatest weight in the dimension; -inf when nothing is there                        |
| `null`   | d + 2 x entries or 0 x 0, float64 | greatest weight of a clause that wants the dimension missing; -inf: none   |
| `common` | d + 2 x entries, float64 | least positive weight of a dimension that all clauses below have; 0: not all        |
| `cap`    | entries, float64      | greatest sum of the positive weights of one clause                                     |
| `least`  | entries, int32        | least owner                                                                           |

A node whose extent an event misses in a dimension cannot gain there; that gives the first bound. If all its clauses have that
dimension, each of them falls short of its sum of weights by at least what it loses there; that gives the second, for sums only.
Rounding to nearest keeps order, so no hit is lost; the first bound is added in the order of the scores it bounds, so it is never
rounded below one; the second, a difference, is raised by more than its rounding error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.types import Float32, Float64, Int16, Int32, Int64, Uint64
from tidings.index.relaxed.terms import WORDS, Alternatives, Terms
from tidings.model.columns.arrays import IN, NOT_IN, NULL
from tidings.rank.aggregates import SUM

FANOUT = 64
BANDS = 16
SLACK = 1e-12
_ALIKE = np.iinfo(np.int16).max + 1


class Summary(NamedTuple):
    offset: Int64
    low: Float32
    high: Float32
    gain: Float64
    null: Float64
    common: Float64
    cap: Float64
    least: Int32


def clause_order(terms: Terms, dimensions: int) -> Int64:
    """Clauses by total weight in bands; in a band those with the same dimensions by place in space, the rest by narrowest range."""
    start, dim = terms.start, terms.dim
    n = len(start) - 1
    # Equal totals keep their order, by owner as a rule: then the bands also cut ties.
    band = np.empty(n, np.int64)
    band[np.argsort(-totals(terms), kind="stable")] = np.arange(n) * BANDS // max(n, 1)
    group, place = _groups(terms, band, _signatures(start, dim, dimensions))
    order = np.lexsort((place, group, band))
    change = np.flatnonzero((np.diff(group[order]) != 0) | (np.diff(band[order]) != 0)) + 1
    centre = _centres(terms)[0]
    for first, last in zip([0, *change], [*change, n], strict=True):
        if last - first > FANOUT and group[order[first]] >= _ALIKE:
            rows = order[first:last]
            middle = centre[start[rows][:, None] + np.arange(np.diff(start)[rows[0]])]
            order[first:last] = rows[_by_place(middle)]
    return order


def _groups(terms: Terms, band: Int64, signature: Uint64) -> tuple[Int64, Float64]:
    """Which clauses to keep together, and in which order: (group, place).

    Clauses of one band, signature and number of terms, if they fill a block, are a group of their own, numbered from _ALIKE on; all
    others go by the dimension in which they are narrowest, and by their place there.
    """
    start, dim = terms.start, terms.dim.astype(np.int64)
    alike = np.stack([band.astype(np.uint64), signature, np.diff(start).astype(np.uint64)])
    _, kind, count = np.unique(alike, axis=1, return_inverse=True, return_counts=True)
    kind = kind.reshape(-1)
    centre, width = _centres(terms)
    clause = np.repeat(np.arange(len(band)), np.diff(start))
    by_width = np.lexsort((width, clause))
    has = np.diff(start) > 0
    narrowest = by_width[start[:-1][has]]
    group, place = np.zeros(len(band), np.int64), np.zeros(len(band))
    group[has], place[has] = dim[narrowest], centre[narrowest]
    return np.where(count[kind] >= FANOUT, _ALIKE + kind, group), place


def totals(terms: Terms) -> Float64:
    """The sum of a clause's positive weights, each dimension once, added by ascending dimension."""
    result = np.zeros(len(terms.start) - 1)
    add_totals(terms.start, terms.dim, terms.weight, result)
    return result


@kernel
def add_totals(start: Int64, dim: Int16, weight: Float64, result: Float64) -> None:
    for clause in range(result.size):
        for term in range(start[clause], start[clause + 1]):
            if term == start[clause] or dim[term] != dim[term - 1]:
                result[clause] += max(weight[term], 0.0)


def _signatures(start: Int64, dim: Int16, dimensions: int) -> Uint64:
    """Equal for clauses with the same list of dimensions; a clause's first dimensions count most."""
    result = np.zeros(len(start) - 1, np.uint64)
    base = np.uint64(dimensions + 3)
    width = np.diff(start)
    room = int(63 / np.log2(dimensions + 3))
    for place in range(room):
        has = width > place
        digit = np.zeros(len(result), np.uint64)
        digit[has] = dim[start[:-1][has] + place].astype(np.uint64) + np.uint64(1)
        result = result * base + digit
    return result


def _centres(terms: Terms) -> tuple[Float64, Float64]:
    """(middle, width) of each term, infinite ends cut to the finite range of its dimension, which counts as 1 wide."""
    dim, lo, hi = terms.dim, terms.lo, terms.hi
    centre, width = np.zeros(len(lo)), np.zeros(len(lo))
    for dimension in np.unique(dim):
        here = dim == dimension
        ends = np.concatenate([lo[here], hi[here]])
        finite = ends[np.isfinite(ends)]
        least, most = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        first, last = lo[here].clip(least, most), hi[here].clip(least, most)
        # Halves first: a sum or a difference of two finite ends need not be finite.
        centre[here], width[here] = first / 2 + last / 2, (last / 2 - first / 2) / max(most / 2 - least / 2, 1e-300)
    return centre, width


def _by_place(middle: Float64) -> Int64:
    """Rows in the leaf order of a k-d tree that halves the widest column, down to runs of FANOUT rows."""
    rows = np.arange(len(middle))
    todo = [(0, len(rows))]
    while todo:
        first, last = todo.pop()
        if last - first <= FANOUT:
            continue
        part = middle[rows[first:last]]
        column = part[:, int(np.argmax(part.std(axis=0)))] if part.shape[1] else np.zeros(len(part))
        half = -(-(last - first) // (2 * FANOUT)) * FANOUT
        rows[first:last] = rows[first:last][np.argpartition(column, half - 1)]
        todo += [(first, first + half), (first + half, last)]
    return rows


def summarise(terms: Terms, owner: Int32, dimensions: int) -> Summary:
    n = len(owner)
    sizes = [_padded(-(-n // FANOUT))]
    while sizes[-1] > FANOUT:
        sizes.append(_padded(sizes[-1] // FANOUT))
    offset = np.cumsum([0, *sizes], dtype=np.int64)
    shape = (dimensions + 2, int(offset[-1]))
    low, high = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
    gain, cap = np.full(shape, -np.inf), np.zeros(shape[1])
    null = np.full(shape if np.any(terms.kind == NULL) else (0, 0), -np.inf)
    common = np.full(shape, np.inf)
    least = np.full(shape[1], np.iinfo(np.int32).max, np.int32)
    summary = Summary(offset, low, high, gain, null, common, cap, least)
    summarise_clauses(terms, owner, totals(terms), summary)
    summarise_levels(summary)
    return summary


def _padded(entries: int) -> int:
    return max(1, -(-entries // FANOUT)) * FANOUT


@kernel
def summarise_clauses(terms: Terms, owner: Int32, total: Float64, summary: Summary) -> None:
    start, dims, kinds, lo, hi, weight, pool = terms.start, terms.dim, terms.kind, terms.lo, terms.hi, terms.weight, terms.pool
    low, high, gain, null = summary.low, summary.high, summary.gain, summary.null
    common, cap, least = summary.common, summary.cap, summary.least
    having = np.zeros(common.shape, np.uint8)
    for clause in range(owner.size):
        entry = clause // FANOUT
        cap[entry] = max(cap[entry], total[clause])
        least[entry] = min(least[entry], owner[clause])
        for term in range(start[clause], start[clause + 1]):
            dim, kind = dims[term], kinds[term]
            if kind == NULL:
                null[dim, entry] = max(null[dim, entry], weight[term])
                continue
            first, last = lo[term], hi[term]
            if kind == IN:
                first, last = pool[np.int64(lo[term])], pool[np.int64(lo[term] + hi[term]) - 1]
            elif kind in (NOT_IN, WORDS):
                first, last = -np.inf, np.inf
            # min and max would keep or lose a NaN by the order of their arguments
            if not low[dim, entry] <= np.float32(first):
                low[dim, entry] = np.float32(first)
            if not high[dim, entry] >= np.float32(last):
                high[dim, entry] = np.float32(last)
            gain[dim, entry] = max(gain[dim, entry], weight[term])
            if term == start[clause] or dims[term - 1] != dim:
                common[dim, entry] = min(common[dim, entry], max(weight[term], 0.0))
                having[dim, entry] += 1
    for entry in range((owner.size + FANOUT - 1) // FANOUT):
        for dim in range(common.shape[0]):
            if having[dim, entry] < min(FANOUT, owner.size - entry * FANOUT):
                common[dim, entry] = 0.0


@kernel
def summarise_levels(summary: Summary) -> None:
    offset, low, high, gain, null, common, cap, least = summary
    for level in range(1, offset.size - 1):
        for child in range(offset[level - 1], offset[level]):
            entry = offset[level] + (child - offset[level - 1]) // FANOUT
            cap[entry] = max(cap[entry], cap[child])
            least[entry] = min(least[entry], least[child])
            for dim in range(low.shape[0]):
                gain[dim, entry] = max(gain[dim, entry], gain[dim, child])
                common[dim, entry] = min(common[dim, entry], common[dim, child])
                if null.size > 0:
                    null[dim, entry] = max(null[dim, entry], null[dim, child])
                if low[dim, child] < low[dim, entry] or np.isnan(low[dim, entry]):
                    low[dim, entry] = low[dim, child]
                if high[dim, child] > high[dim, entry] or np.isnan(high[dim, entry]):
                    high[dim, entry] = high[dim, child]


@kernel
def bound_block(summary: Summary, at: int, event: Alternatives, aggregate: int, certain: bool, out: Float64) -> None:
    """What the entries at .. at + 63 can score at most, into out[64]; -inf where nothing can hold."""
    low, high, gain, null, common, cap = summary.low, summary.high, summary.gain, summary.null, summary.common, summary.cap
    alternatives, lo, hi, chance = event.start, event.lo, event.hi, event.chance
    held, lost, surely = np.empty(FANOUT), np.zeros(FANOUT), np.ones(FANOUT)
    out[:] = -np.inf
    for dim in range(low.shape[0]):
        held[:] = 0.0
        lows, highs = low[dim, at : at + FANOUT], high[dim, at : at + FANOUT]
        for alternative in range(alternatives[dim], alternatives[dim + 1]):
            start, end, share = np.float32(lo[alternative]), np.float32(hi[alternative]), chance[alternative]
            for lane in range(FANOUT):
                held[lane] += share if (lows[lane] <= end) & (start <= highs[lane]) else 0.0
        loss = common[dim, at : at + FANOUT]
        for lane in range(FANOUT):
            lost[lane] += 0.0 if held[lane] > 0.0 else loss[lane]
        if alternatives[dim] < alternatives[dim + 1]:
            add_gain(aggregate, gain[dim, at : at + FANOUT], held, out)
        elif null.size > 0:
            add_gain(aggregate, null[dim, at : at + FANOUT], surely, out)
    # Chances below 1 may be lost without the dimension being lost, so the second bound needs certain events.
    if certain and aggregate == SUM:
        caps = cap[at : at + FANOUT]
        for lane in range(FANOUT):
            out[lane] = min(out[lane], caps[lane], caps[lane] - lost[lane] + SLACK * caps[lane])


@kernel
def add_gain(aggregate: int, gain: Float64, held: Float64, out: Float64) -> None:
    """Take a dimension into the bounds of the lanes where it may hold; `min` is bounded by its greatest weight."""
    if aggregate == SUM:
        for lane in range(FANOUT):
            more = max(out[lane], 0.0) + max(gain[lane], 0.0) * held[lane]
            out[lane] = more if (held[lane] > 0.0) & (gain[lane] > -np.inf) else out[lane]
    else:
        for lane in range(FANOUT):
            out[lane] = max(out[lane], gain[lane]) if held[lane] > 0.0 else out[lane]
