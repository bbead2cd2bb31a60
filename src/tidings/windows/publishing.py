"""Events and the clock pass over the lists, and who must be told: event by event. `near.turned_round` goes list by list instead.

A pass that runs out of room returns what is full, between two whole steps, with its place in `meter`; called again after its
owner has made room, it goes on. `near` is None for lists of matches, whose events come with the rows that they concern; around
ideal points an index of balls says which these are. [topkw, Sections 2 and 4]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.errors import SubscriptionError
from tidings.index.packed.simd import prefetch, wide
from tidings.index.points.ball_index import touch_balls
from tidings.windows.lists import join, leave, leave_apart, ready
from tidings.windows.memory import (
    BALLS,
    BLOCK,
    CLOCK,
    DONE,
    FOUND,
    JOINING,
    NEVER,
    NONE,
    NTH,
    NUMBER,
    PAIR,
    Floats,
    Handles,
    Ints,
    Memory,
)
from tidings.windows.near.points import Points, distance

LINE = 64
"""Bytes that come from memory at once."""
AHEAD = 4
"""How many lists before its turn a view is asked for."""


NO_GROUPS = np.zeros(0, np.int64)


class Concerned(NamedTuple):
    """Event i of a batch concerns row[start[i]:start[i + 1]], at these costs. Without any around ideal points.

    `group` has the group of each for the lists that ask, and is empty where none does.
    """

    start: Ints
    row: Handles
    cost: Floats
    group: Ints


def concerned_of(starts: ArrayLike, slots: ArrayLike, relevances: ArrayLike, groups: ArrayLike = NO_GROUPS) -> Concerned:
    start, cost = np.asarray(starts, np.int64), -np.asarray(relevances, np.float64)
    if np.isnan(cost).any():
        raise SubscriptionError("relevance is NaN: a number is accepted")
    concerned = Concerned(start, np.asarray(slots, np.int32), cost, np.asarray(groups, np.int64))
    assert start[-1] == len(concerned.row) == len(cost)
    assert len(concerned.group) in (0, len(cost))
    return concerned


@kernel
def publish_events(m: Memory, near: Points | None, first: int, concerned: Concerned) -> int:
    """Publish the events first, first + 1, ...; resumes where it stopped."""
    meter = m.meter
    while meter[NTH] < concerned.start.size - 1:
        event = first + meter[NTH]
        if not meter[JOINING]:
            stop = advance_to(m, near, max(meter[CLOCK], m.events[event].time))
            if stop != DONE:
                return stop
            meter[NUMBER] += 1
            meter[JOINING] = 1
            if near is None:
                meter[PAIR], meter[FOUND] = concerned.start[meter[NTH]], concerned.start[meter[NTH] + 1]
            else:
                meter[PAIR], meter[FOUND] = 0, touch(m, near, event)
        stop = join_all(m, near, event, concerned)
        if stop == DONE:
            stop = roll(m, near, event)
        if stop != DONE:
            return stop
        meter[JOINING] = 0
        meter[NTH] += 1
    return DONE


@borrowing_kernel
def touch(m: Memory, near: Points, event: int) -> int:
    """Write to `hits` and `squares` the rows whose balls hold the event, and its distances; how many."""
    for d in range(near.point.size):
        near.point[d] = near.points[d, event]
    n = touch_balls(near.point, near.balls, m.meter[BALLS], m.hits, near.squares, near.visited)
    for i in range(n):
        near.squares[i] = np.sqrt(near.squares[i])
    return n


@borrowing_kernel
def join_all(m: Memory, near: Points | None, event: int, concerned: Concerned) -> int:
    """Every list that the event concerns hears of it."""
    meter = m.meter
    rows = concerned.row if near is None else m.hits
    costs = concerned.cost if near is None else near.squares
    while meter[PAIR] < meter[FOUND]:
        last = meter[FOUND] - 1
        prefetch(m.lists, wide(rows[min(meter[PAIR] + 2 * AHEAD, last)]))
        fetch_view(m, wide(rows[min(meter[PAIR] + AHEAD, last)]))
        row = wide(rows[meter[PAIR]])
        stop = ready(m, near, row)
        if stop != DONE:
            return stop
        # Where the event pushes another out it must not compete with that one: `roll` lets both happen in one step, but of a match
        # only this place knows the cost.
        group = concerned.group[meter[PAIR]] if m.lists[row].per else wide(0)
        if m.number_due[row] > meter[NUMBER]:
            join(m, near, row, event, costs[meter[PAIR]], group)
        elif near is None:
            leave_apart(m, near, row, event, costs[meter[PAIR]], group)
        meter[PAIR] += 1
    return DONE


@borrowing_kernel
def advance_to(m: Memory, near: Points | None, time: int) -> int:
    """Move the clock, stopping at each instant at which a watched candidate leaves."""
    meter, first = m.meter, m.instant_first
    while True:
        earliest = NEVER
        for i in range(first.size):
            earliest = min(earliest, first[i])
        if earliest > time or earliest == NEVER:
            break
        block = 0
        while first[block] != earliest:
            block += 1
        row, least = block * BLOCK, NEVER
        for i in range(block * BLOCK, (block + 1) * BLOCK):
            if m.instant_due[i] < least:
                row, least = i, m.instant_due[i]
        # `first` may be too early: it is put right here, and asked again, since another block may then come before this one.
        first[block] = least
        if least == earliest:
            stop = ready(m, near, row)
            if stop != DONE:
                return stop
            meter[CLOCK] = max(meter[CLOCK], least)
            leave_apart(m, near, row, NONE, np.nan, wide(0))
    meter[CLOCK] = max(meter[CLOCK], time)
    return DONE


@borrowing_kernel
def roll(m: Memory, near: Points | None, event: int) -> int:
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
        fetch_view(m, wide(m.hits[i]))
    for i in range(n):
        row = wide(m.hits[i])
        stop = ready(m, near, row)
        if stop != DONE:
            return stop
        if near is None:
            leave_apart(m, near, row, event, np.nan, wide(0))
        else:
            leave(m, near, row, event, distance(near, row, event), wide(0))
    for block in range(first.size):
        if first[block] <= number:
            least = NEVER
            for at in range(block * BLOCK, (block + 1) * BLOCK):
                least = min(least, due[at])
            first[block] = least
    return DONE


@inlined
def fetch_view(m: Memory, row: int) -> None:
    """Ask the memory for the view of a list that changes soon: those of one event lie anywhere, and each would be waited for."""
    start = m.lists[row].start
    prefetch(m.mark, start)
    prefetch(m.mark, start + LINE // 4)
    for line in range(3):
        prefetch(m.cost, start + line * LINE // 8)
