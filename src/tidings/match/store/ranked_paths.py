"""How the k best of an event are found in one segment: three paths, each with a price, and the lowest is taken.

| path       | what it does                                                      | cheapest when                                   |
|------------|-------------------------------------------------------------------|-------------------------------------------------|
| `Stabbing` | the SOPT-R-tree's score order [ranked, section 3.2]               | every filter is one range on the same attribute |
| `InOrder`  | homes' top-k: tiers of blocks by score, until the k-th is sure    | many match, and scores differ                   |
| `Select`   | all matches, then the k best                                      | few match, above all in batches                 |

A price is in nanoseconds an event. It needs how many matches to expect, which a sample of the clauses tells (`packed.sampling`),
how many blocks the event reaches, and which share of them stands above the score that the k-th best will have.

The paper's intersection of d lists in score order is not among the paths. To the k-th best at rank r it reads r * p entries of
every list (p the share that holds there), about 4 ns each; tiers of blocks read r / 512 blocks of 70 to 150 ns, less unless
p < 0.07 / d, and there the two come out alike.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.index.packed.packing import as_events
from tidings.index.packed.record import Events
from tidings.index.scored.packed_rtree import stab_living
from tidings.index.scored.sopt_rtree import SOPTRTree
from tidings.match.store.hits import NO_ROWS, Pairs, ValuesOf
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.segment import Segment
from tidings.model.columns.arrays import EventColumns

BATCHED_BLOCK, SINGLE_BLOCK = 70.0, 150.0
"""Nanoseconds: a block reached by a batch, and by one event."""
SELECTED, GIVEN = 200.0, 40.0
"""A match that is scored and sorted with all others, and one that stands in its place already."""
START, OFFER, SHIFT = 200.0, 10.0, 0.35
"""To begin a search in order, a clause offered to the best so far, and each of the k places it may shift there."""
DESCENT, BOUNDED_DESCENT, STEP = 400.0, 10_000.0, 15.0
"""A descent of the SOPT-R-tree, one by bounds of scores that depend on the event, and each interval given."""
UNPRICED = 1000
"""Up to this k, a single event's ordered path is cheaper than `Select` whatever matches, and an estimate would cost more."""
PROBED = 16
BATCH = 64
SAMPLED_SCORES = 1024


class Question(NamedTuple):
    """The k best of each of these events, among the subscriptions that a reader at change `seq` sees."""

    events: EventColumns
    values: ValuesOf
    k: int
    seq: int

    @property
    def block_price(self) -> float:
        return BATCHED_BLOCK if len(self.events) >= BATCH else SINGLE_BLOCK


class Estimate(NamedTuple):
    """An event's matches, the blocks it reaches, and the share of them that a search in order of score reads."""

    matches: float
    blocks: float
    share: float


class Plan(NamedTuple):
    """The path to take; `prices` of those that could be, in nanoseconds an event, and `refused`, why the others cannot."""

    path: Path
    matches: float
    prices: dict[str, float]
    refused: dict[str, str]

    def __str__(self) -> str:
        name = self.path.name
        others = [f"{other} {price / 1000:.3g} us" for other, price in self.prices.items() if other != name]
        others += [f"not {other}: {reason}" for other, reason in self.refused.items()]
        about = f"{self.matches:.3g} matches expected"
        return f"{name}, about {self.prices[name] / 1000:.3g} us ({'; '.join([about, *others])})"


class Path(Protocol):
    name: str
    ordered: bool

    def refusal(self, live: LiveSegment, question: Question) -> str | None: ...

    def cost(self, question: Question, estimate: Estimate) -> float: ...

    def best(self, live: LiveSegment, question: Question) -> Pairs: ...

    def best_of_one(self, live: LiveSegment, event: Pinned[Events], question: Question) -> NDArray[np.int32]:
        """Ordinals, where the question is of one event, `event`."""
        ...


class Select:
    """All matches; whoever asks scores them and keeps the best."""

    name, ordered = "all matches, then the k best", False

    def refusal(self, live: LiveSegment, question: Question) -> str | None:
        return None

    def cost(self, question: Question, estimate: Estimate) -> float:
        return estimate.blocks * question.block_price + estimate.matches * SELECTED

    def best(self, live: LiveSegment, question: Question) -> Pairs:
        return live.match(question.events, question.values, question.seq)

    def best_of_one(self, live: LiveSegment, event: Pinned[Events], question: Question) -> NDArray[np.int32]:
        return live.match_one(event, question.values(0), question.seq)


class InOrder:
    """The homes' top-k."""

    name, ordered = "blocks in order of score", True

    def refusal(self, live: LiveSegment, question: Question) -> str | None:
        return live.segment.why_select(question.k)

    def cost(self, question: Question, estimate: Estimate) -> float:
        k, matches = question.k, estimate.matches
        offered = min(matches, k * (1.0 + math.log(max(matches / k, 1.0)))) if k else 0.0
        # Events differ: those with fewer matches than most read on for longer.
        blocks = estimate.blocks * min(1.0, 2 * estimate.share)
        return START + blocks * question.block_price + offered * (OFFER + k * SHIFT) + min(k, matches) * GIVEN

    def best(self, live: LiveSegment, question: Question) -> Pairs:
        return live.topk(question.events, question.k, question.seq)

    def best_of_one(self, live: LiveSegment, event: Pinned[Events], question: Question) -> NDArray[np.int32]:
        return live.topk_one(event, question.k, question.seq)


class Stabbing:
    """An SOPT-R-tree of a segment whose every filter is one range on the same attribute; made when first asked for.

    Scores that depend on the event are bounded by node, if every formula names its attributes in the schema's order: sums
    then round alike here and in `Linear`.
    """

    name, ordered = "SOPT-R-tree", True

    def __init__(self, segment: Segment) -> None:
        self.dimension, self._why = one_dimension(segment)
        self._names = [name for name in segment.schema if any(name in f.coefficients for f in segment.formulas.values())]
        for formula in segment.formulas.values():
            if [*formula.coefficients] != [name for name in self._names if name in formula.coefficients]:
                self._why = self._why or "a score names attributes in another order than the schema"
        forms = segment.formulas.values()
        self._steepest = max((abs(slope) for form in forms for slope in form.coefficients.values()), default=0.0)
        self._highest = max((abs(form.base) for form in forms), default=0.0)
        self._segment = segment if self._why is None else None

    @cached_property
    def tree(self) -> SOPTRTree:
        assert self._segment is not None
        segment, self._segment = self._segment, None
        clauses, score = segment.columns(), segment.score.copy()
        coefficient = np.zeros((len(segment), len(self._names)))
        for ordinal, formula in segment.formulas.items():
            score[ordinal] = formula.base
            coefficient[ordinal] = [formula.coefficients.get(name, 0.0) for name in self._names]
        return SOPTRTree.build(clauses.pred_lo, clauses.pred_hi, score, coefficient=coefficient)

    def refusal(self, live: LiveSegment, question: Question) -> str | None:
        segment = live.segment
        if self._why is not None:
            return self._why
        if question.k >= len(segment):
            return "k is at least the number of subscriptions"
        value = question.events.value[:, [segment.schema.dimension[name] for name in self._names]]
        if np.isnan(value).any():
            return "an event lacks an attribute that scores depend on"
        if float(np.abs(value).max(initial=0.0)) * self._steepest * len(self._names) + self._highest > 1e300:
            return "a score may have no finite answer"
        return "some were removed, and scores depend on the event" if self._names and live.dead else None

    def cost(self, question: Question, estimate: Estimate) -> float:
        given = min(question.k, estimate.matches)
        return (BOUNDED_DESCENT if self._names else DESCENT) + given * (STEP + GIVEN)

    def best(self, live: LiveSegment, question: Question) -> Pairs:
        segment = live.segment
        value = question.events.value[:, self.dimension].copy()
        rows = np.full((len(value), question.k), -1, np.int64)
        if self._names:
            attributes = question.events.value[:, [segment.schema.dimension[name] for name in self._names]]
            for row in np.flatnonzero(~np.isnan(value)).tolist():
                found, _ = self.tree.topk_event(value[row], value[row], attributes[row], question.k)
                rows[row, : len(found)] = found
        else:
            stab_living(self.tree.tree, value, live.died, question.seq - segment.born, rows)
        event, place = np.nonzero(rows >= 0)
        return event.astype(np.int32), rows[event, place].astype(np.int32)

    def best_of_one(self, live: LiveSegment, event: Pinned[Events], question: Question) -> NDArray[np.int32]:
        return self.best(live, question)[1]


def one_dimension(segment: Segment) -> tuple[int, str | None]:
    """The dimension on which every subscription has its one range, or why there is none."""
    several = "filters are more than one range on one attribute"
    if [*segment.homes] != ["ranges"] or segment.kept or not segment.one_clause_each:
        return -1, several
    if not segment.unconditional:
        return -1, "some subscriptions expire or have a residue"
    dimension = segment.homes["ranges"].only_range()
    # Presence of a place or of words is a range too, on a dimension after these.
    return (-1, several) if dimension is None or dimension >= len(segment.schema.ranges) else (dimension, None)


class RankedPaths:
    """The paths of one segment, and what their prices are reckoned from."""

    def __init__(self, live: LiveSegment) -> None:
        segment = live.segment
        self.paths: tuple[Path, ...] = (Stabbing(segment), InOrder(), Select())
        some = np.linspace(0, max(len(segment) - 1, 0), SAMPLED_SCORES).astype(np.int64)
        self._score = np.sort(segment.score[some])[::-1] if len(segment) else np.zeros(SAMPLED_SCORES)

    def plan(self, live: LiveSegment, question: Question) -> Plan:
        refused = {path.name: path.refusal(live, question) for path in self.paths}
        open_paths = [path for path in self.paths if refused[path.name] is None]
        estimate = self.estimate(live.segment, question)
        prices = {path.name: path.cost(question, estimate) for path in open_paths}
        path = min(open_paths, key=lambda path: prices[path.name])
        return Plan(path, estimate.matches, prices, {name: reason for name, reason in refused.items() if reason is not None})

    def path(self, live: LiveSegment, question: Question) -> Path:
        if len(question.events) == 1 and question.k <= UNPRICED:
            return next(path for path in self.paths if path.refusal(live, question) is None)
        return self.plan(live, question).path

    def estimate(self, segment: Segment, question: Question) -> Estimate:
        """From the sampled clauses and the first events, a sixteenth of them at most: it must cost little beside the answer."""
        probed = min(len(question.events), max(1, len(question.events) // 16), PROBED)
        events = as_events(question.events)
        matches = blocks = 0.0
        for home in segment.homes.values():
            matches += home.expected_matches(events, probed)
            blocks += home.blocks_reached(events, probed)
        return Estimate(matches, blocks, self.share(question.k, matches))

    def share(self, k: int, matches: float) -> float:
        """Of all subscriptions, those whose score is not below the one that the k-th best will have."""
        lowest = self._score[math.ceil(min(1.0, k / max(matches, 1e-9)) * (SAMPLED_SCORES - 1))]
        return int(np.searchsorted(-self._score, -lowest, side="right")) / len(self._score)


def plan_for(live: LiveSegment, question: Question) -> Plan:
    return live.aside(RankedPaths).plan(live, question)


def best_of_one(live: LiveSegment, event: Pinned[Events], question: Question) -> tuple[NDArray[np.int32], bool]:
    """As `best_pairs`, of one event: ordinals."""
    if not question.k:
        return NO_ROWS, True
    path = live.aside(RankedPaths).path(live, question)
    return path.best_of_one(live, event, question), path.ordered


def best_pairs(live: LiveSegment, question: Question) -> tuple[Pairs, bool]:
    """What the cheapest path found, and whether it is the k best of each event, in order."""
    if not question.k or not len(question.events):
        return (NO_ROWS, NO_ROWS), True
    path = live.aside(RankedPaths).path(live, question)
    return path.best(live, question), path.ordered
