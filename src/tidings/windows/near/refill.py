"""Where the list of an ideal point that has run short finds its candidates again: among the points of all stored events.

The layout and the invariants stand in `near_memory`; `near_lists` says when a list is filled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined
from tidings.index.points.ball_index import ROUNDING
from tidings.index.points.grid import cell_range
from tidings.windows.memory import CLOCK, GRIDDED, NEVER, NONE, NUMBER, REFILLS
from tidings.windows.near.views import first_after, insert, leaving, ranks

SPARE = 1.2
"""How many times as many as it needs a refill expects within its first reach, if they lie as densely beyond the edge as before."""
GROWTH = 1.5
"""How much farther it looks again while it finds too few."""
WIDE = 32
"""A ball over more than one cell in WIDE is looked for among all events, without the grid."""


@borrowing_kernel
def refill(m: Any, place: Any) -> None:
    """Fill the view with the best live events at and after the old edge."""
    own = m.lists[place]
    m.meter[REFILLS] += 1
    known = own.viewed
    wanted = SPARE * (own.limit + 1) / (known + 1)
    reach = own.edge_distance * wanted ** (1.0 / m.point.size) if own.edge != NONE and own.edge_distance > 0.0 else np.inf
    reach, found = seek(m, place, reach)
    while reach < np.inf and own.viewed + found <= own.limit:
        reach, found = seek(m, place, reach * GROWTH)
    own.edge = NONE
    for i in range(found):
        event = np.int64(m.sought[i])
        distance = np.sqrt(m.sought_squares[i])
        if own.edge == NONE or distance <= own.edge_distance:
            insert(own, m, event, distance, leaving(own, m.events, event))
    recall(own, m, known)


@borrowing_kernel
def seek(m: Any, place: Any, reach: float) -> tuple[float, int]:
    """Write to `sought` the list's live candidates within reach that do not rank before its edge: how far it looked, how many.

    Events stored after the grid was made are looked at one by one; so are all when the ball covers much of the grid.
    """
    own, grid, meter = m.lists[place], m.grid, m.meter
    oldest = own.after if own.counted == NEVER else max(own.after, meter[NUMBER] - own.counted)
    first, last = first_after(m, oldest), first_after(m, meter[NUMBER])
    x_first, x_last, y_first, y_last = covered(grid, m.balls, place, reach)
    found, rest = 0, first
    if WIDE * (x_last - x_first + 1) * (y_last - y_first + 1) > grid.start.size:
        reach = np.inf
    bound = reach * reach * ROUNDING
    if reach < np.inf:
        for x in range(x_first, x_last + 1):
            lo, hi = grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]
            write_squares(m, place, grid.points, lo, hi, m.sought_squares[found:])
            begin = found
            for i in range(hi - lo):
                total, event = m.sought_squares[begin + i], np.int64(grid.row[lo + i])
                if total <= bound and first <= event < last and is_sought(own, m, event, total):
                    m.sought[found], m.sought_squares[found] = event, total
                    found += 1
        rest = max(first, meter[GRIDDED])
    if rest < last:
        write_squares(m, place, m.points, rest, last, m.sought_squares[found:])
    begin = found
    for i in range(last - rest):
        total = m.sought_squares[begin + i]
        if total <= bound and is_sought(own, m, rest + i, total):
            m.sought[found], m.sought_squares[found] = rest + i, total
            found += 1
    return reach, found


@inlined
def is_sought(own: Any, m: Any, event: Any, total: float) -> bool:
    if m.events[event].time <= own.since or leaving(own, m.events, event) <= m.meter[CLOCK]:
        return False
    return bool(own.edge == NONE or event == own.edge or not ranks(m, np.sqrt(total), event, own.edge_distance, own.edge))


@inlined
def covered(grid: Any, balls: Any, place: Any, reach: float) -> tuple[int, int, int, int]:
    """The first and last cell of the grid within reach, along x and y."""
    centre, weight = balls.centre, balls.weight
    half = reach / np.sqrt(weight[0, place]) * ROUNDING + 1e-300
    x_first, x_last = cell_range(grid, 0, centre[0, place], half)
    if centre.shape[0] == 1:
        return x_first, x_last, 0, 0
    half = reach / np.sqrt(weight[1, place]) * ROUNDING + 1e-300
    y_first, y_last = cell_range(grid, 1, centre[1, place], half)
    return x_first, x_last, y_first, y_last


@inlined
def write_squares(m: Any, place: Any, points: Any, lo: int, hi: int, squares: Any) -> None:
    """squares[:hi - lo] = squared distances of the positions [lo, hi), summed in the order of `square`."""
    target = squares[: hi - lo]
    target[:] = 0.0
    for d in range(points.shape[0]):
        centre, weight = m.balls.centre[d, place], m.balls.weight[d, place]
        values = points[d, lo:hi]
        for i in range(target.size):
            off = values[i] - centre
            target[i] += weight * (off * off)


@inlined
def square(m: Any, place: Any, event: Any) -> float:
    total = 0.0
    for d in range(m.points.shape[0]):
        off = m.points[d, event] - m.balls.centre[d, place]
        total += m.balls.weight[d, place] * (off * off)
    return total


@borrowing_kernel
def recall(own: Any, m: Any, known: int) -> None:
    """Those of the fallen that stand in the view again, from position `known` on, are told and not fallen."""
    kept = own.fallen_start
    for i in range(own.fallen_start, own.fallen_start + own.fallen):
        back = False
        for at in range(own.start + known, own.start + own.viewed):
            if m.mark[at] >> 1 == m.fallen[i]:
                m.mark[at] |= 1
                back = True
                break
        if not back:
            m.fallen[kept] = m.fallen[i]
            kept += 1
    own.fallen = kept - own.fallen_start
