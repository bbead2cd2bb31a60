"""A home in an R^t++ tree: clauses of a box and words and nothing else, where messages have so many words that reading the lists
of all of them costs more than walking to the few leaves that a message touches.

The tree answers by slot; the clauses themselves lie packed beside it (`Packed`, see `index.verify`), in the order given, so that a
segment reads them back from any home alike. Deviation from the paper: none of its own, see `index.rt_tree`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.index.packed.packing import NO_WORD, pack, pack_bits, readonly, unpack, unpack_one
from tidings.index.packed.record import Events, Packed
from tidings.index.rttree.tree import RtTree
from tidings.model.columns.arrays import ClauseColumns, EventColumns
from tidings.model.columns.gather import Parts
from tidings.model.filter.clause import touches

Matches = tuple[NDArray[np.int32], NDArray[np.int32]]


class Stats(NamedTuple):
    """Counted since the tree was made: postings read, entries verified or counted to the end, matches."""

    postings: int
    candidates: int
    matches: int


class RtHome:
    def __init__(self, packed: Packed, tree: RtTree, residue: NDArray[np.uint8]) -> None:
        self.packed, self.tree, self.residue = packed, tree, residue
        self._matches = 0

    @classmethod
    def build(cls, clauses: ClauseColumns, rows: NDArray[np.int32]) -> RtHome:
        order = np.arange(len(clauses))
        packed = pack(clauses, rows, order, np.full(len(clauses), NO_WORD, np.int32))
        tree = RtTree("R^t++", "locality")
        tree.insert(order.astype(np.int32), clauses)
        return cls(packed, tree, pack_bits(clauses.residue))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, by name; `from_arrays` takes it back."""
        packed = {f"packed.{name}": array for name, array in self.packed._asdict().items()}
        return {**packed, **{f"tree.{name}": array for name, array in self.tree.arrays().items()}, "residue": self.residue}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> RtHome:
        packed = Packed(*(readonly(arrays[f"packed.{field}"]) for field in Packed._fields))
        # The tree's kernels are compiled for arrays that may be written; a map may not, and a second compilation costs more.
        tree = {name.removeprefix("tree."): np.array(array) for name, array in arrays.items() if name.startswith("tree.")}
        return cls(packed, RtTree.from_arrays(tree), readonly(arrays["residue"]))

    def __len__(self) -> int:
        return len(self.packed.row)

    def columns(self) -> tuple[NDArray[np.int32], ClauseColumns]:
        """(rows, clauses) that it was built from, ascending by row."""
        return unpack(self.packed, np.full(len(self), NO_WORD, np.int32), self.residue)

    def clause(self, slot: int) -> Parts:
        """The clause in one slot."""
        return unpack_one(self.packed, slot, NO_WORD)

    def reached(self, events: EventColumns, row: int, slot: int) -> bool:
        """Whether an event comes upon the slot: it touches the box. Which node it then stood in is the tree's own affair."""
        x0, y0, x1, y1 = events.box[row].tolist()
        return touches(self.clause(slot).box, (x0, y0, x1, y1))

    def match_batch(self, events: EventColumns, died: NDArray[np.uint32] | None = None, snapshot: int = 0) -> Matches:
        """(event row, clause row) of every match. A clause whose owner has `died[owner] <= snapshot` is skipped."""
        event, slot = self.tree.match_batch(events)
        if died is not None and len(died):
            living = died[self.packed.owner[slot]] > snapshot
            event, slot = event[living], slot[living]
        self._matches += len(slot)
        return event, self.packed.row[slot]

    def match_one(self, events: Events, row: int, died: NDArray[np.uint32], snapshot: int) -> NDArray[np.int32]:
        """Clause rows that match one event."""
        word = events.word[events.word_start[row] : events.word_start[row + 1]]
        start = np.array([0, len(word)], np.int64)
        one = EventColumns(events.value[row : row + 1].copy(), events.box[row : row + 1].copy(), start, word.copy())
        return self.match_batch(one, died, snapshot)[1]

    def topk_batch(
        self,
        events: EventColumns,
        k: int,
        score: NDArray[np.float64],
        tie: NDArray[np.int64],
        died: NDArray[np.uint32] | None = None,
        snapshot: int = 0,
    ) -> Matches:
        """The k best owners of each event by (score desc, tie asc), as (event row, clause row), in order; an owner counts once."""
        event, row = self.match_batch(events, died, snapshot)
        owner = np.empty(int(self.packed.row.max(initial=-1)) + 1, np.int32)
        owner[self.packed.row] = self.packed.owner
        of = owner[row]
        order = np.lexsort((tie[of], -score[of], event))
        event, row, of = event[order], row[order], of[order]
        first = np.ones(len(event), np.bool_)
        first[1:] = (event[1:] != event[:-1]) | (of[1:] != of[:-1])
        event, row = event[first], row[first]
        best = np.arange(len(event)) - np.searchsorted(event, event) < k
        return event[best], row[best]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    @property
    def stats(self) -> Stats:
        counted = self.tree.stats
        return Stats(counted["postings"], counted["verified"] + self._matches, self._matches)

    def check(self) -> None:
        self.tree.check()
        assert len(self.tree) == len(self)
        assert len(np.unique(self.packed.row)) == len(self)
