"""The questions that structures answer, and the contract of a *home*: the structure in which a segment keeps and finds clauses.

A clause stands in a home's *slot* and is called by its *row*, a number of the caller's; its *owner* is the subscription. Who is
dead is the caller's to say: `died[owner]` is the moment an owner died, and a reader at `snapshot` sees those with
`died[owner] > snapshot`; None or an empty array means that all live. Residues are nobody's business here: they are kept, and
matching answers as if they held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.index.packed.record import Events, Ranking
from tidings.index.packed.types import Float64, Int32, Int64, Uint32
from tidings.model.columns.arrays import ClauseColumns, EventColumns
from tidings.model.columns.gather import Parts

Matches = tuple[Int32, Int32]
"""(event row, clause row) of each match."""


class ClauseIndex(Protocol):
    """Which clauses does each event satisfy?"""

    def match_batch(self, events: EventColumns) -> Matches:
        """Every match, each once, in any order."""
        ...

    def check(self) -> None:
        """Walk every invariant; AssertionError where one is broken."""
        ...

    @property
    def nbytes(self) -> int: ...


class UpdatableClauseIndex(ClauseIndex, Protocol):
    """A clause index whose clauses come and go, by rows of the caller's choice."""

    def insert(self, rows: Int32, clauses: ClauseColumns) -> None: ...

    def delete(self, rows: Int32) -> None: ...


class Stats(Protocol):
    """Counted since a home was made or mapped: what it read first (each home names it), records verified, matches."""

    @property
    def candidates(self) -> int: ...

    @property
    def matches(self) -> int: ...

    def _asdict(self) -> dict[str, Any]: ...


class Home(ClauseIndex, Protocol):
    """Clauses that never change, and the way to those that an event matches. `packed.clauses` has what all homes share."""

    @classmethod
    def build(
        cls, clauses: ClauseColumns, rows: Int32 | None = None, score: Float64 | None = None, posted: Int32 | None = None
    ) -> Self:
        """`rows` are 0, 1, ... if none are given. By clause: `score` is what `topk_batch` will rank by, and `posted` the word to
        find the clause by; a home whose order follows neither takes no notice."""
        ...

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """From what `arrays` gave, mapped and not copied where that can be."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, by name."""
        ...

    def __len__(self) -> int: ...

    @property
    def rows(self) -> Int32:
        """The row of each slot."""
        ...

    def columns(self) -> tuple[Int32, ClauseColumns]:
        """(rows, clauses) that it was built from, ascending by row."""
        ...

    def clause(self, slot: int) -> Parts:
        """The clause in one slot, its residue left out."""
        ...

    def only_range(self) -> int | None:
        """The dimension on which every clause is one range and nothing else; None if there is none."""
        ...

    def reached(self, events: EventColumns, row: int, slot: int) -> bool:
        """Whether an event comes upon the slot, so that the rest of its clause is looked at."""
        ...

    def match_batch(self, events: EventColumns, died: Uint32 | None = None, snapshot: int = 0) -> Matches:
        """Every match of a living clause, each once, by ascending event or not."""
        ...

    def match_one(self, events: Pinned[Events], row: int, died: Uint32, snapshot: int) -> Int32:
        """Rows of the living clauses that one event matches: the short way. `events` and `died` are read-only arrays.

        What is given is the caller's: nobody else holds it.
        """
        ...

    def topk_batch(
        self, events: EventColumns, k: int, score: Float64, tie: Int64, died: Uint32 | None = None, snapshot: int = 0
    ) -> Matches:
        """A clause of each of an event's k best living owners by (score desc, tie asc), in that order; an owner counts once.

        `score` and `tie` are by owner, ties distinct; `score` is what the home was built with, if it was.
        """
        ...

    def topk_one(self, event: Pinned[Events], k: int, ranking: Pinned[Ranking], died: Uint32, snapshot: int) -> Int32:
        """The clauses that `topk_batch` gives for one event, the only one of `event`, with k > 0: the short way."""
        ...

    def expected_matches(self, events: Events, probed: int) -> float:
        """Matches an event, reckoned from a sample of the clauses and the first `probed` events."""
        ...

    def blocks_reached(self, events: Events, probed: int) -> float:
        """Blocks of clauses that each of the first `probed` events reads, on the average: what its price is reckoned from."""
        ...

    @property
    def stats(self) -> Stats: ...


class ScoredIntervals(Protocol):
    """Closed intervals with scores: which of those that contain q are best? Ties by ascending number."""

    def topk(self, q: float, k: int) -> Int64:
        """The interval numbers of the k best, by (score desc, number asc)."""
        ...

    def getnext(self, q: float) -> Iterator[int]:
        """The same, one at a time and without a k."""
        ...

    def check(self) -> None: ...

    @property
    def nbytes(self) -> int: ...
