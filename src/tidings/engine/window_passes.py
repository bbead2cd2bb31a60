"""The passes over all subscriptions: publications and the clock, and who must be told.

A pass that runs out of places for notifications or candidates returns OUT_FULL or POOL_FULL between two whole steps, with its
place in `meter`; called again after its owner has made room, it goes on.

[topkw, Section 2]
"""

from __future__ import annotations

from typing import Any

from tidings._jit import kernel
from tidings.engine.window_lists import insert, leaving, make_room, purge, refill, watch, watch_one
from tidings.engine.window_memory import (
    ALL,
    CLOCK,
    DONE,
    ENTERED,
    JOINING,
    NONE,
    NUMBER,
    OUT_FULL,
    PAIR,
    POOL_FULL,
    PROMOTED,
    ROW,
    TOUCHED,
    WRITTEN,
)


@kernel
def publish_rows(m: Any, first: int, starts: Any, slots: Any, relevances: Any) -> int:
    """Publish the events first, first + 1, ...; row i concerns slots[starts[i]:starts[i + 1]]. Resumes where it stopped."""
    meter = m.meter
    while meter[ROW] < starts.size - 1:
        row = meter[ROW]
        event = first + row
        if not meter[JOINING]:
            now = max(meter[CLOCK], m.events[event].time)
            if not advance_to(m, now):
                return OUT_FULL
            meter[NUMBER] += 1
            m.events[event].number = meter[NUMBER]
            meter[JOINING], meter[PAIR] = 1, starts[row]
        while meter[PAIR] < starts[row + 1]:
            slot = slots[meter[PAIR]]
            if not can_tell(m, slot):
                return OUT_FULL
            if not join(m, slot, event, relevances[meter[PAIR]]):
                return POOL_FULL
            meter[PAIR] += 1
        if not roll(m):
            return OUT_FULL
        meter[JOINING] = 0
        meter[ROW] += 1
    return DONE


@kernel
def advance_to(m: Any, time: int) -> bool:
    """Move the clock, stopping at each instant at which a watched candidate leaves; False when `out` is full."""
    meter = m.meter
    while m.instants[m.instants[0].heap].key <= time:
        slot = m.instants[0].heap
        if not can_tell(m, slot):
            return False
        meter[CLOCK] = m.instants[slot].key
        leave(m, slot)
    meter[CLOCK] = max(meter[CLOCK], time)
    return True


@kernel
def roll(m: Any) -> bool:
    """Let go of what the last publication pushed out of count windows; False when `out` is full."""
    while m.numbers[m.numbers[0].heap].key <= m.meter[NUMBER]:
        slot = m.numbers[0].heap
        if not can_tell(m, slot):
            return False
        leave(m, slot)
    return True


@kernel
def join(m: Any, slot: int, event: int, relevance: float) -> bool:
    """The published event matches the slot's subscription; False when its places cannot grow in the pool."""
    own = m.lists[slot]
    k = own.k
    instant, _ = leaving(m, slot, event)
    if k == 0 or m.events[event].time <= own.since or instant <= m.meter[CLOCK]:
        return True
    if k == ALL:
        tell(m, slot, event, relevance, 0, ENTERED)
        return True
    if own.size == own.room and not make_room(m, slot):
        return False
    own.changed = 1
    m.meter[TOUCHED] += 1
    if m.numbers[slot].key <= m.meter[NUMBER]:
        purge(m, slot)
        insert(m, slot, event, relevance)
        look(m, slot, event)
        return True
    position = insert(m, slot, event, relevance)
    if 0 <= position < k:
        m.pool[own.start + position].told = 1
        tell(m, slot, event, relevance, position + 1, ENTERED)
    if 0 <= position < k or (position != NONE and own.bounded):
        watch_one(m, slot, event)
    return True


@kernel
def leave(m: Any, slot: int) -> None:
    """A deadline of the slot has come."""
    m.lists[slot].changed = 1
    m.meter[TOUCHED] += 1
    purge(m, slot)
    look(m, slot, NONE)


@kernel
def look(m: Any, slot: int, event: int) -> None:
    """Some have left: notify whoever stands in the list for the first time; `event` has just been published."""
    own, pool = m.lists[slot], m.pool
    start, k = own.start, own.k
    if own.viewed < k and own.size > own.viewed:
        refill(m, slot)
    for rank in range(min(k, own.viewed)):
        place = start + rank
        if not pool[place].told:
            pool[place].told = 1
            why = ENTERED if pool[place].event == event else PROMOTED
            tell(m, slot, pool[place].event, pool[place].relevance, rank + 1, why)
    watch(m, slot)


@kernel
def can_tell(m: Any, slot: int) -> bool:
    """Whether `out` has places for all that one step of the slot can notify: a new event and its whole list."""
    return bool(m.meter[WRITTEN] + min(m.lists[slot].k, m.lists[slot].size) + 1 <= m.out.size)


@kernel
def tell(m: Any, slot: int, event: int, relevance: float, rank: int, why: int) -> None:
    row = m.out[m.meter[WRITTEN]]
    row.slot, row.event, row.relevance, row.rank, row.why, row.at = slot, event, relevance, rank, why, m.meter[CLOCK]
    m.meter[WRITTEN] += 1
