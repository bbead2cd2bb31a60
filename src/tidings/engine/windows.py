"""The subscriber's k: each subscription hears of the k most relevant publications of any last w, each once.

`Windows` knows no filters. Its owner tells it of every publication, with the subscriptions that it matched and its relevance to
each; what comes back is who is to be notified. The candidates of a subscription at time t are its matches published in
(max(activation, t - duration), t], or after the activation and among the topic's last `count` publications, that have not
expired (an event lives while t < expires). The k best by (relevance desc, time asc, id asc) are its list. A candidate is
notified the first time it stands in the list: `entered` at its publishing, `promoted` when a better one has left.

The order of things. An act at time t moves the clock to t, stopping at every instant up to and including t at which a candidate
leaves a list; then the publication joins, and in count windows pushes out what it pushes out in the same step. Acts at one
instant happen one after the other.

Late events. One that is older than the clock is taken with its own time: it competes as long as that lies in the window, ranks
by it among equals, and is notified at the clock's time. In a count window it is simply the newest publication.

Special cases, recognised at activation: k = 0 hears nothing and k = None everything, both without any memory (what is notified
has rank 0, and there is no `top`). Without a window (w -> infinity) pruning leaves the k best and those that outlive one of
them. A window that holds no more than k publications (w -> 0, low intensity) never prunes or refills: each match is told at once.

`error=sigma` keeps the paper's bounded queue of `queue_length(k, sigma, m)` instead of the exact k-skyband; m is the count of a
count window, else the paper's worst case of 10^9.

The memory and its invariants are described in `window_memory`. [topkw, Sections 2 and 3]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidings.engine.window_lists import before, leaving, watch
from tidings.engine.window_memory import (
    ALL,
    BEGINNING,
    CANDIDATE,
    CLOCK,
    DONE,
    JOINING,
    LIST,
    NEVER,
    NOTICE,
    NUMBER,
    POOL_FULL,
    PROMOTED,
    PRUNES,
    REFILLS,
    ROW,
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
from tidings.engine.window_passes import advance_to, publish_rows
from tidings.errors import SubscriptionError
from tidings.model.window import Window
from tidings.rank.queue_length import WORST_BIRTHS, queue_length

WHY = ("entered", "promoted")


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
    event: list[str]
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


class Windows:
    def __init__(self) -> None:
        self._memory = empty_memory()
        self._events = 0
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

    def activate(self, subscription: str, k: int | None, window: Window | None, time: int, error: float | None = None) -> None:
        """From `time` on, excluded, the subscription hears its k best of any window; no window means since then."""
        if subscription in self._slots:
            raise SubscriptionError(f"subscription {subscription!r} is active already; deactivate it first")
        if k is not None and k < 0:
            raise SubscriptionError(f"k is {k}: 0 (nothing), a positive number, or None (everything) is accepted")
        if error is not None and not 0.0 < error < 1.0:
            raise SubscriptionError(f"error is {error}: a probability between 0 and 1, both excluded, is accepted")
        slot = self._take_slot(subscription)
        self._activations[subscription] = Activation(k, window, time, error)
        lists = self._memory.lists
        count = None if window is None else window.count
        duration = None if window is None else window.duration
        lists["k"][slot] = ALL if k is None else k
        lists["duration"][slot] = NEVER if duration is None else duration
        lists["counted"][slot] = NEVER if count is None else count
        lists["since"][slot] = time
        lists["bounded"][slot] = bool(error and k)
        lists["limit"][slot] = queue_length(k, error, count or WORST_BIRTHS) if error and k else 2 * (k or 0) + 8
        lists["changed"][slot] = 1

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
        lives_until = NEVER if expires is None else expires
        return self.entries(self.publish_batch([event], [time], [lives_until], [0, len(slots)], slots, relevances))

    def publish_batch(
        self,
        events: Sequence[str],
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
        if np.isnan(relevances).any():
            raise SubscriptionError("relevance is NaN: a number is accepted")
        first = self._store(events, np.asarray(times, np.int64), np.asarray(expires, np.int64))
        meter = self._memory.meter
        meter[ROW] = meter[JOINING] = 0
        parts = []
        while (stop := publish_rows(self._memory, first, starts, slots, relevances)) != DONE:
            parts.append(self._drain())
            self._widen_pool() if stop == POOL_FULL else self._widen_out()
        return self._columns([*parts, self._drain()])

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
        rows = zip(*(c if isinstance(c, list) else c.tolist() for c in columns), strict=True)
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

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Windows:
        windows = cls()
        windows._memory.meter[CLOCK] = BEGINNING if state["clock"] is None else state["clock"]
        windows._memory.meter[NUMBER] = state["publications"]
        handles = windows._store_saved(state["subscriptions"].values())
        for subscription, saved in state["subscriptions"].items():
            windows._adopt(subscription, saved, handles)
        windows._memory.lists["changed"][:] = 0
        return windows

    def _store_saved(self, subscriptions: Iterable[Mapping[str, Any]]) -> dict[int, int]:
        """Take back the events that any candidate refers to; their handles by publication number."""
        saved = {c[4]: (c[0], c[2], NEVER if c[3] is None else c[3]) for s in subscriptions for c in s["candidates"]}
        ids, times, expires = zip(*saved.values(), strict=True) if saved else ((), (), ())
        first = self._store(ids, np.array(times, np.int64), np.array(expires, np.int64))
        self._memory.events["number"][first : first + len(saved)] = list(saved)
        return {number: first + i for i, number in enumerate(saved)}

    def _adopt(self, subscription: str, saved: Mapping[str, Any], handles: Mapping[int, int]) -> None:
        duration, count = saved.get("duration"), saved.get("count")
        window = None if duration is None and count is None else Window(duration=duration, count=count)
        self.activate(subscription, saved["k"], window, saved["since"], saved["error"])
        slot = self._slots[subscription]
        candidates = sorted(saved["candidates"], key=lambda c: (-c[1], c[2], c[0], c[4]))
        start = self._take_places(slot, len(candidates) + 1)
        lists, pool = self._memory.lists, self._memory.pool
        for place, (_, relevance, _, _, number, told) in enumerate(candidates, start):
            pool["relevance"][place], pool["event"][place], pool["told"][place] = relevance, handles[number], told
        lists["size"][slot] = len(candidates)
        lists["viewed"][slot] = min(len(candidates), lists["limit"][slot])
        watch(self._memory, slot)

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
            assert before(self._memory, pool["relevance"][above], pool["event"][above], pool["relevance"][i], pool["event"][i])
        assert size == view or (view >= lists["k"][slot] and not lists["bounded"][slot])

    def _check_watch(self, slot: int) -> None:
        memory, lists = self._memory, self._memory.lists
        depth = lists["limit"][slot] if lists["bounded"][slot] else lists["k"][slot]
        for i in range(min(depth, lists["viewed"][slot])):
            instant, number = leaving(memory, slot, memory.pool["event"][lists["start"][slot] + i])
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
            instant, number = leaving(memory, slot, event)
            if instant > now and number > memory.meter[NUMBER]:
                time, expires, published = (int(memory.events[field][event]) for field in ("time", "expires", "number"))
                relevance, told = float(memory.pool["relevance"][place]), bool(memory.pool["told"][place])
                result.append(Candidate(self._id(event), relevance, time, expires, published, told))
        return sorted(result, key=lambda c: (-c.relevance, c.time, c.event, c.number))

    def _id(self, event: int) -> str:
        start, end = self._memory.events["id_start"][event], self._memory.events["id_end"][event]
        return self._memory.id_bytes[start:end].tobytes().decode("utf-8", "surrogatepass")

    def _columns(self, parts: Sequence[Records]) -> EntryColumns:
        out = np.concatenate(parts)
        events = [self._id(event) for event in out["event"].tolist()]
        return EntryColumns(out["slot"], events, out["relevance"], out["rank"], out["why"] == PROMOTED, out["at"])

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
            instants=widened(self._memory.instants, length),
            numbers=widened(self._memory.numbers, length),
        )

    def _widen_out(self) -> None:
        longest = int(self._memory.lists["size"].max()) + 2
        self._memory = self._memory._replace(out=np.zeros(max(2 * len(self._memory.out), longest), NOTICE))

    def _widen_pool(self, wanted: int = 0) -> None:
        """Close the gaps and leave as many free places again, for the widest slot to double and for `wanted` ones."""
        rooms = self._memory.lists["room"]
        length = 2 * int(rooms.sum()) + 2 * max(8, int(rooms.max())) + wanted
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

    def _store(self, ids: Sequence[str], times: NDArray[np.int64], expires: NDArray[np.int64]) -> int:
        """Add events; the handle of the first. Events that no candidate refers to are forgotten when the arrays are full."""
        encoded = [event.encode("utf-8", "surrogatepass") for event in ids]
        text = np.frombuffer(b"".join(encoded), np.uint8)
        begin = int(self._memory.events["id_end"][self._events - 1]) if self._events else 0
        if self._events + len(ids) > len(self._memory.events) or begin + len(text) > len(self._memory.id_bytes):
            events, id_bytes, self._events = collect_events(self._memory, self._events, len(ids), len(text))
            self._memory = self._memory._replace(events=events, id_bytes=id_bytes)
            begin = int(events["id_end"][self._events - 1]) if self._events else 0
        first, self._events = self._events, self._events + len(ids)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        added = self._memory.events[first : self._events]
        added["time"], added["expires"] = times, expires
        added["id_end"] = begin + np.cumsum(lengths)
        added["id_start"] = added["id_end"] - lengths
        self._memory.id_bytes[begin : begin + len(text)] = text
        return first
