"""The planner: every clause gets one home, the access path that the fewest events reach.

The price of a home is the share of events that would have to look at the clause there. For `words` it is the share of the events
in the clause's neighbourhood that carry the word that is rarest there (`event_statistics`), times the share that comes near its
box; for `ranges` the product of what its intervals, codes and box let through. A probe of a word's list costs less than an AND of
lines over a block, which WORD_DISCOUNT stands for.

Clauses of a box and words alone may stand in an R^t++ tree (`rt`) instead of lists, whichever an event spends less time on in all:
`rttree.price` against `list_price`, in nanoseconds. Lists win by far for messages of a few words; from about fifty words on the
tree does, because it reads the leaves a message touches instead of a list for every word.

Of the other clauses those whose box prunes best (`layout.best_by_place`) stand in place blocks, the rest in block bitmaps. A home
more costs a single event a call more, so a few such clauses among many others stay with them.

Every segment is planned when it is built, so a merge plans anew with what was seen by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.index.blocks.bitmaps import BlockBitmaps
from tidings.index.blocks.layout import best_by_place
from tidings.index.blocks.places import PlaceBlocks
from tidings.index.blocks.words import WordBlocks
from tidings.index.packed.clauses import PackedClauses
from tidings.index.packed.protocol import Home
from tidings.index.packed.types import Bool, Float64, Int32
from tidings.index.rttree.home import RtHome
from tidings.index.rttree.price import price
from tidings.match.store.event_statistics import Nearby, Statistics
from tidings.model.columns.arrays import IN, NOT_IN, NULL, ClauseColumns
from tidings.model.columns.gather import gather_clauses
from tidings.model.values.schema import Schema

NEAR = "near"
"""The home of those that are nothing but an ideal point; publishing reaches them through `near_spaces` instead."""
HOMES: dict[str, type[Home]] = {
    "ranges": BlockBitmaps,
    "places": PlaceBlocks,
    "words": WordBlocks,
    "rt": RtHome,
    NEAR: BlockBitmaps,
}
SIMILAR = "similar"
"""Where clauses of similarity subscriptions are kept and not matched: the topic's `Similar` does that."""
WORD_DISCOUNT = 4.0
FEW = 4096
"""Clauses best found by their place that, among others, are too few for a home of their own."""
LIST, SLOT = 100.0, 0.8
"""Nanoseconds for a word's list found and begun, and for each slot of it that is tested."""


class Homes(NamedTuple):
    """Where the clauses of a segment stand: in homes, which match, or merely kept."""

    homes: dict[str, Home]
    kept: dict[str, PackedClauses]


def build_homes(schema: Schema, clauses: ClauseColumns, score: Float64, similar: Bool, near: Bool, statistics: Statistics) -> Homes:
    """Every clause in its home; `score` and whether it goes by similarity or by nearness alone are by owner."""
    built = Homes({}, {})
    nearby, words = statistics.nearby(clauses), statistics.words_an_event
    assigned = assign(schema, clauses, similar[clauses.owner], near[clauses.owner], nearby, words, score[clauses.owner])
    for name, rows in assigned.items():
        members = clauses if len(rows) == len(clauses) else gather_clauses(clauses, rows)
        if name == SIMILAR:
            built.kept[name] = PackedClauses.build(members, rows)
        else:
            built.homes[name] = HOMES[name].build(members, rows, score[members.owner], nearby.word[rows])
    return built


def mapped_homes(names: Iterable[str], arrays: Mapping[str, NDArray[Any]]) -> Homes:
    """From a file: the arrays of each home stand under its name."""
    mapped = Homes({}, {})
    for name in names:
        parts = {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
        if name == SIMILAR:
            mapped.kept[name] = PackedClauses.from_arrays(parts)
        else:
            mapped.homes[name] = HOMES[name].from_arrays(parts)
    return mapped


def assign(
    schema: Schema, clauses: ClauseColumns, similar: Bool, near: Bool, nearby: Nearby, words_an_event: float, score: Float64
) -> dict[str, Int32]:
    """The clauses of each home, ascending; homes without clauses are left out. `score` is by clause."""
    wordy = np.diff(clauses.word_start) > 0
    touched = np.ones(len(clauses))
    if wordy.any():
        touched = box_share(clauses)
        by_words = np.where(wordy, nearby.share * touched, np.inf)
        by_ranges = range_share(schema, clauses) * touched * WORD_DISCOUNT
        wordy = (by_words <= by_ranges) & ~similar & ~near
    boxed = wordy & np.isfinite(clauses.box).all(axis=1) & (np.diff(clauses.pred_start) == 0)
    in_tree = boxed if tree_is_cheaper(nearby, touched, boxed, words_an_event) else np.zeros(len(clauses), np.bool_)
    others = np.flatnonzero(~wordy & ~similar & ~near)
    placed = by_place(clauses, others, score)
    members = {
        "ranges": others[~placed],
        "places": others[placed],
        "words": np.flatnonzero(wordy & ~in_tree),
        "rt": np.flatnonzero(in_tree),
        SIMILAR: np.flatnonzero(similar),
        NEAR: np.flatnonzero(near),
    }
    return {name: rows.astype(np.int32) for name, rows in members.items() if len(rows)}


def by_place(clauses: ClauseColumns, rows: NDArray[np.int64], score: Float64) -> Bool:
    """Which of these clauses stand in place blocks."""
    nobody = np.zeros(len(rows), np.bool_)
    if not np.isfinite(clauses.box[rows]).all(axis=1).any():
        return nobody
    placed = best_by_place(clauses if len(rows) == len(clauses) else gather_clauses(clauses, rows), score[rows])
    return placed if placed.all() or np.count_nonzero(placed) >= FEW else nobody


def tree_is_cheaper(nearby: Nearby, touched: Float64, boxed: Bool, words_an_event: float) -> bool:
    """Whether an event spends less on the clauses `boxed` in an R^t++ tree than in the lists of their rarest words.

    It is asked of all of them together, since most of what a tree costs is shared.
    """
    share, near = nearby.share[boxed], touched[boxed]
    if not len(share):
        return False
    in_tree = float(price(len(share), words_an_event, near, share).sum())
    return in_tree < LIST * words_an_event + float(list_price(nearby.word[boxed], share, near).sum())


def list_price(word: Int32, share: Float64, near: Float64) -> Float64:
    """Nanoseconds that an event spends on each clause in its word's list: all of a short list, of a long one the blocks near."""
    length = np.bincount(word)[word]
    blocks = np.where(length > 128, np.minimum((np.sqrt(64 / length) + np.sqrt(near)) ** 2, 1.0), 1.0)
    spent: Float64 = SLOT * share * blocks
    return spent


def box_share(clauses: ClauseColumns) -> Float64:
    """Share of the clauses' own extent that each box covers; 1 without a box."""
    bounded = np.isfinite(clauses.box).all(axis=1)
    share = np.ones(len(clauses))
    if not bounded.any():
        return share
    box = clauses.box[bounded]
    extent = np.maximum(box[:, 2:].max(axis=0) - box[:, :2].min(axis=0), np.finfo(float).tiny)
    share[bounded] = np.clip(np.prod((box[:, 2:] - box[:, :2]) / extent + 1e-6, axis=1), 0.0, 1.0)
    return share


def range_share(schema: Schema, clauses: ClauseColumns) -> Float64:
    """Product over each clause's predicates of the share of the dimension that they let through."""
    lo, hi = clauses.pred_lo.copy(), clauses.pred_hi.copy()
    sets = (clauses.pred_kind == IN) | (clauses.pred_kind == NOT_IN) | (clauses.pred_kind == NULL)
    through = np.full(len(lo), 0.5)
    for dim in range(len(schema.ranges)):
        here = np.flatnonzero((clauses.pred_dim == dim) & ~sets)
        ends = np.concatenate([lo[here], hi[here]])
        ends = ends[np.isfinite(ends)]
        if len(ends):
            # Of halves: the difference of two finite ends need not be finite.
            low, high = float(ends.min()), float(ends.max())
            half = np.clip(hi[here], low, high) / 2 - np.clip(lo[here], low, high) / 2
            through[here] = np.clip((half + 5e-10) / max(high / 2 - low / 2, 0.5), 1e-6, 1.0)
    share = np.ones(len(clauses))
    bound = np.flatnonzero(np.diff(clauses.pred_start) > 0)
    if len(bound):
        share[bound] = np.multiply.reduceat(through, clauses.pred_start[bound])
    return share
