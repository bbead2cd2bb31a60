"""The subscription space cut into zones: a content-addressable network with Meghdoot's mapping.

A watcher of [l, r] is the point (l, r); whoever has the zone that holds that point serves it. Zones are boxes that tile the whole
space. They come of the paper's joins (`joined`: a broker joins at a point, usually that of a watcher, so that crowded parts are cut
finer, and takes half of the zone it falls in) or of a sample of watchers (`balanced`: the most crowded zone is cut at the median,
the axes in turn). Zones that touch along an edge are neighbours, which the paper's network forwards over.

| array    | shape, dtype   | meaning                                                    |
|----------|----------------|------------------------------------------------------------|
| `low`    | b x 2, float64 | a zone's least l and r; -inf at the rim of the space        |
| `high`   | b x 2, float64 | its greatest; low <= (l, r) < high                          |

Cost: a cut tries all zones; `meeting` and `owners` too (one vector test a zone).

Paper: range-topk, section V (network setup), after CAN and Meghdoot. Deviation: cuts at the median where the sample is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Zones:
    def __init__(self, low: Floats, high: Floats) -> None:
        self.low, self.high = low, high

    @classmethod
    def joined(cls, joins: Floats, lo: float, hi: float) -> Zones:
        """One zone, and one more for each point in `joins` (b - 1 x 2). [lo, hi] is where l and r lie, outliers apart."""
        low, high, depth = [np.array([lo, lo])], [np.array([hi, hi])], [0]
        for point in np.clip(joins, lo, np.nextafter(hi, lo)):
            inside = (np.array(low) <= point) & (point < np.array(high))
            at = int(np.flatnonzero(inside.all(1))[0])
            axis = depth[at] % 2
            _cut(low, high, depth, at, axis, (low[at][axis] + high[at][axis]) / 2)
        made = cls(np.array(low), np.array(high))
        made.low[made.low == lo], made.high[made.high == hi] = -np.inf, np.inf
        return made

    @classmethod
    def balanced(cls, sample: Floats, count: int) -> Zones:
        """At most `count` zones with about as many points of the sample (m x 2) each."""
        low, high, depth = [np.full(2, -np.inf)], [np.full(2, np.inf)], [0]
        parts = [np.asarray(sample, np.float64)]
        whole: set[int] = set()
        while len(low) < count and len(whole) < len(low):
            at = max((zone for zone in range(len(low)) if zone not in whole), key=lambda zone: len(parts[zone]))
            found = _median(parts[at], depth[at] % 2)
            if found is None:
                whole.add(at)
                continue
            axis, cut = found
            _cut(low, high, depth, at, axis, cut)
            above = parts[at][:, axis] >= cut
            parts.append(parts[at][above])
            parts[at] = parts[at][~above]
        return cls(np.array(low), np.array(high))

    def split(self, zone: int, points: Floats) -> Zones:
        """With one zone more, the last, which takes half of these points of a zone; as they are if there is no half."""
        widths = np.diff(np.clip(np.array([self.low[zone], self.high[zone]]), -1e300, 1e300), axis=0)[0]
        found = _median(points, int(np.argmax(widths)))
        if found is None:
            return self
        low, high = list(self.low.copy()), list(self.high.copy())
        _cut(low, high, [0] * len(low), zone, *found)
        return Zones(np.array(low), np.array(high))

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def middle(self) -> Floats:
        """A point inside each, for routing."""
        ends = np.concatenate([self.low, self.high])
        ends = ends[np.isfinite(ends)]
        lo, hi = (0.0, 1.0) if not len(ends) else (ends.min() - 1, ends.max() + 1)
        middle: Floats = (np.maximum(self.low, lo) + np.minimum(self.high, hi)) / 2
        return middle

    @cached_property
    def neighbours(self) -> list[list[int]]:
        return _neighbours(self.low, self.high)

    def owner(self, l: float, r: float) -> int:
        """The zone of a watcher."""
        return int(self.owners(np.array([[l, r]]))[0])

    def owners(self, points: Floats) -> NDArray[np.int64]:
        """The zones of watchers (m x 2)."""
        owner = np.zeros(len(points), np.int64)
        for zone, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            owner[((low <= points) & ((points < high) | np.isposinf(high))).all(1)] = zone
        return owner

    def meeting(self, box: Floats) -> NDArray[np.int64]:
        """Zones that share a point with a closed rectangle (2 x 2)."""
        return np.flatnonzero(self.meeting_all(box[None])[0])

    def meeting_all(self, boxes: Floats) -> NDArray[np.bool_]:
        """The same of many (n x 2 x 2), as a mask (n x b)."""
        least, greatest = np.ascontiguousarray(boxes[:, 0].T), np.ascontiguousarray(boxes[:, 1].T)
        met = np.ones((len(self), len(boxes)), np.bool_)
        for zone, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            for d in range(2):
                met[zone] &= low[d] <= greatest[d]
                if high[d] < np.inf:
                    met[zone] &= least[d] < high[d]
        return met.T

    def to_json(self) -> dict[str, Any]:
        """null is infinite."""
        return {"low": _finite(self.low), "high": _finite(self.high)}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Zones:
        ends = zip(("low", "high"), (-np.inf, np.inf), strict=True)
        return cls(*(np.array([[end if v is None else v for v in row] for row in said[name]], float) for name, end in ends))

    def check(self) -> None:
        """Zones tile: each middle has one owner, and every zone is reached over neighbours."""
        assert self.owners(self.middle).tolist() == list(range(len(self)))
        reached, todo = {0}, [0]
        while todo:
            fresh = set(self.neighbours[todo.pop()]) - reached
            reached |= fresh
            todo += fresh
        assert len(reached) == len(self)
        assert all(a in self.neighbours[b] for a in range(len(self)) for b in self.neighbours[a])


def _cut(low: list[Floats], high: list[Floats], depth: list[int], at: int, axis: int, cut: float) -> None:
    """Zone `at` keeps what lies below; a new one, the last, has the rest."""
    low.append(low[at].copy())
    high.append(high[at].copy())
    low[-1][axis] = cut
    high[at] = high[at].copy()
    high[at][axis] = cut
    depth[at] += 1
    depth.append(depth[at])


def _median(points: Floats, axis: int) -> tuple[int, float] | None:
    """An axis, that one rather than the other, and a finite value with points on either side; None if there is none."""
    for d in (axis, 1 - axis):
        values = np.sort(points[:, d])
        above = values[np.isfinite(values) & (values > values[:1])]
        if len(above):
            return d, float(max(above[0], min(values[len(values) // 2], above[-1])))
    return None


def _finite(ends: Floats) -> list[list[float | None]]:
    return [[value if np.isfinite(value) else None for value in row] for row in ends.tolist()]


def _neighbours(low: Floats, high: Floats) -> list[list[int]]:
    """Zones that touch along an edge of positive length."""
    found: list[list[int]] = []
    for zone in range(len(low)):
        overlap = np.minimum(high, high[zone]) - np.maximum(low, low[zone])
        touching = ((overlap == 0).sum(1) == 1) & ((overlap > 0).sum(1) == 1)
        found.append(np.flatnonzero(touching).tolist())
    return found
