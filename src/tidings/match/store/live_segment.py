"""A segment in service: the segment, which never changes, and beside it what does, namely who of it is gone.

`died[ordinal]` is the change that removed a subscription, as `change number - born`, ALIVE until then; empty while nobody was
removed. A reader that holds change number s sees a subscription iff died[ordinal] > s - born, so matching never waits for removals
nor they for it. What answers derive from the segment for a purpose of their own (`aside`) is kept here too, and handed on to the
same segment in another snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.index.packed.packing import readonly
from tidings.index.packed.record import Events
from tidings.match.store import definition
from tidings.match.store.definition import Definition
from tidings.match.store.hits import Failures, Pairs, Terms, ValuesOf
from tidings.match.store.segment import Segment
from tidings.match.store.sorted_ids import ABSENT
from tidings.model.columns.arrays import EventColumns, Vocabularies
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values

_ALIVE = 2**32 - 1
ALIVE = np.uint32(_ALIVE)
NOBODY = np.empty(0, np.uint32)
_NOBODY = readonly(NOBODY)
Aside = TypeVar("Aside")


class LiveSegment:
    def __init__(self, segment: Segment, vocabularies: Vocabularies, like: LiveSegment | None = None) -> None:
        """`like` is the same segment in service elsewhere: what was made aside of it is shared."""
        self.segment = segment
        self.vocabularies = vocabularies
        self.died = NOBODY
        self._died = _NOBODY
        """the same, which may not be written"""
        self._cells: Any = None
        """the same one by one, at a tenth of an array's cost; None while nobody was removed"""
        self.dead = 0
        self._is_tiny = segment.clause_count <= definition.TINY
        self._asides: dict[Any, Any] = {} if like is None else like._asides

    def __len__(self) -> int:
        """How many stand in it, dead or alive."""
        return len(self.segment)

    @property
    def living(self) -> int:
        return len(self.segment) - self.dead

    @property
    def nbytes(self) -> int:
        return self.segment.nbytes + self.died.nbytes

    def bury(self, ordinals: NDArray[np.int64] | int, seq: int) -> None:
        """Subscriptions that are removed by change `seq`."""
        if self._cells is None:
            self.died = np.full(len(self.segment), ALIVE)
            self._died, self._cells = readonly(self.died), self.died.data
        if isinstance(ordinals, int):
            self.dead += self._cells[ordinals] == _ALIVE
            self._cells[ordinals] = seq - self.segment.born
        else:
            self.dead += int(np.count_nonzero(self.died[ordinals] == ALIVE))
            self.died[ordinals] = seq - self.segment.born

    def is_live(self, ordinals: NDArray[np.int64], seq: int) -> NDArray[np.bool_]:
        return self.died[ordinals] > seq - self.segment.born if len(self.died) else np.ones(len(ordinals), np.bool_)

    def live(self, seq: int) -> NDArray[np.int64]:
        """Ordinals of the subscriptions that a reader at `seq` sees."""
        return np.flatnonzero(self.died > seq - self.segment.born) if len(self.died) else np.arange(len(self.segment))

    def find(self, id: str, seq: int) -> int:
        """The ordinal of a live subscription, or ABSENT."""
        ordinal = self.segment.names.find(id)
        dead = ordinal != ABSENT and len(self.died) and self.died[ordinal] <= seq - self.segment.born
        return ABSENT if dead else ordinal

    def find_many(self, ids: pa.StringArray, seq: int) -> NDArray[np.int64]:
        ordinals = self.segment.names.find_many(ids)
        ordinals[~self.is_live(ordinals, seq)] = ABSENT
        return ordinals

    def match(self, events: EventColumns, values: ValuesOf, seq: int, near: bool = True, failures: Failures | None = None) -> Pairs:
        """See `Segment.match`."""
        return self.segment.match(events, values, self.died, seq - self.segment.born, near, failures)

    def match_one(
        self, event: Pinned[Events], values: Values, seq: int, near: bool = True, failures: Failures | None = None
    ) -> NDArray[np.int32]:
        return self.segment.match_one(event, values, self._died, seq - self.segment.born, near, failures)

    @property
    def few(self) -> Definition | None:
        """Its clauses one by one, if they are few."""
        return self.aside(definition_of) if self._is_tiny else None

    def among(self, ordinals: list[int], seq: int) -> NDArray[np.int32]:
        """Those of `ordinals` that a reader at `seq` sees."""
        ordinal = np.array(ordinals, np.int32)
        return ordinal[self.died[ordinal] > seq - self.segment.born] if len(self.died) else ordinal

    def __getitem__(self, ordinal: int) -> str:
        """The id that stands at an ordinal."""
        return self.segment.names[ordinal]

    def topk(self, events: EventColumns, k: int, seq: int) -> Pairs:
        return self.segment.topk(events, k, self.died, seq - self.segment.born)

    def topk_one(self, event: Pinned[Events], k: int, seq: int) -> NDArray[np.int32]:
        return self.segment.topk_one(event, k, self._died, seq - self.segment.born)

    @property
    def given(self) -> bool:
        return not self.segment.formulas

    def ids(self, ordinal: NDArray[np.integer]) -> pa.StringArray:
        return self.segment.names.strings.take(pa.array(ordinal))

    def names(self, ordinal: NDArray[np.integer]) -> list[str]:
        return self.segment.names.take(ordinal)

    def scores(self, event: NDArray[np.int32], ordinal: NDArray[np.int32], values: ValuesOf) -> NDArray[np.float64]:
        return self.segment.scores(event, ordinal, values)

    def expiry(self, ordinal: NDArray[np.int32]) -> NDArray[np.int64] | None:
        return None if self.segment.expires is None else self.segment.expires[ordinal]

    def ranked(self, ordinal: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        return None if self.segment.ranked is None else self.segment.ranked[ordinal]

    def terms(self, ordinal: NDArray[np.integer]) -> list[Terms]:
        return self.segment.terms(ordinal)

    def by(self, ordinal: NDArray[np.integer]) -> tuple[NDArray[np.integer], Callable[[int], str]] | None:
        if self.segment.by is None:
            return None
        code, texts = self.segment.by
        return code[ordinal], texts.__getitem__

    def subscription(self, ordinal: int) -> Subscription:
        return self.segment.subscription(self.vocabularies, ordinal)

    def aside(self, kind: Callable[[LiveSegment], Aside]) -> Aside:
        """What is derived from the segment for one purpose, made when first asked for. It may not depend on who is gone."""
        if kind not in self._asides:
            self._asides[kind] = kind(self)
        made: Aside = self._asides[kind]
        return made

    def made_aside(self, kind: type[Aside]) -> Aside | None:
        """The same if it has been asked for before."""
        return self._asides.get(kind)

    def check(self) -> None:
        assert self.dead == np.count_nonzero(self.died != ALIVE), "the dead are counted"
        self.segment.check()


def definition_of(live: LiveSegment) -> Definition:
    """What its homes hold; similarity is asked elsewhere."""
    near, similar = set(live.segment.near.tolist()), set(live.segment.similar.tolist())
    ordinals = [ordinal for ordinal in range(len(live)) if ordinal not in similar]
    return Definition(
        live.segment.schema,
        [(ordinal, ordinal in near, clause) for ordinal in ordinals for clause in live.subscription(ordinal).clauses],
    )
