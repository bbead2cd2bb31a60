"""What a clause weighs for an event, dimension by dimension: the exact side of relaxed matching.

Terms are a clause's predicates with their weights, the box and the words among them:

| array    | shape, dtype   | meaning                                                                                        |
|----------|----------------|------------------------------------------------------------------------------------------------|
| `start`  | n + 1, int64   | clause c's terms are [start[c], start[c + 1]), ascending by dimension                          |
| `dim`    | t, int16       | the dimension; of d range-like ones, d is the place and d + 1 the words                        |
| `kind`   | t, uint8       | RANGE, IN, NOT_IN, NULL of `columns.arrays`, or BOX, WORDS                                       |
| `lo`, `hi` | t, float64   | as in `ClauseColumns`; BOX: the box's x range                                                  |
| `weight` | t, float64     | the dimension's weight; equal in all terms of one dimension of a clause                        |
| `pool`   | -, int32       | category codes                                                                                 |
| `box`    | n or 0 x 4, float64 | the clause's box; no rows when no clause has one                                         |
| `word_start`, `word` | as in `ClauseColumns` | `word_start` is empty when no clause has words                             |

A dimension holds when all its terms hold. An event gives every dimension a list of alternatives, ranges [lo, hi] with
probabilities:

| array   | shape, dtype      | meaning                                                                                       |
|---------|-------------------|-----------------------------------------------------------------------------------------------|
| `start` | d + 3, int64      | dimension j's alternatives are [start[j], start[j + 1]); none when the attribute is missing   |
| `lo`, `hi`, `chance` | -, float64 | a plain event has lo = hi and chance 1; an event that is a range has lo < hi         |
| `box`   | 4, float64        | the event's box, whose x range is the place's one alternative                                 |
| `word`  | -, int32          | the event's words, ascending; the words' one alternative is [0, 0]                            |

A dimension of weight w that holds for alternatives of total chance c contributes w * c: the expectation, when scores are sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.types import Float64, Int16, Int32, Int64, Uint8
from tidings.model.columns.arrays import IN, NOT_IN, NULL, RANGE, ClauseColumns
from tidings.rank.aggregates import start, take_in

BOX, WORDS = 4, 5


class Terms(NamedTuple):
    start: Int64
    dim: Int16
    kind: Uint8
    lo: Float64
    hi: Float64
    weight: Float64
    pool: Int32
    box: Float64
    word_start: Int64
    word: Int32


class Alternatives(NamedTuple):
    start: Int64
    lo: Float64
    hi: Float64
    chance: Float64
    box: Float64
    word: Int32


def terms_of(clauses: ClauseColumns, weight: Float64, box_weight: Float64, word_weight: Float64, dimensions: int) -> Terms:
    """The terms of all clauses; `dimensions` counts the range-like ones."""
    clause = np.repeat(np.arange(len(clauses)), np.diff(clauses.pred_start))
    boxed = np.flatnonzero(np.any(np.isfinite(clauses.box), axis=1))
    worded = np.flatnonzero(np.diff(clauses.word_start))
    owner = np.concatenate([clause, boxed, worded])
    dim = np.concatenate([clauses.pred_dim, np.full(len(boxed), dimensions), np.full(len(worded), dimensions + 1)])
    order = np.lexsort((dim, owner))
    kind = np.concatenate([clauses.pred_kind, np.full(len(boxed), BOX), np.full(len(worded), WORDS)])
    nothing = np.zeros(len(worded))
    lo = np.concatenate([clauses.pred_lo, clauses.box[boxed, 0], nothing])
    hi = np.concatenate([clauses.pred_hi, clauses.box[boxed, 2], nothing])
    weights = np.concatenate([weight, box_weight[boxed], word_weight[worded]])
    begin = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(clauses)))]).astype(np.int64)
    return Terms(
        begin,
        dim[order].astype(np.int16),
        kind[order].astype(np.uint8),
        lo[order],
        hi[order],
        weights[order],
        clauses.pool,
        clauses.box if len(boxed) else clauses.box[:0],
        clauses.word_start if len(worded) else clauses.word_start[:0],
        clauses.word,
    )


@kernel
def holds(terms: Terms, clause: int, term: int, event: Alternatives, alternative: int) -> bool:
    """Whether a term holds for one alternative of its dimension. (NULL holds for none: it wants the dimension to be missing.)"""
    kinds, lo, hi, pool, box, word_start, word = terms.kind, terms.lo, terms.hi, terms.pool, terms.box, terms.word_start, terms.word
    low, high = event.lo[alternative], event.hi[alternative]
    kind = kinds[term]
    if kind == RANGE:
        return bool(lo[term] <= high and low <= hi[term])
    if kind in (IN, NOT_IN):
        codes = pool[np.int64(lo[term]) : np.int64(lo[term]) + np.int64(hi[term])]
        at = np.searchsorted(codes, low)
        return bool((at < codes.size and codes[at] == low) == (kind == IN))
    if kind == BOX:
        mine, its = box[clause], event.box
        return bool(mine[0] <= its[2] and its[0] <= mine[2] and mine[1] <= its[3] and its[1] <= mine[3])
    if kind == WORDS:
        words = event.word
        for wanted in word[word_start[clause] : word_start[clause + 1]]:
            at = np.searchsorted(words, wanted)
            if at == words.size or words[at] != wanted:
                return False
        return True
    return False


@kernel
def clause_score(terms: Terms, clause: int, event: Alternatives, aggregate: int) -> tuple[bool, float]:
    """(whether a dimension holds, the score)"""
    first_term, dims, kinds, weight = terms.start, terms.dim, terms.kind, terms.weight
    alternatives, chance = event.start, event.chance
    score, matched = start(aggregate), False
    term, end = first_term[clause], first_term[clause + 1]
    while term < end:
        dim = dims[term]
        last = term + 1
        while last < end and dims[last] == dim:
            last += 1
        held = 0.0
        if alternatives[dim] == alternatives[dim + 1]:
            held = 1.0
            for other in range(term, last):
                if kinds[other] != NULL:
                    held = 0.0
        for alternative in range(alternatives[dim], alternatives[dim + 1]):
            all_hold = True
            for other in range(term, last):
                all_hold = all_hold and holds(terms, clause, other, event, alternative)
            if all_hold:
                held += chance[alternative]
        if held > 0.0:
            score, matched = take_in(aggregate, score, weight[term] * held), True
        term = last
    return matched, score


@kernel
def plain_event(values: Float64, box: Float64, word: Int32) -> Alternatives:
    """The alternatives of an event row of `EventColumns`."""
    first = np.zeros(values.size + 1, np.int64)
    lo = np.empty(values.size)
    for dim in range(values.size):
        lo[first[dim]] = values[dim]
        first[dim + 1] = first[dim] + (0 if np.isnan(values[dim]) else 1)
    hi = lo.copy()
    place = first[values.size - 2]
    if first[values.size - 1] > place:
        lo[place], hi[place] = box[0], box[2]
    return Alternatives(first, lo, hi, np.ones(values.size), box, word)


@kernel
def single_ranges(event: Alternatives) -> tuple[Float64, Float64]:
    """(lo, hi) by dimension, of an event with at most one alternative in each; NaN where it is missing."""
    first, lo, hi = event.start, event.lo, event.hi
    low, high = np.full(first.size - 1, np.nan), np.full(first.size - 1, np.nan)
    for dim in range(low.size):
        if first[dim] < first[dim + 1]:
            low[dim], high[dim] = lo[first[dim]], hi[first[dim]]
    return low, high
