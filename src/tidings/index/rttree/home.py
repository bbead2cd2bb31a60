"""A home in an R^t++ tree: clauses of a box and words and nothing else, where messages have so many words that reading the lists
of all of them costs more than walking to the few leaves that a message touches.

The tree answers by slot; the clauses themselves lie packed beside it, in the order given, so that a segment reads them back from
any home alike. Deviation from the paper: none of its own, see `tree`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.index.packed.clauses import PackedClauses, packed_in_order, packed_part
from tidings.index.packed.packing import as_events
from tidings.index.packed.protocol import Matches
from tidings.index.packed.record import Events, Packed, Ranking
from tidings.index.packed.types import Float64, Int32, Int64, Uint8, Uint32
from tidings.index.rttree.filtering import FULL_OUT, Reading, match_message
from tidings.index.rttree.tree import RtTree
from tidings.model.columns.arrays import ClauseColumns, EventColumns
from tidings.model.filter.clause import touches


class Stats(NamedTuple):
    """Counted since the tree was made: postings read, entries verified or counted to the end, matches."""

    postings: int
    candidates: int
    matches: int


class RtHome(PackedClauses):
    def __init__(self, packed: Packed, residue: Uint8, tree: RtTree) -> None:
        super().__init__(packed, residue)
        self.tree = tree
        self._matches = 0
        self._idle: list[Pinned[Reading]] = []
        """of no call that runs now"""

    @classmethod
    def build(
        cls, clauses: ClauseColumns, rows: Int32 | None = None, score: Float64 | None = None, posted: Int32 | None = None
    ) -> Self:
        order = np.arange(len(clauses))
        tree = RtTree("R^t++", "locality")
        tree.insert(order.astype(np.int32), clauses)
        return cls(*packed_in_order(clauses, rows, order), tree)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), **{f"tree.{name}": array for name, array in self.tree.arrays().items()}}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        # The tree's kernels are compiled for arrays that may be written; a map may not, and a second compilation costs more.
        tree = {name.removeprefix("tree."): np.array(array) for name, array in arrays.items() if name.startswith("tree.")}
        return cls(*packed_part(arrays), RtTree.from_arrays(tree))

    def reached(self, events: EventColumns, row: int, slot: int) -> bool:
        """It touches the box. Which node it then stood in is the tree's own affair."""
        x0, y0, x1, y1 = events.box[row].tolist()
        return touches(self.clause(slot).box, (x0, y0, x1, y1))

    def _living(self, events: Events, first: int, last: int, died: Uint32 | None, snapshot: int) -> Matches:
        """(event row, slot) of every match of a living clause with the events [first, last)."""
        event, slot = self.tree.match_rows(events, first, last)
        if died is not None and len(died):
            living = died[self.packed.owner[slot]] > snapshot
            event, slot = event[living], slot[living]
        self._matches += len(slot)
        return event, slot

    def match_batch(self, events: EventColumns, died: Uint32 | None = None, snapshot: int = 0) -> Matches:
        event, slot = self._living(as_events(events), 0, len(events), died, snapshot)
        return event, self.packed.row[slot]

    def match_one(self, events: Pinned[Events], row: int, died: Uint32, snapshot: int) -> Int32:
        return self.packed.row[self._slots(events, row, died, snapshot)]

    def _slots(self, events: Pinned[Events], row: int, died: Uint32, snapshot: int) -> Int32:
        """The slots of the living clauses that one event matches."""
        try:
            reading = self._idle.pop()
        except IndexError:
            reading = Pinned(self.tree.reading())
        found = match_message(reading, events, row)
        slot = reading.value.out_name[: max(found, 0)].copy()
        self._idle.append(reading)
        if found == FULL_OUT:
            return self._living(events.value, row, row + 1, died, snapshot)[1]
        if len(died) and found:
            slot = slot[died[self.packed.owner[slot]] > snapshot]
        self._matches += len(slot)
        return slot

    def topk_batch(
        self, events: EventColumns, k: int, score: Float64, tie: Int64, died: Uint32 | None = None, snapshot: int = 0
    ) -> Matches:
        return self._best(*self._living(as_events(events), 0, len(events), died, snapshot), k, score, tie)

    def topk_one(self, event: Pinned[Events], k: int, ranking: Pinned[Ranking], died: Uint32, snapshot: int) -> Int32:
        slot = self._slots(event, 0, died, snapshot)
        return self._best(np.zeros(len(slot), np.int32), slot, k, *ranking.value)[1]

    def _best(self, event: Int32, slot: Int32, k: int, score: Float64, tie: Int64) -> Matches:
        owner = self.packed.owner[slot]
        order = np.lexsort((tie[owner], -score[owner], event))
        event, slot, owner = event[order], slot[order], owner[order]
        first = np.ones(len(event), np.bool_)
        first[1:] = (event[1:] != event[:-1]) | (owner[1:] != owner[:-1])
        event, slot = event[first], slot[first]
        best = np.arange(len(event)) - np.searchsorted(event, event) < k
        return event[best], self.packed.row[slot[best]]

    def blocks_reached(self, events: Events, probed: int) -> float:
        """None: a walk of the tree is not priced by blocks."""
        return 0.0

    @property
    def stats(self) -> Stats:
        counted = self.tree.stats
        return Stats(counted["postings"], counted["verified"] + self._matches, self._matches)

    def check(self) -> None:
        super().check()
        self.tree.check()
        assert len(self.tree) == len(self)
