"""The view of one list: what is put in, what is taken out, and how candidates rank. Layout and invariants stand in `memory`.

`own` is the list's row of `lists`.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import borrowing_kernel, inlined
from tidings.index.packed.simd import LANES, first_bits, overlap64, popcount, slide, trailing_zeros, wide
from tidings.windows.memory import CLOCK, NEVER, NONE, NUMBER, STORED, EventRow, Ints, ListRow, Memory, Records

LATEST = np.int32(np.iinfo(np.int32).max)


@inlined
def put(m: Memory, own: ListRow, mark: int, cost: float, instant: int, group: int) -> int:
    """Put a candidate at its position in the view, which may outgrow its limit by this one."""
    position = position_of(m, own, mark >> 1, cost)
    at, after = own.start + position, own.viewed - position
    slide(m.cost, at, at + 1, after)
    slide(m.mark, at, at + 1, after)
    m.cost[at], m.mark[at] = cost, mark
    # Where nobody leaves at an instant (count windows without expiries) a third array is neither written nor read.
    if own.timed or instant != NEVER:
        if not own.timed:
            m.leaves[own.start : own.start + own.viewed] = NEVER
            own.timed = 1
        slide(m.leaves, at, at + 1, after)
        m.leaves[at] = instant
    if own.per:
        slide(m.group, at, at + 1, after)
        m.group[at] = group
    own.viewed += 1
    return position


@inlined
def place_of_group(m: Memory, own: ListRow, group: int) -> int:
    """Where in the views the one of a group stands, NONE if nobody of it does."""
    for at in range(own.start, own.start + own.viewed):
        if m.group[at] == group:
            return at
    return wide(NONE)


@inlined
def position_of(m: Memory, own: ListRow, event: int, cost: float) -> int:
    """How many of the view rank before the event: halved while it is long, then counted, which no wrong guess delays."""
    lo, hi = own.start, own.start + own.viewed
    while hi - lo > LANES:
        middle = (lo + hi) >> 1
        if m.cost[middle] <= cost:
            lo = middle
        else:
            hi = middle
    at = lo + popcount(overlap64(m.cost, m.cost, lo, -np.inf, cost) & first_bits(hi - lo))
    # `at` is behind all of equal cost; among those it goes up to its time and id.
    while at > own.start and m.cost[at - 1] == cost and earlier(m, event, wide(m.mark[at - 1] >> 1)):
        at -= 1
    return wide(at - own.start)


@inlined
def purge(m: Memory, own: ListRow) -> int:
    """Take what has left out of the view; how many."""
    start, end, clock = own.start, own.start + own.viewed, m.meter[CLOCK]
    # Handles ascend by number, so a count window holds the marks from one on.
    oldest = wide(0) if own.counted == NEVER else 2 * first_after(m, m.meter[NUMBER] - own.counted)
    kept = run = start
    for chunk in range(start, end, LANES):
        stays = overlap64(m.mark, m.mark, chunk, np.int32(oldest), LATEST)
        if own.timed:
            stays &= overlap64(m.leaves, m.leaves, chunk, clock + 1, NEVER)
        gone = ~stays & first_bits(min(end - chunk, LANES))
        while gone:
            at = chunk + trailing_zeros(gone)
            gone &= gone - np.uint64(1)
            close_up(m, own, run, kept, at - run)
            kept, run = kept + at - run, at + 1
    close_up(m, own, run, kept, end - run)
    kept += end - run
    own.viewed = kept - start
    return end - kept


@inlined
def close_up(m: Memory, own: ListRow, at: int, to: int, n: int) -> None:
    """Move n of the view from `at` on to where there is room before them."""
    if to < at and n > 0:
        slide(m.cost, at, to, n)
        slide(m.mark, at, to, n)
        if own.timed:
            slide(m.leaves, at, to, n)
        if own.per:
            slide(m.group, at, to, n)


@inlined
def ranks(m: Memory, cost: float, event: int, other_cost: float, other: int) -> bool:
    """Whether an event ranks before another."""
    if cost != other_cost:
        return cost < other_cost
    return earlier(m, event, other)


@inlined
def earlier(m: Memory, event: int, other: int) -> bool:
    """Whether an event ranks before another that is as relevant."""
    if m.events[event].time != m.events[other].time:
        return bool(m.events[event].time < m.events[other].time)
    return lower_id(m.events, m.id_bytes, event, other)


@borrowing_kernel
def lower_id(events: Records, ids: np.ndarray[tuple[int], np.dtype[np.uint8]], event: int, other: int) -> bool:
    i, j = events[event].id_start, events[other].id_start
    i_end, j_end = events[event].id_end, events[other].id_end
    while i < i_end and j < j_end:
        if ids[i] != ids[j]:
            return bool(ids[i] < ids[j])
        i, j = i + 1, j + 1
    if i_end - i != j_end - j:
        return bool(i_end - i < j_end - j)
    return bool(events[event].number < events[other].number)


@inlined
def leaving(m: Memory, own: ListRow, published: EventRow) -> int:
    """The instant at which an event is no longer a candidate; a count window lets go of it by its number, too."""
    instant = published.expires
    if own.duration < 0:
        instant = min(instant, period_end(m.calendar, m.period, -1 - own.duration, published.time))
    elif own.duration != NEVER:
        instant = min(instant, published.time + own.duration)
    return instant


@borrowing_kernel
def period_end(calendar: Ints, period: Ints, which: int, time: int) -> int:
    """When the next period of a calendar begins; of a time before all known ones an instant that the clock has passed."""
    lo, hi = calendar[which], calendar[which + 1] - 1
    while lo < hi:
        middle = (lo + hi) >> 1
        if period[middle] > time:
            hi = middle
        else:
            lo = middle + 1
    return wide(period[lo])


@inlined
def alive(m: Memory, own: ListRow, event: int) -> bool:
    published: EventRow = m.events[event]
    counts = own.counted == NEVER or published.number > m.meter[NUMBER] - own.counted
    return bool(counts and leaving(m, own, published) > m.meter[CLOCK])


@inlined
def first_after(m: Memory, number: int) -> int:
    """The first stored event with a greater publication number: where it stands if no later one is missing, else searched for."""
    stored = m.meter[STORED]
    guess = stored - m.events[stored - 1].number + number
    if 0 <= guess < stored and m.events[guess].number == number + 1:
        return wide(guess)
    return search_after(m.events, number, stored)


@borrowing_kernel
def search_after(events: Records, number: int, stored: int) -> int:
    lo, hi = wide(0), stored
    while lo < hi:
        middle = (lo + hi) >> 1
        if events[middle].number > number:
            hi = middle
        else:
            lo = middle + 1
    return lo
