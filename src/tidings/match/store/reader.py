"""One reader for everybody who matches: a topic, a view of a manifest, explanations, vague events, Spark's workers.

It is made of a snapshot (segments, and who of them is gone at its change number), the memtable's rows at that change, and the parts
of the similarity index. None of these moves under it, so a reader holds no lock and gives the answers of its change for as long
as it is kept.

The way of a batch: encode the events in codes of now, which know all that the snapshot knows; ask every segment, by the path that
is priced lowest if only the k best are wanted (`ranked_paths`); ask the memtable and the similarity index; drop who has expired;
score. `answers.ordering` puts the hits in order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.index.packed.record import Events
from tidings.match.store.definition import Definition
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.hits import Failures, Found, Hits, Pairs, Source, ValuesOf, Work, living, scored
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.memtable_reader import MemtableReader
from tidings.match.store.ranked_paths import Question, best_of_one, best_pairs
from tidings.match.store.similar import Part, Similar
from tidings.match.store.sorted_ids import ABSENT
from tidings.model.columns.arrays import EventColumns, EventEncoder, Vocabularies
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema


class Snapshot(NamedTuple):
    segments: tuple[LiveSegment, ...]
    seq: int


class Asked(Protocol):
    """Events to match: as columns in the codes that a topic has now, and one by one."""

    def __len__(self) -> int: ...

    def encoded(self, vocabularies: Vocabularies) -> EventColumns: ...

    def values(self, row: int) -> Values: ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """Events that are in columns already, by a caller who knows that no code came since."""

    columns: EventColumns
    values: ValuesOf

    def __len__(self) -> int:
        return len(self.columns)

    def encoded(self, vocabularies: Vocabularies) -> EventColumns:
        return self.columns


class SingleEvent(threading.local):
    """Each thread's arrays for one event at a time."""

    def __init__(self, schema: Schema, vocabularies: Vocabularies) -> None:
        self.schema = schema
        self.vocabularies = vocabularies
        self.encode = EventEncoder(schema, vocabularies)
        self._pinned: Pinned[Events] | None = None

    def pinned(self, values: Values) -> Pinned[Events]:
        """The event as kernels take it, until the thread's next one."""
        encode = self.encode
        encode.write(values)
        if self._pinned is None or self._pinned.value.word is not encode.word:
            self._pinned = Pinned(Events(encode.value, encode.box, encode.word_start, encode.word))
        return self._pinned


class Reader:
    def __init__(
        self,
        single: SingleEvent,
        snapshot: Snapshot,
        memtable: MemtableReader | None,
        similar: tuple[Part, ...],
        statistics: Statistics | None = None,
        failures: Failures | None = None,
        work: Work | None = None,
    ) -> None:
        """`memtable` is None where nothing is new since the last segment; `statistics` hear of the events that are asked about,
        and `work` of what matching has cost that no home counts."""
        self.schema, self.vocabularies = single.schema, single.vocabularies
        self.snapshot = snapshot
        self.memtable = memtable
        self.similar = similar
        self._single = single
        self._statistics = statistics
        self.failures = Failures() if failures is None else failures
        self._work = Work() if work is None else work

    def match(self, batch: Asked, k: int | None = None, *, at: int | NDArray[np.int64], near: bool = True) -> Hits:
        """Every match of a batch; with k, who is not among an event's k best may be left out.

        `at` is the instant of all events, or of each. Without `near`, those that are nothing but an ideal point are left out.
        """
        events, values = batch.encoded(self.vocabularies), batch.values
        if self._statistics is not None:
            self._statistics.observe(events)
        found = [self._in_segment(live, events, values, k, at, near) for live in self.snapshot.segments]
        if self.memtable is not None:
            found.append(
                _judged(self.memtable, self.memtable.match(events, values, self.failures, near), values, at, self.failures)
            )
        found += self.by_similarity(events, values, at)
        return found

    def match_one(self, values: Values, at: int, k: int | None = None, *, near: bool = True) -> Hits:
        """The same of a single event, the short way, without those in which nobody matched."""
        seq = self.snapshot.seq
        found: list[Found] = []
        if self._few is not None:
            for source, few in self._few:
                if ordinals := few.match(values, near, self.failures, source):
                    found += self._one(source, source.among(ordinals, seq), values, at)
                    self._work.matches += len(ordinals)
                self._work.candidates += few.size
            return found
        event = self._single.pinned(values)
        for live in self.snapshot.segments:
            if k is not None:
                asked = Question(self._single.encode.columns, lambda _: values, k, seq)
                ordinal, ordered = best_of_one(live, event, asked)
                best = self._one(live, ordinal, values, at, ordered)
                if not ordered or sum(len(part.event) for part in best) == len(ordinal):
                    found += best
                    continue
                # A path in order of score may have given places to scores that are none: then all are looked at.
            found += self._one(live, live.match_one(event, values, seq, near, self.failures), values, at)
        if self.memtable is not None:
            ordinal = self.memtable.match_one(self._single.encode.columns, values, near, self.failures)
            found += self._one(self.memtable, ordinal, values, at)
        if self.similar:
            found += self.by_similarity(self._single.encode.columns, lambda _: values, at)
        return found

    def _one(self, source: Source, ordinal: NDArray[np.int32], values: Values, at: int, best: bool = False) -> Hits:
        """Those of the one event's matches that count; nothing if there are none."""
        if not len(ordinal):
            return ()
        pairs = np.zeros(len(ordinal), np.int32), ordinal
        return (_judged(source, pairs, lambda _: values, at, self.failures, best),)

    def encoded(self, values: Values) -> EventColumns:
        """One event, in arrays of the thread's own that its next event overwrites."""
        return self._single.encode(values)

    def pinned(self, values: Values) -> Pinned[Events]:
        """The same as kernels take it."""
        return self._single.pinned(values)

    @cached_property
    def _few(self) -> list[tuple[LiveSegment | MemtableReader, Definition]] | None:
        """What is asked clause by clause, if all is."""
        sources: list[LiveSegment | MemtableReader] = [*self.snapshot.segments]
        sources += [] if self.memtable is None else [self.memtable]
        few = [(source, source.few) for source in sources]
        there = [(source, definition) for source, definition in few if definition is not None]
        return there if len(there) == len(sources) and not self.similar else None

    def by_similarity(self, events: EventColumns, values: ValuesOf, at: int | NDArray[np.int64]) -> Iterator[Found]:
        """Those alone that go by similarity."""
        for part in self.similar:
            found = part.match(events, values, self.snapshot.seq)
            expiry = part.expiry(found.ordinal)
            yield found if expiry is None else found.where(expiry > (at if isinstance(at, int) else at[found.event]))

    def _in_segment(
        self, live: LiveSegment, events: EventColumns, values: ValuesOf, k: int | None, at: int | NDArray[np.int64], near: bool
    ) -> Found:
        seq = self.snapshot.seq
        if k is not None:
            pairs, ordered = best_pairs(live, Question(events, values, k, seq))
            found = _judged(live, pairs, values, at, self.failures, ordered)
            # A path in order of score may have given places to scores that are none: then all are looked at.
            if not ordered or len(found.event) == len(pairs[0]):
                return found
        return _judged(live, live.match(events, values, seq, near, self.failures), values, at, self.failures)

    def __len__(self) -> int:
        """How many subscriptions it sees."""
        fresh = 0 if self.memtable is None else self.memtable.living
        return fresh + sum(len(live.live(self.snapshot.seq)) for live in self.snapshot.segments)

    def find(self, id: str) -> tuple[LiveSegment | None, int]:
        """Segment and ordinal of a live subscription that is packed."""
        for live in self.snapshot.segments:
            ordinal = live.find(id, self.snapshot.seq)
            if ordinal != ABSENT:
                return live, ordinal
        return None, ABSENT


def _judged(
    source: Source, pairs: Pairs, values: ValuesOf, at: int | NDArray[np.int64], failures: Failures, best: bool = False
) -> Found:
    return scored(source, living(source, pairs, at), values, failures, best)


def live_subscriptions(snapshot: Snapshot, which: str) -> Iterator[Subscription]:
    """The packed ones that stand among the ordinals which a segment names `similar` or `near`."""
    for live in snapshot.segments:
        ordinals: NDArray[np.int64] = getattr(live.segment, which)
        for ordinal in ordinals[live.is_live(ordinals, snapshot.seq)].tolist():
            yield live.subscription(ordinal)


def reader_of(schema: Schema, vocabularies: Vocabularies, snapshot: Snapshot) -> Reader:
    """A reader of a snapshot by itself: nothing will be written, so there is no store behind it."""
    similar = Similar(schema, vocabularies)
    for subscription in live_subscriptions(snapshot, "similar"):
        similar.put(snapshot.seq, subscription)
    return Reader(SingleEvent(schema, vocabularies), snapshot, None, similar.parts())
