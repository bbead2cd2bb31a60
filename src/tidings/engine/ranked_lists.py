"""What the owners of window lists have in common: slots and their names, the clock, room, and state that survives a restart.

`Windows` (lists of matches) and `BallWindows` (lists of ideal points) are such owners; the memory is that of `window_memory`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from tidings.engine.window_lists import before, leaving, watch
from tidings.engine.window_memory import (
    ALL,
    BEGINNING,
    CANDIDATE,
    CLOCK,
    LIST,
    NEVER,
    NONE,
    NOTICE,
    NUMBER,
    PROMOTED,
    PRUNES,
    REFILLS,
    STORED,
    TOUCHED,
    USED,
    WRITTEN,
    Records,
    collect_events,
    empty_memory,
    padded,
    repack,
    widened,
)
from tidings.engine.window_passes import advance_to
from tidings.errors import SubscriptionError
from tidings.model.window import Window
from tidings.rank.queue_length import WORST_BIRTHS, queue_length

WHY = ("entered", "promoted")
FEW_IDS = 256


class Entry(NamedTuple):
    subscription: str
    event: str
    relevance: float
    rank: int
    why: str
    at: int


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


class RankedLists:
    def __init__(self, dimensions: int = 0) -> None:
        self._memory = empty_memory(dimensions)
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

    def deactivate(self, subscription: str) -> None:
        slot = self.slot(subscription)
        memory = self._memory
        memory.lists[slot] = np.zeros((), LIST)
        del self._slots[subscription], self._activations[subscription]
        self._free.append(slot)
        watch(memory, slot)

    def advance(self, time: int) -> list[Entry]:
        """The promotions up to and including `time`, each at its exact instant."""
        parts = []
        while not advance_to(self._memory, time):
            parts.append(self._drain())
            self._widen_out()
        return self.entries(self._columns([*parts, self._drain()]))

    def top(self, subscription: str, time: int) -> list[tuple[str, float]]:
        """The list as it stands at `time` (or at the clock, if that is later): best first."""
        slot = self.slot(subscription)
        if self._memory.lists["k"][slot] == ALL:
            raise SubscriptionError(f"subscription {subscription!r} has no k: it hears every match and keeps no list")
        now = max(time, int(self._memory.meter[CLOCK]))
        return [(c.event, c.relevance) for c in self._candidates(slot, now)[: self._memory.lists["k"][slot]]]

    def entries(self, columns: EntryColumns) -> list[Entry]:
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            Entry(self._names[slot], event, relevance, rank, WHY[promoted], at)
            for slot, event, relevance, rank, promoted, at in rows
        ]

    def changed(self) -> set[str]:
        """The subscriptions whose state is not what it was when last asked. The clock and the count change with every act."""
        lists = self._memory.lists
        names = {self._names[slot] for slot in np.flatnonzero(lists["changed"])}
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

    @property
    def stats(self) -> dict[str, int]:
        meter, lists = self._memory.meter, self._memory.lists
        return {
            "subscriptions": len(self),
            "candidates": int(lists["size"].sum()),
            "publications": int(meter[NUMBER]),
            "touched": int(meter[TOUCHED]),
            "refills": int(meter[REFILLS]),
            "prunes": int(meter[PRUNES]),
        }

    def check(self) -> None:
        """Walk every invariant of `window_memory`."""
        memory = self._memory
        lists, places = memory.lists, np.zeros(len(memory.pool), np.int64)
        assert set(self._slots.values()).isdisjoint(self._free)
        for slot in range(len(lists)):
            start, view, size, room = (int(lists[field][slot]) for field in ("start", "viewed", "size", "room"))
            places[start : start + room] += 1
            assert 0 <= view <= size <= room
            assert view <= lists["limit"][slot]
            assert slot in self._slots.values() or (size == 0 and lists["k"][slot] == 0)
            self._check_order(slot)
            self._check_watch(slot)
        assert places.max() <= 1, "two slots share a place"
        for heap in (memory.instants, memory.numbers):
            assert np.array_equal(heap["heap"][heap["place"]], np.arange(len(heap["key"])))
            keys = heap["key"][heap["heap"]]
            assert all(keys[(i - 1) // 2] <= keys[i] for i in range(1, len(keys)))

    def _check_order(self, slot: int) -> None:
        lists, pool = self._memory.lists, self._memory.pool
        start, view, size = int(lists["start"][slot]), int(lists["viewed"][slot]), int(lists["size"][slot])
        for i in range(start + 1, start + size):
            above = min(i, start + view) - 1
            assert before(
                self._memory.events,
                self._memory.id_bytes,
                pool["relevance"][above],
                pool["event"][above],
                pool["relevance"][i],
                pool["event"][i],
            )
        assert size == view or not lists["bounded"][slot]
        assert size == view or view >= lists["k"][slot] or (lists["near"][slot] and lists["edge"][slot] == NONE)

    def _check_watch(self, slot: int) -> None:
        memory, lists = self._memory, self._memory.lists
        depth = lists["limit"][slot] if lists["bounded"][slot] else lists["k"][slot]
        for i in range(min(depth, lists["viewed"][slot])):
            instant, number = leaving(memory.lists[slot], memory.events[memory.pool["event"][lists["start"][slot] + i]])
            assert memory.meter[CLOCK] < memory.instants["key"][slot] <= instant
            assert memory.meter[NUMBER] < memory.numbers["key"][slot] <= number
            assert i >= lists["k"][slot] or memory.pool["told"][lists["start"][slot] + i]

    def _candidates(self, slot: int, now: int) -> list[Candidate]:
        """The slot's candidates that live at `now`, best first."""
        memory = self._memory
        start, size = int(memory.lists["start"][slot]), int(memory.lists["size"][slot])
        result = []
        for place in range(start, start + size):
            event = int(memory.pool["event"][place])
            instant, number = leaving(memory.lists[slot], memory.events[event])
            if instant > now and number > memory.meter[NUMBER]:
                time, expires, published = (int(memory.events[field][event]) for field in ("time", "expires", "number"))
                relevance, told = float(memory.pool["relevance"][place]), bool(memory.pool["told"][place])
                result.append(Candidate(self._id(event), relevance, time, expires, published, told))
        return sorted(result, key=lambda c: (-c.relevance, c.time, c.event, c.number))

    def _id(self, event: int) -> str:
        start, end = self._memory.events["id_start"][event], self._memory.events["id_end"][event]
        return self._memory.id_bytes[start:end].tobytes().decode()

    def _columns(self, parts: Sequence[Records]) -> EntryColumns:
        out = np.concatenate(parts)
        return EntryColumns(out["slot"], self._ids(out["event"]), out["relevance"], out["rank"], out["why"] == PROMOTED, out["at"])

    def _ids(self, events: NDArray[np.int32]) -> pa.StringArray:
        """Few are decoded one by one; many are taken from all that are stored, seen as an Arrow array."""
        if len(events) < FEW_IDS:
            return pa.array([self._id(event) for event in events.tolist()], pa.string())
        stored = self._memory.events[: self._memory.meter[STORED]]
        offsets = np.append(stored["id_start"][:1], stored["id_end"])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._memory.id_bytes)]
        return pa.Array.from_buffers(pa.large_string(), len(stored), buffers).take(pa.array(events)).cast(pa.string())

    def _drain(self) -> Records:
        written = self._memory.meter[WRITTEN]
        self._memory.meter[WRITTEN] = 0
        return self._memory.out[:written].copy()

    def _take_slot(self, subscription: str) -> int:
        if self._free:
            slot = self._free.pop()
            self._names[slot] = subscription
        else:
            slot = len(self._names)
            self._names.append(subscription)
            if slot == len(self._memory.lists):
                self._widen_slots(2 * slot)
        self._slots[subscription] = slot
        return slot

    def _widen_slots(self, length: int) -> None:
        self._memory = self._memory._replace(
            lists=padded(self._memory.lists, length),
            raised=padded(self._memory.raised, length),
            instants=widened(self._memory.instants, length),
            numbers=widened(self._memory.numbers, length),
        )

    def _widen_out(self) -> None:
        longest = int(self._memory.lists["size"].max()) + 2
        self._memory = self._memory._replace(out=np.zeros(max(2 * len(self._memory.out), longest), NOTICE))

    def _widen_pool(self, wanted: int = 0) -> None:
        """Close the gaps and leave as many free places again, for the widest slot to double and for `wanted` ones."""
        rooms = self._memory.lists["room"]
        widest_view = int((self._memory.lists["limit"] * self._memory.lists["near"]).max())
        length = 2 * int(rooms.sum()) + max(16, 2 * int(rooms.max()), 2 * widest_view + 16) + wanted
        pool = np.zeros(length, CANDIDATE)
        self._memory.meter[USED] = repack(self._memory, pool)
        self._memory = self._memory._replace(pool=pool)

    def _take_places(self, slot: int, room: int) -> int:
        if self._memory.meter[USED] + room > len(self._memory.pool):
            self._widen_pool(room)
        start = int(self._memory.meter[USED])
        self._memory.lists["start"][slot], self._memory.lists["room"][slot] = start, room
        self._memory.meter[USED] += room
        return start

    def _activate(self, subscription: str, activation: Activation, view: int) -> int:
        """Take a slot whose exact lists have views of at most `view`."""
        k, window, since, error = activation
        if subscription in self._slots:
            raise SubscriptionError(f"subscription {subscription!r} is active already; deactivate it first")
        if k is not None and k < 0:
            raise SubscriptionError(f"k is {k}: 0 (nothing), a positive number, or None (everything) is accepted")
        if error is not None and not 0.0 < error < 1.0:
            raise SubscriptionError(f"error is {error}: a probability between 0 and 1, both excluded, is accepted")
        slot = self._take_slot(subscription)
        self._activations[subscription] = activation
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
            "edge": NONE,
            "changed": 1,
        }
        for field, value in values.items():
            self._memory.lists[field][slot] = value
        return slot

    def _set_clock(self, state: Mapping[str, Any]) -> None:
        self._memory.meter[CLOCK] = BEGINNING if state["clock"] is None else state["clock"]
        self._memory.meter[NUMBER] = state["publications"]

    def _put_candidates(self, slot: int, candidates: Sequence[Sequence[Any]], handles: Mapping[int, int], room: int) -> None:
        """Give a slot its saved candidates, best first; they are all reserve until a view is taken from them."""
        start = self._take_places(slot, room)
        pool = self._memory.pool
        for place, (_, relevance, _, _, number, told) in enumerate(sorted(candidates, key=_saved_rank), start):
            pool["relevance"][place], pool["event"][place], pool["told"][place] = relevance, handles[number], told
        self._memory.lists["size"][slot] = len(candidates)

    def _live_events(self) -> NDArray[np.bool_]:
        """Which stored events must stay although no candidate refers to them."""
        return np.zeros(int(self._memory.meter[STORED]), np.bool_)

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

    def _room_for_events(self, wanted: int, wanted_bytes: int) -> tuple[int, int]:
        """The first free handle and the first free byte of ids, with as many places after them."""
        stored = int(self._memory.meter[STORED])
        begin = int(self._memory.events["id_end"][stored - 1]) if stored else 0
        if stored + wanted <= len(self._memory.events) and begin + wanted_bytes <= len(self._memory.id_bytes):
            return stored, begin
        self._memory, stored = collect_events(self._memory, self._live_events(), wanted, wanted_bytes)
        self._memory.meter[STORED] = stored
        return stored, int(self._memory.events["id_end"][stored - 1]) if stored else 0


def window_of(saved: Mapping[str, Any]) -> Window | None:
    """The window of a saved subscription."""
    duration, count = saved.get("duration"), saved.get("count")
    return None if duration is None and count is None else Window(duration=duration, count=count)


def _saved_rank(candidate: Sequence[Any]) -> tuple[float, int, str, int]:
    event, relevance, time, _, number, _ = candidate
    return -relevance, time, event, number
