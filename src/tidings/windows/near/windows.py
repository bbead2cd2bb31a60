"""The subscriber's k around an ideal point: subscriptions without a filter that hear of the k nearest publications of any last w.

Every event concerns every subscription, so nothing may be paid for those that it cannot affect. Small batches go event by
event, through an index of balls whose radii are the current thresholds (`index.points.ball_index`); large ones are turned round,
subscription by subscription, with a grid over the events (`near.turned_round`). Both give what `Windows` would, told of all
distances: relevance is minus the weighted Euclidean distance, the meaning of everything else is that of `windows`, and so are its
lists. An event whose point has a NaN concerns nobody, and is counted; nor does it concern a list to which its distance is beyond
all numbers.

What cannot be saved: of n subscriptions an event enters n k / w lists at once and makes as many lose a member, 50 and 50 of
100,000 for k = 10 and w = 20,000, and makes 61 to 68 notifications, promotions with them. Views longer than k bring the lists
that it changes to 150.

The points of all events that some window still holds are kept, to fill views that have run short, so each subscription needs
a window. [topkw, Sections 1.3, 4 and 6]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from tidings._jit import kernel
from tidings.errors import SubscriptionError
from tidings.index.packed.simd import LANES
from tidings.index.points.ball_index import BallIndex
from tidings.index.points.grid import grid_of
from tidings.model.values.window import Window
from tidings.rank.nearness import LARGEST_K
from tidings.windows.entries import Entries, joined
from tidings.windows.invariants import all_live, rank_of
from tidings.windows.memory import (
    ALL,
    BALLS,
    BLOCK,
    CLOCK,
    GRIDDED,
    LIST_ROW,
    NEVER,
    NONE,
    NTH,
    NUMBER,
    STORED,
    Floats,
    Ints,
    ListRow,
    Memory,
    with_events,
    with_rows,
    with_views,
)
from tidings.windows.near.points import NEAR, Points, empty_points
from tidings.windows.near.turned_round import Batch, in_order, publish_turned_round
from tidings.windows.publishing import NO_GROUPS, Concerned
from tidings.windows.windows import UNREADABLE, Activation, Candidate, Windows, read_candidate, window_of

CHUNK = 8192
"""Events that are turned round at once: their grid fits the second-level cache."""
STALE = 1024
"""Events stored since the grid was made after which single publishing makes a new one."""


class NearWindows(Windows):
    balls_per_event = 64
    """About how many balls can be visited in a batch for the price of one event's way through the index."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.index = BallIndex(dimensions)
        self._near = empty_points(self.index, len(self.memory.events))

    @property
    def near(self) -> Points:
        return self._near

    def activate(  # type: ignore[override]
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
        terms, point = self.terms([activation]), np.broadcast_to(np.asarray(centre, np.float64), weight.shape)
        slot = self._take_slot(subscription, activation)
        self.index.insert(int(slot[0]), point, weight, -np.inf if k == 0 else np.inf)
        self.begin(slot, terms)
        if k:
            # All at once, in order of the rows: every list fills up, and what an event touches lies together.
            rows = self._rows(slot)
            self._take_views(rows, self.memory.lists["limit"][rows] + 1)

    def deactivate(self, subscription: str) -> None:
        slot = self.slot(subscription)
        super().deactivate(subscription)
        self.index.delete(slot)

    def publish(  # type: ignore[override]
        self, event: str, time: int, expires: int | None, point: ArrayLike
    ) -> Entries:
        """`point` has a coordinate a dimension; with a NaN in it the event concerns nobody."""
        points = self._points(np.asarray(point, np.float64).reshape(1, -1))
        first = self._store_one(event, time, NEVER if expires is None else expires)
        self.near.points[:, first] = points[0]
        return self._one_by_one(first, 1)

    def publish_batch(  # type: ignore[override]
        self, events: Sequence[str] | pa.Array, times: ArrayLike, expires: ArrayLike, points: ArrayLike
    ) -> Entries:
        """Publish in this order; `points` is events x dimensions, `expires` is NEVER for an event without."""
        times, expires = np.asarray(times, np.int64), np.asarray(expires, np.int64)
        points = self._points(points)
        assert len(points) == len(events)
        few = len(events) * self.balls_per_event < len(self)
        parts = []
        for begin in range(0, max(len(events), 1), CHUNK):
            part = slice(begin, begin + CHUNK)
            first = self._store_points(events[part], times[part], expires[part], points[part])
            n = len(times[part])
            parts.append(self._one_by_one(first, n) if few or n == 0 else self._turned_round(first, times[part]))
        return joined(parts)

    def advance(self, time: int) -> Entries:
        self._freshen(STALE)
        return super().advance(time)

    def top(self, subscription: str, time: int) -> list[tuple[str, float]]:
        row, now = self._row(self.slot(subscription)), max(time, int(self.memory.meter[CLOCK]))
        own = self.memory.lists[row]
        if own["bounded"] or own["k"] == ALL:
            return super().top(subscription, time)
        live = sorted(rank_of(self.memory, event, distance) for event, distance in all_live(self.memory, self.near, row, now))
        return [(str(event, "utf-8"), -distance) for distance, _, event, _ in live[: own["k"]]]

    def state_of(self, subscription: str) -> dict[str, Any]:
        """An exact list is found again from the live events, so of its candidates only those already told are kept."""
        row, state = self._row(self.slot(subscription)), super().state_of(subscription)
        if not self.memory.lists["bounded"][row]:
            state["candidates"] = [candidate for candidate in state["candidates"] if candidate[-1]]
        state["after"] = int(self.memory.lists["after"][row])
        balls = self.index.balls
        return {**state, "centre": balls.centre[:, row].tolist(), "weights": balls.weight[:, row].tolist()}

    def state(self) -> dict[str, Any]:
        """Also the live events, as [id, time, expires, number, point], ascending by number."""
        return {**super().state(), "dimensions": self.index.dimensions, "events": self.live_events()}

    def live_events(self, after: int = 0) -> list[list[Any]]:
        """[id, time, expires, number, point] of what some window still holds, of greater number than `after`, ascending."""
        memory = self.memory
        live = np.flatnonzero(self._is_live() & (memory.events["number"][: memory.meter[STORED]] > after))
        times, expires, numbers = (memory.events[field][live].tolist() for field in ("time", "expires", "number"))
        points, lives_until = self.near.points[:, live].T.tolist(), [None if e == NEVER else e for e in expires]
        ids = self._ids(live.astype(np.int32)).texts()
        return [list(row) for row in zip(ids, times, lives_until, numbers, points, strict=True)]

    def oldest_live(self) -> int:
        """The publication number of the oldest event that some window still holds, or of the next one."""
        live = np.flatnonzero(self._is_live())
        return int(self.memory.events["number"][live[0]]) if len(live) else self.publications + 1

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> tuple[NearWindows, list[str]]:
        """Go on from what `state` gave; and a sentence for each subscription of which something is lost."""
        windows, problems = cls(state["dimensions"]), []
        windows.set_clock(state["clock"], state["publications"])
        handles, taken = windows._store_saved(state["events"]), {}
        for subscription, saved in state["subscriptions"].items():
            try:
                candidates = [read_candidate(*candidate) for candidate in saved["candidates"]]
                after = int(np.int64(saved["after"]))
                window = window_of(saved)
                if window is None:
                    raise ValueError("it has no window")
                windows.activate(
                    subscription, saved["centre"], saved["k"], window, saved["since"], saved["error"], saved["weights"]
                )
            except UNREADABLE as problem:
                problems.append(f"the window of {subscription!r} begins anew: its state cannot be read ({problem!r})")
                continue
            windows.memory.lists["after"][windows._row(windows.slot(subscription))] = after
            taken[subscription] = [c for c in candidates if c.number in handles]
            lost = [c.event for c in candidates if c.number not in handles and windows._holds(window, c)]
            if lost:
                problems.append(f"the window of {subscription!r} loses {lost}: their points are not stored")
        windows._freshen(0)
        windows._put_candidates(taken, handles)
        windows.changed()
        return windows, problems

    def _store_saved(self, events: Iterable[Sequence[Any]]) -> dict[int, int]:
        """Take back live events; their handles by publication number."""
        by_number = {event[3]: event for event in events}
        numbers = sorted(by_number)
        ids, times, expires, _, points = (
            zip(*(by_number[number] for number in numbers), strict=True) if numbers else ((), (), (), (), ())
        )
        until = [NEVER if e is None else e for e in expires]
        self._store_points(list(ids), times, until, np.array(points).reshape(len(ids), self.index.dimensions))
        self.memory.events["number"][: len(ids)] = numbers
        return {number: handle for handle, number in enumerate(numbers)}

    def _holds(self, window: Window, c: Candidate) -> bool:
        """Whether a window still holds a candidate; a state is written when its list changes, and that who was told and has
        fallen off the view leaves is no change."""
        now, number = int(self.memory.meter[CLOCK]), self.publications
        in_time = window.duration is None or c.time > now - window.duration
        return in_time and (window.count is None or c.number > number - window.count) and (c.expires is None or now < c.expires)

    @property
    def nbytes(self) -> int:
        near = self.near
        grids = sum(array.nbytes for grid in (near.grid, near.batch) for array in grid)
        found = near.squares.nbytes + near.sought.nbytes + near.sought_squares.nbytes
        return super().nbytes + near.points.nbytes + grids + found + self.index.nbytes

    def check(self) -> None:
        self.index.check()
        assert self.near.balls.ball is self.index.balls.ball
        super().check()

    def _rows(self, slots: NDArray[Any]) -> NDArray[Any]:
        rows: NDArray[np.int32] = self.index.balls.place[slots]
        return rows

    def _slots_at(self, rows: Ints) -> NDArray[Any]:
        return self.index.balls.ball[rows]

    def _rows_for(self, slots: NDArray[Any]) -> NDArray[Any]:
        self._follow()
        return self._rows(slots)

    def _longest_view(self, k: Ints) -> Ints:
        """Long enough that refills are rare, short enough that few events touch a list.

        100,000 lists, k = 10, w = 20,000: of 15 an event touches 124 lists and refills 3.0, of 20 it is 137 and 1.2, of 25 it is
        149 and 0.5, of 32 it is 169 and 0.1. A refill seems to cost some twenty touches (estimated); 25 was the fastest.
        """
        return k + k // 2 + 10

    def _points(self, points: ArrayLike) -> Floats:
        points = np.asarray(points, np.float64)
        if points.ndim != 2 or points.shape[1] != self.index.dimensions or np.isinf(points).any():
            raise SubscriptionError(f"points need {self.index.dimensions} finite coordinates each")
        return points

    def _store_points(self, ids: Sequence[str] | pa.Array, times: ArrayLike, expires: ArrayLike, points: Floats) -> int:
        first = self._store(ids, times, expires)
        self.near.points[:, first : first + len(ids)] = points.T
        return first

    def _one_by_one(self, first: int, n: int) -> Entries:
        """Each event asks the index which balls it touches."""
        self._freshen(STALE)
        return self._publish(first, Concerned(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), NO_GROUPS))

    def _turned_round(self, first: int, times: Ints) -> Entries:
        """Each ball asks a grid of the events which it holds."""
        meter = self.memory.meter
        base = int(meter[NUMBER])
        batch = Batch(first, base, np.maximum.accumulate(np.maximum(times, meter[CLOCK])))
        self._freshen(0)
        self._near = self.near._replace(batch=grid_of(self.near.points, first, first + len(times)))
        meter[LIST_ROW] = meter[NTH] = 0
        notices = self._run(lambda: publish_turned_round(self.memory, self.near, batch))
        told = in_order(notices, base, len(times))
        columns = told.relevance, told.rank, told.promoted, told.at, told.number
        return Entries(told.slot, self._ids(told.event), *columns, self.names)

    def _freshen(self, stale: int) -> None:
        """A new grid when more than `stale` events are not in it, balls in order, and room for what kernels find."""
        self.index.settle()
        self._follow()
        meter, near = self.memory.meter, self.near
        meter[BALLS] = self.index.used
        stored = int(meter[STORED])
        if stored - meter[GRIDDED] > stale:
            live = self._is_live()
            live[int(meter[GRIDDED]) :] = True
            oldest = int(np.argmax(live)) if len(live) else 0
            near = near._replace(grid=grid_of(near.points, oldest, stored))
            meter[GRIDDED] = stored
        room = max(len(self.memory.events), len(self.memory.lists) + BLOCK, NEAR)
        if len(near.squares) < room:
            near = near._replace(squares=np.zeros(room))
            self.memory = self.memory._replace(hits=np.zeros(room, np.int32))
        self._near = near

    def _follow(self) -> None:
        """A list lies at the place of its ball, also when the index has moved the balls."""
        old, new = self.near.balls, self.index.balls
        if new.ball is not old.ball:
            moved = new.ball[new.ball != NONE]
            moved = moved[moved < len(old.place)]
            moved = moved[old.place[moved] != NONE]
            self.memory = with_rows(self.memory, len(new.ball), old.place[moved], new.place[moved])
            self.memory = with_views(self.memory, len(self.memory.mark) - LANES)
        if new is not old:
            self._near = self.near._replace(balls=new)

    def _is_live(self) -> NDArray[np.bool_]:
        """What the widest windows hold of the stored events: a refill may want it."""
        meter, stored = self.memory.meter, self.memory.events[: self.memory.meter[STORED]]
        clock = max(int(meter[CLOCK]), -(2**61))
        duration, counted = widest_windows(self.memory)
        live: NDArray[np.bool_] = stored["number"] > int(meter[NUMBER]) - counted
        if duration:
            live |= stored["time"] > clock - duration
        live &= stored["expires"] > clock
        return live

    def _forget_events(self, wanted: int, wanted_bytes: int) -> None:
        used = self._is_live()
        self.memory = with_events(self.memory, used, wanted, wanted_bytes)
        room, kept = len(self.memory.events), int(np.count_nonzero(used))
        points = np.zeros((self.index.dimensions, room + LANES))
        points[:, :kept] = self.near.points[:, : len(used)][:, used]
        self.memory.meter[GRIDDED] = 0
        self._near = self.near._replace(
            points=points,
            grid=grid_of(points, 0, 0),
            sought=np.zeros(room + NEAR, np.int32),
            sought_squares=np.zeros(room + NEAR),
        )


@kernel
def widest_windows(m: Memory) -> tuple[int, int]:
    """The greatest duration and the greatest count of any window; 0 for none."""
    duration = counted = 0
    for row in range(m.lists.size):
        own: ListRow = m.lists[row]
        if own.k != 0:
            duration = max(duration, 0 if own.duration == NEVER else own.duration)
            counted = max(counted, 0 if own.counted == NEVER else own.counted)
    return duration, counted
