"""The store: all subscriptions of a topic, as a memtable and segments; one writer, any number of readers.

A *snapshot* is a tuple of segments and a change number. Changes go to the memtable and to the `died` numbers of segments; a
memtable of FLUSH_AT subscriptions becomes a segment, and segments are merged (`merging`): those that are due at once, those that
only matching gains by when no change has come for QUIET seconds. A merge works beside everything else on the snapshot it began
with, and is put in place with the removals that came meanwhile, so it never changes an answer. The lock is held only to apply a
change or to read the memtable.

Invariant: a live id stands in exactly one place, the memtable or one segment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.index.packed.packing import as_events, readonly
from tidings.index.packed.record import Events
from tidings.match.store import merging, similar
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.memtable import Memtable
from tidings.match.store.ranked_paths import Question, best_pairs
from tidings.match.store.segment import Segment
from tidings.match.store.similar import Similar
from tidings.match.store.sorted_ids import ABSENT
from tidings.match.store.subscription_rows import Rows, concat_rows
from tidings.match.store.tree_axes import clause_axes
from tidings.model.columns.arrays import EventColumns, EventEncoder, Vocabularies
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema

QUIET = 2.0
"""Seconds without a change after which segments are merged for the sake of those who match."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    segments: tuple[Segment, ...]
    seq: int


class Found(NamedTuple):
    """Matches in one place: `ordinal` in `segment`."""

    segment: Segment
    event: NDArray[np.int32]
    ordinal: NDArray[np.int32]
    best: bool = False
    """Whether these are the k best of each event, in order."""


@dataclass(slots=True)
class Work:
    """What matching has cost: events asked about, and what the memtables and segments that are gone verified and matched."""

    events: int = 0
    candidates: int = 0
    matches: int = 0

    def add(self, candidates: int, matches: int) -> None:
        self.candidates += candidates
        self.matches += matches


class SingleEvent:
    """Arrays for one event at a time, and the read-only views of them that kernels take, made once."""

    def __init__(self, schema: Schema, vocabularies: Vocabularies) -> None:
        self.encode = EventEncoder(schema, vocabularies)
        self._fixed = as_events(self.encode({}))

    def events(self, columns: EventColumns) -> Events:
        fixed = self._fixed
        return Events(fixed.value, fixed.box, fixed.word_start, readonly(columns.word)) if len(columns.word) else fixed


class Store:
    def __init__(
        self, schema: Schema, vocabularies: Vocabularies, statistics: Statistics, segments: Sequence[Segment] = (), seq: int = 0
    ) -> None:
        self.schema = schema
        self.vocabularies = vocabularies
        self.statistics = statistics
        self.lock = threading.RLock()
        self.memtable = Memtable(schema, vocabularies)
        self.snapshot = Snapshot(tuple(segments), seq)
        self.on_packed: Callable[[Snapshot], None] = lambda packed: None
        self._packed = self._last_saved = self.snapshot
        self._packs = 0
        self._found: tuple[str | None, Snapshot, tuple[Segment | None, int]] = (None, self.snapshot, (None, ABSENT))
        self.similar = Similar(schema, vocabularies)
        self.work = Work()
        self._threads = threading.local()
        self._worker: ThreadPoolExecutor | None = None
        self._work: Future[None] | None = None
        self._quiet: threading.Timer | None = None
        self._closed = False
        self._written = self._rewritten = 0

    def adopt(self, snapshot: Snapshot) -> None:
        """Begin with these segments; nothing else is there yet."""
        self.snapshot = self._packed = self._last_saved = snapshot
        for segment in snapshot.segments:
            self._put_similar(segment)

    def keep(self, save: Callable[[Snapshot], None], saved: Snapshot) -> None:
        """From now on `save` what is packed; `saved` is on disk already."""
        self._finish()
        with self.lock:
            self.on_packed, self._last_saved = save, saved

    def __len__(self) -> int:
        with self.lock:
            return len(self.memtable) + sum(len(segment) - segment.dead for segment in self.snapshot.segments)

    def get(self, id: str) -> Subscription | None:
        with self.lock:
            if id in self.memtable.subscriptions:
                return self.memtable.subscriptions[id]
            segment, ordinal = self._find(id)
            return segment.subscription(self.vocabularies, ordinal) if segment is not None else None

    def __contains__(self, id: str) -> bool:
        with self.lock:
            return id in self.memtable.subscriptions or self._find(id)[0] is not None

    def _find(self, id: str) -> tuple[Segment | None, int]:
        """Segment and ordinal of a packed live subscription. The last answer is kept: who is changed was looked up before."""
        if self._found[0] != id or self._found[1] is not self.snapshot:
            self._found = (id, self.snapshot, (None, ABSENT))
            for segment in self.snapshot.segments:
                ordinal = segment.find(id, self.snapshot.seq)
                if ordinal != ABSENT:
                    self._found = (id, self.snapshot, (segment, ordinal))
                    break
        return self._found[2]

    def put(self, seq: int, subscriptions: Iterable[Subscription]) -> None:
        with self.lock:
            for subscription in subscriptions:
                if subscription.id not in self.memtable.subscriptions:
                    self._bury(seq, subscription.id)
                self.memtable.put(subscription)
                self.similar.put(seq, subscription)
                self._written += 1
            self.snapshot = Snapshot(self.snapshot.segments, seq)
            if len(self.memtable) >= merging.FLUSH_AT:
                self._pack()

    def remove(self, seq: int, ids: Iterable[str]) -> None:
        with self.lock:
            ids = list(ids)
            packed = [id for id in ids if not self.memtable.remove(id)]
            if len(packed) == 1:
                self._bury(seq, packed[0])
            else:
                self._bury_all(seq, pa.array(packed, pa.string()))
            if len(self.similar):
                for id in ids:
                    self.similar.remove(seq, id)
            self.snapshot = Snapshot(self.snapshot.segments, seq)

    def _bury(self, seq: int, id: str) -> None:
        segment, ordinal = self._find(id)
        if segment is not None:
            segment.bury(ordinal, seq)

    def _bury_all(self, seq: int, ids: pa.StringArray) -> None:
        for segment in self.snapshot.segments:
            ordinals = segment.names.find_many(ids)
            ordinals = ordinals[ordinals != ABSENT]
            segment.bury(ordinals[segment.is_live(ordinals, seq)], seq)

    def put_rows(self, seq: int, rows: Rows) -> None:
        """A bulk load: the rows become a segment of their own, and replace what had their ids."""
        added = Segment.build(self.schema, rows, self.statistics, seq)
        with self.lock:
            self._pack()
            self._bury_all(seq, added.names.strings)
            if len(self.similar):
                for id in added.names.strings.to_pylist():
                    self.similar.remove(seq, id)
            self._put_similar(added)
            self._written += len(added)
            self._now_packed((*self.snapshot.segments, added), seq)

    def existing(self, ids: pa.StringArray) -> list[str]:
        """Those of `ids` that are live now."""
        with self.lock:
            live = np.zeros(len(ids), np.bool_)
            for segment in self.snapshot.segments:
                ordinals = segment.names.find_many(ids)
                live |= (ordinals != ABSENT) & segment.is_live(ordinals, self.snapshot.seq)
            found: list[str] = ids.filter(pa.array(live)).to_pylist()
            if len(self.memtable):
                found += [id for id in ids.to_pylist() if id in self.memtable.subscriptions]
            return found

    def _put_similar(self, segment: Segment) -> None:
        for ordinal in segment.similar[segment.is_live(segment.similar, self.snapshot.seq)].tolist():
            self.similar.put(self.snapshot.seq, segment.subscription(self.vocabularies, ordinal))

    def subscriptions(self) -> Iterator[Subscription]:
        """All of them, as objects: for a keyed topic's boards, which need every one."""
        with self.lock:
            yield from self.memtable.subscriptions.values()
            for segment in self.snapshot.segments:
                for ordinal in segment.live(self.snapshot.seq).tolist():
                    yield segment.subscription(self.vocabularies, ordinal)

    def near_subscriptions(self) -> list[Subscription]:
        """Those that are nothing but an ideal point."""
        with self.lock:
            kept = list(self.memtable.near.values())
            for segment in self.snapshot.segments:
                for ordinal in segment.near[segment.is_live(segment.near, self.snapshot.seq)].tolist():
                    kept.append(segment.subscription(self.vocabularies, ordinal))
        return kept

    def packed(self) -> Snapshot:
        """Everything in segments: what is new is packed first."""
        with self.lock:
            self._pack()
            return self.snapshot

    def match(
        self, encode: Callable[[], EventColumns], values: Callable[[int], Values], k: int | None = None, near: bool = True
    ) -> tuple[list[Found], list[tuple[int, Subscription]], similar.Found]:
        """All matches at one change number: by segment, those of the memtable, and those by similarity.

        `encode` gives the events in codes of now: what the snapshot knows, the codes must know too.
        With k, each segment takes its cheapest path to the best (`ranked_paths`); what it leaves out is not among the k.
        Without `near`, those that are nothing but an ideal point are left out.
        """
        with self.lock:
            events, snapshot = encode(), self.snapshot
            self.work.events += len(events)
            self.statistics.observe(events)
            fresh = self._fresh(events, values, k, near) if len(self.memtable) else []
            parts = self.similar.parts()
        found = []
        for segment in snapshot.segments:
            if k is None:
                found.append(Found(segment, *segment.match(events, values, snapshot.seq, near)))
            else:
                pairs, ordered = best_pairs(segment, Question(events, values, k, snapshot.seq))
                found.append(Found(segment, *pairs, ordered))
        return found, fresh, similar.match_parts(parts, events, values, snapshot.seq) if parts else []

    def _fresh(
        self, events: EventColumns, values: Callable[[int], Values], k: int | None, near: bool
    ) -> list[tuple[int, Subscription]]:
        return self.memtable.match(events, values, near) if k is None else self.memtable.best(events, values, k)

    def match_one(self, values: Values) -> tuple[list[tuple[Segment, NDArray[np.int32]]], list[Subscription], similar.Found]:
        """`match` of a single event, the short way: ordinals by segment, the memtable's subscriptions, and those by similarity."""
        single = self._single()
        with self.lock:
            columns = single.encode(values)
            events, snapshot = single.events(columns), self.snapshot
            self.work.events += 1
            parts = self.similar.parts()
            fresh = self.memtable.match_one(events, values) if len(self.memtable) else []
        found = [(segment, segment.match_one(events, values, snapshot.seq)) for segment in snapshot.segments]
        return found, fresh, similar.match_parts(parts, columns, lambda _: values, snapshot.seq) if parts else []

    def close_to(self, events: EventColumns, values: Callable[[int], Values]) -> similar.Found:
        """Those alone that go by similarity."""
        with self.lock:
            parts, seq = self.similar.parts(), self.snapshot.seq
        return similar.match_parts(parts, events, values, seq)

    def _single(self) -> SingleEvent:
        """This thread's own arrays for one event."""
        single: SingleEvent | None = getattr(self._threads, "single", None)
        if single is None:
            single = self._threads.single = SingleEvent(self.schema, self.vocabularies)
        return single

    def flush(self) -> None:
        """Turn the memtable into a segment, and wait until a durable topic has written it, and any removals."""
        with self.lock:
            self._pack()
            work = self._background(self._tidy)
        work.result()

    def _pack(self) -> None:
        if not len(self.memtable):
            self._packed = self.snapshot
            return
        rows = self.memtable.rows()
        added = Segment.build(self.schema, rows, self.statistics, self.snapshot.seq)
        self._packs += 1
        # Choosing axes costs as much as packing does: they are kept for some memtables, which come from the same source.
        again = self._packs % merging.MERGE_WIDTH != 1
        self.work.add(self.memtable.stats["verified"], self.memtable.stats["matches"])
        axes = self.memtable.axes if again else clause_axes(self.schema, self.vocabularies, rows.clauses)
        self.memtable = Memtable(self.schema, self.vocabularies, axes)
        self._now_packed((*self.snapshot.segments, added), self.snapshot.seq)

    def _now_packed(self, segments: tuple[Segment, ...], seq: int) -> None:
        """The memtable is empty: `segments` at `seq` are all there is, which is what a manifest may say."""
        assert not len(self.memtable)
        self.snapshot = self._packed = Snapshot(segments, seq)
        self._background(self._tidy)

    def _tidy(self) -> None:
        """Merge while merges are due, then save."""
        with self.lock:
            due = merging.due_for_merge(self.snapshot.segments)
        while len(due) > 1:
            self._merge(due)
            with self.lock:
                due = merging.due_for_merge(self.snapshot.segments)
        self._saved()
        with self.lock:
            if self._due_when_quiet() and not self._closed:
                self._quiet = threading.Timer(QUIET, self._when_quiet, (self.snapshot.seq,))
                self._quiet.daemon = True
                self._quiet.start()

    def _when_quiet(self, seq: int) -> None:
        with self.lock:
            if self.snapshot.seq == seq and not self._closed:
                self._background(self._rest)

    def _due_when_quiet(self) -> list[Segment]:
        """What to merge when it is quiet: in all no more rows than were written, so that each is rewritten once more at most."""
        due = merging.due_when_quiet(self.snapshot.segments)
        return due if self._rewritten + sum(len(segment) - segment.dead for segment in due) <= self._written else []

    def _rest(self) -> None:
        with self.lock:
            due = self._due_when_quiet()
            self._rewritten += sum(len(segment) - segment.dead for segment in due)
        if due:
            self._merge(due)
            self._saved()

    def _saved(self) -> None:
        with self.lock:
            packed = self._packed
        if packed != self._last_saved:
            self.on_packed(packed)
            self._last_saved = packed

    def _background(self, work: Callable[[], None]) -> Future[None]:
        if self._quiet is not None:
            self._quiet.cancel()
        self._worker = self._worker or ThreadPoolExecutor(1, "tidings-merge")
        self._work = self._worker.submit(work)
        return self._work

    def settle(self) -> None:
        """Wait for the work in the background, and for what it would do in quiet times; what it raised is raised here."""
        self._finish()
        if self._worker is not None:
            self._background(self._rest).result()

    def _finish(self) -> None:
        if self._work is not None:
            self._work.result()

    def merge(self) -> None:
        """Make one segment of all, and wait for it. The one worker merges: two at a time could take up the same segment."""
        self._background(self._merge).result()

    def _merge(self, inputs: Sequence[Segment] | None = None) -> None:
        """Make one segment of `inputs`, all segments if not given. Runs beside matching and changes."""
        with self.lock:
            self._pack()
            before = self.snapshot
        inputs = list(before.segments if inputs is None else inputs)
        live = [segment.live(before.seq) for segment in inputs]
        kept = [(segment.rows().take(rows), segment, rows) for segment, rows in zip(inputs, live, strict=True) if len(rows)]
        merged = (
            [Segment.build(self.schema, concat_rows([rows for rows, _, _ in kept]), self.statistics, before.seq)] if kept else []
        )
        with self.lock:
            for _, segment, rows in kept:
                self._carry_deaths(segment, rows, merged[0])
            for home in (home for segment in inputs for home in segment.homes.values()):
                self.work.add(home.stats.candidates, home.stats.matches)
            self.snapshot = self._with_merged(self.snapshot, inputs, merged)
            self._packed = self._with_merged(self._packed, inputs, merged)
            self._found = (None, self.snapshot, (None, ABSENT))

    @staticmethod
    def _with_merged(snapshot: Snapshot, inputs: Sequence[Segment], merged: Sequence[Segment]) -> Snapshot:
        return Snapshot((*merged, *(segment for segment in snapshot.segments if segment not in inputs)), snapshot.seq)

    def _carry_deaths(self, segment: Segment, rows: NDArray[np.int64], merged: Segment) -> None:
        """Bury in `merged` what was removed from `segment` while the merge ran."""
        for ordinal in rows[~segment.is_live(rows, self.snapshot.seq)]:
            there = merged.names.find(segment.names[int(ordinal)])
            merged.bury(there, int(segment.died[ordinal]) + segment.born)

    def close(self) -> None:
        with self.lock:
            self._closed = True
            if self._quiet is not None:
                self._quiet.cancel()
        if self._worker is not None:
            self._worker.shutdown(wait=True)
