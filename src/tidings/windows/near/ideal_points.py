"""A topic's subscriptions that are nothing but an ideal point, reached through an index of balls and not through matching.

Those that name the same attributes form a *group*: a `NearWindows` over points of these attributes. An event that lacks one of
them is counted there and concerns nobody. `rank.nearness` says which subscriptions these are.

What survives a restart: the state of each list that changed, and the points published since the last commit, one record for a
commit, until no window holds any of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.model.door.subscription import Subscription
from tidings.rank.nearness import IdealPoint, ideal_point
from tidings.windows.entries import Entries
from tidings.windows.memory import NEVER, Floats, Ints
from tidings.windows.near.windows import NearWindows
from tidings.windows.windows import UNREADABLE, Candidate

POINTS = "points\0"
"""How the records of published points begin; a subscription of such a name is none of ours."""

Attributes = tuple[str, ...]


class Group:
    """`records` are those of points that are kept: (name, greatest number), ascending."""

    def __init__(self, attributes: Attributes, windows: NearWindows) -> None:
        self.attributes = attributes
        self.windows = windows
        self.saved_up_to = windows.publications
        self.records: list[tuple[str, int]] = []

    def points(self, column: Callable[[str], Floats]) -> Floats:
        return np.stack([column(name) for name in self.attributes], axis=1)

    def new_points(self) -> tuple[str, str] | None:
        """The record of what was published since last asked."""
        events = self.windows.live_events(self.saved_up_to)
        self.saved_up_to = self.windows.publications
        if not events:
            return None
        name = f"{POINTS}{json.dumps(self.attributes)}\0{self.saved_up_to}"
        self.records.append((name, self.saved_up_to))
        return name, json.dumps(events)

    def gone_points(self) -> list[str]:
        """The records that no window needs any more."""
        oldest = self.windows.oldest_live()
        gone = [name for name, last in self.records if last < oldest]
        self.records = self.records[len(gone) :]
        return gone


class IdealPoints:
    def __init__(self) -> None:
        self._groups: dict[Attributes, Group] = {}
        self._home: dict[str, Group] = {}
        self._clock: int | None = None
        self._published = 0
        self._gone: list[str] = []

    def __contains__(self, id: str) -> bool:
        return id in self._home

    def __len__(self) -> int:
        return len(self._home)

    def activate(self, subscription: Subscription, point: IdealPoint) -> None:
        group = self._group(point.attributes)
        s = subscription
        assert s.window is not None
        assert s.since is not None
        group.windows.activate(s.id, point.centre, s.k, s.window, s.since, s.error, point.weights)
        self._home[s.id] = group

    def deactivate(self, id: str) -> None:
        group = self._home.pop(id)
        group.windows.deactivate(id)
        if not len(group.windows):
            self._gone += [name for name, _ in group.records]
            del self._groups[group.attributes]

    def publish(
        self, ids: Sequence[str] | pa.StringArray, at: Ints, expires: Ints, column: Callable[[str], Floats]
    ) -> list[Entries]:
        """Of each group; `column` gives an attribute of all events, NaN where it is missing."""
        told = [group.windows.publish_batch(ids, at, expires, group.points(column)) for group in self._groups.values()]
        last = int(at[0]) if len(at) == 1 else int(at.max())
        self._clock = last if self._clock is None else max(self._clock, last)
        self._published += len(ids)
        return told

    def advance(self, time: int) -> list[Entries]:
        self._clock = time if self._clock is None else max(self._clock, time)
        return [group.windows.advance(time) for group in self._groups.values()]

    @property
    def next_instant(self) -> int:
        """Nobody leaves a list before it."""
        return min((group.windows.next_instant for group in self._groups.values()), default=NEVER)

    def top(self, id: str, time: int) -> list[tuple[str, float]]:
        return self._home[id].windows.top(id, time)

    def candidates(self, id: str, time: int) -> list[Candidate]:
        """Of a list what stands in its view, and who was told."""
        return self._home[id].windows.candidates(id, time)

    def changed_state(self) -> Iterator[tuple[str, str]]:
        """What must be kept: the lists that changed since last asked, and the points that came."""
        for group in self._groups.values():
            yield from ((id, json.dumps(group.windows.state_of(id))) for id in group.windows.changed())
            points = group.new_points()
            if points is not None:
                yield points

    def gone_state(self) -> list[str]:
        gone = self._gone + [name for group in self._groups.values() for name in group.gone_points()]
        self._gone = []
        return gone

    def restore(
        self, clock: int | None, published: int, states: Mapping[str, Any], subscriptions: Iterable[Subscription]
    ) -> list[str]:
        """Go on from what `changed_state` gave; a subscription without a state has heard of nothing yet. What is lost."""
        self._clock, self._published = clock, published
        records, events, problems = _read_points(states)
        waiting = [(s, point) for s in subscriptions if (point := ideal_point(s)) is not None]
        for attributes in dict.fromkeys(point.attributes for _, point in waiting):
            known = {s.id: states[s.id] for s, point in waiting if point.attributes == attributes and s.id in states}
            state = {"clock": clock, "publications": published, "dimensions": len(attributes), "subscriptions": known}
            windows, lost = NearWindows.restore({**state, "events": events.get(attributes, [])})
            problems += lost
            group = Group(attributes, windows)
            group.records = [(name, last) for name, last, named in records if named == attributes]
            self._groups[attributes] = group
            self._home |= dict.fromkeys((id for id in known if id in windows), group)
        for subscription, point in waiting:
            if subscription.id not in self._home:
                self.activate(subscription, point)
        return problems

    def stats(self) -> dict[str, dict[str, int]]:
        """By attributes: lists, candidates, how many lists events have touched, and the blocks and balls they looked at."""
        return {
            ", ".join(group.attributes): {**group.windows.stats, **group.windows.index.stats} for group in self._groups.values()
        }

    def check(self) -> None:
        for id, group in self._home.items():
            assert id in group.windows
        for group in self._groups.values():
            group.windows.check()

    def _group(self, attributes: Attributes) -> Group:
        if attributes not in self._groups:
            windows = NearWindows(len(attributes))
            windows.set_clock(self._clock, self._published)
            self._groups[attributes] = Group(attributes, windows)
        return self._groups[attributes]


def _read_points(states: Mapping[str, Any]) -> tuple[list[tuple[str, int, Attributes]], dict[Attributes, list[Any]], list[str]]:
    """The records of points among `states`, as (name, greatest number, attributes); their events; what cannot be read."""
    records, events, problems = [], dict[Attributes, list[Any]](), []
    for name in (name for name in states if name.startswith(POINTS)):
        try:
            _, named, last = name.split("\0")
            attributes = tuple(json.loads(named))
            read = [_read_point(len(attributes), *event) for event in states[name]]
            records.append((name, int(last), attributes))
            events.setdefault(attributes, []).extend(read)
        except UNREADABLE as problem:
            problems.append(f"a record of published points cannot be read ({problem!r}); windows near ideal points may lose them")
    return sorted(records, key=lambda record: record[1]), events, problems


def _read_point(dimensions: int, id: str, time: int, expires: int | None, number: int, point: Sequence[float]) -> tuple[Any, ...]:
    if len(point) != dimensions:
        raise ValueError("a point of other attributes")
    return str(id), int(time), None if expires is None else int(expires), int(number), np.array(point, np.float64)
