"""PackedClauses: clauses that are kept packed and can be read back, by slot or all together. It matches nothing: homes do, and
each of them is one of these with an order of slots and a way to find them. See `record` for the layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tidings.index.packed.groups import named, taken
from tidings.index.packed.packing import only_range, pack, pack_bits, readonly, unpack, unpack_one
from tidings.index.packed.protocol import Matches
from tidings.index.packed.record import Deaths, Events, Packed
from tidings.index.packed.sampling import Sample, expected_matches, sample_slots
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64, Uint8, Uint32
from tidings.model.columns.arrays import ClauseColumns
from tidings.model.columns.gather import Parts

NOBODY = readonly(np.empty(0, np.uint32))
"""`died` where all live."""


class PackedClauses:
    def __init__(self, packed: Packed, residue: Uint8) -> None:
        self.packed, self.residue = packed, residue

    @classmethod
    def build(
        cls, clauses: ClauseColumns, rows: Int32 | None = None, score: Float64 | None = None, posted: Int32 | None = None
    ) -> Self:
        """In the order given."""
        return cls(*packed_in_order(clauses, rows, np.arange(len(clauses))))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**named("packed.", self.packed), "residue": self.residue}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        return cls(*packed_part(arrays))

    def __len__(self) -> int:
        return len(self.packed.row)

    @property
    def rows(self) -> Int32:
        return self.packed.row

    def posted(self, slots: Int64) -> Int32:
        """The word that each slot's record leaves out, because the slot is found by it; NONE: none."""
        return np.full(len(slots), NONE, np.int32)

    def posted_at(self, slot: int) -> int:
        """The same of one slot."""
        return NONE

    def columns(self) -> tuple[Int32, ClauseColumns]:
        return unpack(self.packed, self.posted(np.arange(len(self))), self.residue)

    def clause(self, slot: int) -> Parts:
        return unpack_one(self.packed, slot, self.posted_at(slot))

    def only_range(self) -> int | None:
        worded = (self.posted(np.arange(len(self))) != NONE).any()
        return None if worded else only_range(self.packed)

    def expected_matches(self, events: Events, probed: int) -> float:
        return expected_matches(self.packed, self._sample, events, probed)

    @cached_property
    def _sample(self) -> Sample:
        slots = sample_slots(len(self))
        return Sample(readonly(slots), readonly(self.posted(slots)))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def check(self) -> None:
        assert len(np.unique(self.packed.row)) == len(self)


def deaths_of(died: Uint32 | None, snapshot: int) -> Deaths:
    return Deaths(NOBODY if died is None else readonly(died), snapshot)


def packed_in_order(clauses: ClauseColumns, rows: Int32 | None, order: Int64, posted: Int32 | None = None) -> tuple[Packed, Uint8]:
    """(packed, residue) with clause `order[s]` in slot s, found by the word `posted[s]` if any are given."""
    rows = np.arange(len(clauses), dtype=np.int32) if rows is None else rows
    posted = np.full(len(clauses), NONE, np.int32) if posted is None else posted
    return pack(clauses, rows, order, posted), pack_bits(clauses.residue[order])


def packed_part(arrays: Mapping[str, NDArray[Any]]) -> tuple[Packed, Uint8]:
    return taken(Packed, arrays, "packed."), readonly(arrays["residue"])


def joined(parts: list[Matches]) -> Matches:
    """The matches of several chunks of a batch."""
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int32)
    return np.concatenate([none, *(event for event, _ in parts)]), np.concatenate([none, *(row for _, row in parts)])
