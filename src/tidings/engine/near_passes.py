"""The passes over lists of ideal points: events one by one, a batch turned round, and the clock.

Subscriptions do not influence each other, so a batch may be turned round: instead of asking for each event which balls it
touches, ask for each ball which of the batch's events it holds. A list then stays in the nearest cache while its events pass,
and the grid over the stored points replaces the index of balls. Within a subscription everything happens in order: what
leaves, by the clock or by publication number, before each event that can enter. A radius that grows on the way (a refill) asks
the grid again for what is left.

A pass that runs out of places returns OUT_FULL or POOL_FULL between two whole steps, with its place in `meter`; called again
after its owner has made room, it goes on.

Deviations: the paper goes event by event through all subscriptions. [topkw, Section 4]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.engine.near_lists import can_tell, covered, has_room, join, leave, make_room, write_squares
from tidings.engine.near_memory import BLOCK
from tidings.engine.window_memory import (
    CLOCK,
    DONE,
    FOUND,
    JOINING,
    NEVER,
    NONE,
    NUMBER,
    OUT_FULL,
    PAIR,
    PLACE,
    POOL_FULL,
    PROMOTED,
    ROW,
)
from tidings.index.ball_index import ROUNDING, touch_balls
from tidings.index.simd import LANES, overlap64, trailing_zeros

WIDE = 128
"""A ball over more than one cell in WIDE looks at the next LANES rows as they come, without the grid."""
FEW = 4
"""Rows left within reach for which it is not worth asking the grid again when the radius has halved."""


@kernel
def publish_one_by_one(m: Any, first: Any, last: Any, used: Any, visited: Any) -> int:
    """Each of the events [first, last) asks the index of balls, of which `used` places are used, whom it touches."""
    meter = m.meter
    while first + meter[ROW] < last:
        event = first + meter[ROW]
        if not meter[JOINING]:
            stop = advance_to(m, max(meter[CLOCK], m.events[event].time))
            if stop != DONE:
                return stop
            meter[NUMBER] += 1
            for d in range(m.point.size):
                m.point[d] = m.points[d, event]
            meter[FOUND] = touch_balls(m.point, m.balls, used, m.hits, m.squares, visited)
            meter[JOINING], meter[PAIR] = 1, 0
        while meter[PAIR] < meter[FOUND]:
            place = np.int64(m.hits[meter[PAIR]])
            stop = ready(m, place)
            if stop != DONE:
                return stop
            if m.number_due[place] > meter[NUMBER]:
                join(m, place, event, np.sqrt(m.squares[meter[PAIR]]))
            meter[PAIR] += 1
        stop = roll(m, event)
        if stop != DONE:
            return stop
        meter[JOINING] = 0
        meter[ROW] += 1
    return DONE


@borrowing_kernel
def advance_to(m: Any, time: int) -> int:
    """Move the clock, stopping at each instant at which a watched candidate leaves."""
    meter, first = m.meter, m.instant_first
    while True:
        block = 0
        for i in range(first.size):
            if first[i] < first[block]:
                block = i
        if first[block] > time:
            break
        place, least = block * BLOCK, NEVER
        for i in range(block * BLOCK, (block + 1) * BLOCK):
            if m.instant_due[i] < least:
                place, least = i, m.instant_due[i]
        first[block] = least
        if least <= time:
            stop = ready(m, place)
            if stop != DONE:
                return stop
            meter[CLOCK] = max(meter[CLOCK], least)
            leave(m, place, NONE)
    meter[CLOCK] = max(meter[CLOCK], time)
    return DONE


@borrowing_kernel
def roll(m: Any, event: Any) -> int:
    """Let go of what the publication of `event` pushed out of count windows."""
    first, due, number = m.number_first, m.number_due, m.meter[NUMBER]
    for block in range(first.size):
        if first[block] <= number:
            least = NEVER
            for place in range(block * BLOCK, (block + 1) * BLOCK):
                if due[place] <= number:
                    stop = ready(m, place)
                    if stop != DONE:
                        return stop
                    leave(m, place, event)
                least = min(least, due[place])
            first[block] = least
    return DONE


@inlined
def ready(m: Any, place: Any) -> int:
    """DONE when there is room for one step of the list."""
    own = m.lists[place]
    if not can_tell(own, m):
        return OUT_FULL
    if not has_room(own) and not make_room(m, place):
        return POOL_FULL
    return DONE


@kernel
def publish_turned_round(m: Any, first: Any, base: Any, clock: Any, places: Any) -> int:
    """Publish the events first, first + 1, ... with numbers base + 1, ... at the times clock[row]. Resumes where it stopped.

    In order of the places [0, places): what a list reads of memory and of the grid is next to what the one before it has read.
    """
    meter = m.meter
    while meter[PLACE] < places:
        place = meter[PLACE]
        if m.lists[place].k != 0:
            stop = take_place(m, place, first, base, clock)
            if stop != DONE:
                return stop
        meter[PLACE] += 1
        meter[ROW] = 0
    meter[CLOCK], meter[NUMBER] = clock[-1], base + clock.size
    return DONE


@borrowing_kernel
def take_place(m: Any, place: Any, first: Any, base: Any, clock: Any) -> int:
    """One subscription hears the batch from meter[ROW] on: every earlier row has been dealt with."""
    meter, radius = m.meter, m.balls.radius
    while True:
        reach = radius[place]
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
    if number <= min(base + row + 1, base + clock.size) and instant > clock[number - base - 1]:
        m.meter[CLOCK], m.meter[NUMBER] = clock[number - base - 1], number
        return True
    if instant <= clock[min(row, clock.size - 1)]:
        m.meter[CLOCK], m.meter[NUMBER] = instant, base + np.searchsorted(clock, instant)
        return True
    return False


@inlined
def collect(m: Any, place: Any, reach: float, first: Any, begin: int, rows: int) -> tuple[int, int]:
    """Write to `hits`, ascending, the rows from `begin` on within reach, and their squares; how many, and up to which row."""
    x_first, x_last, y_first, y_last = covered(m, place, reach)
    if WIDE * (x_last - x_first + 1) * (y_last - y_first + 1) > m.grid.start.size:
        return collect_next(m, place, reach * reach * ROUNDING, first, begin, rows)
    grid, bound, n = m.grid, reach * reach * ROUNDING, 0
    for x in range(x_first, x_last + 1):
        lo, hi = grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]
        run = m.sought_squares[: hi - lo]
        write_squares(m, place, grid.points, lo, hi, run)
        for i in range(hi - lo):
            row = np.int64(grid.row[lo + i]) - first
            if run[i] <= bound and row >= begin:
                at = n
                while at > 0 and m.hits[at - 1] > row:
                    m.hits[at], m.squares[at] = m.hits[at - 1], m.squares[at - 1]
                    at -= 1
                m.hits[at], m.squares[at] = row, run[i]
                n += 1
    return n, rows


@inlined
def collect_next(m: Any, place: Any, bound: float, first: Any, begin: int, rows: int) -> tuple[int, int]:
    """As `collect`, of the next LANES rows."""
    end = min(rows, begin + LANES)
    run = m.sought_squares[:LANES]
    write_squares(m, place, m.points, first + begin, first + begin + LANES, run)
    mask = overlap64(run, run, 0, 0.0, bound)
    if end - begin < LANES:
        mask &= (np.uint64(1) << np.uint64(end - begin)) - np.uint64(1)
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
        notice = out[order[i]]
        slot[i], event[i], relevance[i] = notice.slot, notice.event, notice.relevance
        rank[i], promoted[i], when[i] = notice.rank, notice.why == PROMOTED, notice.at
    return slot, event, relevance, rank, promoted, when
