"""A batch of events through lists of ideal points, one subscription after the other.

Subscriptions do not influence each other, so a batch may be turned round: instead of asking for each event which balls it
touches, ask for each ball which of the batch's events it holds. A list then stays in the nearest cache while its events pass,
and a grid over the batch's points replaces the index of balls. Within a subscription everything happens in order: what
leaves, by the clock or by publication number, before each event that can enter. A radius that grows on the way (a refill)
asks the grid again for what is left.

The grid, r rows (events of the batch in order):

| array    | shape, dtype | meaning                                                                    |
|----------|--------------|----------------------------------------------------------------------------|
| `origin` | 2, f8        | the least coordinates in the first two dimensions                          |
| `scale`  | 2, f8        | cells per unit; cell = floor((x - origin) * scale)                         |
| `sides`  | 2, int64     | cells along each of the two                                                |
| `start`  | cells + 1    | cell c holds the positions [start[c], start[c + 1])                        |
| `row`    | r, int32     | the row at each position, ascending within a cell                          |
| `points` | d x r, f8    | coordinates by position                                                    |

Deviations: the paper goes event by event through all subscriptions. [topkw, Section 4]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, kernel
from tidings.engine.window_memory import CLOCK, DONE, NONE, NUMBER, OUT_FULL, POOL_FULL, ROW, SLOT
from tidings.engine.window_near import ROUNDING, squared_distance
from tidings.engine.window_passes import can_tell, join, leave

CELL_EVENTS = 4
WIDE, STEP = 32, 128
"""A ball that covers more than one cell in WIDE looks at the next STEP rows as they come, without the grid."""
FEW = 4
"""Rows left within reach for which it is not worth asking the grid again when the radius has halved."""


class Grid(NamedTuple):
    origin: NDArray[np.float64]
    scale: NDArray[np.float64]
    sides: NDArray[np.int64]
    start: NDArray[np.int64]
    row: NDArray[np.int32]
    points: NDArray[np.float64]


def grid_of(points: NDArray[np.float64]) -> Grid:
    """The grid of points given as d x r."""
    rows = points.shape[1]
    plane = points[:2] if len(points) > 1 else np.stack([points[0], np.zeros(rows)])
    cells = max(1, rows // CELL_EVENTS)
    sides = np.array([int(cells**0.5)] * 2 if len(points) > 1 else [cells, 1], np.int64)
    sides = np.maximum(sides, 1)
    origin, extent = plane.min(axis=1), np.ptp(plane, axis=1)
    scale = np.divide(sides, extent, out=np.zeros(2), where=extent > 0)
    cell = np.minimum(((plane - origin[:, None]) * scale[:, None]).astype(np.int64), sides[:, None] - 1)
    code = cell[0] * sides[1] + cell[1]
    row = np.argsort(code, kind="stable").astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(code, minlength=int(sides.prod())))])
    return Grid(origin, scale, sides, start, row, np.ascontiguousarray(points[:, row]))


@kernel
def publish_by_slot(m: Any, first: Any, base: Any, clock: Any, grid: Any) -> int:
    """Publish the events first, first + 1, ... with numbers base + 1, ... at the times clock[row]. Resumes where it stopped."""
    meter = m.meter
    hits, squares = np.empty(clock.size, np.int64), np.empty(clock.size)
    while meter[SLOT] < m.lists.size:
        if m.lists[meter[SLOT]].k != 0:
            stop = take_slot(m, meter[SLOT], first, base, clock, grid, hits, squares)
            if stop != DONE:
                return stop
        meter[SLOT] += 1
        meter[ROW] = 0
    meter[CLOCK], meter[NUMBER] = clock[-1], base + clock.size
    return DONE


@borrowing_kernel
def take_slot(m: Any, slot: Any, first: Any, base: Any, clock: Any, grid: Any, hits: Any, squares: Any) -> int:
    """One subscription hears the batch from meter[ROW] on: every earlier row has been dealt with."""
    meter = m.meter
    while meter[ROW] <= clock.size:
        reach = m.radius[slot]
        n, end = collect(m, slot, reach, grid, first, meter[ROW], hits, squares)
        i = 0
        while m.radius[slot] <= reach and (reach <= 2.0 * m.radius[slot] or i + FEW >= n):
            row = hits[i] if i < n else end
            if not can_tell(m.lists[slot], m.out, meter):
                return OUT_FULL
            if to_next_leaving(m, slot, base, clock, row):
                passed = meter[NUMBER] - base
                by_number = m.numbers[slot].key <= meter[NUMBER]
                leave(m, slot, first + passed - 1 if by_number else NONE)
                meter[ROW] = max(meter[ROW], passed)
            elif i < n:
                distance = np.sqrt(squared_distance(m.points, m.centre, m.weight, slot, first + row))
                if distance <= m.radius[slot]:
                    meter[CLOCK], meter[NUMBER] = clock[row], base + row + 1
                    if not join(m, slot, first + row, -distance):
                        return POOL_FULL
                meter[ROW] = row + 1
                i += 1
            elif end == clock.size:
                return DONE
            else:
                meter[ROW] = end
                break
    return DONE


@borrowing_kernel
def to_next_leaving(m: Any, slot: Any, base: Any, clock: Any, row: Any) -> bool:
    """Set clock and number to the slot's next deadline before `row` joins; False when there is none."""
    instant, number = m.instants[slot].key, m.numbers[slot].key
    if number <= base + row and instant > clock[number - base - 1]:
        m.meter[CLOCK], m.meter[NUMBER] = clock[number - base - 1], number
        return True
    if instant <= clock[min(row, clock.size - 1)]:
        m.meter[CLOCK], m.meter[NUMBER] = instant, base + np.searchsorted(clock, instant)
        return True
    return False


@kernel
def collect(m: Any, slot: Any, reach: float, grid: Any, first: Any, begin: int, hits: Any, squares: Any) -> tuple[int, int]:
    """Write to `hits`, ascending, the rows from `begin` on within reach of the slot's centre; how many, and up to which row."""
    rows = grid.row.size
    bound = reach * reach * ROUNDING
    x_first, x_last = cell_range(m, slot, reach, grid, 0)
    y_first, y_last = cell_range(m, slot, reach, grid, 1)
    n = 0
    if WIDE * (x_last - x_first + 1) * (y_last - y_first + 1) > grid.start.size:
        end = min(rows, begin + STEP)
        near_squares(m, slot, m.points, first + begin, first + end, squares)
        for row in range(begin, end):
            if squares[row - begin] <= bound:
                hits[n] = row
                n += 1
        return n, end
    for x in range(x_first, x_last + 1):
        lo, hi = grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]
        near_squares(m, slot, grid.points, lo, hi, squares)
        for position in range(lo, hi):
            if squares[position - lo] <= bound and grid.row[position] >= begin:
                hits[n] = grid.row[position]
                n += 1
    hits[:n].sort()
    return n, rows


@borrowing_kernel
def cell_range(m: Any, slot: Any, reach: float, grid: Any, d: int) -> tuple[int, int]:
    """The first and last cell along dimension d that can hold a point within reach; first > last when there is none."""
    last_cell = grid.sides[d] - 1
    if d >= m.points.shape[0]:
        return 0, last_cell
    if reach == np.inf:
        return 0, last_cell
    half = reach / np.sqrt(m.weight[slot, d]) * ROUNDING + 1e-300
    low = (m.centre[slot, d] - half - grid.origin[d]) * grid.scale[d]
    high = (m.centre[slot, d] + half - grid.origin[d]) * grid.scale[d]
    return int(min(max(np.floor(low), 0.0), last_cell)), int(min(max(np.floor(high), 0.0), last_cell))


@borrowing_kernel
def near_squares(m: Any, slot: Any, points: Any, lo: int, hi: int, squares: Any) -> None:
    """squares[:hi - lo] = squared distances of the positions [lo, hi)."""
    target = squares[: hi - lo]
    target[:] = 0.0
    for d in range(points.shape[0]):
        centre, weight = m.centre[slot, d], m.weight[slot, d]
        values = points[d, lo:hi]
        for i in range(target.size):
            off = values[i] - centre
            target[i] += weight * (off * off)
