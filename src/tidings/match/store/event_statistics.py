"""What a topic has seen of its events: how often each word comes, everywhere and in each neighbourhood, and how long events are.

| array        | shape, dtype       | meaning                                                                       |
|--------------|--------------------|-------------------------------------------------------------------------------|
| `word_count` | vocabulary, int64  | events with the word                                                          |
| `local`      | (cell, word) table | the same in each cell of a grid of GRID x GRID over the places seen first      |
| `cell_total` | GRID^2, int64      | events in each cell                                                           |

Events are a sample: at most OBSERVED of a batch, counted when there are as many, from the first batch on that has words; where no
event has any, there is nothing to choose by them. Before that a sample of the clauses stands in for them. A word's share in a
neighbourhood is its count there, with PRIOR events of the whole topic added, so that a cell of which little is known goes by what
is known everywhere. Shares only choose access paths; answers do not depend on them.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.rttree.representative_tokens import GRID, Frequencies
from tidings.index.rttree.tokens import KEYS, Tokens, find, key_of
from tidings.model.columns.arrays import ClauseColumns, EventColumns, ragged_take, starts

OBSERVED, SAMPLE = 256, 100_000
PRIOR = 16.0
MOST_KEYS = 1 << 20
"""Pairs of cell and word that are counted before the neighbourhoods begin anew."""
TYPICAL_WORDS = 12.0
"""Words of an event before any was seen."""
NOWHERE = -1


class Nearby(NamedTuple):
    """Of each clause: the word that is rarest where it stands (-1 without words), and the share of events there that have it."""

    word: Int32
    share: Float64


class Statistics:
    def __init__(self) -> None:
        self.events = self._words = self._pending = 0
        self._lock = threading.Lock()
        self.word_count = np.zeros(0, np.int64)
        self.local = Frequencies(local=True)
        self.cell_total = np.zeros(GRID * GRID, np.int64)
        self._waiting: list[tuple[Float64, Int64, Int32]] = []

    @property
    def words_an_event(self) -> float:
        return self._words / self.events if self.events else TYPICAL_WORDS

    def observe(self, events: EventColumns) -> None:
        if not len(events.word) and not len(self.word_count) and not self._waiting:
            return
        with self._lock:
            self._take(events)

    def _take(self, events: EventColumns) -> None:
        count = min(len(events), OBSERVED)
        start = events.word_start[: count + 1].copy()
        self._waiting.append((events.box[:count].copy(), start, events.word[: start[-1]].copy()))
        self._pending += count
        if self._pending >= OBSERVED:
            boxes, starts_of, words = zip(*self._waiting, strict=True)
            size = np.concatenate([np.diff(start) for start in starts_of])
            self._count(np.concatenate(boxes), starts(size), np.concatenate(words))
            self._waiting, self._pending = [], 0

    def _count(self, box: Float64, start: Int64, word: Int32) -> None:
        self.events += len(box)
        self._words += len(word)
        seen = np.bincount(word, minlength=len(self.word_count))
        seen[: len(self.word_count)] += self.word_count
        self.word_count = seen
        placed = np.flatnonzero(np.isfinite(box).all(axis=1))
        if len(placed):
            if self.local.cell.state[KEYS] > MOST_KEYS:
                self.local, self.cell_total = Frequencies(local=True), np.zeros(GRID * GRID, np.int64)
            begin, element = ragged_take(start, placed)
            self.local.add(box[placed], begin, word[element])
            self.cell_total += np.bincount(self.local.cells(box[placed]), minlength=GRID * GRID)

    def recode(self, used: NDArray[np.bool_]) -> None:
        """Only the words whose old codes are `used` are left, in that order. Neighbourhoods begin anew."""
        with self._lock:
            if not used.all():
                self.word_count = self.word_count[used[: len(self.word_count)]]
                self.local, self.cell_total = Frequencies(local=True), np.zeros(GRID * GRID, np.int64)
                self._waiting, self._pending = [], 0

    def nearby(self, clauses: ClauseColumns) -> Nearby:
        """The rarest word of each clause in its neighbourhood."""
        if not self.events:
            return _of_clauses(clauses).nearby(clauses) if len(clauses.word) else _no_words(len(clauses))
        placed = np.isfinite(clauses.box).all(axis=1)
        cells = np.full(len(clauses), NOWHERE)
        if placed.any() and self.cell_total.any():
            cells[placed] = self.local.cells(clauses.box[placed])
        seen = (self.local.cell, self.cell_total, self.word_count, self.events)
        return Nearby(*rarest_nearby(cells, clauses.word_start, clauses.word, *seen))


def _of_clauses(clauses: ClauseColumns) -> Statistics:
    rows = np.arange(0, len(clauses), max(1, len(clauses) // SAMPLE))
    start, element = ragged_take(clauses.word_start, rows)
    statistics = Statistics()
    statistics._count(clauses.box[rows], start, clauses.word[element])
    return statistics


def _no_words(clauses: int) -> Nearby:
    return Nearby(np.full(clauses, -1, np.int32), np.ones(clauses))


@kernel
def rarest_nearby(
    cells: Int64, start: Int64, word: Int32, local: Tokens, cell_total: Int64, count: Int64, total: int
) -> tuple[Int32, Float64]:
    """[rttree, section 4.2: locality-aware method, idf, on counts of events]"""
    rarest, least = np.full(cells.size, -1, np.int32), np.ones(cells.size)
    for c in range(cells.size):
        here = cell_total[cells[c]] if cells[c] >= 0 else 0
        for at in range(start[c], start[c + 1]):
            seen = count[word[at]] if word[at] < count.size else 0
            held = 0
            if here > 0 and seen > 0:
                slot = find(local, key_of(cells[c], word[at]))
                held = local.held[slot] if slot >= 0 else 0
            share = (held + PRIOR * (seen + 1) / (total + 1)) / (here + PRIOR)
            if at == start[c] or share <= least[c]:
                rarest[c], least[c] = word[at], min(share, 1.0)
    return rarest, least
