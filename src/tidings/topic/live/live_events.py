"""The live events of a topic: what `search` and `replay` look through. An event is live while the clock is before its `expires`.

They come in chunks: a published batch stays the columns that it was, single events are objects, CHUNK of them together. Every
event has a *number*, in order of coming; `_number` has it by id, and a chunk's rows have the numbers from its `first` on. An event
becomes an object when somebody asks for it. A chunk that is mostly gone is copied, one that is all gone let go.

What came since the last search is its *tail*; a search asks the definition of a tail of up to TAIL events and puts a longer one
into an `MOEventTree`, chunk by chunk. So whoever publishes and never searches pays for no index, and for few events nothing is
compiled. The codes of their strings are their own: a topic's vocabularies know only the words that subscriptions ask for, and a
search may ask for any. The tree's steps are measured on the events themselves, and the number of its cells follows from how many
there are and how wide the last searches were, anew each time there are GROWTH times as many.

Expiry: each chunk has its rows in order of it, and a heap has the next instant of each chunk.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.index.motree.event_tree import MOEventTree
from tidings.index.motree.partition import value_cell_counts
from tidings.match.store.hits import LONG_AGO, NEVER
from tidings.model.columns.arrays import ClauseColumns, Vocabularies, encode_clauses
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch, events_to_arrow
from tidings.model.columns.written import Writer
from tidings.model.door.event import Event
from tidings.model.filter.clause import Clause
from tidings.model.values.schema import Schema
from tidings.topic.live.live_chunks import Batch, Chunk, Singles, joined
from tidings.topic.live.tree_axes import event_axes, searched_widths

CHUNK = 1024
MANY, LARGEST = 8, 1 << 20
"""Chunks from which on some are joined, and the most rows of one."""
TAIL = 256
FIRST, GROWTH = 1024, 8
HEIGHT, REMEMBERED = 3, 64
LARGEST_NAME = 2**31 - 1
"""Of an event in the tree."""
NOT_KNOWN = (LONG_AGO, LONG_AGO)
"""Of an event that an earlier release kept: when it was published."""
_NO_ROWS = np.empty(0, np.int64)


class LiveEvents:
    def __init__(self, schema: Schema) -> None:
        self._schema, self._write = schema, Writer(schema)
        self._number: dict[str, int] = {}
        self._chunks: list[Chunk] = []
        self._firsts: list[int] = []
        self._next = 0
        self._expiry: list[tuple[int, int]] = []
        self._vocabularies = Vocabularies(schema)
        self._searched: deque[ClauseColumns] = deque(maxlen=REMEMBERED)
        self._measured_at = FIRST
        self._tree: MOEventTree | None = None
        self._base = self._indexed = 0
        """the number that the tree calls 0, and the first that it has not"""
        self.replaced: list[int] | None = None
        """as which publications those came that others have replaced since, where somebody keeps account of it"""

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, id: str) -> bool:
        return id in self._number

    def get(self, id: str) -> Event | None:
        number = self._number.get(id)
        if number is None:
            return None
        chunk = self._chunk_of(number)
        assert chunk is not None
        (event,) = chunk.events(np.array([number - chunk.first]))
        return event

    def __iter__(self) -> Iterator[Event]:
        for chunk in self._chunks:
            yield from chunk.events(chunk.living())

    def __deepcopy__(self, memo: object) -> LiveEvents:
        """The same events, without an index of them."""
        made = LiveEvents(self._schema)
        made._number, made._next = dict(self._number), self._next
        made._chunks, made._firsts, made._expiry = (
            [chunk.copied() for chunk in self._chunks],
            list(self._firsts),
            list(self._expiry),
        )
        return made

    def published(self, id: str) -> tuple[int, int]:
        """When a live event was published, and as the how-manieth."""
        number = self._number.get(id)
        chunk = None if number is None else self._chunk_of(number)
        return NOT_KNOWN if number is None or chunk is None else chunk.published(number - chunk.first)

    def past(self, key: str | None) -> tuple[list[pa.Table], NDArray[np.int64], NDArray[np.int64]]:
        """Tables that hold them, and maybe others; the live rows of these, laid end to end, in the order in which they were
        published; and when each was, NONE where nobody knows."""
        tables, rows, at, nth, first = [], [_NO_ROWS], [_NO_ROWS], [_NO_ROWS], 0
        for chunk in self._chunks:
            living = chunk.living()
            tables.append(chunk.table(key))
            rows.append(living + first)
            at.append(chunk.at_of(living))
            nth.append(chunk.nth_of(living))
            first += len(chunk)
        when, order = np.concatenate(at), np.argsort(np.concatenate(nth), kind="stable")
        return tables, np.concatenate(rows)[order], np.where(when == LONG_AGO, NONE, when)[order]

    def put(self, event: Event, at: int = LONG_AGO, nth: int = LONG_AGO) -> None:
        """It was published at this instant, as the nth."""
        self._replace(event.id)
        if not self._chunks or not isinstance(self._chunks[-1], Singles) or len(self._chunks[-1]) >= CHUNK:
            self._append(Singles(self._next, self._schema))
        last = self._chunks[-1]
        assert isinstance(last, Singles)
        last.append(event, at, nth)
        self._number[event.id] = self._next
        if event.expires is not None:
            self._expire_at(event.expires, self._next)
        self._next += 1

    def put_batch(self, batch: EventBatch, at: NDArray[np.int64], nth: NDArray[np.int64]) -> None:
        """Events of distinct ids. Nothing is made for each but its place in the dict."""
        ids = batch.ids.to_pylist()
        if not self._number.keys().isdisjoint(ids):
            for id in ids:
                self._replace(id)
        chunk = Batch(self._next, batch, at, nth)
        self._append(chunk)
        self._number.update(zip(ids, range(chunk.first, chunk.end), strict=True))
        self._next = chunk.end
        if len(chunk.due):
            self._expire_at(chunk.next_expiry, chunk.first)

    def _replace(self, id: str) -> None:
        if id in self._number:
            if self.replaced is not None:
                self.replaced.append(self.published(id)[1])
            self.remove(id)

    def _expire_at(self, instant: int, number: int) -> None:
        """Entries of what was replaced or removed are dropped when they are most of all."""
        heapq.heappush(self._expiry, (instant, number))
        if len(self._expiry) > 2 * len(self) + CHUNK:
            chunks = [(until, number, self._chunk_of(number)) for until, number in self._expiry]
            self._expiry = [
                (until, number)
                for until, number, chunk in chunks
                if isinstance(chunk, Batch) or (chunk is not None and not chunk.is_gone(number - chunk.first))
            ]
            heapq.heapify(self._expiry)

    def _append(self, chunk: Chunk) -> None:
        if self._chunks and self._chunks[-1].dead == len(self._chunks[-1]):
            self._drop(self._chunks[-1])
        self._chunks.append(chunk)
        self._firsts.append(chunk.first)

    def _chunk_of(self, number: int) -> Chunk | None:
        """None if all of it is gone."""
        place = bisect_right(self._firsts, number) - 1
        return self._chunks[place] if place >= 0 and number < self._chunks[place].end else None

    def remove(self, id: str) -> None:
        number = self._number.pop(id, None)
        if number is None:
            return
        if number < self._indexed:
            assert self._tree is not None
            self._tree.delete(np.array([number - self._base], np.int32))
        chunk = self._chunk_of(number)
        assert chunk is not None
        chunk.bury(number - chunk.first)
        if 4 * chunk.dead >= 3 * max(len(chunk), CHUNK):
            self._shrink(chunk)
        elif chunk.dead == len(chunk) and chunk is not self._chunks[-1]:
            self._drop(chunk)

    def _drop(self, chunk: Chunk) -> None:
        place = bisect_right(self._firsts, chunk.first) - 1
        del self._chunks[place], self._firsts[place]

    def _shrink(self, chunk: Chunk) -> None:
        """What is left of it is put anew."""
        rows = chunk.living()
        self._drop(chunk)
        if not len(rows):
            return
        if self._tree is not None:
            held = rows[chunk.first + rows < self._indexed]
            self._tree.delete((chunk.first + held - self._base).astype(np.int32))
        left = chunk.events(rows)
        for event in left:
            del self._number[event.id]
        if isinstance(chunk, Batch):
            self.put_batch(chunk.rows_alone(rows), chunk.at_of(rows), chunk.nth_of(rows))
        else:
            for event, row in zip(left, rows.tolist(), strict=True):
                self.put(event, *chunk.published(row))

    @property
    def next_expiry(self) -> int:
        """None of them ends before it."""
        return self._expiry[0][0] if self._expiry else NEVER

    def expire(self, time: int) -> list[tuple[int, str]]:
        """Drop what is no longer live at `time`: (instant, id) of each, in the order of expiry."""
        gone: list[tuple[int, str]] = []
        while self._expiry and self._expiry[0][0] <= time:
            instant, number = heapq.heappop(self._expiry)
            chunk = self._chunk_of(number)
            if isinstance(chunk, Batch):
                due = [(row, until, id) for row, until, id in chunk.take_expired(time)]
                gone += [(until, id) for row, until, id in due if self._number.get(id) == chunk.first + row]
                if chunk.next_expiry != NEVER:
                    self._expire_at(chunk.next_expiry, chunk.first)
            elif chunk is not None:
                (event,) = chunk.events(np.array([number - chunk.first]))
                if self._number.get(event.id) == number:
                    gone.append((instant, event.id))
        for _, id in gone:
            self.remove(id)
        return sorted(gone)

    def ended(self, time: int) -> set[str]:
        """Of the live events, those that are no longer so at `time`."""
        if not self._expiry or self._expiry[0][0] > time:
            return set()
        return {event.id for event in self if not is_live(event, time)}

    def search(self, clauses: Iterable[Clause], time: int) -> list[Event]:
        """The live events that satisfy any of the clauses, by id.

        The tree is asked for a time before all: it drops what has expired by then, and a search may look ahead of the clock.
        """
        clauses = list(clauses)
        if self._next - self._indexed > TAIL:
            self._index_tail()
        found = {
            event.id: event
            for chunk in self._chunks_since(self._indexed)
            for event in chunk.events(chunk.living(self._indexed))
            if is_live(event, time) and any(clause.holds(self._schema, event.values) for clause in clauses)
        }
        for clause in clauses if self._tree is not None else ():
            assert self._tree is not None
            columns = encode_clauses(self._schema, self._vocabularies, [clause], [0])
            self._searched.append(columns)
            for event in self._events(self._tree.search(columns, LONG_AGO)):
                if is_live(event, time) and all(residue.test(event.values) for residue in clause.residue):
                    found[event.id] = event
        return [found[id] for id in sorted(found)]

    def search_table(self, clauses: Sequence[Clause], time: int) -> pa.Table:
        """The same as a table; where a tree is asked one thing and batches answer, without an object an event."""
        if len(clauses) == 1 and not clauses[0].residue and self._tree is not None and self._next == self._indexed:
            columns, parts = encode_clauses(self._schema, self._vocabularies, clauses, [0]), []
            self._searched.append(columns)
            for chunk, rows in self._rows(self._tree.search(columns, LONG_AGO)):
                read = chunk.read() if isinstance(chunk, Batch) else None
                if read is None:
                    break
                parts.append((read, rows[(read.expires[rows] == NONE) | (read.expires[rows] > time)]))
            else:
                if parts:
                    return self._write(parts)
        return events_to_arrow(self._schema, self.search(clauses, time))

    def _events(self, names: NDArray[np.int32]) -> Iterator[Event]:
        for chunk, rows in self._rows(names):
            yield from chunk.events(rows)

    def _rows(self, names: NDArray[np.int32]) -> Iterator[tuple[Chunk, NDArray[np.int64]]]:
        """Where these events of the tree lie."""
        numbers, at = np.sort(names.astype(np.int64) + self._base), 0
        while at < len(numbers):
            chunk = self._chunks[bisect_right(self._firsts, numbers[at]) - 1]
            end = int(numbers.searchsorted(chunk.end))
            yield chunk, numbers[at:end] - chunk.first
            at = end

    def _chunks_since(self, number: int) -> Sequence[Chunk]:
        return self._chunks[max(bisect_right(self._firsts, number) - 1, 0) :]

    def _index_tail(self) -> None:
        if not len(self):
            self._indexed = self._next
            return
        if len(self._chunks) > MANY:
            self._join_chunks()
        if self._tree is None or len(self) >= self._measured_at or self._next - self._base >= LARGEST_NAME:
            while len(self) >= self._measured_at:
                self._measured_at *= GROWTH
            self._measure()
        assert self._tree is not None
        for chunk in self._chunks_since(self._indexed):
            rows = chunk.living(self._indexed)
            if len(rows):
                names = (chunk.first + rows - self._base).astype(np.int32)
                self._tree.insert(names, chunk.encoded(self._vocabularies, rows), chunk.expires(rows))
        self._indexed = self._next

    def _join_chunks(self) -> None:
        """Batches of like sizes become one, so that what a search finds lies in few places; each event is copied a few times at
        most, since what is joined is never much smaller than what it is joined to."""
        groups: list[tuple[int, list[Chunk]]] = []
        for chunk in self._chunks:
            groups.append((len(chunk), [chunk]))
            while len(groups) > 1:
                (before, some), (size, others) = groups[-2:]
                first = others[0]
                if before > 2 * size or before + size > LARGEST or not isinstance(first, Batch) or not first.follows(some[-1]):
                    break
                groups[-2:] = [(before + size, some + others)]
        self._chunks = [joined(group) if len(group) > 1 else group[0] for _, group in groups]
        self._firsts = [chunk.first for chunk in self._chunks]

    def _measure(self) -> None:
        """A new, empty tree, with steps measured on the events there are."""
        self._base = self._indexed = self._firsts[0]
        parts = [chunk.encoded(self._vocabularies, chunk.living()) for chunk in self._chunks]
        # Words are not measured.
        sample = replace(parts[0], value=np.concatenate([p.value for p in parts]), box=np.concatenate([p.box for p in parts]))
        axes = event_axes(self._schema, self._vocabularies, sample)
        stacked = axes[:HEIGHT]
        counts = value_cell_counts(len(self), searched_widths(stacked, sample, list(self._searched)))
        cells = counts + [1] * (len(axes) - len(stacked))
        self._tree = MOEventTree(axes, len(self._schema.ranges) + 2, HEIGHT, cells)


def is_live(event: Event, time: int) -> bool:
    return event.expires is None or time < event.expires
