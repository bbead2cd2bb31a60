"""The subscriber's k around an ideal point: subscriptions without a filter that hear of the k nearest publications of any last w.

Every event concerns every subscription, so nothing may be paid for those that it cannot affect. Small batches go event by
event, through an index of balls whose radii are the current thresholds (`index.ball_index`); large ones are turned round,
subscription by subscription, with a grid over the events (`near_batches`). Both give what `Windows` would, told of all
distances: relevance is minus the weighted Euclidean distance, the meaning of everything else is that of `windows`. An event
whose point has a NaN concerns nobody, and is counted.

What cannot be saved: of n subscriptions an event enters n k / w lists at once and makes as many lose a member, 50 and 50 of
100,000 for k = 10 and w = 20,000, and makes 61 to 68 notifications, promotions with them. Views longer than k bring the lists
that it changes to 150.

The points of all events that some window still holds are kept, to fill views that have run short, so each subscription needs
a window. [topkw, Sections 1.3, 4 and 6]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from tidings.errors import SubscriptionError
from tidings.index.packed.simd import LANES
from tidings.index.points.ball_index import BallIndex
from tidings.index.points.grid import grid_of
from tidings.model.values.window import Window
from tidings.rank.nearness import LARGEST_K
from tidings.windows.memory import (
    ALL,
    CLOCK,
    DONE,
    FALLEN_USED,
    GRIDDED,
    JOINING,
    NEVER,
    NONE,
    NUMBER,
    OUT_FULL,
    PLACE,
    REFILLS,
    ROW,
    STORED,
    TOUCHED,
    USED,
    Records,
    packed_events,
    padded,
)
from tidings.windows.near.batches import in_order, publish_turned_round
from tidings.windows.near.check import all_live, check_near, distance_of, leaves_at, rank_of
from tidings.windows.near.lists import settle
from tidings.windows.near.memory import (
    BLOCK,
    NEAR,
    NEAR_LIST,
    NearMemory,
    empty_near_memory,
    is_live,
    mark_near_events,
    moved_with,
    rename_near_events,
    repack_fallen,
    with_views,
)
from tidings.windows.near.passes import advance_to, publish_one_by_one
from tidings.windows.near.refill import refill
from tidings.windows.ranked_lists import Activation, Candidate, Entry, EntryColumns, RankedLists, window_of

CHUNK = 8192
"""Events that are turned round at once: their grid fits the second-level cache."""
STALE = 1024
"""Events stored since the grid was made after which single publishing makes a new one."""


class BallWindows(RankedLists):
    _memory: NearMemory
    balls_per_event = 64
    """About how many balls can be visited in a batch for the price of one event's way through the index."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.index = BallIndex(dimensions)
        self._memory = empty_near_memory(self.index.balls)

    def start(self, clock: int | None, publications: int) -> None:
        """Begin in the middle of a stream: so much was published before, up to this time."""
        self._set_clock({"clock": clock, "publications": publications})

    def activate(
        self,
        subscription: str,
        centre: Sequence[float],
        k: int | None,
        window: Window,
        time: int,
        error: float | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        """From `time` on, excluded, the subscription hears of the k nearest to `centre` of any window."""
        if k is not None and k > LARGEST_K:
            raise SubscriptionError(f"k is {k}: at most {LARGEST_K} around an ideal point, or None (everything), is accepted")
        weight = np.ones(self.index.dimensions) if weights is None else np.asarray(weights, np.float64)
        if not (weight > 0.0).all():
            raise SubscriptionError(f"weights are {weight.tolist()}: numbers above 0 are accepted")
        activation = Activation(k, window, time, error)
        slot = self._activate(subscription, activation)
        self.index.insert(slot, centre, weight, -np.inf if k == 0 else np.inf)
        self._follow()
        place = self._row(slot)
        self._begin(place, activation, view_of(k or 0))
        lists = self._memory.lists
        lists["edge"][place] = NONE
        if k:
            self._take_places(place, int(lists["limit"][place]) + 1)

    def deactivate(self, subscription: str) -> None:
        slot = self.slot(subscription)
        place = self._row(slot)
        self._memory.lists[place] = np.zeros((), NEAR_LIST)
        self._memory.instant_due[place] = self._memory.number_due[place] = NEVER
        del self._slots[subscription], self._activations[subscription]
        self._free.append(slot)
        self.index.delete(slot)

    def publish(self, event: str, time: int, expires: int | None, point: ArrayLike) -> list[Entry]:
        """`point` has a coordinate a dimension; with a NaN in it the event concerns nobody."""
        place = self._points(np.asarray(point, np.float64).reshape(1, -1))
        first = self._store_one(event, time, expires)
        self._memory.points[:, first] = place[0]
        return self._entries(self._one_by_one(first, first + 1))

    def publish_batch(
        self, events: Sequence[str] | pa.Array, times: ArrayLike, expires: ArrayLike, points: ArrayLike
    ) -> EntryColumns:
        """Publish in this order; `points` is events x dimensions, `expires` is NEVER for an event without."""
        times, expires = np.asarray(times, np.int64), np.asarray(expires, np.int64)
        points = self._points(points)
        assert len(points) == len(events)
        few = len(events) * self.balls_per_event < len(self)
        columns = []
        for begin in range(0, max(len(events), 1), CHUNK):
            rows = slice(begin, begin + CHUNK)
            first = self._store(events[rows], times[rows], expires[rows])
            last = first + len(times[rows])
            self._memory.points[:, first:last] = points[rows].T
            columns.append(
                self._columns(self._one_by_one(first, last)) if few or first == last else self._turned_round(first, times[rows])
            )
        return columns[0] if len(columns) == 1 else joined(columns)

    def _points(self, points: ArrayLike) -> NDArray[np.float64]:
        points = np.asarray(points, np.float64)
        if points.ndim != 2 or points.shape[1] != self.index.dimensions or np.isinf(points).any():
            raise SubscriptionError(f"points need {self.index.dimensions} finite coordinates each")
        return points

    def advance(self, time: int) -> list[Entry]:
        """The promotions up to and including `time`, each at its exact instant."""
        self._freshen(STALE)
        parts = []
        while (stop := advance_to(self._memory, time)) != DONE:
            parts.append(self._make_room(stop))
        return self._entries([*parts, self._told()])

    def top(self, subscription: str, time: int) -> list[tuple[str, float]]:
        place, now = self._row(self.slot(subscription)), max(time, int(self._memory.meter[CLOCK]))
        own = self._memory.lists[place]
        if own["bounded"] or own["k"] == ALL:
            return super().top(subscription, time)
        live = sorted(rank_of(self._memory, event, distance, self._id) for event, distance in all_live(self._memory, place, now))
        return [(event, -distance) for distance, _, event, _ in live[: own["k"]]]

    def state_of(self, subscription: str) -> dict[str, Any]:
        """An exact list is found again from the live events, so of its candidates only those already told are kept."""
        place, state = self._row(self.slot(subscription)), super().state_of(subscription)
        if not self._memory.lists["bounded"][place]:
            state["candidates"] = [candidate for candidate in state["candidates"] if candidate[-1]]
        state["after"] = int(self._memory.lists["after"][place])
        balls = self.index.balls
        return {**state, "centre": balls.centre[:, place].tolist(), "weights": balls.weight[:, place].tolist()}

    def state(self) -> dict[str, Any]:
        """Also the live events, as [id, time, expires, number, point], ascending by number."""
        return {**super().state(), "dimensions": self.index.dimensions, "events": self.live_events()}

    def live_events(self, after: int = 0) -> list[list[Any]]:
        """[id, time, expires, number, point] of what some window still holds, of greater number than `after`, ascending."""
        memory = self._memory
        live = np.flatnonzero(is_live(self._memory) & (memory.events["number"][: memory.meter[STORED]] > after))
        times, expires, numbers = (memory.events[field][live].tolist() for field in ("time", "expires", "number"))
        points = memory.points[:, live].T.tolist()
        lives_until = [None if e == NEVER else e for e in expires]
        return [list(row) for row in zip(map(self._id, live.tolist()), times, lives_until, numbers, points, strict=True)]

    def oldest_live(self) -> int:
        """The publication number of the oldest event that some window still holds, or of the next one."""
        live = np.flatnonzero(is_live(self._memory))
        return int(self._memory.events["number"][live[0]]) if len(live) else self.publications + 1

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> BallWindows:
        """Go on from what `state` gave."""
        windows = cls(state["dimensions"])
        windows._set_clock(state)
        handles = windows._store_saved(state["events"])
        windows._freshen(0)
        for subscription, saved in state["subscriptions"].items():
            window = window_of(saved)
            assert window is not None
            arguments = saved["k"], window, saved["since"], saved["error"], saved["weights"]
            windows.activate(subscription, saved["centre"], *arguments)
            place = windows._row(windows.slot(subscription))
            windows._memory.lists["after"][place] = saved["after"]
            windows._take_back(place, saved["candidates"], handles)
        windows.changed()
        return windows

    @property
    def nbytes(self) -> int:
        arrays = [array for array in self._memory if isinstance(array, np.ndarray)]
        grids = sum(array.nbytes for grid in (self._memory.grid, self._memory.rows) for array in grid)
        return sum(array.nbytes for array in arrays) + grids + self.index.nbytes

    @property
    def stats(self) -> dict[str, int]:
        meter, lists = self._memory.meter, self._memory.lists
        return {
            "subscriptions": len(self),
            "candidates": int(lists["viewed"].sum()),
            "fallen": int(lists["fallen"].sum()),
            "publications": int(meter[NUMBER]),
            "touched": int(meter[TOUCHED]),
            "refills": int(meter[REFILLS]),
        }

    def check(self) -> None:
        """Walk every invariant of `near_memory`."""
        self.index.check()
        assert self._memory.balls.ball is self.index.balls.ball
        check_near(self._memory, set(map(self._row, self._slots.values())), self._id)

    def _row(self, slot: int) -> int:
        return int(self.index.balls.place[slot])

    def _slots_at(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        return self.index.balls.ball[rows]

    def _candidates(self, slot: int, now: int) -> list[Candidate]:
        """Those in the view and those fallen; the distance of the latter is measured again."""
        place = self._row(slot)
        memory, own = self._memory, self._memory.lists[place]
        found = [
            (int(memory.mark[at] >> 1), float(memory.distance[at]), bool(memory.mark[at] & 1))
            for at in range(own["start"], own["start"] + own["viewed"])
        ]
        for event in memory.fallen[own["fallen_start"] : own["fallen_start"] + own["fallen"]].tolist():
            found.append((event, distance_of(memory, place, event), True))
        result = []
        for event, distance, told in found:
            time, expires, number = (int(memory.events[field][event]) for field in ("time", "expires", "number"))
            if leaves_at(memory, place, event) > now and number > memory.meter[NUMBER] - own["counted"]:
                result.append(Candidate(self._id(event), -distance, time, expires, number, told))
        return sorted(result, key=lambda c: (-c.relevance, c.time, c.event, c.number))

    def _one_by_one(self, first: int, last: int) -> list[Records]:
        """Each event asks the index which balls it touches."""
        self._freshen(STALE)
        self._memory.meter[ROW] = self._memory.meter[JOINING] = 0
        parts = []
        while (stop := publish_one_by_one(self._memory, first, last, self.index.used, self.index.visited)) != DONE:
            parts.append(self._make_room(stop))
        return [*parts, self._told()]

    def _turned_round(self, first: int, times: NDArray[np.int64]) -> EntryColumns:
        """Each ball asks a grid of the events which it holds."""
        meter = self._memory.meter
        base = int(meter[NUMBER])
        clock = np.maximum.accumulate(np.maximum(times, meter[CLOCK]))
        self._freshen(0)
        self._memory = self._memory._replace(rows=grid_of(self._memory.points, first, first + len(times)))
        meter[PLACE] = meter[ROW] = 0
        parts = []
        while (stop := publish_turned_round(self._memory, first, base, clock, self.index.used)) != DONE:
            parts.append(self._make_room(stop))
        notices = np.concatenate([*parts, self._told()]) if parts else self._told()
        slot, event, *rest = in_order(notices, base, len(times))
        return EntryColumns(slot, self._ids(event), *rest)

    def _freshen(self, stale: int) -> None:
        """A new grid when more than `stale` events are not in it, balls in order, and room for what kernels find."""
        self.index.settle()
        self._follow()
        memory = self._memory
        stored = int(memory.meter[STORED])
        if stored - memory.meter[GRIDDED] > stale:
            live = is_live(self._memory)
            live[int(memory.meter[GRIDDED]) :] = True
            oldest = int(np.argmax(live)) if len(live) else 0
            memory = memory._replace(grid=grid_of(memory.points, oldest, stored))
            memory.meter[GRIDDED] = stored
        room = max(len(memory.events), len(memory.balls.ball) + BLOCK, NEAR)
        if len(memory.hits) < room:
            memory = memory._replace(hits=np.zeros(room, np.int32), squares=np.zeros(room))
        self._memory = memory

    def _make_room(self, stop: int) -> Records:
        """What was told so far, with more room for what a pass ran out of."""
        parts = self._drain()
        if stop == OUT_FULL:
            self._widen_out()
        else:
            rooms = self._memory.lists["fallen_room"]
            fallen = np.zeros(2 * int(rooms.sum()) + max(64, 2 * int(rooms.max())), np.int32)
            repack_fallen(self._memory, fallen)
            self._memory = self._memory._replace(fallen=fallen)
        return parts

    def _follow(self) -> None:
        """A list lies at the place of its ball, also when the index has moved the balls."""
        if self.index.balls is not self._memory.balls:
            self._memory = moved_with(self._memory, self.index.balls)

    def _take_places(self, place: int, room: int) -> None:
        lists, memory = self._memory.lists, self._memory
        if memory.meter[USED] + room > len(memory.mark) - LANES:
            length = 2 * (int((lists["limit"] + 1)[lists["k"] > 0].sum()) + room)
            lists["start"][place] = 0
            self._memory = with_views(memory, length)
        else:
            lists["start"][place] = memory.meter[USED]
            memory.meter[USED] += room

    def _forget_events(self, wanted: int, wanted_bytes: int) -> int:
        memory, used = self._memory, is_live(self._memory)
        mark_near_events(memory, used)
        rename_near_events(memory, np.cumsum(used) - 1)
        events, id_bytes = packed_events(memory.events, memory.id_bytes, used, wanted, wanted_bytes)
        kept = int(np.count_nonzero(used))
        points = np.zeros((len(memory.points), len(events) + LANES))
        points[:, :kept] = memory.points[:, : len(used)][:, used]
        sought, squares = np.zeros(len(events) + NEAR, np.int32), np.zeros(len(events) + NEAR)
        memory.meter[GRIDDED] = 0
        grid = grid_of(points, 0, 0)
        self._memory = memory._replace(
            events=events, id_bytes=id_bytes, points=points, grid=grid, sought=sought, sought_squares=squares
        )
        return kept

    def _store_saved(self, events: Sequence[Sequence[Any]]) -> dict[int, int]:
        """Take back live events; their handles by publication number."""
        ids, times, expires, numbers, points = zip(*events, strict=True) if events else ((), (), (), (), ())
        first = self._store(list(ids), times, [NEVER if e is None else e for e in expires])
        self._memory.events["number"][first : first + len(events)] = numbers
        if events:
            self._memory.points[:, first : first + len(events)] = np.array(points).T
        return {number: first + i for i, number in enumerate(numbers)}

    def _take_back(self, place: int, candidates: Sequence[Sequence[Any]], handles: Mapping[int, int]) -> None:
        """A bounded queue takes its saved candidates; an exact list takes them as told, and its view from the live events."""
        memory, own = self._memory, self._memory.lists[place]
        if own["k"] in (0, ALL):
            return
        if own["bounded"]:
            for at, (_, relevance, _, _, number, told) in enumerate(candidates, int(own["start"])):
                memory.distance[at], memory.mark[at] = -relevance, 2 * handles[number] + told
                memory.leaves[at] = leaves_at(memory, place, handles[number])
            memory.lists["viewed"][place], memory.lists["timed"][place] = len(candidates), 1
        else:
            self._fall_again(place, [handles[candidate[4]] for candidate in candidates])
            refill(self._memory, np.int64(place))
        settle(self._memory, np.int64(place))

    def _fall_again(self, place: int, events: Sequence[int]) -> None:
        while self._memory.meter[FALLEN_USED] + len(events) > len(self._memory.fallen):
            self._memory = self._memory._replace(fallen=padded(self._memory.fallen, 2 * len(self._memory.fallen) + len(events)))
        memory, used = self._memory, int(self._memory.meter[FALLEN_USED])
        memory.fallen[used : used + len(events)] = events
        for field, value in (("fallen_start", used), ("fallen_room", len(events)), ("fallen", len(events))):
            memory.lists[field][place] = value
        memory.meter[FALLEN_USED] += len(events)


def view_of(k: int) -> int:
    """The longest view of an exact list: long enough that refills are rare, short enough that few events touch it.

    100,000 lists, k = 10, w = 20,000: of 15 an event touches 124 lists and refills 3.0, of 20 it is 137 and 1.2, of 25 it is 149
    and 0.5, of 32 it is 169 and 0.1. A refill seems to cost some twenty touches (estimated); 25 was the fastest.
    """
    return k + k // 2 + 10


def joined(columns: Sequence[EntryColumns]) -> EntryColumns:
    slot, event, *rest = zip(*columns, strict=True)
    return EntryColumns(np.concatenate(slot), pa.concat_arrays(event), *(np.concatenate(arrays) for arrays in rest))
