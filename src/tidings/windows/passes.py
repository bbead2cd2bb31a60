"""The passes over all subscriptions: publications and the clock, and who must be told.

A pass that runs out of places for notifications or candidates returns OUT_FULL or POOL_FULL between two whole steps, with its
place in `meter`; called again after its owner has made room, it goes on.

[topkw, Section 2]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined
from tidings.windows.lists import insert, leaving, make_room, purge, refill, watch, watch_one
from tidings.windows.memory import (
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
    UNRANKED,
    fits,
    tell,
)


@borrowing_kernel
def publish_rows(m: Any, first: Any, starts: Any, slots: Any, relevances: Any) -> int:
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
            slot = np.int64(slots[meter[PAIR]])
            if not can_tell(m.lists[slot], m.out, m.meter):
                return OUT_FULL
            if not join(m, slot, event, relevances[meter[PAIR]]):
                return POOL_FULL
            meter[PAIR] += 1
        if not roll(m, event):
            return OUT_FULL
        meter[JOINING] = 0
        meter[ROW] += 1
    return DONE


@borrowing_kernel
def advance_to(m: Any, time: int) -> bool:
    """Move the clock, stopping at each instant at which a watched candidate leaves; False when `out` is full."""
    meter = m.meter
    while m.instants[m.instants[0].heap].key <= time:
        slot = m.instants[0].heap
        if not can_tell(m.lists[slot], m.out, m.meter):
            return False
        meter[CLOCK] = m.instants[slot].key
        leave(m, slot, NONE)
    meter[CLOCK] = max(meter[CLOCK], time)
    return True


@borrowing_kernel
def roll(m: Any, event: Any) -> bool:
    """Let go of what the publication of `event` pushed out of count windows; False when `out` is full."""
    while m.numbers[m.numbers[0].heap].key <= m.meter[NUMBER]:
        slot = m.numbers[0].heap
        if not can_tell(m.lists[slot], m.out, m.meter):
            return False
        leave(m, slot, event)
    return True


@borrowing_kernel
def join(m: Any, slot: Any, event: Any, relevance: float) -> bool:
    """The published event matches the slot's subscription; False when its places cannot grow in the pool."""
    own = m.lists[slot]
    k = own.k
    if not competes(own, m.events[event], m.meter):
        return True
    if k == ALL:
        tell(m.out, m.meter, slot, event, relevance, UNRANKED, ENTERED)
        return True
    if own.size == own.room and not make_room(m, slot):
        return False
    own.changed = 1
    m.meter[TOUCHED] += 1
    if m.numbers[slot].key <= m.meter[NUMBER]:
        purge(own, m.pool, m.events, m.meter)
        insert(own, m.pool, m.events, m.id_bytes, event, relevance)
        look(m, slot, event)
        return True
    position = insert(own, m.pool, m.events, m.id_bytes, event, relevance)
    if 0 <= position < k:
        m.pool[own.start + position].told = 1
        tell(m.out, m.meter, slot, event, relevance, position + 1, ENTERED)
    if 0 <= position < k or (position != NONE and own.bounded):
        watch_one(own, m.events[event], m.instants, m.numbers, slot)
    return True


@inlined
def competes(own: Any, published: Any, meter: Any) -> bool:
    """Whether the event published now is a candidate at all."""
    instant, _ = leaving(own, published)
    return bool(own.k != 0 and published.time > own.since and instant > meter[CLOCK])


@borrowing_kernel
def leave(m: Any, slot: Any, event: Any) -> None:
    """A deadline of the slot has come, by the clock or by the publication of `event`, which does not concern it."""
    own = m.lists[slot]
    own.changed = 1
    m.meter[TOUCHED] += 1
    purge(own, m.pool, m.events, m.meter)
    look(m, slot, event)


@borrowing_kernel
def look(m: Any, slot: Any, event: Any) -> None:
    """Some have left: notify whoever stands in the list for the first time; `event` has just been published."""
    own, pool = m.lists[slot], m.pool
    start, k = own.start, own.k
    if own.viewed < k and own.size > own.viewed:
        refill(m, slot)
    for rank in range(min(k, own.viewed)):
        place = start + rank
        if not pool[place].told:
            pool[place].told = 1
            why = ENTERED if np.int64(pool[place].event) == event else PROMOTED
            tell(m.out, m.meter, slot, np.int64(pool[place].event), pool[place].relevance, rank + 1, why)
    watch(m, slot)


@inlined
def can_tell(own: Any, out: Any, meter: Any) -> bool:
    """Whether `out` has places for all that one step of the slot can notify: a new event and its whole list."""
    return fits(out, meter, min(own.k, own.size))
