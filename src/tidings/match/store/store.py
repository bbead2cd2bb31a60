"""The store: all subscriptions of a topic, as a memtable and segments; one writer, any number of readers.

Changes go to the memtable and to the deaths of segments in service (`live_segment`); a memtable of FLUSH_AT subscriptions becomes a
segment. `reader` gives what matches at the change made last (`reader`); `housekeeping` packs, merges and saves. The lock is held
only to apply a change or to begin reading.

Invariant: a live id stands in exactly one place, the memtable or one segment. `packed` is the last snapshot of which everything
stood in segments, which is what a manifest may say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.match.store import merging
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.hits import Failures, Work
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.memtable import WORTH_PACKING_WORDS, Memtable
from tidings.match.store.reader import Reader, SingleEvent, Snapshot, live_subscriptions
from tidings.match.store.reclaiming import Used
from tidings.match.store.segment import Segment
from tidings.match.store.similar import Similar
from tidings.match.store.sorted_ids import ABSENT
from tidings.match.store.subscription_rows import Rows, concat_rows
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.gather import NO_CLAUSES
from tidings.model.door.subscription import Subscription
from tidings.model.values.schema import Schema

Place = tuple[LiveSegment | None, int]
Ids: TypeAlias = list[str] | pa.StringArray


class Before(NamedTuple):
    """What is needed to put back the subscriptions of these ids as they were."""

    ids: Ids
    snapshot: Snapshot
    fresh: dict[str, Subscription]
    """those of the memtable"""


class Store:
    def __init__(self, schema: Schema, vocabularies: Vocabularies, statistics: Statistics) -> None:
        self.schema = schema
        self.vocabularies = vocabularies
        self.statistics = statistics
        self.lock = threading.RLock()
        self.memtable = Memtable(schema, vocabularies)
        self.snapshot = self.packed = Snapshot((), 0)
        self.similar = Similar(schema, vocabularies)
        self.work = Work()
        self.failures = Failures()
        self.written = self.merges = 0
        self.mostly_unused = False
        """whether, when all was last merged, less than half of the codes were in use"""
        self.on_packed: Callable[[], object] = lambda: None
        self._single = SingleEvent(schema, vocabularies)
        self._reader: Reader | None = None
        """of the change that was asked for last; every change makes another snapshot. None frees segments that went."""
        self._found: tuple[str | None, Snapshot, Place] = (None, self.snapshot, (None, ABSENT))

    @property
    def next_seq(self) -> int:
        """The number that the next change has."""
        return self.snapshot.seq + 1

    def adopt(self, snapshot: Snapshot) -> None:
        """Begin with these segments; nothing else is there yet."""
        self.snapshot = self.packed = snapshot
        for subscription in live_subscriptions(snapshot, "similar"):
            self.similar.put(snapshot.seq, subscription)

    def reader(self, events: int = 1) -> Reader:
        """What matches as of now; `events` is how many it will be asked about, for the record: for many, what is new is packed
        first, since that costs less than to look through it for each of them."""
        with self.lock:
            self.work.events += events
            if events >= WORTH_PACKING_WORDS and self.memtable.is_worth_packing(events):
                self.pack()
            if self._reader is None or self._reader.snapshot is not self.snapshot:
                fresh = self.memtable.reader(self.snapshot.seq) if self.memtable.subscriptions else None
                heard = self.statistics, self.failures, self.work
                self._reader = Reader(self._single, self.snapshot, fresh, self.similar.parts(), *heard)
            return self._reader

    def packed_reader(self) -> Reader:
        """The same with everything in segments: what is new is packed first."""
        with self.lock:
            self.pack()
            return self.reader(0)

    def __len__(self) -> int:
        with self.lock:
            return len(self.memtable) + sum(live.living for live in self.snapshot.segments)

    def get(self, id: str) -> Subscription | None:
        with self.lock:
            if id in self.memtable.subscriptions:
                return self.memtable.subscriptions[id]
            live, ordinal = self._find(id)
            return live.subscription(ordinal) if live is not None else None

    def __contains__(self, id: str) -> bool:
        with self.lock:
            return id in self.memtable.subscriptions or self._find(id)[0] is not None

    def _find(self, id: str) -> Place:
        """Segment and ordinal of a packed live subscription. The last answer is kept: who is changed was looked up before."""
        if self._found[0] != id or self._found[1] is not self.snapshot:
            self._found = (id, self.snapshot, (None, ABSENT))
            for live in self.snapshot.segments:
                ordinal = live.find(id, self.snapshot.seq)
                if ordinal != ABSENT:
                    self._found = (id, self.snapshot, (live, ordinal))
                    break
        return self._found[2]

    def before(self, ids: Ids) -> Before:
        """To be asked before a change of these, for `go_back` if it fails."""
        with self.lock:
            fresh = self.memtable.subscriptions
            if isinstance(ids, list) and len(ids) == 1:
                known = {ids[0]: fresh[ids[0]]} if ids[0] in fresh else {}
            else:
                known = {id: fresh[id] for id in ids if id in fresh} if isinstance(ids, list) else dict(fresh)
            return Before(ids, self.snapshot, known)

    def go_back(self, before: Before) -> None:
        """Undo a change that failed on the way, wherever it came to: as a change of its own."""
        with self.lock:
            seq, ids = self.next_seq + 1, before.ids if isinstance(before.ids, list) else before.ids.to_pylist()
            self.remove(seq, ids)
            packed = [id for id in ids if id not in before.fresh]
            put = [before.fresh[id] for id in ids if id in before.fresh]
            for live in before.snapshot.segments:
                ordinals = live.find_many(pa.array(packed, pa.string()), before.snapshot.seq)
                put += [live.subscription(ordinal) for ordinal in ordinals[ordinals != ABSENT].tolist()]
            self.put(seq, put)

    def put(self, seq: int, subscriptions: Iterable[Subscription]) -> None:
        with self.lock:
            for subscription in subscriptions:
                if subscription.id not in self.memtable.subscriptions:
                    self._bury(seq, subscription.id)
                self.memtable.put(seq, subscription)
                if len(self.similar) or subscription.similarity is not None:
                    self.similar.put(seq, subscription)
                self.written += 1
            self.snapshot = Snapshot(self.snapshot.segments, seq)
            if len(self.memtable.subscriptions) >= merging.FLUSH_AT:
                self.pack()

    def remove(self, seq: int, ids: Sequence[str]) -> None:
        with self.lock:
            if len(ids) == 1:
                if not self.memtable.remove(seq, ids[0]):
                    self._bury(seq, ids[0])
            else:
                self._bury_all(seq, pa.array([id for id in ids if not self.memtable.remove(seq, id)], pa.string()))
            if len(self.similar):
                for id in ids:
                    self.similar.remove(seq, id)
            self.snapshot = Snapshot(self.snapshot.segments, seq)

    def _bury(self, seq: int, id: str) -> None:
        live, ordinal = self._find(id)
        if live is not None:
            live.bury(ordinal, seq)

    def _bury_all(self, seq: int, ids: pa.StringArray) -> None:
        for live in self.snapshot.segments:
            ordinals = live.find_many(ids, seq)
            live.bury(ordinals[ordinals != ABSENT], seq)

    def put_rows(self, seq: int, rows: Rows) -> None:
        """A bulk load: the rows become a segment of their own, and replace what had their ids."""
        self.put_segment(seq, self.built(seq, rows))

    def built(self, seq: int, rows: Rows) -> Segment:
        """A segment of these rows, to be put by change `seq`: what needs room and time is done before anything is committed."""
        return Segment.build(self.schema, rows, self.statistics, seq)

    def put_segment(self, seq: int, added: Segment) -> None:
        with self.lock:
            self.pack()
            self._bury_all(seq, added.names.strings)
            if len(self.similar):
                for id in added.names.strings.to_pylist():
                    self.similar.remove(seq, id)
            live = LiveSegment(added, self.vocabularies)
            for ordinal in added.similar.tolist():
                self.similar.put(seq, live.subscription(ordinal))
            self.written += len(added)
            self._now_packed((*self.snapshot.segments, live), seq)

    def existing(self, ids: pa.StringArray) -> list[str]:
        """Those of `ids` that are live now."""
        with self.lock:
            there = np.zeros(len(ids), np.bool_)
            for live in self.snapshot.segments:
                there |= live.find_many(ids, self.snapshot.seq) != ABSENT
            found: list[str] = ids.filter(pa.array(there)).to_pylist()
            if len(self.memtable):
                found += [id for id in ids.to_pylist() if id in self.memtable.subscriptions]
            return found

    def subscriptions(self) -> Iterator[Subscription]:
        """All of them, as objects: for a keyed topic's boards, which need every one."""
        with self.lock:
            yield from self.memtable.subscriptions.values()
            for live in self.snapshot.segments:
                for ordinal in live.live(self.snapshot.seq).tolist():
                    yield live.subscription(ordinal)

    def near_subscriptions(self) -> list[Subscription]:
        """Those that are nothing but an ideal point."""
        with self.lock:
            return [*self.memtable.near(), *live_subscriptions(self.snapshot, "near")]

    def pack(self) -> None:
        """Turn the memtable into a segment."""
        if not len(self.memtable):
            self.packed = self.snapshot
            return
        added = Segment.build(self.schema, self.memtable.rows(), self.statistics, self.snapshot.seq)
        packed = Snapshot((*self.snapshot.segments, LiveSegment(added, self.vocabularies)), self.snapshot.seq)
        self.work.add(self.memtable.work.candidates, self.memtable.work.matches)
        # At once: an interrupt in between must not lose what the memtable had.
        self.memtable, self.snapshot, self.packed = Memtable(self.schema, self.vocabularies), packed, packed
        self._reader = None
        self.on_packed()

    def _now_packed(self, segments: tuple[LiveSegment, ...], seq: int) -> None:
        """The memtable is empty: `segments` at `seq` are all there is."""
        assert not len(self.memtable)
        self.snapshot = self.packed = Snapshot(segments, seq)
        self._reader = None
        self.on_packed()

    def reclaim(self) -> None:
        """Make one segment of all in the codes that are in use (`reclaiming`). Matching goes on, changes must wait."""
        with self.lock:
            self.pack()
            before = self.snapshot
        rows = live_rows(before.segments, before.seq)
        used = Used(self.schema, self.vocabularies, NO_CLAUSES if rows is None else rows.clauses)
        vocabularies, built = used.vocabulary(), list[LiveSegment]()
        self.statistics.recode(used.words)
        if rows is not None:
            recoded = replace(rows, clauses=used.recoded())
            built.append(LiveSegment(Segment.build(self.schema, recoded, self.statistics, before.seq), vocabularies))
        with self.lock:
            assert self.snapshot is before, "changes wait"
            self.vocabularies = vocabularies
            self.memtable = Memtable(self.schema, vocabularies)
            self.similar.use(vocabularies, used.words)
            self._single = SingleEvent(self.schema, vocabularies)
            self.mostly_unused = False
            self._now_packed(tuple(built), before.seq)

    def merge(self, inputs: Sequence[LiveSegment] | None = None) -> None:
        """Make one segment of `inputs`, all segments if not given. Runs beside matching and changes."""
        with self.lock:
            self.pack()
            before = self.snapshot
        whole, inputs = inputs is None, list(before.segments if inputs is None else inputs)
        rows = live_rows(inputs, before.seq)
        merged: list[LiveSegment] = []
        if rows is not None:
            merged.append(LiveSegment(Segment.build(self.schema, rows, self.statistics, before.seq), self.vocabularies))
        if whole:
            clauses = NO_CLAUSES if rows is None else rows.clauses
            self.mostly_unused = Used(self.schema, self.vocabularies, clauses).few
        with self.lock:
            for live in inputs:
                if len(lived := live.live(before.seq)):
                    self._carry_deaths(live, lived, merged[0])
            for home in (home for live in inputs for home in live.segment.homes.values()):
                self.work.add(home.stats.candidates, home.stats.matches)
            self.merges += 1
            self.snapshot, self.packed = (
                Snapshot((*merged, *(live for live in old.segments if live not in inputs)), old.seq)
                for old in (self.snapshot, self.packed)
            )
            self._reader = None

    def _carry_deaths(self, live: LiveSegment, rows: NDArray[np.int64], merged: LiveSegment) -> None:
        """Bury in `merged` what was removed from `live` while the merge ran."""
        for ordinal in rows[~live.is_live(rows, self.snapshot.seq)]:
            there = merged.segment.names.find(live.segment.names[int(ordinal)])
            merged.bury(there, int(live.died[ordinal]) + live.segment.born)


def live_rows(segments: Sequence[LiveSegment], seq: int) -> Rows | None:
    """All that live in these segments at change `seq`; None if nobody does."""
    kept = [live.segment.rows().take(rows) for live in segments if len(rows := live.live(seq))]
    return concat_rows(kept) if kept else None
