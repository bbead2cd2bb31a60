"""Events that are published, in order, with the instant of each: as columns where they came so, else a single one as an object."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.match.answers.notifications import MATCHED, Part
from tidings.match.answers.ordering import ROW, match_table
from tidings.match.store.hits import Found, Hits
from tidings.match.store.reader import Reader
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch
from tidings.model.door.event import Event
from tidings.model.filter.clause import Values
from tidings.model.values.groups import group_of
from tidings.topic.live.live_events import LiveEvents
from tidings.windows.memory import NEVER


class Publications(Protocol):
    """`at` is when each is published, `expires` NEVER for none, both in microseconds."""

    at: NDArray[np.int64]
    expires: NDArray[np.int64]

    def __len__(self) -> int: ...

    @property
    def ids(self) -> pa.StringArray | list[str]: ...

    def column(self, name: str) -> NDArray[np.float64]:
        """A Number, Time or Date attribute of all, NaN where it is missing."""

    def groups(self, name: str) -> NDArray[np.int64]:
        """The group of each by its value of an attribute, or by its `id`; 0 where it has none."""

    def values(self, row: int) -> Values: ...

    def events(self) -> list[Event]:
        """As objects."""

    def some_events(self, rows: NDArray[np.int64]) -> list[Event]:
        """Some of them."""

    def hits(self, reader: Reader, clock: int) -> Hits:
        """Who hears of them, when the clock shows that before the first (it does not go back), but for those that are nothing but
        an ideal point."""

    def plain(self, hits: Hits) -> tuple[NDArray[np.integer], Part] | None:
        """Matches of subscriptions without a list, by id within an event, and the rows of their events."""

    def join(self, live: LiveEvents, first: int) -> None:
        """Put them among the live ones, as the publications from `first` on."""


class PublishedBatch:
    def __init__(self, batch: EventBatch, now: int, given: bool, retention: int | None = None) -> None:
        """All are published `now` if that was `given`; else each at its own time, and now if it has none. With a `retention` those
        without an end get one."""
        self.at = np.full(len(batch), now) if given else np.where(batch.time == NONE, now, batch.time)
        if retention is not None:
            batch = batch.ending(np.where(batch.expires == NONE, self.at + retention, batch.expires))
        self.batch = batch
        self.ids = batch.ids
        self.expires = np.where(batch.expires == NONE, NEVER, batch.expires)

    def __len__(self) -> int:
        return len(self.batch)

    def column(self, name: str) -> NDArray[np.float64]:
        return self.batch.numbers(name)

    def groups(self, name: str) -> NDArray[np.int64]:
        return self.batch.groups(name)

    def values(self, row: int) -> Values:
        return self.batch.values(row)

    def events(self) -> list[Event]:
        known = self.batch.objects
        return self.batch.some_events(np.arange(len(self.batch))) if known is None else known

    def some_events(self, rows: NDArray[np.int64]) -> list[Event]:
        known = self.batch.objects
        return self.batch.some_events(rows) if known is None else [known[row] for row in rows.tolist()]

    def hits(self, reader: Reader, clock: int) -> Hits:
        return reader.match(self.batch, at=np.maximum.accumulate(np.maximum(self.at, clock)), near=False)

    def plain(self, hits: Hits) -> tuple[NDArray[np.integer], Part] | None:
        return plain_part(self.ids, self.at, hits)

    def join(self, live: LiveEvents, first: int) -> None:
        live.put_batch(self.batch, self.at, np.arange(first, first + len(self)))


def plain_part(ids: pa.StringArray, at: NDArray[np.int64], hits: Hits) -> tuple[NDArray[np.integer], Part] | None:
    """As `Publications.plain`, of events in columns."""
    if not hits:
        return None
    table = match_table(ids, hits, None)
    row, subscription, event, score = (table[name].combine_chunks() for name in (ROW, "subscription", "event", "score"))
    row = row.to_numpy()
    return row, Part(subscription, event, score.to_numpy(), None, MATCHED, at[row])


def event_group(event: Event, name: str) -> int:
    """As `Publications.groups`, of one."""
    return group_of(event.id if name == "id" else event.values.get(name))


class PublishedEvent:
    def __init__(self, event: Event, now: int, given: bool, retention: int | None = None) -> None:
        at = now if given or event.time is None else event.time
        if retention is not None and event.expires is None:
            event = replace(event, expires=at + retention)
        self.event = event
        self.at = np.array([at])
        self.expires = np.array([NEVER if event.expires is None else event.expires])

    def __len__(self) -> int:
        return 1

    @property
    def ids(self) -> list[str]:
        return [self.event.id]

    def column(self, name: str) -> NDArray[np.float64]:
        return np.array([self.event.values.get(name, np.nan)], np.float64)

    def groups(self, name: str) -> NDArray[np.int64]:
        return np.array([event_group(self.event, name)])

    def values(self, row: int) -> Values:
        return self.event.values

    def events(self) -> list[Event]:
        return [self.event]

    def some_events(self, rows: NDArray[np.int64]) -> list[Event]:
        return [self.event] * len(rows)

    def hits(self, reader: Reader, clock: int) -> Hits:
        return reader.match_one(self.event.values, max(int(self.at[0]), clock), near=False)

    def plain(self, hits: Hits) -> tuple[NDArray[np.integer], Part] | None:
        if not hits:
            return None
        names: HitNames | list[str] = HitNames(hits[0])
        score = hits[0].score
        if len(hits) > 1:
            pairs = sorted(pair for found in hits for pair in zip(HitNames(found).texts(), found.score.tolist(), strict=True))
            names, score = [name for name, _ in pairs], np.array([score for _, score in pairs])
        n = len(score)
        return np.zeros(n, np.int64), Part(names, [self.event.id] * n, score, None, MATCHED, self.at.repeat(n))

    def join(self, live: LiveEvents, first: int) -> None:
        live.put(self.event, int(self.at[0]), first)


class HitNames:
    """Who was found, as names when somebody asks: a source gives the same answer for as long as it is kept."""

    def __init__(self, found: Found) -> None:
        self._source, self._ordinal = found.source, found.ordinal

    def array(self) -> pa.StringArray:
        return self._source.ids(self._ordinal)

    def texts(self) -> list[str]:
        return self._source.names(self._ordinal)
