"""A batch of events turned round, for lists around ideal points.

Subscriptions do not influence each other: instead of asking for each event which balls it touches, ask for each ball which of
the batch's events it holds. A list then stays in the nearest cache while its events pass. The balls of a block are neighbours,
so the events near any of them are gathered once for the block, from a grid, in order of publishing; each ball chooses its
own by testing all of those at once. Where balls are too wide or too far apart to share, a ball asks the grid itself.

Within a list everything happens in order: what leaves, by the clock or by publication number, before each event that can enter.
A radius that grows on the way (a refill) asks again for what is left. A pass that runs out of room returns as those of
`publishing` do. The nth event of a batch is the one with handle first + nth.

Deviations: the paper goes event by event through all subscriptions. [topkw, Section 4]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.simd import LANES, first_bits, overlap64, prefetch, trailing_zeros, wide
from tidings.index.points.ball_index import ROUNDING, WIDTH, Balls, tighten
from tidings.index.points.grid import cell_range
from tidings.windows.lists import join, leave, ready
from tidings.windows.memory import (
    BALLS,
    CLOCK,
    DONE,
    LIST_ROW,
    NEVER,
    NONE,
    NTH,
    NUMBER,
    PROMOTED,
    Floats,
    Handles,
    Ints,
    Memory,
    Records,
)
from tidings.windows.near.points import NEAR, Points, covered, distance, write_squares

WIDE = 128
"""A ball over more than one cell in WIDE looks at the next LANES events as they come, without the grid."""
COUNTED = 64
"""Events of one question that are sorted by counting."""
FEW = 4
"""Events left within reach for which it is not worth asking the grid again when the radius has halved."""


class Batch(NamedTuple):
    """Events with the handles first, first + 1, ... and the numbers base + 1, ...; clock[nth] is the time at each."""

    first: int
    base: int
    clock: Ints


@kernel
def publish_turned_round(m: Memory, near: Points, batch: Batch) -> int:
    """Publish a batch. Resumes where it stopped.

    In order of the rows: what a list reads of memory and of the grid is next to what the one before it has read.
    """
    meter = m.meter
    block, gathered, within = -1, 0, -np.inf
    while meter[LIST_ROW] < meter[BALLS]:
        row = meter[LIST_ROW]
        if row // WIDTH != block:
            block = row // WIDTH
            gathered, within = gather(m, near, block, batch.first)
        if m.lists[row].k != 0:
            stop = take_row(m, near, row, gathered, within, batch)
            if stop != DONE:
                return stop
        meter[LIST_ROW] += 1
        meter[NTH] = 0
    meter[CLOCK], meter[NUMBER] = batch.clock[-1], batch.base + batch.clock.size
    return DONE


@borrowing_kernel
def take_row(m: Memory, near: Points, row: int, gathered: int, within: float, batch: Batch) -> int:
    """One list hears the batch from meter[NTH] on: every earlier event has been dealt with.

    So many events were gathered for its block, within this plain radius; as long as the list's is not greater, they do.
    """
    first, base, clock = batch.first, batch.base, batch.clock
    meter, radius = m.meter, near.balls.radius
    while True:
        reach, end = radius[row], wide(clock.size)
        if reach * near.balls.stretch[row] <= within:
            n = choose(m, near, row, reach * reach * ROUNDING, gathered, meter[NTH])
        else:
            n, end = collect(m, near, row, reach, first, meter[NTH], clock.size)
        i = 0
        # What was found is enough until the radius grows; a much smaller one is worth another question.
        while radius[row] <= reach and (2.0 * radius[row] >= reach or i + FEW >= n):
            nth = wide(m.hits[i]) if i < n else end
            stop = ready(m, near, row)
            if stop != DONE:
                return stop
            if to_next_leaving(m, row, batch, nth):
                passed = meter[NUMBER] - base
                event = first + passed - 1 if m.number_due[row] <= meter[NUMBER] else NONE
                leave(m, near, row, event, distance(near, row, event) if event != NONE else np.nan, wide(0))
                meter[NTH] = max(meter[NTH], passed)
                i += i < n and nth < passed
            elif i < n:
                cost = np.sqrt(near.squares[i])
                if cost <= radius[row]:
                    meter[CLOCK], meter[NUMBER] = clock[nth], base + nth + 1
                    join(m, near, row, first + nth, cost, wide(0))
                meter[NTH] = nth + 1
                i += 1
            elif end == clock.size:
                return DONE
            else:
                meter[NTH] = max(meter[NTH], end)
                break


@inlined
def to_next_leaving(m: Memory, row: int, batch: Batch, nth: int) -> bool:
    """Set clock and number to the list's next deadline up to the publication of the nth; False when there is none."""
    base, clock = batch.base, batch.clock
    instant, number = m.instant_due[row], m.number_due[row]
    if number <= min(base + nth + 1, base + clock.size) and (instant == NEVER or instant > clock[number - base - 1]):
        m.meter[CLOCK], m.meter[NUMBER] = clock[number - base - 1], number
        return True
    if instant != NEVER and instant <= clock[min(nth, clock.size - 1)]:
        m.meter[CLOCK], m.meter[NUMBER] = instant, base + np.searchsorted(clock, instant)
        return True
    return False


@borrowing_kernel
def gather(m: Memory, near: Points, block: int, first: int) -> tuple[int, float]:
    """Write to `near_nth` and `near_points`, ascending, the events that a ball of the block may hold: how many, and within which
    plain radius of it; -inf when they are too many.
    """
    balls, grid = near.balls, near.batch
    reach = tighten(balls, block)
    if not 0.0 <= reach < np.inf:
        return 0, -np.inf
    half, n = reach * ROUNDING + 1e-300, 0
    x_first, _ = cell_range(grid, 0, balls.low[0, block], half)
    _, x_last = cell_range(grid, 0, balls.high[0, block], half)
    y_first = y_last = wide(0)
    if near.point.size > 1:
        y_first, _ = cell_range(grid, 1, balls.low[1, block], half)
        _, y_last = cell_range(grid, 1, balls.high[1, block], half)
    for x in range(x_first, x_last + 1):
        for at in range(grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]):
            if gap(balls, grid.points, block, at) <= reach * reach * ROUNDING:
                if n == NEAR:
                    return 0, -np.inf
                near.sought[n], m.hits[n] = wide(grid.row[at]) - first, at
                n += 1
    for i in range(n):
        rank = 0
        for other in range(n):
            rank += near.sought[other] < near.sought[i]
        near.near_nth[rank] = near.sought[i]
        for d in range(near.point.size):
            near.near_points[d, rank] = grid.points[d, m.hits[i]]
    for d in range(near.point.size):
        near.near_points[d, n:NEAR] = np.nan
    return n, reach


@inlined
def gap(balls: Balls, points: Floats, block: int, at: int) -> float:
    """The squared distance from a point to the block's box."""
    total = 0.0
    for d in range(points.shape[0]):
        out = max(balls.low[d, block] - points[d, at], points[d, at] - balls.high[d, block], 0.0)
        total += out * out
    return total


@inlined
def choose(m: Memory, near: Points, row: int, bound: float, gathered: int, begin: int) -> int:
    """Write to `hits` and `squares`, ascending, the gathered events from `begin` on within the bound: how many."""
    n = 0
    for chunk in range(0, gathered, LANES):
        write_squares(near.balls, row, near.near_points, chunk, chunk + LANES, near.sought_squares)
        mask = overlap64(near.sought_squares, near.sought_squares, 0, 0.0, bound)
        while mask:
            bit = trailing_zeros(mask)
            mask &= mask - np.uint64(1)
            m.hits[n], near.squares[n] = near.near_nth[chunk + bit], near.sought_squares[bit]
            n += near.near_nth[chunk + bit] >= begin
    return n


@inlined
def collect(m: Memory, near: Points, row: int, reach: float, first: int, begin: int, events: int) -> tuple[int, int]:
    """Write to `hits`, ascending, the events from `begin` on within reach, and their squares; how many, and up to which."""
    grid, squares, bound, n = near.batch, near.sought_squares, reach * reach * ROUNDING, 0
    x_first, x_last, y_first, y_last = covered(grid, near.balls, row, reach)
    if WIDE * (x_last - x_first + 1) * (y_last - y_first + 1) > grid.start.size:
        return collect_next(m, near, row, bound, first, begin, events)
    for x in range(x_first, x_last + 1):
        lo, hi = grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]
        write_squares(near.balls, row, grid.points, lo, hi, squares[n:])
        run = n
        for i in range(hi - lo):
            nth, total = wide(grid.row[lo + i]) - first, squares[run + i]
            near.sought[n], squares[n] = nth, total
            n += (total <= bound) & (nth >= begin)
    sort_found(m, near, n)
    return n, events


@inlined
def sort_found(m: Memory, near: Points, n: int) -> None:
    """Write to `hits` and `squares`, ascending, what stands in `sought`: a few by counting, which no wrong guess delays."""
    if n <= COUNTED:
        found = near.sought[:n]
        for i in range(n):
            nth, at = found[i], wide(0)
            for other in range(n):
                at += found[other] < nth
            m.hits[at], near.squares[at] = nth, near.sought_squares[i]
        return
    for i in range(n):
        nth, at = near.sought[i], i
        while at > 0 and m.hits[at - 1] > nth:
            m.hits[at], near.squares[at] = m.hits[at - 1], near.squares[at - 1]
            at -= 1
        m.hits[at], near.squares[at] = nth, near.sought_squares[i]


@inlined
def collect_next(m: Memory, near: Points, row: int, bound: float, first: int, begin: int, events: int) -> tuple[int, int]:
    """As `collect`, of the next LANES events."""
    end = min(events, begin + LANES)
    run = near.sought_squares[:LANES]
    write_squares(near.balls, row, near.points, first + begin, first + begin + LANES, run)
    mask = overlap64(run, run, 0, 0.0, bound)
    mask &= first_bits(end - begin)
    n = 0
    while mask:
        bit = trailing_zeros(mask)
        mask &= mask - np.uint64(1)
        m.hits[n], near.squares[n] = begin + bit, run[bit]
        n += 1
    return n, end


class Ordered(NamedTuple):
    """The columns of `Entries`."""

    slot: Handles
    event: Handles
    relevance: Floats
    rank: Ints
    promoted: NDArray[np.bool_]
    at: Ints
    number: Ints


@kernel
def in_order(out: Records, base: int, events: int) -> Ordered:
    """The notices of a batch in order of time, as columns: by the count of publications, which is cheap, then by the instant."""
    start = np.zeros(events + 2, np.int64)
    for i in range(out.size):
        start[out[i].number - base + 1] += 1
    for nth in range(events + 1):
        start[nth + 1] += start[nth]
    free, order = start.copy(), np.empty(out.size, np.int32)
    for i in range(out.size):
        nth = out[i].number - base
        at = free[nth]
        while at > start[nth] and out[order[at - 1]].at > out[i].at:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
        free[nth] += 1
    slot, event, relevance = np.empty(out.size, np.int32), np.empty(out.size, np.int32), np.empty(out.size)
    rank, promoted = np.empty(out.size, np.int64), np.empty(out.size, np.bool_)
    when, number = np.empty(out.size, np.int64), np.empty(out.size, np.int64)
    for i in range(out.size):
        prefetch(out, order[min(i + 16, out.size - 1)])
        notice = out[order[i]]
        slot[i], event[i], relevance[i] = notice.slot, notice.event, notice.relevance
        rank[i], promoted[i], when[i], number[i] = notice.rank, notice.why == PROMOTED, notice.at, notice.number
    return Ordered(slot, event, relevance, rank, promoted, when, number)
