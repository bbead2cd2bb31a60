"""Relaxed matching: the k subscriptions that an event suits best, although it need not satisfy all they ask.

A clause's score for an event is the aggregate of the weights of its dimensions that hold, at least one; a subscription's score
is the best of its clauses; the k best by (score desc, owner asc) are the answer, exactly. Ranges, sets of category codes,
nulls, boxes and words all count, a place and a set of words as one dimension each. A clause's residue is not looked at.

Clauses stand in an order that keeps alike ones together, under a tree of bounds (`bounds`); a best-first search opens
nodes by descending bound, evaluates clauses exactly (`terms`) and stops when no node can reach the k-th score. Ties are
cut too: a node whose bound equals the k-th score and whose least owner is greater cannot enter.

Events may be ranges (a dimension holds when the ranges meet) and uncertain (a dimension given as several values with their
chances; the score is the expectation, for sums only).

The paper runs the Threshold Algorithm over one index a dimension; `experiments/ranked.py`
measures it. At d = 4 it must look at a tenth of all subscriptions, and at d = 100 its threshold is a sum over a hundred lists
and never falls. Here a bound knows which weights stand together in one clause. [ranked, sections 1 and 6]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import inlined, kernel
from tidings.compiling.pinned import Pinned
from tidings.index.packed.groups import part_of
from tidings.index.packed.record import Events
from tidings.index.packed.types import Bool, Float64, Int32, Int64
from tidings.index.relaxed.bounds import FANOUT, Summary, bound_block, clause_order, summarise, totals
from tidings.index.relaxed.scan import MOST, ScanColumns, Scanned, scan_best, scan_columns, scan_event
from tidings.index.relaxed.terms import Alternatives, Terms, clause_score, holds, plain_event, single_ranges, terms_of
from tidings.model.columns.arrays import MISSING_BOX, NULL, RANGE, ClauseColumns, EventColumns, ragged_take, take_clauses
from tidings.rank.aggregates import SUM, aggregate_code
from tidings.rank.best_first_queue import Queue, new_queue, pop, push
from tidings.rank.bounded_heap import accepts, offer, offer_distinct, sort_best_first

NOBODY = np.empty(0, np.bool_)
Range = tuple[float, float, float]
"""(lo, hi, chance)"""


class Owners(NamedTuple):
    """By clause: its owner, whether that has others, whether it is plain ranges, one a dimension; its sum of positive weights."""

    owner: Int32
    shared: Bool
    simple: Bool
    total: Float64


class Asked(NamedTuple):
    event: Alternatives
    aggregate: int
    certain: bool


class RelaxedIndex:
    def __init__(self, terms: Terms, summary: Summary, owners: Owners) -> None:
        self.terms, self.summary, self.owners = terms, summary, owners
        self._beginnings: dict[int, tuple[Float64, Int64]] = {}
        """by dimension, made when first asked for: lower ends ascending, and whose they are"""

    @classmethod
    def build(
        cls, clauses: ClauseColumns, weight: Float64, d: int, box_weight: Float64 | None = None, word_weight: Float64 | None = None
    ) -> RelaxedIndex:
        """`weight` has one entry for each predicate; `box_weight` and `word_weight` one for each clause, 1 by default.

        `d` counts the schema's range-like attributes. All predicates of a clause on one dimension need one weight.
        """
        ones = np.ones(len(clauses))
        boxes, words = ones if box_weight is None else box_weight, ones if word_weight is None else word_weight
        if len(weight) != len(clauses.pred_dim):
            raise ValueError(f"weight has {len(weight)} entries: it needs one for each of {len(clauses.pred_dim)} predicates")
        first = terms_of(clauses, weight, boxes, words, d)
        same = (np.diff(first.dim) == 0) & (np.diff(_clause_of(first)) == 0)
        if not np.isfinite(first.weight).all() or np.any(same & (np.diff(first.weight) != 0)):
            raise ValueError("weight: the predicates of a clause on one dimension need one weight, and a weight is finite")
        order = clause_order(first, d)
        _, preds = ragged_take(clauses.pred_start, order)
        ordered = take_clauses(clauses, order, clauses.owner[order])
        terms = terms_of(ordered, weight[preds], boxes[order], words[order], d)
        return cls(terms, summarise(terms, ordered.owner, d), _owners(terms, ordered.owner))

    def __len__(self) -> int:
        return len(self.owners.owner)

    def topk(
        self,
        value: Float64,
        k: int,
        aggregate: str = "sum",
        box: Sequence[float] | Float64 = MISSING_BOX,
        word: Sequence[int] | Int32 = (),
    ) -> tuple[Int32, Float64]:
        """(owner, score) of the best k for one event, given as a row of `EventColumns`."""
        event = plain_event(np.asarray(value, np.float64), np.asarray(box, np.float64), np.asarray(word, np.int32))
        owner, score, _ = self.search(event, k, aggregate)
        return owner, score

    def search(self, event: Alternatives, k: int, aggregate: str = "sum", hidden: Bool = NOBODY) -> tuple[Int32, Float64, int]:
        """(owner, score) of the best k and how many clauses were looked at; owners with `hidden` (may be empty) are passed over."""
        scores, owners = np.empty(max(k, 0)), np.empty(max(k, 0), np.int64)
        asked, queue = Asked(event, aggregate_code(aggregate), is_certain(event)), new_queue(self.summary.low.shape[1])
        size, evaluated = search(self.terms, self.summary, self.owners, hidden, asked, queue, scores, owners)
        return owners[:size].astype(np.int32), scores[:size], evaluated

    @cached_property
    def scannable(self) -> ScanColumns | None:
        """The columns of a scan; None if some clause is more than plain ranges."""
        plain = self.owners.simple.all() and len(self) and len(np.unique(self.terms.dim)) <= MOST
        return scan_columns(self.terms) if plain else None

    def scan(self, event: Alternatives, k: int, hidden: Bool = NOBODY) -> tuple[Int32, Float64]:
        """As `search`, of an event that is certain and for sums, by passing over everybody; where it is `scannable`."""
        scores, owners = np.empty(max(k, 0)), np.empty(max(k, 0), np.int64)
        low, high = single_ranges(event)
        assert self.scannable is not None
        size = scan_best(self.scannable, self.terms, self.owners.owner, self.owners.shared, hidden, low, high, scores, owners)
        return owners[:size].astype(np.int32), scores[:size]

    def scan_one(self, event: Pinned[Events], k: int, hidden: Bool = NOBODY) -> tuple[Int32, Float64]:
        """As `scan`, of one event as it is encoded: the short way."""
        found: tuple[Int32, Float64] = scan_event(self._scanned, event, k, hidden)
        return found

    @cached_property
    def _scanned(self) -> Pinned[Scanned]:
        assert self.scannable is not None
        return Pinned(Scanned(self.scannable, self.terms, self.owners.owner, self.owners.shared))

    def score_all(self, event: Alternatives, aggregate: str = "sum") -> tuple[Int32, Float64]:
        """(owner, score) of everybody who has a dimension that holds, by owner: no search, every clause is looked at."""
        scores = np.full(int(self.owners.owner.max(initial=-1)) + 1, np.nan)
        score_every(self.terms, self.owners, Asked(event, aggregate_code(aggregate), is_certain(event)), scores)
        owner = np.flatnonzero(~np.isnan(scores))
        return owner.astype(np.int32), scores[owner]

    def topk_batch(self, events: EventColumns, k: int, aggregate: str = "sum") -> tuple[Int32, Int32, Float64]:
        """(event row, owner, score), the events in order and each event's best first."""
        found = [
            self.topk(
                events.value[row], k, aggregate, events.box[row], events.word[events.word_start[row] : events.word_start[row + 1]]
            )
            for row in range(len(events))
        ]
        rows = np.repeat(np.arange(len(found), dtype=np.int32), [len(owner) for owner, _ in found])
        owners = [owner for owner, _ in found] or [np.empty(0, np.int32)]
        return rows, np.concatenate(owners), np.concatenate([score for _, score in found] or [np.empty(0)])

    def beginning_inside(self, event: Alternatives, dimension: int) -> Int32:
        """Owners of the clauses that hold in all their dimensions and whose range in this one begins above the event's low end.

        The event has at most one alternative in each dimension. Cost: the clauses that begin within its range there.
        """
        if dimension not in self._beginnings:
            rows = np.flatnonzero((self.terms.dim == dimension) & (self.terms.kind == RANGE))
            rows = rows[np.argsort(self.terms.lo[rows], kind="stable")]
            self._beginnings[dimension] = self.terms.lo[rows], _clause_of(self.terms)[rows]
        lo, clause = self._beginnings[dimension]
        at = event.start[dimension]
        first, last = np.searchsorted(lo, event.lo[at], side="right"), np.searchsorted(lo, event.hi[at], side="right")
        candidates = clause[first:last]
        held = np.zeros(len(candidates), np.bool_)
        hold_whole(self.terms, candidates, event, held)
        return np.unique(self.owners.owner[candidates[held]])

    def topk_alternatives(self, dimensions: Sequence[Sequence[Range]], k: int) -> tuple[Int32, Float64]:
        """The best k by expected sum: each range-like dimension as a list of (lo, hi, chance), empty where it is missing."""
        if len(dimensions) != self.summary.low.shape[0] - 2:
            raise ValueError(f"the event has {len(dimensions)} dimensions: the index has {self.summary.low.shape[0] - 2}")
        ranges = np.asarray([one for dimension in dimensions for one in dimension], np.float64).reshape(-1, 3)
        count = [len(dimension) for dimension in dimensions]
        start = np.cumsum([0, *count, 0, 0], dtype=np.int64)
        lo, hi, chance = (np.ascontiguousarray(column) for column in ranges.T)
        event = Alternatives(start, lo, hi, chance, np.asarray(MISSING_BOX), np.empty(0, np.int32))
        owner, score, _ = self.search(event, k)
        return owner, score

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, by name, for a memory-mapped segment."""
        return {**self.terms._asdict(), **self.summary._asdict(), **self.owners._asdict()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> RelaxedIndex:
        return cls(part_of(Terms, arrays), part_of(Summary, arrays), part_of(Owners, arrays))

    def check(self) -> None:
        """Layout of the terms, and every bound as it follows from them."""
        start, dim, kind = self.terms.start, self.terms.dim, self.terms.kind
        assert start[0] == 0
        assert start[-1] == len(dim) == len(kind)
        assert np.all(np.diff(start) >= 0)
        assert np.all((np.diff(dim) >= 0) | (np.diff(_clause_of(self.terms)) > 0))
        owner = self.owners.owner
        stored: tuple[NDArray[Any], ...] = (*self.owners, *self.summary)
        made: tuple[NDArray[Any], ...] = (*_owners(self.terms, owner), *summarise(self.terms, owner, self.summary.low.shape[0] - 2))
        for kept, wanted in zip(stored, made, strict=True):
            assert np.array_equal(kept, wanted, equal_nan=kept.dtype.kind == "f")
        assert bool(np.any(kind == NULL)) == (self.summary.null.size > 0)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())


def is_certain(event: Alternatives) -> bool:
    """Whether every dimension has one alternative at most, which is sure."""
    start = event.start.tolist()
    several = any(end - first > 1 for first, end in pairwise(start))
    return not several and all(chance == 1.0 for chance in event.chance[: start[-1]].tolist())


def _clause_of(terms: Terms) -> Int64:
    return np.repeat(np.arange(len(terms.start) - 1), np.diff(terms.start))


def _owners(terms: Terms, owner: Int32) -> Owners:
    clause = _clause_of(terms)
    odd = terms.kind != RANGE
    odd[1:] |= (np.diff(terms.dim) == 0) & (np.diff(clause) == 0)
    simple = np.bincount(clause, weights=odd, minlength=len(owner)) == 0
    return Owners(owner, np.bincount(owner, minlength=1)[owner] > 1, simple, totals(terms))


@kernel
def search(
    terms: Terms, summary: Summary, owners: Owners, hidden: Bool, asked: Asked, queue: Queue, scores: Float64, best: Int64
) -> tuple[int, int]:
    """The best owners, best first, into (scores, best): (how many, clauses evaluated)."""
    offset = summary.offset
    bounds = np.empty(FANOUT)
    event, aggregate, certain = asked
    point = single_ranges(event)
    size, evaluated, level, waiting = 0, 0, offset.size - 2, 0
    child = offset[level]
    while True:
        bound_block(summary, child, event, aggregate, certain, bounds)
        for lane in range(FANOUT):
            if bounds[lane] > -np.inf and accepts(scores, best, size, bounds[lane], summary.least[child + lane]):
                waiting = push(queue, waiting, bounds[lane], summary.least[child + lane], child + lane)
        while True:
            if waiting == 0 or not accepts(scores, best, size, queue[0][0], queue[1][0]):
                sort_best_first(scores, best, size)
                return size, evaluated
            entry = queue[2][0]
            waiting = pop(queue, waiting)
            if entry >= offset[1]:
                break
            size = evaluate(terms, owners, hidden, entry, asked, point, scores, best, size)
            evaluated += FANOUT
        level = offset.size - 2
        while entry < offset[level]:
            level -= 1
        child = offset[level - 1] + (entry - offset[level]) * FANOUT


@kernel
def evaluate(
    terms: Terms,
    owners: Owners,
    hidden: Bool,
    entry: int,
    asked: Asked,
    point: tuple[Float64, Float64],
    scores: Float64,
    best: Int64,
    size: int,
) -> int:
    """Offer the clauses of a block; the heap's new size."""
    event, aggregate, certain = asked
    owner, shared, simple, total = owners
    for clause in range(entry * FANOUT, min((entry + 1) * FANOUT, owner.size)):
        if certain and aggregate == SUM and size == scores.size and total[clause] < scores[0]:
            continue
        if hidden.size > 0 and hidden[owner[clause]]:
            continue
        if certain and simple[clause] and aggregate == SUM:
            matched, score = simple_score(terms, clause, point)
        else:
            matched, score = clause_score(terms, clause, event, aggregate)
        if matched and accepts(scores, best, size, score, owner[clause]):
            if shared[clause]:
                size = offer_distinct(scores, best, size, score, owner[clause])
            else:
                size = offer(scores, best, size, score, owner[clause])
    return size


@inlined
def simple_score(terms: Terms, clause: int, point: tuple[Float64, Float64]) -> tuple[bool, float]:
    """`clause_score` of a clause of plain ranges, one a dimension, for a sum and an event without alternatives."""
    first_term, dims, lo, hi, weight = terms.start, terms.dim, terms.lo, terms.hi, terms.weight
    low, high = point
    score, hits = 0.0, np.int64(0)
    for term in range(first_term[clause], first_term[clause + 1]):
        # No branch: whether a dimension holds is as good as random to the processor.
        dim = np.uint64(dims[term])
        held = np.int64(lo[term] <= high[dim]) & np.int64(low[dim] <= hi[term])
        score += weight[term] * held
        hits |= held
    return hits != 0, score


@kernel
def hold_whole(terms: Terms, clauses: Int64, event: Alternatives, held: Bool) -> None:
    """held[i]: all terms of clauses[i] hold."""
    first_term, dims, kinds = terms.start, terms.dim, terms.kind
    for i in range(clauses.size):
        held[i] = True
        for term in range(first_term[clauses[i]], first_term[clauses[i] + 1]):
            at = event.start[dims[term]]
            if at == event.start[dims[term] + 1]:
                held[i] = kinds[term] == NULL
            else:
                held[i] = holds(terms, clauses[i], term, event, at)
            if not held[i]:
                break


@kernel
def score_every(terms: Terms, owners: Owners, asked: Asked, scores: Float64) -> None:
    """The best score of each owner into `scores`, which stays NaN where nothing holds."""
    owner, simple = owners.owner, owners.simple
    event, aggregate, certain = asked
    point = single_ranges(event)
    for clause in range(owner.size):
        if certain and simple[clause] and aggregate == SUM:
            matched, score = simple_score(terms, clause, point)
        else:
            matched, score = clause_score(terms, clause, event, aggregate)
        if matched and not score <= scores[owner[clause]]:
            scores[owner[clause]] = score
