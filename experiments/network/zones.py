"""The subscription space cut into zones, one a broker: a content-addressable network with Meghdoot's mapping.

A watcher of [l, r] is the point (l, r); the broker whose zone holds that point is its gateway. Zones are boxes that tile the whole
space: a broker joins at a point, usually that of a watcher, so that crowded parts are cut finer, and takes half of the zone it
falls in. Zones that touch along an edge are neighbours and can send to each other.

| array    | shape, dtype   | meaning                                                    |
|----------|----------------|------------------------------------------------------------|
| `low`    | b x 2, float64 | a zone's least l and r; -inf at the rim of the space        |
| `high`   | b x 2, float64 | its greatest; low <= (l, r) < high                          |
| `middle` | b x 2, float64 | a point inside, for routing                                 |

`neighbours[zone]` lists zones. Cost: a join tries all zones; `meeting` too (one vector test).

Paper: range-topk, section V (network setup), after CAN and Meghdoot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Zones:
    def __init__(self, joins: Floats, lo: float, hi: float) -> None:
        """One zone, and one more for each point in `joins` (b - 1 x 2). [lo, hi] is where l and r lie, outliers apart."""
        low, high, depth = [np.array([lo, lo])], [np.array([hi, hi])], [0]
        for point in joins:
            at = _holding(np.array(low), np.array(high), np.clip(point, lo, np.nextafter(hi, lo)))
            axis = depth[at] % 2
            cut = (low[at][axis] + high[at][axis]) / 2
            low.append(low[at].copy())
            high.append(high[at].copy())
            low[-1][axis] = high[at][axis] = cut
            depth[at] += 1
            depth.append(depth[at])
        self.low, self.high = np.array(low), np.array(high)
        self.middle = (self.low + self.high) / 2
        self.neighbours = _neighbours(self.low, self.high)
        self.low[self.low == lo] = -np.inf
        self.high[self.high == hi] = np.inf

    def __len__(self) -> int:
        return len(self.low)

    def owner(self, l: float, r: float) -> int:
        """The zone of a watcher."""
        point = np.array([l, r])
        inside = (self.low <= point) & ((point < self.high) | np.isposinf(self.high))
        return int(np.flatnonzero(inside.all(1))[0])

    def meeting(self, box: Floats) -> NDArray[np.int64]:
        """Zones that share a point with a closed rectangle (2 x 2)."""
        return np.flatnonzero(((self.low <= box[1]) & ((box[0] < self.high) | np.isposinf(self.high))).all(1))

    def check(self) -> None:
        """Zones tile: each middle has one owner, and every zone is reached over neighbours."""
        assert [self.owner(l, r) for l, r in self.middle] == list(range(len(self)))
        reached, todo = {0}, [0]
        while todo:
            fresh = set(self.neighbours[todo.pop()]) - reached
            reached |= fresh
            todo += fresh
        assert len(reached) == len(self)
        assert all(a in self.neighbours[b] for a in range(len(self)) for b in self.neighbours[a])


def _holding(low: Floats, high: Floats, point: Floats) -> int:
    return int(np.flatnonzero(((low <= point) & (point < high)).all(1))[0])


def _neighbours(low: Floats, high: Floats) -> list[list[int]]:
    """Zones that touch along an edge of positive length."""
    found: list[list[int]] = []
    for zone in range(len(low)):
        overlap = np.minimum(high, high[zone]) - np.maximum(low, low[zone])
        touching = ((overlap == 0).sum(1) == 1) & ((overlap > 0).sum(1) == 1)
        found.append(np.flatnonzero(touching).tolist())
    return found
