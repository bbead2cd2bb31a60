"""Windows by slot: for an owner who keeps the names himself, acts on many at once, and writes lists away in pieces.

A shard of Spark state is such an owner. Slots are its own numbers, dense from 0. `save` gives the lists of some slots as arrays
that `load` takes back, in this process or another, as they stood (the layout is that of `window_memory`):

| array                        | shape, dtype | meaning                                                              |
|------------------------------|--------------|----------------------------------------------------------------------|
| `lists`                      | n, LIST      | the rows of the slots; `start` and `room` are given anew by `load`    |
| `places`                     | c, CANDIDATE | their candidates, slot after slot; `event` is a row of `events`       |
| `ids`, `events`              | e, EVENT     | the events that any of them refers to; id_start and id_end mean nothing |

Cost: of `activate`, `save` and `load` what is copied, without a Python object for a subscription or a candidate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.rank.queue_length import WORST_BIRTHS, queue_length
from tidings.windows.lists import watch
from tidings.windows.memory import ALL, LIST, NEVER, NUMBER, USED, Records
from tidings.windows.passes import advance_to
from tidings.windows.ranked_lists import EntryColumns
from tidings.windows.windows import Windows

Slots = NDArray[np.int32]


class Lists(NamedTuple):
    """How each of some subscriptions ranks: k (ALL: everything), window (NEVER for a side it lacks), since, error (0: exact)."""

    k: NDArray[np.int64]
    duration: NDArray[np.int64]
    counted: NDArray[np.int64]
    since: NDArray[np.int64]
    error: NDArray[np.float64]


class Saved(NamedTuple):
    lists: Records
    places: Records
    ids: pa.StringArray
    events: Records


class SlotWindows(Windows):
    @property
    def next_instant(self) -> int:
        """Nobody leaves a list before it; NEVER if nobody will."""
        instants = self._memory.instants
        return int(instants["key"][instants["heap"][0]])

    def set_clock(self, clock: int | None, publications: int) -> None:
        self._set_clock({"clock": clock, "publications": publications})

    def activate_many(self, slots: Slots, lists: Lists) -> None:
        """Begin lists in free slots."""
        made = np.zeros(len(slots), LIST)
        for name in ("k", "duration", "counted", "since"):
            made[name] = getattr(lists, name)
        made["after"], made["changed"] = self._memory.meter[NUMBER], 1
        made["bounded"] = (lists.error > 0) & (lists.k > 0)
        made["limit"] = _limits(lists)
        self._room_for_slots(slots)
        self._memory.lists[slots] = made

    def deactivate_many(self, slots: Slots) -> None:
        self._memory.lists[slots] = np.zeros((), LIST)
        watch_many(self._memory, slots)

    def advance_columns(self, time: int) -> EntryColumns:
        """The promotions up to and including `time`, each at its exact instant."""
        parts = []
        while not advance_to(self._memory, time):
            parts.append(self._drain())
            self._widen_out()
        return self._columns([*parts, self._drain()])

    def save(self, slots: Slots) -> Saved:
        memory = self._memory
        lists = memory.lists[slots]
        places = memory.pool[_ranges(lists["start"], lists["size"])]
        used, places["event"] = np.unique(places["event"], return_inverse=True)
        return Saved(lists, places, self._ids(used), memory.events[used])

    def load(self, slots: Slots, saved: Saved) -> None:
        """Take the lists into free slots. The clock must stand where it stood when they were saved."""
        lists, places, first = saved.lists.copy(), saved.places.copy(), self._store(saved.ids, 0, 0)
        added = self._memory.events[first : first + len(saved.ids)]
        for name in ("time", "expires", "number"):
            added[name] = saved.events[name]
        places["event"] += first
        if self._memory.meter[USED] + len(places) > len(self._memory.pool):
            self._widen_pool(len(places))
        used = int(self._memory.meter[USED])
        lists["room"] = lists["size"]
        lists["start"] = used + np.cumsum(lists["size"]) - lists["size"]
        self._memory.pool[used : used + len(places)] = places
        self._memory.meter[USED] += len(places)
        self._room_for_slots(slots)
        self._memory.lists[slots] = lists
        watch_many(self._memory, slots)

    def check(self) -> None:
        """Walk every invariant of `window_memory`."""
        lists = self._memory.lists
        taken = np.sort(_ranges(lists["start"], lists["room"]))
        assert (np.diff(taken) > 0).all(), "two slots share a place"
        for slot in range(len(lists)):
            assert 0 <= lists["viewed"][slot] <= lists["size"][slot] <= lists["room"][slot]
            self._check_order(slot)
            self._check_watch(slot)

    def _room_for_slots(self, slots: Slots) -> None:
        if len(slots) and slots.max() >= len(self._memory.lists):
            self._widen_slots(2 * int(slots.max()) + 2)


def _limits(lists: Lists) -> NDArray[np.int64]:
    """The longest views: of exact lists as `Windows.activate` has it, else the paper's queue."""
    limit = np.where(lists.k == ALL, 0, 2 * lists.k) + 8
    bounded = np.flatnonzero((lists.error > 0) & (lists.k > 0))
    births = np.where(lists.counted == NEVER, WORST_BIRTHS, lists.counted)
    kinds, place = np.unique(np.stack([lists.k, births, lists.error])[:, bounded], axis=1, return_inverse=True)
    lengths = [queue_length(int(k), float(error), int(count)) for k, count, error in kinds.T]
    limit[bounded] = np.array(lengths, np.int64)[place]
    return limit


def _ranges(start: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """start[0], start[0] + 1, ... so many of each."""
    end = np.cumsum(size)
    ranges: NDArray[np.int64] = np.repeat(start - (end - size), size) + np.arange(int(size.sum()))
    return ranges


@kernel
def watch_many(m: Any, slots: Any) -> None:
    for slot in slots:
        watch(m, np.int64(slot))
