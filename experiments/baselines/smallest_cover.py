"""The fewest rectangles that tell some points and no others, by exhaustive search: the judge of Theorems 2 and 4 of range-topk."""

from __future__ import annotations

import itertools
from functools import cache

from tidings.boards.paint.tiles import OBJECT


def smallest_cover(wanted, points):
    """The least number of boxes that hold every wanted point exactly once and no other of the points."""
    wanted = frozenset(wanted)
    lefts, lows = sorted({p[0] for p in wanted}), sorted({p[1] for p in wanted})
    boxes = set()
    for (a, b), (c, d) in itertools.product(_intervals(lefts), _intervals(lows)):
        inside = frozenset(p for p in points if a <= p[0] <= b and c <= p[1] <= d)
        if inside and inside <= wanted:
            boxes.add(inside)

    @cache
    def fewest(left):
        if not left:
            return 0
        first = min(left)
        return 1 + min(fewest(left - box) for box in boxes if first in box and box <= left)

    return fewest(wanted)


def _intervals(values):
    return [(a, b) for a in values for b in values if a <= b]


def hearers(message, watchers):
    """Numbers of the watchers (l, r) in a message's rectangle."""
    return [w for w, (l, r) in enumerate(watchers) if message[0] <= l <= message[2] and message[1] <= r <= message[3]]


def fewest_messages(messages, watchers):
    """The least number of messages that tell each watcher of the same objects as these do."""
    told = {}
    for message in messages:
        told.setdefault(int(message[OBJECT]), set()).update(watchers[w] for w in hearers(message, watchers))
    return sum(smallest_cover(points, watchers) for points in told.values())
