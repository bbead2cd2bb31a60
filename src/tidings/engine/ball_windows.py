"""The subscriber's k around an ideal point: subscriptions without a filter that hear of the k nearest publications of any last w.

Every event concerns every subscription, so nothing may be paid for those that it cannot affect. Small batches go event by
event, through an index of balls whose radii are the current thresholds (`index.ball_index`); large ones are turned round,
subscription by subscription, with a grid over the batch (`window_batch`). Both give what `Windows` would, told of all
distances: relevance is minus the weighted Euclidean distance, the meaning of everything else is that of `windows`.

The points of all events that some window still holds are kept, to fill views that have run short, so each subscription needs
a window. [topkw, Sections 1.3, 4 and 6]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from tidings.engine.ranked_lists import Activation, Entry, EntryColumns, RankedLists, window_of
from tidings.engine.window_batch import grid_of, publish_by_slot
from tidings.engine.window_lists import before, leaving, watch
from tidings.engine.window_memory import (
    ALL,
    CLOCK,
    DONE,
    JOINING,
    NEVER,
    NONE,
    NUMBER,
    POOL_FULL,
    RAISED,
    ROW,
    SLOT,
    STORED,
    Records,
    padded,
)
from tidings.engine.window_near import refill_near, set_radius, squared_distance
from tidings.engine.window_passes import advance_to, publish_rows
from tidings.errors import SubscriptionError
from tidings.index.ball_index import BallIndex
from tidings.model.window import Window

CHUNK = 8192
"""Events that are turned round at once: their grid fits the second-level cache."""
LARGEST_K = 100_000


class BallWindows(RankedLists):
    balls_per_event = 64
    """About how many balls can be visited in a batch for the price of one event's way through the index."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.index = BallIndex(dimensions)
        self._memory = self._memory._replace(centre=self.index.centre, weight=self.index.weight)

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
        view = (k or 0) + (k or 0) // 2 + 10
        slot = self._activate(subscription, Activation(k, window, time, error), view)
        self._memory.lists["near"][slot] = 1
        self.index.insert(slot, centre, weight)
        if len(self._memory.centre) < len(self.index.centre):
            radius = padded(self._memory.radius, len(self.index.centre))
            self._memory = self._memory._replace(centre=self.index.centre, weight=self.index.weight, radius=radius)
        self._memory.radius[slot] = -np.inf if k == 0 else np.inf

    def deactivate(self, subscription: str) -> None:
        slot = self.slot(subscription)
        super().deactivate(subscription)
        self.index.delete(slot)
        self._memory.radius[slot] = -np.inf

    def publish(self, event: str, time: int, expires: int | None, point: ArrayLike) -> list[Entry]:
        lives_until = NEVER if expires is None else expires
        return self.entries(self.publish_batch([event], [time], [lives_until], np.asarray(point, np.float64).reshape(1, -1)))

    def publish_batch(
        self, events: Sequence[str] | pa.Array, times: ArrayLike, expires: ArrayLike, points: ArrayLike
    ) -> EntryColumns:
        """Publish in this order; `points` is events x dimensions, `expires` is NEVER for an event without."""
        times, expires = np.asarray(times, np.int64), np.asarray(expires, np.int64)
        points = np.ascontiguousarray(np.asarray(points, np.float64).T)
        if points.shape != (self.index.dimensions, len(events)) or not np.isfinite(points).all():
            raise SubscriptionError(f"points need {self.index.dimensions} finite coordinates for each of the {len(events)} events")
        publish = self._one_by_one if len(events) * self.balls_per_event < len(self) else self._turned_round
        columns = []
        for begin in range(0, len(events), CHUNK):
            rows = slice(begin, begin + CHUNK)
            first = self._store(events[rows], times[rows], expires[rows])
            self._memory.points[:, first : first + len(times[rows])] = points[:, rows]
            columns.append(self._columns(publish(first, times[rows])))
        return columns[0] if len(columns) == 1 else self._joined(columns)

    def top(self, subscription: str, time: int) -> list[tuple[str, float]]:
        slot, now = self.slot(subscription), max(time, int(self._memory.meter[CLOCK]))
        if self._memory.lists["bounded"][slot] or self._memory.lists["k"][slot] == ALL:
            return super().top(subscription, time)
        live = [(-relevance, int(self._memory.events["time"][e]), self._id(e), e) for e, relevance in self._all_live(slot, now)]
        return [(event, -distance) for distance, _, event, _ in sorted(live)[: self._memory.lists["k"][slot]]]

    def state_of(self, subscription: str) -> dict[str, Any]:
        """An exact list is found again from the live events, so of its candidates only those already told are kept."""
        slot, state = self.slot(subscription), super().state_of(subscription)
        if not self._memory.lists["bounded"][slot]:
            state["candidates"] = [candidate for candidate in state["candidates"] if candidate[-1]]
        state["after"] = int(self._memory.lists["after"][slot])
        return {**state, "centre": self.index.centre[slot].tolist(), "weights": self.index.weight[slot].tolist()}

    def state(self) -> dict[str, Any]:
        """Also the live events, as [id, time, expires, number, point], ascending by number."""
        memory = self._memory
        live = np.flatnonzero(self._live_events()).tolist()
        times, expires, numbers = (memory.events[field].tolist() for field in ("time", "expires", "number"))
        events = [
            [self._id(e), times[e], None if expires[e] == NEVER else expires[e], numbers[e], memory.points[:, e].tolist()]
            for e in live
        ]
        return {**super().state(), "dimensions": self.index.dimensions, "events": events}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> BallWindows:
        """Go on from what `state` gave."""
        windows = cls(state["dimensions"])
        windows._set_clock(state)
        handles = windows._store_saved(state["events"])
        for subscription, saved in state["subscriptions"].items():
            window = window_of(saved)
            assert window is not None
            arguments = saved["k"], window, saved["since"], saved["error"], saved["weights"]
            windows.activate(subscription, saved["centre"], *arguments)
            windows._memory.lists["after"][windows.slot(subscription)] = saved["after"]
            windows._take_back(windows.slot(subscription), saved["candidates"], handles)
        windows.changed()
        return windows

    def check(self) -> None:
        super().check()
        self.index.raise_reach(*self._raised(), self._memory.radius)
        self.index.check(self._memory.radius)
        for slot in self._slots.values():
            own = self._memory.lists[slot]
            if own["k"] > 0 and not own["bounded"]:
                self._check_view(slot)

    def _check_view(self, slot: int) -> None:
        """Every live event that ranks before the edge is in the view."""
        memory, own = self._memory, self._memory.lists[slot]
        edge, edge_relevance = int(own["edge"]), float(own["edge_relevance"])
        view = set(memory.pool["event"][own["start"] : own["start"] + own["viewed"]].tolist())
        for event, relevance in self._all_live(slot, int(memory.meter[CLOCK])):
            assert event in view or (
                edge != NONE and not before(memory.events, memory.id_bytes, relevance, event, edge_relevance, edge)
            )
        assert memory.radius[slot] == (np.inf if edge == NONE else -edge_relevance)

    def _one_by_one(self, first: int, times: NDArray[np.int64]) -> list[Records]:
        """Each event asks the index which balls it touches."""
        parts, meter = [], self._memory.meter
        for event, time in enumerate(times.tolist(), first):
            while not advance_to(self._memory, max(time, int(meter[CLOCK]))):
                parts.append(self._drain())
                self._widen_out()
            self.index.raise_reach(*self._raised(), self._memory.radius)
            slots, distances = self.index.touch(self._memory.points[:, event].copy(), self._memory.radius)
            meter[ROW] = meter[JOINING] = 0
            starts = np.array([0, len(slots)])
            while (stop := publish_rows(self._memory, event, starts, slots, -distances)) != DONE:
                parts.append(self._drain())
                self._widen_pool() if stop == POOL_FULL else self._widen_out()
        return [*parts, self._drain()]

    def _turned_round(self, first: int, times: NDArray[np.int64]) -> list[Records]:
        """Each ball asks a grid of the events which it holds."""
        meter = self._memory.meter
        base = int(meter[NUMBER])
        clock = np.maximum.accumulate(np.maximum(times, meter[CLOCK]))
        grid = grid_of(self._memory.points[:, first : first + len(times)])
        meter[SLOT] = meter[ROW] = 0
        parts = []
        while (stop := publish_by_slot(self._memory, first, base, clock, grid)) != DONE:
            parts.append(self._drain())
            self._widen_pool() if stop == POOL_FULL else self._widen_out()
        notices = np.concatenate([*parts, self._drain()])
        return [notices[np.argsort(notices["at"], kind="stable")]]

    def _raised(self) -> tuple[NDArray[np.int32]]:
        """The slots whose radius has grown since last asked; all of them when there were too many to write down."""
        raised, count = self._memory.raised, int(self._memory.meter[RAISED])
        self._memory.meter[RAISED] = 0
        return (np.arange(len(self._names), dtype=np.int32) if count == len(raised) else raised[:count].copy(),)

    def _joined(self, columns: Sequence[EntryColumns]) -> EntryColumns:
        slot, event, *rest = zip(*columns, strict=True)
        return EntryColumns(np.concatenate(slot), pa.concat_arrays(event), *(np.concatenate(arrays) for arrays in rest))

    def _live_events(self) -> NDArray[np.bool_]:
        """What the widest windows hold: a refill may want it."""
        memory = self._memory
        stored = memory.events[: memory.meter[STORED]]
        clock, number = max(int(memory.meter[CLOCK]), -(2**61)), int(memory.meter[NUMBER])
        live = np.zeros(len(stored), np.bool_)
        for field, seen, now in (("counted", "number", number), ("duration", "time", clock)):
            spans = memory.lists[field][(memory.lists["near"] == 1) & (memory.lists[field] != NEVER)]
            if len(spans):
                live |= stored[seen] > now - int(spans.max())
        return live & (stored["expires"] > clock)

    def _all_live(self, slot: int, now: int) -> list[tuple[int, float]]:
        """(event, relevance) of every published event that is a candidate of the slot at `now`, found without its view."""
        memory = self._memory
        stored = memory.events[: memory.meter[STORED]]
        own = memory.lists[slot]
        published = (own["after"] < stored["number"]) & (stored["number"] <= memory.meter[NUMBER]) & (stored["time"] > own["since"])
        result = []
        for event in np.flatnonzero(published).tolist():
            instant, number = leaving(memory.lists[slot], memory.events[event])
            if instant > now and number > memory.meter[NUMBER]:
                result.append((event, -float(np.sqrt(squared_distance(memory.points, memory.centre, memory.weight, slot, event)))))
        return result

    def _store_saved(self, events: Sequence[Sequence[Any]]) -> dict[int, int]:
        """Take back live events; their handles by publication number."""
        ids, times, expires, numbers, points = zip(*events, strict=True) if events else ((), (), (), (), ())
        first = self._store(list(ids), times, [NEVER if e is None else e for e in expires])
        self._memory.events["number"][first : first + len(events)] = numbers
        if events:
            self._memory.points[:, first : first + len(events)] = np.array(points).T
        return {number: first + i for i, number in enumerate(numbers)}

    def _take_back(self, slot: int, candidates: Sequence[Sequence[Any]], handles: Mapping[int, int]) -> None:
        """A bounded queue takes its saved candidates; an exact list takes them as told, and its view from the live events."""
        lists = self._memory.lists
        if lists["k"][slot] in (0, ALL):
            return
        self._put_candidates(slot, candidates, handles, int(lists["limit"][slot]) + len(candidates) + 8)
        if lists["bounded"][slot]:
            lists["viewed"][slot] = len(candidates)
        else:
            refill_near(self._memory, slot)
        watch(self._memory, slot)
        memory = self._memory
        set_radius(memory.lists[slot], memory.pool, memory.radius, memory.raised, memory.meter, slot)
