"""The clauses of a memtable in columns, as they came in: what was encoded for its index is what is packed later.

`parts` are batches one after another; a batch's `owner` is the slot of each clause. A slot's newest clause counts. When there are
twice as many clauses as slots in use, and FEWEST at least, the newest alone are kept, so a subscriber that moves for ever costs no
more memory than one that does not, and a change O(its own length) amortised.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tidings.model.columns.arrays import ClauseColumns
from tidings.model.columns.gather import NO_CLAUSES, concat_clauses, gather_clauses

FEWEST = 4096


class ClauseLog:
    def __init__(self) -> None:
        self._parts: list[ClauseColumns] = []
        self._size = 0

    def add(self, clauses: ClauseColumns, used: Collection[int]) -> None:
        """Take in clauses; `used` are the slots in use from now on, those of `clauses` among them."""
        self._parts.append(clauses)
        self._size += len(clauses)
        if self._size > max(2 * len(used), FEWEST):
            self._parts = [self.newest(used)]
            self._size = len(used)

    def newest(self, slots: Collection[int]) -> ClauseColumns:
        """The clause of each of these slots, in this order; the owners are the slots."""
        if not slots:
            return gather_clauses(NO_CLAUSES, np.empty(0, np.int64))
        every = concat_clauses(self._parts, [0] * len(self._parts))
        row = np.empty(every.owner.max() + 1, np.int64)
        row[every.owner] = np.arange(len(every))
        return gather_clauses(every, row[np.fromiter(slots, np.int64, len(slots))])
