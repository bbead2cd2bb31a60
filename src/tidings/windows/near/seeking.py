"""Where the list of an ideal point that has run short finds its candidates again: among the points of all stored events.

Layout and invariants stand in `memory` and `near.points`; `lists` says when a list is filled.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import borrowing_kernel, inlined
from tidings.index.packed.simd import wide
from tidings.index.points.ball_index import ROUNDING
from tidings.windows.memory import CLOCK, GRIDDED, NEVER, NONE, NUMBER, ListRow, Memory
from tidings.windows.near.points import Points, covered, write_squares
from tidings.windows.sorted_view import first_after, leaving, put, ranks

SPARE = 1.2
"""How many times as many as it needs a refill expects within its first reach, if they lie as densely beyond the edge as before."""
GROWTH = 1.5
"""How much farther it looks again while it finds too few."""
WIDE = 32
"""A ball over more than one cell in WIDE is looked for among all events, without the grid."""


@borrowing_kernel
def refill_from_points(m: Memory, near: Points, row: int) -> None:
    """Fill the view with the best live events at and after the old edge."""
    own: ListRow = m.lists[row]
    known = own.viewed
    wanted = SPARE * (own.limit + 1) / (known + 1)
    reach = own.edge_cost * wanted ** (1.0 / near.point.size) if own.edge != NONE and own.edge_cost > 0.0 else np.inf
    reach, found = seek(m, near, row, reach)
    while reach < np.inf and own.viewed + found <= own.limit:
        reach, found = seek(m, near, row, reach * GROWTH)
    own.edge = NONE
    for i in range(found):
        event, cost = wide(near.sought[i]), np.sqrt(near.sought_squares[i])
        if own.edge == NONE or ranks(m, cost, event, own.edge_cost, own.edge):
            put(m, own, 2 * event, cost, leaving(m, own, m.events[event]), wide(0))
            if own.viewed > own.limit:
                # Whoever was told ranks before the old edge, so only what was found here falls off, and nobody is to be remembered.
                own.viewed = own.limit
                own.edge, own.edge_cost = wide(m.mark[own.start + own.limit] >> 1), m.cost[own.start + own.limit]
    recall(m, own, known)


@borrowing_kernel
def seek(m: Memory, near: Points, row: int, reach: float) -> tuple[float, int]:
    """Write to `sought` the list's live candidates within reach that do not rank before its edge: how far it looked, how many.

    Events stored after the grid was made are looked at one by one; so are all when the ball covers much of the grid.
    """
    own: ListRow = m.lists[row]
    grid, squares, meter = near.grid, near.sought_squares, m.meter
    oldest = own.after if own.counted == NEVER else max(own.after, meter[NUMBER] - own.counted)
    first, last = first_after(m, oldest), first_after(m, meter[NUMBER])
    x_first, x_last, y_first, y_last = covered(grid, near.balls, row, reach)
    found, rest = 0, first
    if WIDE * (x_last - x_first + 1) * (y_last - y_first + 1) > grid.start.size:
        reach = np.inf
    bound = reach * reach * ROUNDING
    if reach < np.inf:
        for x in range(x_first, x_last + 1):
            lo, hi = grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]
            write_squares(near.balls, row, grid.points, lo, hi, squares[found:])
            begin = found
            for i in range(hi - lo):
                total, event = squares[begin + i], wide(grid.row[lo + i])
                if total <= bound and first <= event < last and is_sought(m, own, event, total):
                    near.sought[found], squares[found] = event, total
                    found += 1
        rest = max(first, meter[GRIDDED])
    if rest < last:
        write_squares(near.balls, row, near.points, rest, last, squares[found:])
    begin = found
    for i in range(last - rest):
        total = squares[begin + i]
        if total <= bound and is_sought(m, own, rest + i, total):
            near.sought[found], squares[found] = rest + i, total
            found += 1
    return reach, found


@inlined
def is_sought(m: Memory, own: ListRow, event: int, total: float) -> bool:
    if total == np.inf or m.events[event].time <= own.since or leaving(m, own, m.events[event]) <= m.meter[CLOCK]:
        return False
    return bool(own.edge == NONE or event == own.edge or not ranks(m, np.sqrt(total), event, own.edge_cost, own.edge))


@borrowing_kernel
def recall(m: Memory, own: ListRow, known: int) -> None:
    """Those of the spare that stand in the view again, from position `known` on, are told and not spare."""
    kept = own.spare_start
    for i in range(own.spare_start, own.spare_start + own.spare):
        back = False
        for at in range(own.start + known, own.start + own.viewed):
            if m.mark[at] | 1 == m.spare_mark[i]:
                m.mark[at] |= 1
                back = True
                break
        if not back:
            m.spare_mark[kept], m.spare_cost[kept] = m.spare_mark[i], m.spare_cost[i]
            kept += 1
    own.spare = kept - own.spare_start
