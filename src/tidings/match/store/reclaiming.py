"""Codes of strings that no live subscription names any more, taken back.

A vocabulary only grows while a topic runs, since segments, readers and batches hold its codes. When all is merged into one segment
and most codes are unused, a new vocabulary is made of those in use, in their old order, so that what was ascending stays so, and
the clauses are written in its codes. Whoever holds the old vocabulary and its segments goes on with them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tidings.model.columns.arrays import IN, NOT_IN, RANGE, ClauseColumns, Vocabularies, starts
from tidings.model.columns.vocabulary import Vocabulary
from tidings.model.values.schema import Schema

FEWEST = 256
"""Codes below which nothing is taken back."""


class Used:
    """Which codes the clauses name: `categories[name][code]` and `words[code]`."""

    def __init__(self, schema: Schema, vocabularies: Vocabularies, clauses: ClauseColumns) -> None:
        self.schema = schema
        self.vocabularies = vocabularies
        self.clauses = clauses
        self.categories = {name: self._of_category(name) for name in vocabularies.categories}
        self.words = np.zeros(len(vocabularies.words), np.bool_)
        self.words[clauses.word] = True

    def _of_category(self, name: str) -> NDArray[np.bool_]:
        used = np.zeros(len(self.vocabularies.categories[name]), np.bool_)
        equal, sets = self._predicates(name)
        for low, high in zip(self.clauses.pred_lo[equal].tolist(), self.clauses.pred_hi[equal].tolist(), strict=True):
            used[int(low) : int(high) + 1] = True
        used[self.clauses.pool[sets]] = True
        return used

    def _predicates(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The predicates on a category that name a code by their ends, and the places in the pool that the others name."""
        c = self.clauses
        mine = c.pred_dim == self.schema.dimension[name]
        equal = np.flatnonzero(mine & (c.pred_kind == RANGE) & np.isfinite(c.pred_lo))
        sets = np.flatnonzero(mine & ((c.pred_kind == IN) | (c.pred_kind == NOT_IN)))
        first, count = c.pred_lo[sets].astype(np.int64), c.pred_hi[sets].astype(np.int64)
        offset = starts(count)
        return equal, np.repeat(first - offset[:-1], count) + np.arange(offset[-1])

    @property
    def few(self) -> bool:
        """Whether less than half of many codes are in use."""
        size, used = self.vocabularies.size, sum(int(np.count_nonzero(one)) for one in (self.words, *self.categories.values()))
        return size > FEWEST and 2 * used < size

    def vocabulary(self) -> Vocabularies:
        """Those in use alone. Words that are all in use stay the same vocabulary."""
        fresh = Vocabularies(self.schema)
        for name, used in self.categories.items():
            fresh.categories[name] = _those(self.vocabularies.categories[name], used)
        words = self.vocabularies.words
        fresh.words = words if self.words.all() else _those(words, self.words)
        return fresh

    def recoded(self) -> ClauseColumns:
        """The clauses in the codes of `vocabulary()`."""
        c = self.clauses
        low, high, pool = c.pred_lo.copy(), c.pred_hi.copy(), c.pool.copy()
        for name, used in self.categories.items():
            code = np.cumsum(used) - 1
            equal, sets = self._predicates(name)
            low[equal], high[equal] = code[low[equal].astype(np.int64)], code[high[equal].astype(np.int64)]
            pool[sets] = code[c.pool[sets]]
        return replace(c, pred_lo=low, pred_hi=high, pool=pool, word=(np.cumsum(self.words) - 1)[c.word].astype(np.int32))


def _those(vocabulary: Vocabulary, used: NDArray[np.bool_]) -> Vocabulary:
    return Vocabulary(vocabulary.strings[code] for code in np.flatnonzero(used).tolist())
