"""The questions that structures answer; each has a brute-force oracle in `tidings.index.oracle`, of the same protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidings.model.columns.arrays import ClauseColumns, EventColumns


class ClauseIndex(Protocol):
    """Which clauses does each event satisfy? Residues are not the index's business: it answers as if they held."""

    def match_batch(self, events: EventColumns) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(event row, clause) of every match, each once, in any order."""
        ...

    def check(self) -> None:
        """Walk every invariant; AssertionError where one is broken."""
        ...

    @property
    def nbytes(self) -> int: ...


class UpdatableClauseIndex(ClauseIndex, Protocol):
    """A clause index whose clauses come and go. The caller names clauses by numbers of its choice."""

    def insert(self, names: NDArray[np.int32], clauses: ClauseColumns) -> None: ...

    def delete(self, names: NDArray[np.int32]) -> None: ...


class ScoredIntervals(Protocol):
    """Closed intervals with scores: which of those that contain q are best? Ties by ascending number."""

    def topk(self, q: float, k: int) -> NDArray[np.int64]:
        """The interval numbers of the k best, by (score desc, number asc)."""
        ...

    def getnext(self, q: float) -> Iterator[int]:
        """The same, one at a time and without a k."""
        ...

    def check(self) -> None: ...

    @property
    def nbytes(self) -> int: ...
