"""WordBlocks: which clauses does each event satisfy, for clauses that require words.

A clause is posted once, under the rarest of its words. A word's clauses stand together, ordered by the Hilbert code of their
boxes' centres. An event reads the lists of its words; a list that spans more than two blocks of 64 slots is first narrowed to
the blocks whose bounding box it touches. Within a block 64 boxes and signatures are compared at once, and what is left is verified.

Layout, besides `Packed` (see `record`; one leaves out the word it is posted under), n slots, h lists, T the least power of two
>= 4/3 h:

| array       | shape, dtype        | meaning                                                                                     |
|-------------|---------------------|---------------------------------------------------------------------------------------------|
| `table`     | T x 3, int32        | open addressing from `slot_of_word`: word, first slot, end slot; word -1 is a free place     |
| `signature` | n, uint32           | a bit for each word of its record;       one that the event lacks refuses the clause  |
| `bound`     | 4 x n/64 or 4 x 0   | codes of the box around slots [64 b, 64 b + 64), as `Packed.box`; none without boxes         |
| `residue`   | n/8 or 0, uint8     | bits by slot: the clause has a residue                                                       |

Words, like everything, are verified exactly; signatures only refuse. Cost: a probe a word, a vector test for each 64 blocks of a
long list, three vector tests for each block reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.compiling.pinned import Pinned
from tidings.index.blocks.layout import usual_extent
from tidings.index.blocks.word_match import (
    Lists,
    Worded,
    match_message,
    match_words,
    slot_of_word,
    topk_message,
    topk_words,
    word_bit,
)
from tidings.index.packed.clauses import PackedClauses, deaths_of, joined, packed_in_order, packed_part
from tidings.index.packed.groups import named, taken
from tidings.index.packed.hilbert import hilbert_codes
from tidings.index.packed.packing import as_events, corners, readonly
from tidings.index.packed.protocol import Matches
from tidings.index.packed.record import HEAD, Events, Packed, Ranking
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Float64, Int32, Int64, Signed, Uint8, Uint32
from tidings.model.columns.arrays import ClauseColumns, EventColumns
from tidings.model.filter.clause import touches

CHUNK = 16384


class Stats(NamedTuple):
    """Counted since the structure was made: slots whose box and signature were tested, records verified, matches."""

    scanned: int
    candidates: int
    matches: int


class WordBlocks(PackedClauses):
    def __init__(self, packed: Packed, residue: Uint8, lists: Lists) -> None:
        super().__init__(packed, residue)
        self.lists = lists
        self._counters = np.zeros(3, np.int64)

    @cached_property
    def _pinned(self) -> Pinned[Worded]:
        return Pinned(Worded(self.packed, self.lists, self._counters))

    @classmethod
    def build(
        cls, clauses: ClauseColumns, rows: Int32 | None = None, score: Float64 | None = None, posted: Int32 | None = None
    ) -> Self:
        """`posted` is the word of each clause to post it under; without it that is the word that the fewest clauses have."""
        lone = np.flatnonzero(np.diff(clauses.word_start) < 1)
        if len(lone):
            row = lone[0] if rows is None else rows[lone[0]]
            raise ValueError(f"clause {row} requires no word: word blocks take only clauses that do")
        posted = rarest(clauses.word_start, clauses.word, np.bincount(clauses.word)) if posted is None else posted
        order = np.lexsort((_along_curve(clauses.box), posted))
        packed, residue = packed_in_order(clauses, rows, order, posted[order])
        lists = Lists(*map(readonly, (post(posted[order]), signatures(packed), _bounds(packed.box))))
        return cls(packed, residue, lists)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), **named("", self.lists)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        return cls(*packed_part(arrays), taken(Lists, arrays))

    def posted(self, slots: Int64) -> Int32:
        first, word = self._by_slot
        return word[first.searchsorted(slots.astype(np.int32), "right") - 1] if len(word) else word

    def posted_at(self, slot: int) -> int:
        return int(self.posted(np.array([slot]))[0])

    def reached(self, events: EventColumns, row: int, slot: int) -> bool:
        """It has the word of the slot's list, and touches the box round its block if the list is long."""
        if self.posted_at(slot) not in events.word[events.word_start[row] : events.word_start[row + 1]]:
            return False
        first, _ = self._by_slot
        at = first.searchsorted(np.int32(slot), "right")
        begin, end = int(first[at - 1]), int(first[at]) if at < len(first) else len(self)
        if not self.lists.bound.shape[1] or (end - 1 >> 6) - (begin >> 6) <= 1:
            return True
        around = corners(self.lists.bound, int(self.packed.place[0]), slot >> 6)
        x0, y0, x1, y1 = events.box[row].tolist()
        return touches(around, (x0, y0, x1, y1))

    @cached_property
    def _by_slot(self) -> tuple[Int32, Int32]:
        """(first slot, word) of each list, by slot; made when first asked for, since matching does not need it."""
        used = self.lists.table[self.lists.table[:, 0] != NONE]
        used = used[np.argsort(used[:, 1])]
        return np.ascontiguousarray(used[:, 1]), np.ascontiguousarray(used[:, 0])

    def match_batch(self, events: EventColumns, died: Uint32 | None = None, snapshot: int = 0) -> Matches:
        whole, deaths, parts = as_events(events), deaths_of(died, snapshot), []
        for first in range(0, len(events), CHUNK):
            last = min(first + CHUNK, len(events))
            parts.append(match_words(self.packed, self.lists, whole, first, last, *deaths, self._counters))
        return joined(parts)

    def match_one(self, events: Pinned[Events], row: int, died: Uint32, snapshot: int) -> Int32:
        return match_message(self._pinned, events, row, died, snapshot)

    def topk_batch(
        self, events: EventColumns, k: int, score: Float64, tie: Int64, died: Uint32 | None = None, snapshot: int = 0
    ) -> Matches:
        ranking, deaths = Ranking(readonly(score), readonly(tie)), deaths_of(died, snapshot)
        return topk_words(self.packed, self.lists, as_events(events), k, ranking, deaths, self._counters)

    def topk_one(self, event: Pinned[Events], k: int, ranking: Pinned[Ranking], died: Uint32, snapshot: int) -> Int32:
        return topk_message(self._pinned, event, k, ranking, died, snapshot)

    def blocks_reached(self, events: Events, probed: int) -> float:
        """None: a list of a word is not priced by blocks."""
        return 0.0

    @property
    def stats(self) -> Stats:
        return Stats(*map(int, self._counters))

    def check(self) -> None:
        super().check()
        table, n = self.lists.table, len(self)
        used = table[table[:, 0] != NONE]
        used = used[np.argsort(used[:, 1])]
        assert len(np.unique(used[:, 0])) == len(used) < len(table)
        assert (used[1:, 1] == used[:-1, 2]).all()
        assert len(used) == 0 or (used[0, 1] == 0 and used[-1, 2] == n)
        assert n == len(self.lists.signature)
        for word in used[:, 0]:
            assert table[slot_of_word(table, word), 0] == word
        box, bound = self.packed.box, self.lists.bound
        if box.shape[1]:
            block = np.arange(n) // 64
            assert (bound[:2, block] <= box[:2]).all()
            assert (box[2:] <= bound[2:, block]).all()


def post(posted: Int32) -> Int32:
    """The table of lists for the words of all slots, in order."""
    first = np.flatnonzero(np.concatenate((np.ones(min(1, len(posted)), np.bool_), posted[1:] != posted[:-1])))
    size = 1 << max(1, int(np.ceil(np.log2(len(first) * 4 / 3 + 1))))
    table = np.full((size, 3), NONE, np.int32)
    _post(table, posted[first], np.append(first, len(posted)).astype(np.int32))
    return table


@kernel
def _post(table: Int32, word: Int32, start: Int32) -> None:
    for i in range(word.size):
        at = slot_of_word(table, word[i])
        table[at, 0], table[at, 1], table[at, 2] = word[i], start[i], start[i + 1]


@kernel
def rarest(word_start: Int64, word: Int32, frequency: Int64) -> Int32:
    """Each clause's least frequent word, the later of equals; a word beyond `frequency` was never seen."""
    chosen = np.empty(word_start.size - 1, np.int32)
    for clause in range(chosen.size):
        least = 1 << 62
        for w in range(word_start[clause], word_start[clause + 1]):
            seen = wide(frequency[word[w]]) if word[w] < frequency.size else 0
            if seen <= least:
                least, chosen[clause] = seen, word[w]
    return chosen


@kernel
def _signatures(start: Uint32, record: Uint32, signature: Uint32) -> None:
    for slot in range(signature.size):
        bits = np.uint32(0)
        for at in range(start[slot], start[slot + 1]):
            if record[at] >= HEAD:
                break
            bits |= word_bit(wide(record[at]))
        signature[slot] = bits


def signatures(packed: Packed) -> Uint32:
    signature = np.zeros(len(packed.row), np.uint32)
    if len(packed.start):
        _signatures(packed.start, packed.record, signature)
    return signature


def _along_curve(box: Float64) -> Int64:
    """Hilbert codes of the boxes' centres; -1 for a clause without a box or with an infinite one."""
    code = np.full(len(box), -1, np.int64)
    placed = np.isfinite(box).all(axis=1)
    code[placed] = hilbert_codes(box[placed], usual_extent(box[placed]))
    return code


def _bounds(box: Signed) -> Signed:
    if not box.shape[1]:
        return box
    first = np.arange(0, box.shape[1], 64)
    return np.concatenate([np.minimum.reduceat(box[:2], first, axis=1), np.maximum.reduceat(box[2:], first, axis=1)])
