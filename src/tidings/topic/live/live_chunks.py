"""Chunks of live events: a published batch, as the columns that it came in, or single events, as objects.

A chunk's rows have the numbers from `first` on. `gone` marks rows that are no longer live, None while all are.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.match.store.hits import NEVER
from tidings.model.columns.arrays import EventColumns, Vocabularies, encode_events
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.event_columns import ReadEvents
from tidings.model.columns.tables import EventBatch, events_from_arrow, events_to_arrow, short_column
from tidings.model.door.event import Event
from tidings.model.values.limits import recovering
from tidings.model.values.schema import Schema

Rows = NDArray[np.int64]


class Chunk:
    def __init__(self, first: int) -> None:
        self.first = first
        self.gone: NDArray[np.bool_] | None = None
        self.dead = 0

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def end(self) -> int:
        """The number after its last."""
        return self.first + len(self)

    def copied(self) -> Self:
        """To go on from by itself; what never changes is shared."""
        made = copy.copy(self)
        made.gone = None if self.gone is None else self.gone.copy()
        return made

    def bury(self, row: int) -> None:
        if self.gone is None or row >= len(self.gone):
            marks = np.zeros(len(self), np.bool_)
            if self.gone is not None:
                marks[: len(self.gone)] = self.gone
            self.gone = marks
        self.gone[row] = True
        self.dead += 1

    def is_gone(self, row: int) -> bool:
        return self.gone is not None and row < len(self.gone) and bool(self.gone[row])

    def living(self, since: int = 0) -> Rows:
        """The rows that are live, from number `since` on."""
        rows = np.arange(max(since - self.first, 0), len(self))
        if self.gone is None:
            return rows
        dead = rows[rows < len(self.gone)]
        return np.setdiff1d(rows, dead[self.gone[dead]], assume_unique=True)

    def events(self, rows: Rows) -> list[Event]:
        raise NotImplementedError

    def encoded(self, vocabularies: Vocabularies, rows: Rows) -> EventColumns:
        """In codes of vocabularies to which all strings are added."""
        raise NotImplementedError

    def expires(self, rows: Rows) -> NDArray[np.int64]:
        """NEVER for none."""
        raise NotImplementedError

    def at_of(self, rows: Rows) -> NDArray[np.int64]:
        """When they were published."""
        raise NotImplementedError

    def nth_of(self, rows: Rows) -> NDArray[np.int64]:
        """As the how-manieth each was published."""
        raise NotImplementedError

    def published(self, row: int) -> tuple[int, int]:
        """Both of one."""
        raise NotImplementedError

    def table(self, key: str | None) -> pa.Table:
        """All rows, dead or alive, in a form that is read as these events."""
        raise NotImplementedError


class Singles(Chunk):
    def __init__(self, first: int, schema: Schema) -> None:
        super().__init__(first)
        self._schema = schema
        self._events: list[Event] = []
        self._published: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._events)

    def copied(self) -> Self:
        made = super().copied()
        made._events, made._published = list(self._events), list(self._published)
        return made

    def append(self, event: Event, at: int, nth: int) -> None:
        self._events.append(event)
        self._published.append((at, nth))

    def at_of(self, rows: Rows) -> NDArray[np.int64]:
        return np.array([self._published[row][0] for row in rows.tolist()], np.int64)

    def nth_of(self, rows: Rows) -> NDArray[np.int64]:
        return np.array([self._published[row][1] for row in rows.tolist()], np.int64)

    def published(self, row: int) -> tuple[int, int]:
        return self._published[row]

    def events(self, rows: Rows) -> list[Event]:
        return [self._events[row] for row in rows.tolist()]

    def encoded(self, vocabularies: Vocabularies, rows: Rows) -> EventColumns:
        events = self.events(rows)
        for event in events:
            for name, vocabulary in vocabularies.categories.items():
                if name in event.values:
                    vocabulary.add(event.values[name])
            for word in event.values.get(self._schema.words or "", ()):
                vocabularies.words.add(word)
        return encode_events(self._schema, vocabularies, [event.values for event in events])

    def expires(self, rows: Rows) -> NDArray[np.int64]:
        return np.array([NEVER if event.expires is None else event.expires for event in self.events(rows)], np.int64)

    def table(self, key: str | None) -> pa.Table:
        return events_to_arrow(self._schema, self._events, key)


def joined(chunks: Sequence[Chunk]) -> Batch:
    """Batches that follow each other as one, with the same numbers."""
    batches = [chunk for chunk in chunks if isinstance(chunk, Batch)]
    table = pa.concat_tables([batch.table(None) for batch in batches]).combine_chunks()
    rows = [np.arange(len(batch)) for batch in batches]
    at = np.concatenate([batch.at_of(some) for batch, some in zip(batches, rows, strict=True)])
    nth = np.concatenate([batch.nth_of(some) for batch, some in zip(batches, rows, strict=True)])
    made = Batch(batches[0].first, batches[0].read_again(table), at, nth)
    made.dead = sum(batch.dead for batch in batches)
    if made.dead:
        made.gone = np.concatenate([np.zeros(len(b), np.bool_) if b.gone is None else b.gone for b in batches])
    return made


class Batch(Chunk):
    """`due` are the rows that expire, in order of it, of which the first `expired` are done with."""

    def __init__(self, first: int, batch: EventBatch, at: NDArray[np.int64], nth: NDArray[np.int64]) -> None:
        super().__init__(first)
        self._batch = batch.without_codes()
        # Most batches are of one instant or of their events' own, and numbered one after the other.
        self._at = self._batch.time if np.array_equal(at, self._batch.time) else short_column(at)
        counted = len(nth) > 0 and bool((nth == np.arange(nth[0], nth[0] + len(nth))).all())
        self._nth = range(int(nth[0]), int(nth[0]) + len(nth)) if counted else nth
        order = np.argsort(batch.expires, kind="stable")
        self.due = order[np.count_nonzero(batch.expires == NONE) :].astype(np.int32) if (batch.expires != NONE).any() else order[:0]
        self.expired = 0

    def __len__(self) -> int:
        return len(self._batch)

    @property
    def next_expiry(self) -> int:
        return int(self._batch.expires[self.due[self.expired]]) if self.expired < len(self.due) else NEVER

    def take_expired(self, time: int) -> Iterator[tuple[int, int, str]]:
        """(row, instant, id) of what expires up to `time` and was not yet taken, in order."""
        while self.next_expiry <= time:
            row = int(self.due[self.expired])
            yield row, self.next_expiry, self._batch.ids[row].as_py()
            self.expired += 1

    def at_of(self, rows: Rows) -> NDArray[np.int64]:
        return self._at[rows]

    def nth_of(self, rows: Rows) -> NDArray[np.int64]:
        return rows + self._nth.start if isinstance(self._nth, range) else self._nth[rows]

    def published(self, row: int) -> tuple[int, int]:
        return int(self._at[row]), int(self._nth[row])

    def read(self) -> ReadEvents | None:
        """As `EventBatch.read`."""
        return self._batch.read

    def follows(self, before: Chunk) -> bool:
        """Whether both can be one."""
        return isinstance(before, Batch) and before.end == self.first and before._batch.table.schema == self._batch.table.schema

    def read_again(self, table: pa.Table) -> EventBatch:
        """A table of what was read before."""
        with recovering():
            return events_from_arrow(self._batch.schema, Vocabularies(self._batch.schema), table, self._batch.key)

    def rows_alone(self, rows: Rows) -> EventBatch:
        """A batch of some of them."""
        return self._batch.take(rows)

    def events(self, rows: Rows) -> list[Event]:
        return self._batch.some_events(rows)

    def encoded(self, vocabularies: Vocabularies, rows: Rows) -> EventColumns:
        return self._batch.encoded_anew(vocabularies, rows)

    def expires(self, rows: Rows) -> NDArray[np.int64]:
        expires = self._batch.expires[rows]
        return np.where(expires == NONE, NEVER, expires)

    def table(self, key: str | None) -> pa.Table:
        return self._batch.own_table()
