"""The planner: every clause gets one home, the access path that the fewest events reach.

The price of a home is the share of events that would have to look at the clause there. For `words` it is the share of events that
carry the clause's rarest word, times the share that comes near its box; for `ranges` the product of what its intervals, codes and
box let through. Shares come from the topic's own statistics: counts of words in events (or, before any event was seen, in clauses)
and the spread of each dimension's bounds. Prices are only compared with each other, so their unit does not matter.

A probe of a word's list costs less than an AND of lines over a block, which WORD_DISCOUNT stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.index.block_bitmaps import BlockBitmaps
from tidings.index.verify import Events
from tidings.index.word_blocks import WordBlocks
from tidings.model.arrays import IN, NOT_IN, NULL, ClauseColumns, EventColumns
from tidings.model.gather import gather_clauses
from tidings.model.schema import Schema


class Kept(BlockBitmaps):
    """Clauses of similarity subscriptions: kept with the segment, matched by the topic's `Similar`."""

    def match_batch(
        self, events: EventColumns, died: NDArray[np.uint32] | None = None, snapshot: int = 0
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return np.empty(0, np.int32), np.empty(0, np.int32)

    def match_one(self, events: Events, row: int, died: NDArray[np.uint32], snapshot: int) -> NDArray[np.int32]:
        return np.empty(0, np.int32)

    def topk_batch(self, events: EventColumns, *_: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self.match_batch(events)


Home = BlockBitmaps | WordBlocks
WORD_DISCOUNT = 4.0
NEAR = "near"
"""The home of those that are nothing but an ideal point; publishing reaches them through `near_spaces` instead."""
HOMES: dict[str, type[Home]] = {"ranges": BlockBitmaps, "words": WordBlocks, "similar": Kept, NEAR: BlockBitmaps}


@dataclass(slots=True)
class Statistics:
    """What the topic has seen: how often each word stood in an event, and how many events there were."""

    word_count: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    events: int = 0

    def frequency(self, clauses: ClauseColumns) -> NDArray[np.int64]:
        """How often each word comes in events, or in the clauses if no event was seen yet."""
        size = int(clauses.word.max(initial=-1)) + 1
        if not self.events:
            return np.bincount(clauses.word, minlength=size)
        known = np.zeros(max(size, len(self.word_count)), np.int64)
        known[: len(self.word_count)] = self.word_count
        return known

    def observe(self, events: EventColumns) -> None:
        self.events += len(events)
        if len(events.word):
            seen = np.bincount(events.word, minlength=len(self.word_count))
            seen[: len(self.word_count)] += self.word_count
            self.word_count = seen


def build_homes(
    schema: Schema,
    clauses: ClauseColumns,
    score: NDArray[np.float64],
    similar: NDArray[np.bool_],
    near: NDArray[np.bool_],
    statistics: Statistics,
) -> dict[str, Home]:
    """Every clause in its home; `score` and whether it goes by similarity or by nearness alone are by owner."""
    homes: dict[str, Home] = {}
    for name, rows in assign(schema, clauses, similar[clauses.owner], near[clauses.owner], statistics).items():
        members = gather_clauses(clauses, rows)
        if name == "words":
            homes[name] = WordBlocks.build(members, rows, statistics.frequency(clauses))
        else:
            homes[name] = HOMES[name].build(members, rows, score[members.owner])  # type: ignore[arg-type]
    return homes


def assign(
    schema: Schema, clauses: ClauseColumns, similar: NDArray[np.bool_], near: NDArray[np.bool_], statistics: Statistics
) -> dict[str, NDArray[np.int32]]:
    """The clauses of each home, ascending; homes without clauses are left out."""
    worded = np.diff(clauses.word_start) > 0
    by_words = np.where(worded, word_share(clauses, statistics) * box_share(clauses), np.inf)
    by_ranges = range_share(schema, clauses) * box_share(clauses) * WORD_DISCOUNT
    home = by_words <= by_ranges
    members = {
        "ranges": np.flatnonzero(~home & ~similar & ~near),
        "words": np.flatnonzero(home & ~similar & ~near),
        "similar": np.flatnonzero(similar),
        NEAR: np.flatnonzero(near),
    }
    return {name: rows.astype(np.int32) for name, rows in members.items() if len(rows)}


def word_share(clauses: ClauseColumns, statistics: Statistics) -> NDArray[np.float64]:
    """Share of events that carry each clause's rarest word; 1 for a clause without words."""
    count = statistics.frequency(clauses)
    total = statistics.events or len(clauses)
    share = np.ones(len(clauses))
    worded = np.flatnonzero(np.diff(clauses.word_start) > 0)
    if len(worded):
        share[worded] = np.minimum.reduceat((count[clauses.word] + 1) / (total + 1), clauses.word_start[worded])
    return np.minimum(share, 1.0)


def box_share(clauses: ClauseColumns) -> NDArray[np.float64]:
    """Share of the clauses' own extent that each box covers; 1 without a box."""
    bounded = np.isfinite(clauses.box).all(axis=1)
    share = np.ones(len(clauses))
    if not bounded.any():
        return share
    box = clauses.box[bounded]
    extent = np.maximum(box[:, 2:].max(axis=0) - box[:, :2].min(axis=0), np.finfo(float).tiny)
    share[bounded] = np.clip(np.prod((box[:, 2:] - box[:, :2]) / extent + 1e-6, axis=1), 0.0, 1.0)
    return share


def range_share(schema: Schema, clauses: ClauseColumns) -> NDArray[np.float64]:
    """Product over each clause's predicates of the share of the dimension that they let through."""
    lo, hi = clauses.pred_lo.copy(), clauses.pred_hi.copy()
    sets = (clauses.pred_kind == IN) | (clauses.pred_kind == NOT_IN) | (clauses.pred_kind == NULL)
    through = np.full(len(lo), 0.5)
    for dim in range(len(schema.ranges)):
        here = np.flatnonzero((clauses.pred_dim == dim) & ~sets)
        ends = np.concatenate([lo[here], hi[here]])
        ends = ends[np.isfinite(ends)]
        if len(ends):
            low, high = float(ends.min()), float(ends.max())
            width = np.clip(hi[here], low, high) - np.clip(lo[here], low, high)
            through[here] = np.clip((width + 1e-9) / max(high - low, 1.0), 1e-6, 1.0)
    share = np.ones(len(clauses))
    bound = np.flatnonzero(np.diff(clauses.pred_start) > 0)
    if len(bound):
        share[bound] = np.multiply.reduceat(through, clauses.pred_start[bound])
    return share
