"""What matching found, as columns: pairs of an event's row and an ordinal, by the place that holds the subscription, with scores.

A place is a `Source`: a segment in service, the memtable, a part of the similarity index. It alone knows who stands at an ordinal
and how that one ranks, so whoever has hits asks the source and never looks into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.packed.sentinels import NEVER as NEVER
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values
from tidings.model.values.window import Window

LONG_AGO = -NEVER
"""Before any expiry."""
NO_TEXT = -1
NO_ROWS = np.empty(0, np.int32)
Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Rows of events, and the ordinals that match them."""
ValuesOf = Callable[[int], Values]
"""The values of the event in a row, for what no column can decide."""


Failures = Counter[str]
"""By subscription: how often its filter or its score had no finite answer, an event. Nothing is paid where nobody fails."""


@dataclass(slots=True)
class Work:
    """What matching has cost: events asked about, clauses verified one by one, and those that held."""

    events: int = 0
    candidates: int = 0
    matches: int = 0

    def add(self, candidates: int, matches: int) -> None:
        self.candidates += candidates
        self.matches += matches


class Terms(NamedTuple):
    """What makes a list of a subscriber's own."""

    k: int | None
    window: Window | None
    since: int
    error: float | None
    per: str | None
    tz: str | None


class Source(Protocol):
    """`expiry`, `ranked` and `by` are None where nobody expires, has a list of his own or a relevance; `given` says that no score
    depends on the event, so all are finite.

    `by` numbers the texts, NO_TEXT for none, and gives the text of a number.
    """

    @property
    def given(self) -> bool: ...

    def ids(self, ordinal: NDArray[np.integer]) -> pa.StringArray: ...

    def names(self, ordinal: NDArray[np.integer]) -> list[str]: ...

    def scores(self, event: NDArray[np.int32], ordinal: NDArray[np.int32], values: ValuesOf) -> NDArray[np.float64]: ...

    def expiry(self, ordinal: NDArray[np.int32]) -> NDArray[np.int64] | None: ...

    def ranked(self, ordinal: NDArray[np.int32]) -> NDArray[np.bool_] | None: ...

    def terms(self, ordinal: NDArray[np.integer]) -> list[Terms]: ...

    def by(self, ordinal: NDArray[np.integer]) -> tuple[NDArray[np.integer], Callable[[int], str]] | None: ...

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


def terms_of(subscriptions: Iterable[Subscription]) -> list[Terms]:
    return [Terms(s.listed, s.window, LONG_AGO if s.since is None else s.since, s.error, s.per, s.tz) for s in subscriptions]


def by_of(subscriptions: Iterable[Subscription]) -> tuple[NDArray[np.integer], Callable[[int], str]] | None:
    """As `Source.by`, of objects."""
    number: dict[str | None, int] = {None: NO_TEXT}
    code = np.array([number.setdefault(s.by, len(number) - 1) for s in subscriptions], np.int64)
    texts = [text for text in number if text is not None]
    return (code, texts.__getitem__) if texts else None


def living(source: Source, pairs: Pairs, at: int | NDArray[np.int64]) -> Pairs:
    """Without the subscriptions that have expired at the event's instant: `at`, or `at[row]`."""
    event, ordinal = pairs
    expiry = source.expiry(ordinal) if len(ordinal) else None
    if expiry is None:
        return pairs
    kept = expiry > (at if isinstance(at, int) else at[event])
    return event[kept], ordinal[kept]


def scored(source: Source, pairs: Pairs, values: ValuesOf, failures: Failures, best: bool = False) -> Found:
    """With their scores. A score that is not finite is no answer: such a match is left out, and counted."""
    found = Found(source, *pairs, source.scores(*pairs, values), best)
    if source.given:
        return found
    finite = np.isfinite(found.score)
    if finite.all():
        return found
    failures.update(source.names(found.ordinal[~finite]))
    return found.where(finite)


def distinct(event: NDArray[np.int32], owner: NDArray[np.int32]) -> Pairs:
    """Pairs in order, each once: a subscription of several clauses may have matched by more than one."""
    if (event[1:] >= event[:-1]).all():
        kept = distinct_runs(event, owner)
        return event[:kept], owner[:kept]
    key = event.astype(np.int64) << 32
    key |= owner
    key.sort()
    if not (key[1:] > key[:-1]).all():
        key = key[np.concatenate(([True], key[1:] > key[:-1]))]
    return (key >> 32).astype(np.int32), key.astype(np.int32)


@kernel
def distinct_runs(event: NDArray[np.int32], owner: NDArray[np.int32]) -> int:
    """Sort the owners of each run of equal events, in place, and drop those that repeat; how many pairs are left."""
    kept = first = 0
    while first < event.size:
        end = first + 1
        while end < event.size and event[end] == event[first]:
            end += 1
        if end - first > 1:
            owner[first:end].sort()
        here = event[first]
        for i in range(first, end):
            if i == first or owner[i] != owner[i - 1]:
                event[kept], owner[kept] = here, owner[i]
                kept += 1
        first = end
    return kept
