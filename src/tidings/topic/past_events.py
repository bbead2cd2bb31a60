"""Events of the past, as tables of any form that are read where they are asked about, in the order in which they were published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.errors import BulkError, EventError
from tidings.match.answers.notifications import Part
from tidings.match.store.hits import Found, Hits
from tidings.match.store.reader import Reader
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.arrow import TableReader
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch, events_from_arrow, plain_table
from tidings.model.door.event import Event
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema
from tidings.topic.live.live_events import LiveEvents
from tidings.topic.publications import plain_part
from tidings.windows.memory import NEVER

MARKS = ("time", "expires", "deleted")
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Past:
    """Tables, laid end to end; `order` are the rows that count, as they were published, and `at` is when each was, or NONE. `again`
    if they were read before."""

    tables: list[pa.Table]
    order: Rows
    at: NDArray[np.int64]
    again: bool = False

    @property
    def before(self) -> int:
        """An instant before all."""
        return int(self.at[self.at != NONE].min(initial=0)) - 1

    def between(self, since: int, until: int) -> Past:
        """Those after `since` and up to `until`, in order of time; what has no time comes first."""
        at = np.where(self.at == NONE, since + 1, self.at)
        rows = np.flatnonzero((at > since) & (at <= until))
        rows = rows[np.argsort(at[rows], kind="stable")]
        return Past(self.tables, self.order[rows], at[rows], self.again)

    def place(self, row: int) -> tuple[pa.Table, int]:
        """The table of one that counts, and its row there."""
        first, number = 0, int(self.order[row])
        for table in self.tables:
            if number < first + len(table):
                return table, number - first
            first += len(table)
        raise IndexError(row)

    def read(self, schema: Schema, vocabularies: Vocabularies, key: str | None, own_time: bool = False) -> PastEvents:
        """With the attributes that `schema` has; there may be more in the tables. `at` says when each was published, so an event's
        own time is only read if it is asked for."""
        named = {"id" if key is None else key, *schema, *MARKS} - (set() if own_time else {"time"})
        read = [table.select([name for name in table.column_names if name in named]) for table in self.tables]
        return PastEvents([events_from_arrow(schema, vocabularies, table, key=key, again=self.again) for table in read], self)


def given_past(table: object, now: int) -> Past:
    """A table of past events by its own `time`; what has none is of now."""
    plain = plain_table(table, EventError)
    at = np.full(len(plain), now)
    if "time" in plain.column_names:
        reader = TableReader(plain, EventError)
        own = reader.times("time")
        if reader.refused:
            raise BulkError("events", reader.refused)
        at = np.where(own == NONE, now, own)
    return Past([plain], np.arange(len(plain)), at)


class PastEvents:
    """`topic.publications.Publications` of several batches."""

    def __init__(self, parts: list[EventBatch], past: Past) -> None:
        self._parts = parts
        self._order = past.order
        self._first = np.cumsum([0, *(len(part) for part in parts)])
        self.at = past.at
        self.ids = pa.concat_arrays([pa.array([], pa.string()), *(part.ids.cast(pa.string()) for part in parts)]).take(
            pa.array(past.order)
        )
        expires = np.concatenate([np.empty(0, np.int64), *(part.expires for part in parts)])[past.order]
        self.expires = np.where(expires == NONE, NEVER, expires)

    def __len__(self) -> int:
        return len(self._order)

    def column(self, name: str) -> NDArray[np.float64]:
        return np.concatenate([np.empty(0), *(part.numbers(name) for part in self._parts)])[self._order]

    def groups(self, name: str) -> NDArray[np.int64]:
        return np.concatenate([np.empty(0, np.int64), *(part.groups(name) for part in self._parts)])[self._order]

    def _place(self, row: int) -> tuple[EventBatch, int]:
        part = int(np.searchsorted(self._first, self._order[row], side="right")) - 1
        return self._parts[part], int(self._order[row] - self._first[part])

    def values(self, row: int) -> Values:
        part, place = self._place(row)
        return part.values(place)

    def event(self, row: int) -> Event:
        part, place = self._place(row)
        (event,) = part.some_events(np.array([place]))
        return event

    def events(self) -> list[Event]:
        made = [event for part in self._parts for event in part.some_events(np.arange(len(part)))]
        return [made[row] for row in self._order.tolist()]

    def some_events(self, rows: Rows) -> list[Event]:
        return [self.event(row) for row in rows.tolist()]

    def hits(self, reader: Reader, clock: int) -> Hits:
        """Each batch is asked by itself, and what was found put in the order of all."""
        place = np.full(int(self._first[-1]), -1, np.int32)
        place[self._order] = np.arange(len(self._order), dtype=np.int32)
        shows = np.zeros(len(place), np.int64)
        shows[self._order] = np.maximum.accumulate(np.maximum(self.at, clock))
        found: list[Found] = []
        for first, part in zip(self._first.tolist(), self._parts, strict=False):
            for one in reader.match(part, at=shows[first : first + len(part)], near=False):
                event = place[one.event + first]
                order = np.argsort(event, kind="stable")
                order = order[event[order] >= 0]
                found.append(Found(one.source, event[order], one.ordinal[order], one.score[order], one.best))
        return found

    def plain(self, hits: Hits) -> tuple[NDArray[np.integer], Part] | None:
        return plain_part(self.ids, self.at, hits)

    def join(self, live: LiveEvents, first: int) -> None:
        raise NotImplementedError("what is past does not come to life")
