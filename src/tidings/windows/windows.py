"""The subscriber's k: each subscription hears of the k most relevant publications of any last w, each once.

`Windows` knows no filters. Its owner tells it of every publication, with the subscriptions that it matched and its relevance to
each; what comes back is who is to be notified. The candidates of a subscription at time t are its matches published in
(max(activation, t - duration), t], or after the activation and among the topic's last `count` publications, that have not
expired (an event lives while t < expires). The k best by (relevance desc, time asc, id asc) are its list. A candidate is
notified the first time it stands in the list: `entered` at its publishing, `promoted` when a better one has left.

The order of things. An act at time t moves the clock to t, stopping at every instant up to and including t at which a candidate
leaves a list; then the publication joins, and in count windows pushes out what it pushes out in the same step. Acts at one
instant happen one after the other.

Only what is published after the activation counts, whatever its time.

Late events. One that is older than the clock is taken with its own time: it competes as long as that lies in the window, ranks
by it among equals, and is notified at the clock's time. In a count window it is simply the newest publication.

Special cases, recognised at activation: k = 0 hears nothing and k = None everything, both without any memory (what is
notified has rank 0, and there is no `top`). Without a window (w -> infinity) pruning leaves the k best and those that outlive
one of them. A window that holds no more than k publications (w -> 0, low intensity) never prunes or refills: each match is
told at once.

`error=sigma` keeps the paper's bounded queue of `queue_length(k, sigma, m)` instead of the exact k-skyband; m is the count of a
count window, else the paper's worst case of 10^9.

The memory and its invariants are described in `window_memory`. [topkw, Sections 2 and 3]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from tidings.errors import SubscriptionError
from tidings.model.values.window import Window
from tidings.windows.lists import before, leaving, watch
from tidings.windows.memory import (
    CANDIDATE,
    CLOCK,
    DONE,
    JOINING,
    LIST,
    NEVER,
    NUMBER,
    POOL_FULL,
    PRUNES,
    REFILLS,
    ROW,
    STORED,
    TOUCHED,
    USED,
    Memory,
    Records,
    empty_memory,
    mark_events,
    packed_events,
    padded,
    rename_events,
    repack,
    widened,
)
from tidings.windows.passes import advance_to, publish_rows
from tidings.windows.ranked_lists import Activation, Candidate, Entry, EntryColumns, RankedLists, window_of


class Windows(RankedLists):
    _memory: Memory

    def __init__(self) -> None:
        super().__init__()
        self._memory = empty_memory()

    def activate(self, subscription: str, k: int | None, window: Window | None, time: int, error: float | None = None) -> None:
        """From `time` on, excluded, the subscription hears its k best of any window; no window means since then."""
        activation = Activation(k, window, time, error)
        slot = self._activate(subscription, activation)
        if slot == len(self._memory.lists):
            self._widen_slots(2 * slot)
        self._begin(slot, activation, 2 * (k or 0) + 8)

    def deactivate(self, subscription: str) -> None:
        slot = self.slot(subscription)
        memory = self._memory
        memory.lists[slot] = np.zeros((), LIST)
        del self._slots[subscription], self._activations[subscription]
        self._free.append(slot)
        watch(memory, slot)

    def publish(self, event: str, time: int, expires: int | None, concerned: Sequence[tuple[str, float]]) -> list[Entry]:
        """Must be told of every publication of the topic, also of one that concerns nobody: count windows count it."""
        slots = np.fromiter((self.slot(subscription) for subscription, _ in concerned), np.int32, len(concerned))
        relevances = np.fromiter((relevance for _, relevance in concerned), np.float64, len(concerned))
        refuse_nan(relevances)
        first = self._store_one(event, time, expires)
        return self._entries(self._publish(first, np.array([0, len(slots)]), slots, relevances))

    def publish_batch(
        self,
        events: Sequence[str] | pa.Array,
        times: ArrayLike,
        expires: ArrayLike,
        starts: ArrayLike,
        slots: ArrayLike,
        relevances: ArrayLike,
    ) -> EntryColumns:
        """Publish in this order; event i concerns slots[starts[i]:starts[i + 1]]. `expires` is NEVER for an event without."""
        starts = np.asarray(starts, np.int64)
        slots = np.asarray(slots, np.int32)
        relevances = np.asarray(relevances, np.float64)
        assert len(starts) == len(events) + 1
        assert starts[-1] == len(slots) == len(relevances)
        refuse_nan(relevances)
        return self._columns(self._publish(self._store(events, times, expires), starts, slots, relevances))

    def _publish(
        self, first: int, starts: NDArray[np.int64], slots: NDArray[np.int32], relevances: NDArray[np.float64]
    ) -> list[Records]:
        meter = self._memory.meter
        meter[ROW] = meter[JOINING] = 0
        parts = []
        while (stop := publish_rows(self._memory, first, starts, slots, relevances)) != DONE:
            parts.append(self._drain())
            self._widen_pool() if stop == POOL_FULL else self._widen_out()
        return [*parts, self._told()]

    def advance(self, time: int) -> list[Entry]:
        """The promotions up to and including `time`, each at its exact instant."""
        parts = []
        while not advance_to(self._memory, time):
            parts.append(self._drain())
            self._widen_out()
        return self._entries([*parts, self._told()])

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Windows:
        """Go on from what `state` gave."""
        windows = cls()
        windows._set_clock(state)
        handles = windows._store_saved(state["subscriptions"].values())
        for subscription, saved in state["subscriptions"].items():
            windows.activate(subscription, saved["k"], window_of(saved), saved["since"], saved["error"])
            slot, candidates = windows.slot(subscription), saved["candidates"]
            windows._put_candidates(slot, candidates, handles, len(candidates) + 1)
            lists = windows._memory.lists
            lists["viewed"][slot] = min(len(candidates), lists["limit"][slot])
            watch(windows._memory, slot)
        windows.changed()
        return windows

    def _store_saved(self, subscriptions: Iterable[Mapping[str, Any]]) -> dict[int, int]:
        """Take back the events that any candidate refers to; their handles by publication number."""
        saved = {c[4]: (c[0], c[2], NEVER if c[3] is None else c[3]) for s in subscriptions for c in s["candidates"]}
        ids, times, expires = zip(*saved.values(), strict=True) if saved else ((), (), ())
        first = self._store(list(ids), times, expires)
        self._memory.events["number"][first : first + len(saved)] = list(saved)
        return {number: first + i for i, number in enumerate(saved)}

    def _put_candidates(self, slot: int, candidates: Sequence[Sequence[Any]], handles: Mapping[int, int], room: int) -> None:
        """Give a slot its saved candidates, best first; they are all reserve until a view is taken from them."""
        start = self._take_places(slot, room)
        pool = self._memory.pool
        for place, (_, relevance, _, _, number, told) in enumerate(sorted(candidates, key=_saved_rank), start):
            pool["relevance"][place], pool["event"][place], pool["told"][place] = relevance, handles[number], told
        self._memory.lists["size"][slot] = len(candidates)

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
        assert size == view or view >= lists["k"][slot]

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

    def _widen_slots(self, length: int) -> None:
        self._memory = self._memory._replace(
            lists=padded(self._memory.lists, length),
            instants=widened(self._memory.instants, length),
            numbers=widened(self._memory.numbers, length),
        )

    def _widen_pool(self, wanted: int = 0) -> None:
        """Close the gaps and leave as many free places again, for the widest slot to double and for `wanted` ones."""
        rooms = self._memory.lists["room"]
        length = 2 * int(rooms.sum()) + max(16, 2 * int(rooms.max())) + wanted
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

    def _forget_events(self, wanted: int, wanted_bytes: int) -> int:
        memory = self._memory
        used = np.zeros(int(memory.meter[STORED]), np.bool_)
        mark_events(memory, used)
        rename_events(memory, np.cumsum(used) - 1)
        events, id_bytes = packed_events(memory.events, memory.id_bytes, used, wanted, wanted_bytes)
        self._memory = memory._replace(events=events, id_bytes=id_bytes)
        return int(np.count_nonzero(used))


def refuse_nan(relevances: NDArray[np.float64]) -> None:
    if np.isnan(relevances).any():
        raise SubscriptionError("relevance is NaN: a number is accepted")


def _saved_rank(candidate: Sequence[Any]) -> tuple[float, int, str, int]:
    event, relevance, time, _, number, _ = candidate
    return -relevance, time, event, number
