"""What the owners of window lists have in common: slots and their names, the clock, room, and state that survives a restart.

`Windows` (lists of matches, in `window_memory`) and `BallWindows` (lists of ideal points, in `near_memory`) are such owners.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from tidings.errors import SubscriptionError
from tidings.model.values.window import Window
from tidings.rank.queue_length import WORST_BIRTHS, queue_length
from tidings.windows.memory import (
    ALL,
    BEGINNING,
    CLOCK,
    NEVER,
    NOTICE,
    NUMBER,
    PROMOTED,
    STORED,
    WRITTEN,
    Records,
)

WHY = ("entered", "promoted")
NOTICED = ("slot", "event", "relevance", "rank", "why", "at")


class Entry(NamedTuple):
    subscription: str
    event: str
    relevance: float
    rank: int
    why: str
    at: int


_entry = partial(tuple.__new__, Entry)
"""Of a tuple of its fields: `Entry(*fields)` takes three times as long, and notifications come by the hundred."""


class EntryColumns(NamedTuple):
    """Notifications in order of `at`, in any order within an instant; `slot` is the subscription, see `Windows.slot`."""

    slot: NDArray[np.int32]
    event: pa.StringArray
    relevance: NDArray[np.float64]
    rank: NDArray[np.int64]
    promoted: NDArray[np.bool_]
    at: NDArray[np.int64]


class Candidate(NamedTuple):
    event: str
    relevance: float
    time: int
    expires: int
    number: int
    told: bool


class Activation(NamedTuple):
    k: int | None
    window: Window | None
    since: int
    error: float | None


class RankedLists(ABC):
    _memory: Any
    """A `Memory` or a `NearMemory`: both have events, id_bytes, lists, out and meter."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._names: list[str] = []
        self._free: list[int] = []
        self._activations: dict[str, Activation] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._slots

    @property
    def clock(self) -> int | None:
        """The latest time seen; None before the first act."""
        clock = int(self._memory.meter[CLOCK])
        return None if clock == BEGINNING else clock

    @property
    def publications(self) -> int:
        return int(self._memory.meter[NUMBER])

    def slot(self, subscription: str) -> int:
        """The number by which batches name a subscription, valid until it is deactivated."""
        if subscription not in self._slots:
            raise SubscriptionError(f"subscription {subscription!r} has no window here; activate it first")
        return self._slots[subscription]

    def name(self, slot: int) -> str:
        return self._names[slot]

    def top(self, subscription: str, time: int) -> list[tuple[str, float]]:
        """The list as it stands at `time` (or at the clock, if that is later): best first."""
        slot = self.slot(subscription)
        k = self._memory.lists["k"][self._row(slot)]
        if k == ALL:
            raise SubscriptionError(f"subscription {subscription!r} has no k: it hears every match and keeps no list")
        now = max(time, int(self._memory.meter[CLOCK]))
        return [(c.event, c.relevance) for c in self._candidates(slot, now)[:k]]

    def entries(self, columns: EntryColumns) -> list[Entry]:
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            Entry(self._names[slot], event, relevance, rank, WHY[promoted], at)
            for slot, event, relevance, rank, promoted, at in rows
        ]

    def changed(self) -> set[str]:
        """The subscriptions whose state is not what it was when last asked. The clock and the count change with every act."""
        lists = self._memory.lists
        names = {self._names[slot] for slot in self._slots_at(np.flatnonzero(lists["changed"])).tolist()}
        lists["changed"][:] = 0
        return names

    def state_of(self, subscription: str) -> dict[str, Any]:
        """All that one subscription needs to go on after a restart, as JSON."""
        k, window, since, error = self._activations[subscription]
        candidates = [
            [c.event, c.relevance, c.time, None if c.expires == NEVER else c.expires, c.number, c.told]
            for c in self._candidates(self.slot(subscription), int(self._memory.meter[CLOCK]))
        ]
        span = {} if window is None else {"duration": window.duration, "count": window.count}
        return {"k": k, **span, "since": since, "error": error, "candidates": candidates}

    def state(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "publications": self.publications,
            "subscriptions": {subscription: self.state_of(subscription) for subscription in self._slots},
        }

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._memory)

    def _row(self, slot: int) -> int:
        """Where in `lists` the slot's list lies."""
        return slot

    def _slots_at(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        return rows

    @abstractmethod
    def _candidates(self, slot: int, now: int) -> list[Candidate]:
        """The slot's candidates that live at `now`, best first."""

    @abstractmethod
    def _forget_events(self, wanted: int, wanted_bytes: int) -> int:
        """Keep only events that something refers to, with room for those wanted; how many stay."""

    def _id(self, event: int) -> str:
        start, end = self._memory.events["id_start"][event], self._memory.events["id_end"][event]
        return str(self._memory.id_bytes[start:end].tobytes(), "utf-8")

    def _columns(self, parts: Sequence[Records]) -> EntryColumns:
        out = np.concatenate(parts)
        rank = out["rank"].astype(np.int64)
        return EntryColumns(out["slot"], self._ids(out["event"]), out["relevance"], rank, out["why"] == PROMOTED, out["at"])

    def _entries(self, parts: Sequence[Records]) -> list[Entry]:
        """As `entries(_columns(parts))`, cheaper for few."""
        out = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not len(out):
            return []
        slots, events, relevances, ranks, whys, times = (
            out[field].tolist() for field in ("slot", "event", "relevance", "rank", "why", "at")
        )
        id_of = self._id_of(list(set(events)))
        names, ids = [self._names[slot] for slot in slots], [id_of[event] for event in events]
        rows = zip(names, ids, relevances, ranks, [WHY[why] for why in whys], times, strict=True)
        return list(map(_entry, rows))

    def _id_of(self, events: list[int]) -> dict[int, str]:
        stored, texts = self._memory.events[events], self._memory.id_bytes
        spans = zip(events, stored["id_start"].tolist(), stored["id_end"].tolist(), strict=True)
        return {event: str(texts[start:end], "utf-8") for event, start, end in spans}

    def _ids(self, events: NDArray[np.int32]) -> pa.StringArray:
        """Taken from all that are stored, seen as an Arrow array."""
        stored = self._memory.events[: self._memory.meter[STORED]]
        offsets = np.append(stored["id_start"][:1], stored["id_end"])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._memory.id_bytes)]
        return pa.Array.from_buffers(pa.large_string(), len(stored), buffers).take(pa.array(events)).cast(pa.string())

    def _drain(self) -> Records:
        """What was told so far, when more will be."""
        return self._told().copy()

    def _told(self) -> Records:
        """What was told: to be read before the next act, which writes over it."""
        written = self._memory.meter[WRITTEN]
        self._memory.meter[WRITTEN] = 0
        notices: Records = self._memory.out[:written]
        return notices

    def _widen_out(self) -> None:
        longest = int(self._memory.lists["k"].max()) + 2
        self._memory = self._memory._replace(out=np.zeros(max(2 * len(self._memory.out), longest), NOTICE))

    def _take_slot(self, subscription: str) -> int:
        if self._free:
            slot = self._free.pop()
            self._names[slot] = subscription
        else:
            slot = len(self._names)
            self._names.append(subscription)
        self._slots[subscription] = slot
        return slot

    def _activate(self, subscription: str, activation: Activation) -> int:
        """Take a slot."""
        k, _, _, error = activation
        if subscription in self._slots:
            raise SubscriptionError(f"subscription {subscription!r} is active already; deactivate it first")
        if k is not None and k < 0:
            raise SubscriptionError(f"k is {k}: 0 (nothing), a positive number, or None (everything) is accepted")
        if error is not None and not 0.0 < error < 1.0:
            raise SubscriptionError(f"error is {error}: a probability between 0 and 1, both excluded, is accepted")
        slot = self._take_slot(subscription)
        self._activations[subscription] = activation
        return slot

    def _begin(self, row: int, activation: Activation, view: int) -> None:
        """An empty list; exact ones have views of at most `view`."""
        k, window, since, error = activation
        count = None if window is None else window.count
        duration = None if window is None else window.duration
        values = {
            "k": ALL if k is None else k,
            "duration": NEVER if duration is None else duration,
            "counted": NEVER if count is None else count,
            "since": since,
            "after": self._memory.meter[NUMBER],
            "bounded": bool(error and k),
            "limit": queue_length(k, error, count or WORST_BIRTHS) if error and k else view,
            "changed": 1,
        }
        for field, value in values.items():
            self._memory.lists[field][row] = value

    def _set_clock(self, state: Mapping[str, Any]) -> None:
        self._memory.meter[CLOCK] = BEGINNING if state["clock"] is None else state["clock"]
        self._memory.meter[NUMBER] = state["publications"]

    def _store(self, ids: Sequence[str] | pa.Array, times: ArrayLike, expires: ArrayLike) -> int:
        """Add events, numbered as the next publications; the handle of the first. Those no longer needed are forgotten."""
        strings = ids if isinstance(ids, pa.Array) else pa.array(ids, pa.string())
        offsets = (
            np.frombuffer(strings.buffers()[1], np.int32)[strings.offset : strings.offset + len(strings) + 1]
            if len(strings)
            else np.zeros(1, np.int32)
        )
        length = int(offsets[-1] - offsets[0])
        first, begin = self._room_for_events(len(strings), length)
        if length:
            self._memory.id_bytes[begin : begin + length] = np.frombuffer(strings.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        added = self._memory.events[first : first + len(strings)]
        added["time"], added["expires"] = times, expires
        added["number"] = self._memory.meter[NUMBER] + 1 + np.arange(len(strings))
        added["id_start"] = begin + (offsets[:-1] - offsets[0])
        added["id_end"] = begin + (offsets[1:] - offsets[0])
        self._memory.meter[STORED] += len(strings)
        return first

    def _store_one(self, event: str, time: int, expires: int | None) -> int:
        """As `_store`, for one."""
        name = np.frombuffer(event.encode(), np.uint8)
        first, begin = self._room_for_events(1, len(name))
        end = begin + len(name)
        self._memory.id_bytes[begin:end] = name
        self._memory.events[first] = (time, NEVER if expires is None else expires, self.publications + 1, begin, end)
        self._memory.meter[STORED] += 1
        return first

    def _room_for_events(self, wanted: int, wanted_bytes: int) -> tuple[int, int]:
        """The first free handle and the first free byte of ids, with as many places after them."""
        stored = int(self._memory.meter[STORED])
        begin = int(self._memory.events["id_end"][stored - 1]) if stored else 0
        if stored + wanted <= len(self._memory.events) and begin + wanted_bytes <= len(self._memory.id_bytes):
            return stored, begin
        stored = self._forget_events(wanted, wanted_bytes)
        self._memory.meter[STORED] = stored
        return stored, int(self._memory.events["id_end"][stored - 1]) if stored else 0


def window_of(saved: Mapping[str, Any]) -> Window | None:
    """The window of a saved subscription."""
    duration, count = saved.get("duration"), saved.get("count")
    return None if duration is None and count is None else Window(duration=duration, count=count)
