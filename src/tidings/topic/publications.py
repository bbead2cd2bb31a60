"""Events that are published, in order, with the instant of each: as columns where they came so, else a single one as an object."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.match.store.hits import Hits
from tidings.match.store.reader import Reader
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch
from tidings.model.door.event import Event
from tidings.model.filter.clause import Values
from tidings.topic.live_events import LiveEvents
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

    def values(self, row: int) -> Values: ...

    def events(self) -> list[Event]:
        """As objects."""

    def hits(self, reader: Reader, clock: NDArray[np.int64]) -> Hits:
        """Who hears of them, when the clock shows that, but for those that are nothing but an ideal point."""

    def join(self, live: LiveEvents) -> None:
        """Put them among the live ones."""


class PublishedBatch:
    def __init__(self, batch: EventBatch, now: int, given: bool) -> None:
        """All are published `now` if that was `given`; else each at its own time, and now if it has none."""
        self.batch = batch
        self.ids = batch.ids
        self.at = np.full(len(batch), now) if given else np.where(batch.time == NONE, now, batch.time)
        self.expires = np.where(batch.expires == NONE, NEVER, batch.expires)

    def __len__(self) -> int:
        return len(self.batch)

    def column(self, name: str) -> NDArray[np.float64]:
        return self.batch.numbers(name)

    def values(self, row: int) -> Values:
        return self.batch.values(row)

    def events(self) -> list[Event]:
        return self.batch.some_events(np.arange(len(self.batch)))

    def hits(self, reader: Reader, clock: NDArray[np.int64]) -> Hits:
        return reader.match(self.batch, at=clock, near=False)

    def join(self, live: LiveEvents) -> None:
        live.put_batch(self.batch)


class PublishedEvent:
    def __init__(self, event: Event, now: int, given: bool) -> None:
        self.event = event
        self.at = np.array([now if given or event.time is None else event.time])
        self.expires = np.array([NEVER if event.expires is None else event.expires])

    def __len__(self) -> int:
        return 1

    @property
    def ids(self) -> list[str]:
        return [self.event.id]

    def column(self, name: str) -> NDArray[np.float64]:
        return np.array([self.event.values.get(name, np.nan)], np.float64)

    def values(self, row: int) -> Values:
        return self.event.values

    def events(self) -> list[Event]:
        return [self.event]

    def hits(self, reader: Reader, clock: NDArray[np.int64]) -> Hits:
        return reader.match_one(self.event.values, int(clock[0]), near=False)

    def join(self, live: LiveEvents) -> None:
        live.put(self.event)
