"""Carrying messages over zones: greedily to the nearest zone that a rectangle meets, from there to all others that it meets.

Between zones, a message goes to the neighbour whose box is nearest to the rectangle, and never twice to the same zone. Once inside,
each zone passes it on to neighbours that the rectangle meets and that have not got it: a spanning tree of these zones, which are
connected because they tile a rectangle.

Paper: range-topk, section V; the forwarding is CAN's and Meghdoot's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidings.boards.paint.zones import Zones

Link = tuple[int, int]


def route(zones: Zones, start: int, box: NDArray[np.float64]) -> list[Link]:
    """Every overlay link that a message for `box` is sent over, from zone `start`."""
    targets = set(zones.meeting(box).tolist())
    gap = (np.maximum(0, np.maximum(zones.low - box[1], box[0] - zones.high)) ** 2).sum(1)
    links: list[Link] = []
    path, seen = [start], {start}
    while path[-1] not in targets:
        ways = [zone for zone in zones.neighbours[path[-1]] if zone not in seen]
        if ways:
            step = min(ways, key=lambda zone: (gap[zone], zone))
            links.append((path[-1], step))
            seen.add(step)
            path.append(step)
        else:  # a dead end: go back
            links.append((path.pop(), path[-1]))
    at = path[-1]
    reached, todo = {at}, [at]
    while todo:
        here = todo.pop(0)
        for zone in zones.neighbours[here]:
            if zone in targets and zone not in reached:
                reached.add(zone)
                links.append((here, zone))
                todo.append(zone)
    assert reached == targets, "zones that meet a rectangle are connected"
    return links


@dataclass(slots=True)
class Traffic:
    """Bytes sent: by the server, over overlay links, and over IP links, of which `distance[a, b]` lie between two brokers."""

    distance: NDArray[np.int16]
    server: int = 0
    overlay: int = 0
    ip: int = 0
    messages: int = 0
    most: int = 0
    _event: int = field(default=0, repr=False)

    def begin(self) -> None:
        """A new event: `most` is the largest number of bytes that the server sent for one."""
        self._event = 0

    def sent(self, size: int, count: int = 1) -> None:
        self.server += size * count
        self.messages += count
        self._event += size * count
        self.most = max(self.most, self._event)

    def carried(self, links: list[Link], size: int) -> None:
        self.overlay += size * len(links)
        self.ip += size * sum(int(self.distance[a, b]) for a, b in links)
