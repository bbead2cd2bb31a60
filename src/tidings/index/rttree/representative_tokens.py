"""Which token represents a subscription: the orders of section 4.2, as functions that may be exchanged for one another.

Each takes the frequencies, the boxes and the words of new subscriptions (subscription i has word[start[i]:start[i + 1]]) and
returns the words with each subscription's in representing order, the representative first. R^t+ uses the first word, R^t++ all.

| order            | first comes                                                                                        |
|------------------|----------------------------------------------------------------------------------------------------|
| `random_order`   | any word                                                                                           |
| `df_order`       | the word that the greedy hitting set picks: it shares the fewest representatives among all           |
| `idf_order`      | the rarest word                                                                                    |
| `locality_order` | the word that is rarest in the grid cell of the subscription's centre                               |

Frequencies are dynamic: they count the subscriptions that are there, and what is inserted is ordered by the counts that include
its own batch. Subscriptions that are already there keep their order, as in the paper.

| array       | shape, dtype           | meaning                                                                            |
|-------------|------------------------|------------------------------------------------------------------------------------|
| `df`        | vocabulary, int64      | subscriptions with the word                                                        |
| `cell`      | a `Tokens` table       | the same by (grid cell, word); empty unless the order asks for it                   |

Ties are broken by the smaller word code, so an order depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.hilbert import extent_of
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.rttree.tokens import FULL, KEYS, Tokens, claim, empty_tokens, find, key_of, with_space

GRID = 100
"""Cells a side: the paper's 10,000 grids, for 10 million subscriptions."""

Order = Callable[["Frequencies", Float64, Int64, Int32], Int32]


class Frequencies:
    """How many subscriptions have each word, everywhere and, with `local`, in each of grid x grid cells."""

    def __init__(self, local: bool, grid: int = GRID) -> None:
        self.local, self.grid = local, grid
        self.df = np.zeros(0, np.int64)
        self.cell: Tokens = empty_tokens(0, 0, False)
        self._extent: Float64 | None = None

    def add(self, box: Float64, start: Int64, word: Int32) -> None:
        if len(word):
            self._grow(int(word.max()) + 1)
        _count_words(self.df, word, 1)
        done = 0
        while self.local and done < len(box):
            self.cell = with_space(self.cell, max(int(self.cell.state[KEYS]), 1024), 0)
            done = _count_cells(self.cell, self.cells(box), start, word, 1, done)

    def remove(self, box: Float64, start: Int64, word: Int32) -> None:
        _count_words(self.df, word, -1)
        if self.local:
            _count_cells(self.cell, self.cells(box), start, word, -1, 0)

    def cells(self, box: Float64) -> Int64:
        """The grid cell of each box's centre. The grid spans the boxes that came first; what lies outside counts at its rim."""
        if self._extent is None:
            self._extent = extent_of(box)
        low, high = self._extent[:2], self._extent[2:]
        ends = np.clip(box.reshape(-1, 2, 2), low, high) - low
        side = np.where(high > low, high - low, 1.0)
        at = np.minimum(ends.mean(axis=1) / side * self.grid, self.grid - 1).astype(np.int64)
        cells: Int64 = at[:, 0] * self.grid + at[:, 1]
        return cells

    @property
    def nbytes(self) -> int:
        return self.df.nbytes + (self.cell.nbytes if self.local else 0)

    def _grow(self, vocabulary: int) -> None:
        if vocabulary > len(self.df):
            self.df = np.concatenate([self.df, np.zeros(max(vocabulary, 2 * len(self.df)) - len(self.df), np.int64)])


def random_order(frequencies: Frequencies, box: Float64, start: Int64, word: Int32) -> Int32:
    """[rttree, section 4.2: random selection]"""
    del frequencies, box
    return ordered(start, word, np.random.default_rng(len(word)).integers(0, 1 << 62, len(word)))


def idf_order(frequencies: Frequencies, box: Float64, start: Int64, word: Int32) -> Int32:
    """[rttree, section 4.2: the idf-based method]"""
    del box
    return ordered(start, word, frequencies.df[word])


def df_order(frequencies: Frequencies, box: Float64, start: Int64, word: Int32) -> Int32:
    """The representative by the greedy hitting set, then the rest from the most frequent down. [rttree, section 4.2: df]"""
    del box
    rank = -frequencies.df[word]
    rank[greedy_hitting_set(frequencies.df, start, word)] = -(1 << 62)
    return ordered(start, word, rank)


def locality_order(frequencies: Frequencies, box: Float64, start: Int64, word: Int32) -> Int32:
    """Words equally rare in the cell, most of them where cells hold few, are told apart by their frequency everywhere.
    [rttree, section 4.2: locality-aware method, idf]"""
    local = _local_df(frequencies.cell, frequencies.cells(box), start, word)
    return ordered(start, word, (local << 32) + frequencies.df[word])


ORDERS: dict[str, Order] = {"random": random_order, "df": df_order, "idf": idf_order, "locality": locality_order}


def greedy_hitting_set(df: Int64, start: Int64, word: Int32) -> Int64:
    """For each subscription with words, the position in `word` of its representative: again and again the most frequent word
    takes all subscriptions that have it and no representative yet, and their words' frequencies fall."""
    by_word = np.argsort(word, kind="stable")
    distinct, first = np.unique(word[by_word], return_index=True)
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    chosen = np.full(len(start) - 1, -1, np.int64)
    if len(word):
        _greedy(df.copy(), start, word, by_word, distinct, np.append(first, len(word)), owner, chosen)
    return chosen[chosen >= 0]


@kernel
def _greedy(
    df: Int64, start: Int64, word: Int32, by_word: Int64, distinct: Int32, first: Int64, owner: Int64, chosen: Int64
) -> None:
    """Words wait in a bucket for each frequency; one that has fallen since goes down to its bucket when it is met."""
    head = np.full(df[distinct].max() + 1, -1, np.int64)
    below = np.empty(len(distinct), np.int64)
    for i in range(len(distinct) - 1, -1, -1):
        below[i] = head[df[distinct[i]]]
        head[df[distinct[i]]] = i
    for frequency in range(len(head) - 1, 0, -1):
        while head[frequency] >= 0:
            i = head[frequency]
            head[frequency] = below[i]
            now = df[distinct[i]]
            if now < frequency:
                below[i] = head[now]
                head[now] = i
                continue
            for at in by_word[first[i] : first[i + 1]]:
                if chosen[owner[at]] < 0:
                    chosen[owner[at]] = at
                    for other in word[start[owner[at]] : start[owner[at] + 1]]:
                        df[other] -= 1


@kernel
def ordered(start: Int64, word: Int32, rank: Int64) -> Int32:
    """Each subscription's words ascending by (rank, code)."""
    result = word.copy()
    rank = rank.copy()
    for i in range(len(start) - 1):
        for at in range(start[i] + 1, start[i + 1]):
            moving, moving_rank, to = result[at], rank[at], at
            while to > start[i] and (moving_rank, moving) < (rank[to - 1], result[to - 1]):
                result[to], rank[to] = result[to - 1], rank[to - 1]
                to -= 1
            result[to], rank[to] = moving, moving_rank
    return result


@kernel
def _count_words(df: Int64, word: Int32, change: int) -> None:
    for code in word:
        df[code] += change


@kernel
def _count_cells(cell: Tokens, cells: Int64, start: Int64, word: Int32, change: int, done: int) -> int:
    """Change the counts of the subscriptions from `done` on; returns where the table became full."""
    for i in range(done, len(cells)):
        if change > 0 and cell.state[KEYS] + start[i + 1] - start[i] > FULL * len(cell.key):
            return i
        for at in range(start[i], start[i + 1]):
            cell.held[claim(cell, key_of(cells[i], word[at]))] += change
    return len(cells)


@kernel
def _local_df(cell: Tokens, cells: Int64, start: Int64, word: Int32) -> Int64:
    df = np.empty(len(word), np.int64)
    for i in range(len(cells)):
        for at in range(start[i], start[i + 1]):
            df[at] = cell.held[find(cell, key_of(cells[i], word[at]))]
    return df
