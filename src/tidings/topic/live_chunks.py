"""Chunks of live events: a published batch, as the columns that it came in, or single events, as objects.

A chunk's rows have the numbers from `first` on. `gone` marks rows that are no longer live, None while all are.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.match.store.hits import NEVER
from tidings.model.columns.arrays import EventColumns, Vocabularies, encode_events
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch, events_to_arrow
from tidings.model.door.event import Event
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

    def table(self, key: str | None) -> pa.Table:
        """All rows, dead or alive, in a form that is read as these events."""
        raise NotImplementedError


class Singles(Chunk):
    def __init__(self, first: int, schema: Schema) -> None:
        super().__init__(first)
        self._schema = schema
        self._events: list[Event] = []

    def __len__(self) -> int:
        return len(self._events)

    def copied(self) -> Self:
        made = super().copied()
        made._events = list(self._events)
        return made

    def append(self, event: Event) -> None:
        self._events.append(event)

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


class Batch(Chunk):
    """`due` are the rows that expire, in order of it, of which the first `expired` are done with."""

    def __init__(self, first: int, batch: EventBatch) -> None:
        super().__init__(first)
        self._batch = batch.without_codes()
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
        name, table = "id" if key is None else key, self._batch.table
        named = [column for column in table.column_names if column != name]
        return table.select(named).append_column(name, self._batch.ids)
