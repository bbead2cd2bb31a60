"""The view of one ideal point's list: what is put in, what falls off its edge and what leaves it.

`own` is the list's row of `lists`; the layout and the invariants stand in `near_memory`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined
from tidings.index.packed.simd import LANES, first_bits, overlap64, popcount, slide, trailing_zeros, wide
from tidings.windows.lists import earlier
from tidings.windows.memory import CLOCK, NEVER, NONE, NUMBER, STORED

LATEST = np.int32(np.iinfo(np.int32).max)


@inlined
def insert(own: Any, m: Any, event: Any, distance: float, instant: int) -> int:
    """Put the event into the view: its position, or NONE when it falls off at once."""
    if own.bounded:
        last = own.start + own.limit - 1
        if own.viewed == own.limit and not ranks(m, distance, event, m.distance[last], m.mark[last] >> 1):
            return -1
    elif own.edge != NONE and not ranks(m, distance, event, own.edge_distance, own.edge):
        return -1
    position = put(own, m, event, distance, instant)
    if own.viewed > own.limit:
        own.viewed = own.limit
        if not own.bounded:
            fall(own, m, own.start + own.limit)
    return position if position < own.limit else -1


@inlined
def put(own: Any, m: Any, event: Any, distance: float, instant: int) -> int:
    """Put the event at its position in the view, which may outgrow its limit by this one."""
    position = position_of(own, m, event, distance)
    at, after = own.start + position, own.viewed - position
    slide(m.distance, at, at + 1, after)
    slide(m.mark, at, at + 1, after)
    m.distance[at], m.mark[at] = distance, 2 * event
    if own.timed or instant != NEVER:
        if not own.timed:
            m.leaves[own.start : own.start + own.viewed] = NEVER
            own.timed = 1
        slide(m.leaves, at, at + 1, after)
        m.leaves[at] = instant
    own.viewed += 1
    return position


@inlined
def position_of(own: Any, m: Any, event: Any, distance: float) -> int:
    """How many of the view rank before the event: halved while it is long, then counted, which no wrong guess delays."""
    lo, hi = own.start, own.start + own.viewed
    while hi - lo > LANES:
        middle = (lo + hi) >> 1
        if m.distance[middle] <= distance:
            lo = middle
        else:
            hi = middle
    at = lo + popcount(overlap64(m.distance, m.distance, lo, 0.0, distance) & first_bits(hi - lo))
    while at > own.start and m.distance[at - 1] == distance and ranks(m, distance, event, distance, m.mark[at - 1] >> 1):
        at -= 1
    return wide(at - own.start)


@inlined
def fall(own: Any, m: Any, at: int) -> None:
    """What stands at `at` falls off the view: it is the edge now, and remembered if it was told."""
    own.edge, own.edge_distance = m.mark[at] >> 1, m.distance[at]
    if m.mark[at] & 1:
        m.fallen[own.fallen_start + own.fallen] = own.edge
        own.fallen += 1


@inlined
def purge(own: Any, m: Any) -> Any:
    """Take what has left out of the view; how many."""
    start, end, clock = own.start, own.start + own.viewed, m.meter[CLOCK]
    oldest: Any = np.int64(0)
    if own.counted != NEVER:
        oldest = 2 * first_after(m, m.meter[NUMBER] - own.counted)
    kept = run = start
    for chunk in range(start, end, LANES):
        stays = overlap64(m.mark, m.mark, chunk, np.int32(oldest), LATEST)
        if own.timed:
            stays &= overlap64(m.leaves, m.leaves, chunk, clock + 1, NEVER)
        gone = ~stays & first_bits(min(end - chunk, LANES))
        while gone:
            at = chunk + trailing_zeros(gone)
            gone &= gone - np.uint64(1)
            close_up(own, m, run, kept, at - run)
            kept, run = kept + at - run, at + 1
    close_up(own, m, run, kept, end - run)
    kept += end - run
    own.viewed = kept - start
    return end - kept


@inlined
def close_up(own: Any, m: Any, at: int, to: int, n: int) -> None:
    """Move n of the view from `at` on to where there is room before them."""
    if to < at and n > 0:
        slide(m.distance, at, to, n)
        slide(m.mark, at, to, n)
        if own.timed:
            slide(m.leaves, at, to, n)


@inlined
def ranks(m: Any, distance: float, event: Any, other_distance: float, other: Any) -> bool:
    """Whether an event ranks before another."""
    if distance != other_distance:
        return distance < other_distance
    return earlier(m.events, m.id_bytes, event, other)


@inlined
def leaving(own: Any, events: Any, event: Any) -> Any:
    """The instant at which an event is no longer a candidate; a count window lets go of it by its number, too."""
    instant = events[event].expires
    if own.duration != NEVER:
        instant = min(instant, events[event].time + own.duration)
    return instant


@inlined
def first_after(m: Any, number: int) -> Any:
    """The first stored event with a greater publication number: where it stands if no later one is missing, else searched for."""
    stored = m.meter[STORED]
    guess = stored - m.events[stored - 1].number + number
    if 0 <= guess < stored and m.events[guess].number == number + 1:
        return np.int64(guess)
    return search_after(m.events, number, stored)


@borrowing_kernel
def search_after(events: Any, number: int, stored: Any) -> Any:
    lo, hi = wide(0), stored
    while lo < hi:
        middle = (lo + hi) >> 1
        if events[middle].number > number:
            hi = middle
        else:
            lo = middle + 1
    return lo
