"""What matching found, as columns: pairs of an event's row and an ordinal, by the place that holds the subscription, with scores.

A place is a `Source`: a segment in service, the memtable, a part of the similarity index. It alone knows who stands at an ordinal
and how that one ranks, so whoever has hits asks the source and never looks into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values

NEVER = 2**62
"""The instant or change number of what does not happen."""
LONG_AGO = -NEVER
"""Before any expiry."""
NO_ROWS = np.empty(0, np.int32)
Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Rows of events, and the ordinals that match them."""
ValuesOf = Callable[[int], Values]
"""The values of the event in a row, for what no column can decide."""


class Source(Protocol):
    """`expiry` and `ranked` are None where nobody expires or has a list of his own."""

    def ids(self, ordinal: NDArray[np.integer]) -> pa.StringArray: ...

    def names(self, ordinal: NDArray[np.integer]) -> list[str]: ...

    def scores(self, event: NDArray[np.int32], ordinal: NDArray[np.int32], values: ValuesOf) -> NDArray[np.float64]: ...

    def expiry(self, ordinal: NDArray[np.int32]) -> NDArray[np.int64] | None: ...

    def ranked(self, ordinal: NDArray[np.int32]) -> NDArray[np.bool_] | None: ...

    def subscription(self, ordinal: int) -> Subscription: ...


class Found(NamedTuple):
    """Matches in one source, by event and then id; if they are the `best` of each event, by score first."""

    source: Source
    event: NDArray[np.int32]
    ordinal: NDArray[np.int32]
    score: NDArray[np.float64]
    best: bool = False

    def where(self, kept: NDArray[np.bool_]) -> Found:
        return self if kept.all() else Found(self.source, self.event[kept], self.ordinal[kept], self.score[kept], self.best)


Hits = Sequence[Found]


def living(source: Source, pairs: Pairs, at: int | NDArray[np.int64]) -> Pairs:
    """Without the subscriptions that have expired at the event's instant: `at`, or `at[row]`."""
    event, ordinal = pairs
    expiry = source.expiry(ordinal) if len(ordinal) else None
    if expiry is None:
        return pairs
    kept = expiry > (at if isinstance(at, int) else at[event])
    return event[kept], ordinal[kept]


def scored(source: Source, pairs: Pairs, values: ValuesOf, best: bool = False) -> Found:
    """With their scores. A score that is not finite is no answer: such a match is left out."""
    found = Found(source, *pairs, source.scores(*pairs, values), best)
    return found.where(np.isfinite(found.score))
