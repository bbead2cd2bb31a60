"""The passes over lists of ideal points that go event by event, and with the clock; `near_batches` turns large batches round.

A pass that runs out of places returns OUT_FULL or POOL_FULL between two whole steps, with its place in `meter`; called again
after its owner has made room, it goes on. [topkw, Section 4]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.simd import prefetch
from tidings.index.points.ball_index import touch_balls
from tidings.windows.memory import (
    CLOCK,
    DONE,
    FOUND,
    JOINING,
    NEVER,
    NONE,
    NUMBER,
    OUT_FULL,
    PAIR,
    POOL_FULL,
    ROW,
)
from tidings.windows.near.lists import can_tell, has_room, join, leave, make_room
from tidings.windows.near.memory import BLOCK

LINE = 64
"""Bytes that come from memory at once."""
AHEAD = 4
"""How many lists before its turn a view is asked for."""


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
            prefetch(m.lists, m.hits[min(meter[PAIR] + 2 * AHEAD, meter[FOUND] - 1)])
            fetch_view(m, np.int64(m.hits[min(meter[PAIR] + AHEAD, meter[FOUND] - 1)]))
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
    n = 0
    for block in range(first.size):
        if first[block] <= number:
            for at in range(block * BLOCK, (block + 1) * BLOCK):
                if due[at] <= number:
                    m.hits[n] = at
                    n += 1
                    prefetch(m.lists, at)
    for i in range(n):
        fetch_view(m, np.int64(m.hits[i]))
    for i in range(n):
        place = np.int64(m.hits[i])
        stop = ready(m, place)
        if stop != DONE:
            return stop
        leave(m, place, event)
    for block in range(first.size):
        if first[block] <= number:
            least = NEVER
            for at in range(block * BLOCK, (block + 1) * BLOCK):
                least = min(least, due[at])
            first[block] = least
    return DONE


@inlined
def fetch_view(m: Any, place: Any) -> None:
    """Ask the memory for the view of a list that changes soon: those of one event lie anywhere, and each would be waited for."""
    start = m.lists[place].start
    prefetch(m.mark, start)
    prefetch(m.mark, start + LINE // 4)
    for line in range(3):
        prefetch(m.distance, start + line * LINE // 8)


@inlined
def ready(m: Any, place: Any) -> int:
    """DONE when there is room for one step of the list."""
    own = m.lists[place]
    if not can_tell(own, m):
        return OUT_FULL
    if not has_room(own) and not make_room(m, place):
        return POOL_FULL
    return DONE
