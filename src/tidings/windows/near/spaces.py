"""A topic's subscriptions that are nothing but an ideal point, reached through an index of balls and not through matching.

Those that name the same attributes share a *space*: a `BallWindows` over points of these attributes. An event that lacks one of
them is counted there and concerns nobody. `rank.nearness` says which subscriptions these are.

What survives a restart: the state of each list that changed, and the points published since the last commit, one record for a
commit, until no window holds any of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.rank.nearness import IdealPoint, ideal_point
from tidings.windows.memory import NEVER
from tidings.windows.near.ball_windows import BallWindows
from tidings.windows.ranked_lists import Entry

POINTS = "points\0"
"""How the records of published points begin; a subscription of such a name is none of ours."""

Attributes = tuple[str, ...]


class Space:
    """`rows` are the records of points that are kept: (name, greatest number), ascending."""

    def __init__(self, attributes: Attributes, windows: BallWindows) -> None:
        self.attributes = attributes
        self.windows = windows
        self.saved_up_to = windows.publications
        self.rows: list[tuple[str, int]] = []

    def points(self, events: Sequence[Event]) -> NDArray[np.float64]:
        return np.array([[event.values.get(name, np.nan) for name in self.attributes] for event in events], np.float64)

    def new_points(self) -> tuple[str, str] | None:
        """The record of what was published since last asked."""
        events = self.windows.live_events(self.saved_up_to)
        self.saved_up_to = self.windows.publications
        if not events:
            return None
        name = f"{POINTS}{json.dumps(self.attributes)}\0{self.saved_up_to}"
        self.rows.append((name, self.saved_up_to))
        return name, json.dumps(events)

    def gone_points(self) -> list[str]:
        """The records that no window needs any more."""
        oldest = self.windows.oldest_live()
        gone = [name for name, last in self.rows if last < oldest]
        self.rows = self.rows[len(gone) :]
        return gone


class NearSpaces:
    def __init__(self) -> None:
        self._spaces: dict[Attributes, Space] = {}
        self._home: dict[str, Space] = {}
        self._clock: int | None = None
        self._published = 0
        self._gone: list[str] = []

    def __contains__(self, id: str) -> bool:
        return id in self._home

    def __len__(self) -> int:
        return len(self._home)

    def activate(self, subscription: Subscription, point: IdealPoint) -> None:
        space = self._space(point.attributes)
        s = subscription
        assert s.window is not None
        assert s.since is not None
        space.windows.activate(s.id, point.centre, s.k, s.window, s.since, s.error, point.weights)
        self._home[s.id] = space

    def deactivate(self, id: str) -> None:
        space = self._home.pop(id)
        space.windows.deactivate(id)
        if not len(space.windows):
            self._gone += [name for name, _ in space.rows]
            del self._spaces[space.attributes]

    def publish(self, events: Sequence[Event], at: Sequence[int]) -> list[Entry]:
        """Of all spaces, in order of time."""
        entries = []
        expires = [NEVER if event.expires is None else event.expires for event in events]
        for space in self._spaces.values():
            windows, points = space.windows, space.points(events)
            if len(events) == 1:
                entries += windows.publish(events[0].id, at[0], events[0].expires, points[0])
            else:
                entries += windows.entries(windows.publish_batch([event.id for event in events], at, expires, points))
        if events:
            self._clock = max(at) if self._clock is None else max(self._clock, *at)
            self._published += len(events)
        return sorted(entries, key=lambda entry: entry.at)

    def advance(self, time: int) -> list[Entry]:
        self._clock = time if self._clock is None else max(self._clock, time)
        entries = [entry for space in self._spaces.values() for entry in space.windows.advance(time)]
        return sorted(entries, key=lambda entry: entry.at)

    def top(self, id: str, time: int) -> list[tuple[str, float]]:
        return self._home[id].windows.top(id, time)

    def changed_state(self) -> Iterator[tuple[str, str]]:
        """What must be kept: the lists that changed since last asked, and the points that came."""
        for space in self._spaces.values():
            yield from ((id, json.dumps(space.windows.state_of(id))) for id in space.windows.changed())
            points = space.new_points()
            if points is not None:
                yield points

    def gone_state(self) -> list[str]:
        gone = self._gone + [name for space in self._spaces.values() for name in space.gone_points()]
        self._gone = []
        return gone

    def restore(self, clock: int | None, published: int, states: Mapping[str, Any], subscriptions: Iterable[Subscription]) -> None:
        """Go on from what `changed_state` gave; a subscription without a state has heard of nothing yet."""
        self._clock, self._published = clock, published
        records = sorted((int(name.rsplit("\0", 1)[1]), name) for name in states if name.startswith(POINTS))
        events: dict[Attributes, list[Any]] = {}
        for _, name in records:
            events.setdefault(tuple(json.loads(name.split("\0")[1])), []).extend(states[name])
        waiting = [(s, point) for s in subscriptions if (point := ideal_point(s)) is not None]
        for attributes in dict.fromkeys(point.attributes for _, point in waiting):
            known = {s.id: states[s.id] for s, point in waiting if point.attributes == attributes and s.id in states}
            state = {"clock": clock, "publications": published, "dimensions": len(attributes), "subscriptions": known}
            space = Space(attributes, BallWindows.restore({**state, "events": events.get(attributes, [])}))
            space.rows = [(name, last) for last, name in records if tuple(json.loads(name.split("\0")[1])) == attributes]
            self._spaces[attributes] = space
            self._home |= dict.fromkeys(known, space)
        for subscription, point in waiting:
            if subscription.id not in self._home:
                self.activate(subscription, point)

    def stats(self) -> dict[str, dict[str, int]]:
        """By attributes: lists, candidates, how many lists events have touched, and the blocks and balls they looked at."""
        return {
            ", ".join(space.attributes): {**space.windows.stats, **space.windows.index.stats} for space in self._spaces.values()
        }

    def check(self) -> None:
        for id, space in self._home.items():
            assert id in space.windows
        for space in self._spaces.values():
            space.windows.check()

    def _space(self, attributes: Attributes) -> Space:
        if attributes not in self._spaces:
            windows = BallWindows(len(attributes))
            windows.start(self._clock, self._published)
            self._spaces[attributes] = Space(attributes, windows)
        return self._spaces[attributes]
