"""Taking, joining and reading back rows of ClauseColumns, without a Python loop over clauses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.model.columns.arrays import IN, NO_BOX, NOT_IN, NULL, RANGE, ClauseColumns, Vocabularies, starts, take_clauses
from tidings.model.filter.clause import Box, Clause
from tidings.model.values.schema import Schema

Index = NDArray[np.int64]
Span = tuple[float, float]
EVERYWHERE: Span = (-math.inf, math.inf)
"""The ends of a predicate that asks for the attribute alone."""
NOTHING = frozenset[str]()


NO_CLAUSES = ClauseColumns(
    owner=np.empty(0, np.int32),
    pred_start=np.zeros(1, np.int64),
    pred_dim=np.empty(0, np.int16),
    pred_kind=np.empty(0, np.uint8),
    pred_lo=np.empty(0),
    pred_hi=np.empty(0),
    pool=np.empty(0, np.int32),
    box=np.empty((0, 4)),
    word_start=np.zeros(1, np.int64),
    word=np.empty(0, np.int32),
    residue=np.empty(0, np.bool_),
)


def gather_clauses(clauses: ClauseColumns, rows: NDArray[np.integer]) -> ClauseColumns:
    """The given clauses, in the given order, with a pool of their own. Owners stay as they are."""
    return _pack_pool(take_clauses(clauses, np.asarray(rows, np.int64), clauses.owner[rows]))


def _pack_pool(clauses: ClauseColumns) -> ClauseColumns:
    """Drop the codes that no predicate points to any more."""
    sets = np.flatnonzero((clauses.pred_kind == IN) | (clauses.pred_kind == NOT_IN))
    first = clauses.pred_lo[sets].astype(np.int64)
    length = clauses.pred_hi[sets].astype(np.int64)
    offset = starts(length)
    source = np.repeat(first - offset[:-1], length) + np.arange(offset[-1])
    clauses.pred_lo[sets] = offset[:-1]
    return replace(clauses, pool=clauses.pool[source])


def concat_clauses(parts: Sequence[ClauseColumns], owner_base: Sequence[int]) -> ClauseColumns:
    """All clauses one after another; the owners of part i are moved up by owner_base[i]."""
    pools = np.cumsum([0, *(len(part.pool) for part in parts)])
    lows = []
    for part, base in zip(parts, pools, strict=False):
        is_set = (part.pred_kind == IN) | (part.pred_kind == NOT_IN)
        lows.append(np.where(is_set, part.pred_lo + base, part.pred_lo))
    return ClauseColumns(
        owner=np.concatenate([part.owner + np.int32(base) for part, base in zip(parts, owner_base, strict=True)]).astype(np.int32),
        pred_start=_join_starts([part.pred_start for part in parts]),
        pred_dim=np.concatenate([part.pred_dim for part in parts]),
        pred_kind=np.concatenate([part.pred_kind for part in parts]),
        pred_lo=np.concatenate(lows),
        pred_hi=np.concatenate([part.pred_hi for part in parts]),
        pool=np.concatenate([part.pool for part in parts]),
        box=np.concatenate([part.box for part in parts]),
        word_start=_join_starts([part.word_start for part in parts]),
        word=np.concatenate([part.word for part in parts]),
        residue=np.concatenate([part.residue for part in parts]),
    )


def _join_starts(starts: Sequence[Index]) -> Index:
    bases = np.cumsum([0, *(start[-1] for start in starts)])
    return np.concatenate([[0], *(start[1:] + base for start, base in zip(starts, bases, strict=False))]).astype(np.int64)


class Parts(NamedTuple):
    """One clause, its residue left out, in dimensions and codes."""

    dims: Sequence[int]
    """Dimension of each RANGE, all different"""
    spans: Sequence[Span]
    """Both ends of each RANGE"""
    sets: Sequence[tuple[int, int, Sequence[int]]]
    """Dimension, kind (IN, NOT_IN or NULL) and codes of every other predicate"""
    box: Box
    words: Sequence[int]


def decode_clause(schema: Schema, vocabularies: Vocabularies, clauses: ClauseColumns, row: int) -> Clause:
    """The clause that row `row` was encoded from, without its residue."""
    here = slice(clauses.pred_start[row], clauses.pred_start[row + 1])
    columns = (clauses.pred_dim, clauses.pred_kind, clauses.pred_lo, clauses.pred_hi)
    predicates = [*zip(*(column[here].tolist() for column in columns), strict=True)]
    ranges = [(dim, (lo, hi)) for dim, kind, lo, hi in predicates if kind == RANGE]
    sets = [(dim, kind, clauses.pool[int(lo) : int(lo + hi)].tolist()) for dim, kind, lo, hi in predicates if kind != RANGE]
    words = clauses.word[clauses.word_start[row] : clauses.word_start[row + 1]].tolist()
    box = tuple(clauses.box[row].tolist())
    return clause_of(schema, vocabularies, Parts([dim for dim, _ in ranges], [span for _, span in ranges], sets, box, words))


def clause_of(schema: Schema, vocabularies: Vocabularies, parts: Parts) -> Clause:
    """The clause that has these parts."""
    names, categories = schema.dimensional, vocabularies.categories
    ranges = dict(zip([names[dim] for dim in parts.dims], parts.spans, strict=True))
    within: dict[str, frozenset[str]] = {}
    without: dict[str, frozenset[str]] = {}
    nulls = present = NOTHING
    if EVERYWHERE in parts.spans:
        present = frozenset([name for name, span in ranges.items() if span == EVERYWHERE])
        ranges = {name: span for name, span in ranges.items() if name not in present}
    if categories and not ranges.keys().isdisjoint(categories):
        within = {name: frozenset((categories[name].strings[int(ranges.pop(name)[0])],)) for name in categories if name in ranges}
    for dim, kind, codes in parts.sets:
        if kind == NULL:
            nulls |= {names[dim]}
        else:
            strings = categories[names[dim]].strings
            (within if kind == IN else without)[names[dim]] = frozenset([strings[code] for code in codes])
    words = frozenset([vocabularies.words.strings[code] for code in parts.words]) if parts.words else NOTHING
    return Clause(ranges, within, without, nulls, present, None if parts.box == NO_BOX else parts.box, words)
