"""A batch of events turned round, for lists of ideal points.

Subscriptions do not influence each other: instead of asking for each event which balls it touches, ask for each ball which of
the batch's events it holds. A list then stays in the nearest cache while its events pass. The balls of a block are neighbours,
so the events near any of them are gathered once for the block, from a grid, in order of their rows; each ball chooses its
own by testing all of those at once. Where balls are too wide or too far apart to share, a ball asks the grid itself.

Within a list everything happens in order: what leaves, by the clock or by publication number, before each event that can enter.
A radius that grows on the way (a refill) asks again for what is left. A pass that runs out of places returns as those of
`near_passes` do.

Deviations: the paper goes event by event through all subscriptions. [topkw, Section 4]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.simd import LANES, first_bits, overlap64, prefetch, trailing_zeros, wide
from tidings.index.points.ball_index import ROUNDING, WIDTH, tighten
from tidings.index.points.grid import cell_range
from tidings.windows.memory import CLOCK, DONE, NEVER, NONE, NUMBER, PLACE, PROMOTED, ROW
from tidings.windows.near.lists import join, leave
from tidings.windows.near.memory import NEAR
from tidings.windows.near.passes import ready
from tidings.windows.near.refill import covered, write_squares

WIDE = 128
"""A ball over more than one cell in WIDE looks at the next LANES rows as they come, without the grid."""
COUNTED = 64
"""Rows of one question that are sorted by counting."""
FEW = 4
"""Rows left within reach for which it is not worth asking the grid again when the radius has halved."""


@kernel
def publish_turned_round(m: Any, first: Any, base: Any, clock: Any, places: Any) -> int:
    """Publish the events first, first + 1, ... with numbers base + 1, ... at the times clock[row]. Resumes where it stopped.

    In order of the places [0, places): what a list reads of memory and of the grid is next to what the one before it has read.
    """
    meter = m.meter
    block, near, gathered = -1, 0, -np.inf
    while meter[PLACE] < places:
        place = meter[PLACE]
        if place // WIDTH != block:
            block = place // WIDTH
            near, gathered = gather(m, block, first)
        if m.lists[place].k != 0:
            stop = take_place(m, place, near, gathered, first, base, clock)
            if stop != DONE:
                return stop
        meter[PLACE] += 1
        meter[ROW] = 0
    meter[CLOCK], meter[NUMBER] = clock[-1], base + clock.size
    return DONE


@borrowing_kernel
def take_place(m: Any, place: Any, near: int, gathered: float, first: Any, base: Any, clock: Any) -> int:
    """One list hears the batch from meter[ROW] on: every earlier row has been dealt with.

    `near`, `gathered`: how many rows `gather` found, and within which plain radius; as long as the list's is not greater, they do.
    """
    meter, radius = m.meter, m.balls.radius
    while True:
        reach, end = radius[place], wide(clock.size)
        if reach * m.balls.stretch[place] <= gathered:
            n = choose(m, place, reach * reach * ROUNDING, near, meter[ROW])
        else:
            n, end = collect(m, place, reach, first, meter[ROW], clock.size)
        i = 0
        while radius[place] <= reach and (2.0 * radius[place] >= reach or i + FEW >= n):
            row = np.int64(m.hits[i]) if i < n else end
            stop = ready(m, place)
            if stop != DONE:
                return stop
            if to_next_leaving(m, place, base, clock, row):
                passed = meter[NUMBER] - base
                leave(m, place, first + passed - 1 if m.number_due[place] <= meter[NUMBER] else NONE)
                meter[ROW] = max(meter[ROW], passed)
                i += i < n and row < passed
            elif i < n:
                distance = np.sqrt(m.squares[i])
                if distance <= radius[place]:
                    meter[CLOCK], meter[NUMBER] = clock[row], base + row + 1
                    join(m, place, first + row, distance)
                meter[ROW] = row + 1
                i += 1
            elif end == clock.size:
                return DONE
            else:
                meter[ROW] = max(meter[ROW], end)
                break


@inlined
def to_next_leaving(m: Any, place: Any, base: Any, clock: Any, row: Any) -> bool:
    """Set clock and number to the list's next deadline up to the publication of `row`; False when there is none."""
    instant, number = m.instant_due[place], m.number_due[place]
    if number <= min(base + row + 1, base + clock.size) and (instant == NEVER or instant > clock[number - base - 1]):
        m.meter[CLOCK], m.meter[NUMBER] = clock[number - base - 1], number
        return True
    if instant != NEVER and instant <= clock[min(row, clock.size - 1)]:
        m.meter[CLOCK], m.meter[NUMBER] = instant, base + np.searchsorted(clock, instant)
        return True
    return False


@borrowing_kernel
def gather(m: Any, block: int, first: Any) -> tuple[int, float]:
    """Write to `near_rows` and `near_points`, ascending, the rows that a ball of the block may hold: how many, and within which
    plain radius of it; -inf when they are too many.
    """
    balls, grid = m.balls, m.rows
    reach = tighten(balls, block)
    if not 0.0 <= reach < np.inf:
        return 0, -np.inf
    half, n = reach * ROUNDING + 1e-300, 0
    x_first, _ = cell_range(grid, 0, balls.low[0, block], half)
    _, x_last = cell_range(grid, 0, balls.high[0, block], half)
    y_first = y_last = wide(0)
    if m.point.size > 1:
        y_first, _ = cell_range(grid, 1, balls.low[1, block], half)
        _, y_last = cell_range(grid, 1, balls.high[1, block], half)
    for x in range(x_first, x_last + 1):
        for at in range(grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]):
            if gap(balls, grid.points, block, at) <= reach * reach * ROUNDING:
                if n == NEAR:
                    return 0, -np.inf
                m.sought[n], m.hits[n] = np.int64(grid.row[at]) - first, at
                n += 1
    for i in range(n):
        rank = 0
        for other in range(n):
            rank += m.sought[other] < m.sought[i]
        m.near_rows[rank] = m.sought[i]
        for d in range(m.point.size):
            m.near_points[d, rank] = grid.points[d, m.hits[i]]
    for d in range(m.point.size):
        m.near_points[d, n:NEAR] = np.nan
    return n, reach


@inlined
def gap(balls: Any, points: Any, block: int, at: int) -> float:
    """The squared distance from a point to the block's box."""
    total = 0.0
    for d in range(points.shape[0]):
        out = max(balls.low[d, block] - points[d, at], points[d, at] - balls.high[d, block], 0.0)
        total += out * out
    return total


@inlined
def choose(m: Any, place: Any, bound: float, near: int, begin: int) -> int:
    """Write to `hits` and `squares`, ascending, the gathered rows from `begin` on within the bound: how many."""
    n = 0
    for chunk in range(0, near, LANES):
        write_squares(m, place, m.near_points, chunk, chunk + LANES, m.sought_squares)
        mask = overlap64(m.sought_squares, m.sought_squares, 0, 0.0, bound)
        while mask:
            bit = trailing_zeros(mask)
            mask &= mask - np.uint64(1)
            m.hits[n], m.squares[n] = m.near_rows[chunk + bit], m.sought_squares[bit]
            n += m.near_rows[chunk + bit] >= begin
    return n


@inlined
def collect(m: Any, place: Any, reach: float, first: Any, begin: int, rows: int) -> tuple[int, int]:
    """Write to `hits`, ascending, the rows from `begin` on within reach, and their squares; how many, and up to which row."""
    grid, bound, n = m.rows, reach * reach * ROUNDING, 0
    x_first, x_last, y_first, y_last = covered(grid, m.balls, place, reach)
    if WIDE * (x_last - x_first + 1) * (y_last - y_first + 1) > grid.start.size:
        return collect_next(m, place, bound, first, begin, rows)
    for x in range(x_first, x_last + 1):
        lo, hi = grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]
        write_squares(m, place, grid.points, lo, hi, m.sought_squares[n:])
        run = n
        for i in range(hi - lo):
            row, total = np.int64(grid.row[lo + i]) - first, m.sought_squares[run + i]
            m.sought[n], m.sought_squares[n] = row, total
            n += (total <= bound) & (row >= begin)
    sort_rows(m, n)
    return n, rows


@inlined
def sort_rows(m: Any, n: int) -> None:
    """Write to `hits` and `squares`, ascending by row, what stands in `sought`: a few by counting, which no wrong guess delays."""
    if n <= COUNTED:
        rows = m.sought[:n]
        for i in range(n):
            row, at = rows[i], wide(0)
            for other in range(n):
                at += rows[other] < row
            m.hits[at], m.squares[at] = row, m.sought_squares[i]
        return
    for i in range(n):
        row, at = m.sought[i], i
        while at > 0 and m.hits[at - 1] > row:
            m.hits[at], m.squares[at] = m.hits[at - 1], m.squares[at - 1]
            at -= 1
        m.hits[at], m.squares[at] = row, m.sought_squares[i]


@inlined
def collect_next(m: Any, place: Any, bound: float, first: Any, begin: int, rows: int) -> tuple[int, int]:
    """As `collect`, of the next LANES rows."""
    end = min(rows, begin + LANES)
    run = m.sought_squares[:LANES]
    write_squares(m, place, m.points, first + begin, first + begin + LANES, run)
    mask = overlap64(run, run, 0, 0.0, bound)
    mask &= first_bits(end - begin)
    n = 0
    while mask:
        bit = trailing_zeros(mask)
        mask &= mask - np.uint64(1)
        m.hits[n], m.squares[n] = begin + bit, run[bit]
        n += 1
    return n, end


@kernel
def in_order(out: Any, base: int, rows: int) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The notices of a batch in order of time, as columns: by the count of publications, which is cheap, then by the instant."""
    start = np.zeros(rows + 2, np.int64)
    for i in range(out.size):
        start[out[i].number - base + 1] += 1
    for row in range(rows + 1):
        start[row + 1] += start[row]
    free, order = start.copy(), np.empty(out.size, np.int32)
    for i in range(out.size):
        row = out[i].number - base
        at = free[row]
        while at > start[row] and out[order[at - 1]].at > out[i].at:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
        free[row] += 1
    slot, event, relevance = np.empty(out.size, np.int32), np.empty(out.size, np.int32), np.empty(out.size)
    rank, promoted, when = np.empty(out.size, np.int64), np.empty(out.size, np.bool_), np.empty(out.size, np.int64)
    for i in range(out.size):
        prefetch(out, order[min(i + 16, out.size - 1)])
        notice = out[order[i]]
        slot[i], event[i], relevance[i] = notice.slot, notice.event, notice.relevance
        rank[i], promoted[i], when[i] = notice.rank, notice.why == PROMOTED, notice.at
    return slot, event, relevance, rank, promoted, when
