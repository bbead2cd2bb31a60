"""What happens to the list of one ideal point; the layout and the invariants stand in `near_memory`.

A list is named by its place, that of its ball; `own` is its row of `lists`. It hears of an event (`join`), loses what has left
(`leave`) and is filled again when it has run short (`refill`). Whoever calls has made sure of places for notifications
(`can_tell`) and fallen (`make_room`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined
from tidings.index.packed.simd import wide
from tidings.index.points.ball_index import ROUNDING, set_radius
from tidings.windows.memory import (
    ALL,
    CLOCK,
    ENTERED,
    FALLEN_USED,
    NEVER,
    NONE,
    NUMBER,
    PROMOTED,
    TOUCHED,
    UNRANKED,
    fits,
    tell,
)
from tidings.windows.near.memory import BLOCK
from tidings.windows.near.refill import refill, square
from tidings.windows.near.views import LATEST, first_after, insert, leaving, purge


@inlined
def join(m: Any, place: Any, event: Any, distance: float) -> None:
    """The event just published lies within the list's radius, and pushes nothing out of its window."""
    own = m.lists[place]
    instant = leaving(own, m.events, event)
    if m.events[event].time <= own.since or instant <= m.meter[CLOCK]:
        return
    if own.k == ALL:
        tell(m.out, m.meter, m.balls.ball[place], event, -distance, UNRANKED, ENTERED)
        return
    own.changed = 1
    m.meter[TOUCHED] += 1
    position = insert(own, m, event, distance, instant)
    if 0 <= position < own.k:
        m.mark[own.start + position] |= 1
        tell(m.out, m.meter, m.balls.ball[place], event, -distance, position + 1, ENTERED)
    if 0 <= position < own.k or (own.bounded and position >= 0):
        bring_forward(m.instant_due, m.instant_first, place, instant)
        if own.counted != NEVER:
            bring_forward(m.number_due, m.number_first, place, m.events[event].number + own.counted)
    spread(m, place)


@inlined
def leave(m: Any, place: Any, event: Any) -> None:
    """A deadline of the list has come, by the clock or by the publication of `event` (NONE: by the clock).

    A bounded queue gives the event a place that has become free, however far away it lies; an exact list takes it if it ranks
    before the edge, and else finds it in a refill, if it needs one.
    """
    own = m.lists[place]
    own.changed = 1
    m.meter[TOUCHED] += 1
    gone = purge(own, m)
    certain = max(min(own.k, own.viewed + gone) - gone, 0)
    if event != NONE:
        total, bound = square(m, place, event), own.edge_distance * own.edge_distance * ROUNDING
        instant = leaving(own, m.events, event)
        near = own.bounded or own.edge == NONE or total <= bound
        if near and total >= 0.0 and m.events[event].time > own.since and instant > m.meter[CLOCK]:
            position = insert(own, m, event, np.sqrt(total), instant)
            certain = min(certain, position) if position >= 0 else certain
    if own.viewed < own.k and own.edge != NONE:
        refill(m, place)
    for rank in range(certain, min(own.k, own.viewed)):
        at = own.start + rank
        if not m.mark[at] & 1:
            m.mark[at] |= 1
            told = m.mark[at] >> 1
            why = ENTERED if told == event else PROMOTED
            tell(m.out, m.meter, m.balls.ball[place], told, -m.distance[at], rank + 1, why)
    watch(m, place)
    spread(m, place)


@inlined
def has_room(own: Any) -> bool:
    """Whether one more can fall off the view."""
    return bool(own.bounded or own.k <= 0 or own.fallen < own.fallen_room)


@borrowing_kernel
def make_room(m: Any, place: Any) -> bool:
    """Room for one more to fall: by forgetting who has left, else by moving to twice the room; False when `fallen` is used up."""
    own, meter = m.lists[place], m.meter
    wider = max(8, 2 * own.fallen_room)
    if meter[FALLEN_USED] + wider > m.fallen.size:
        return False
    oldest = np.int64(0) if own.counted == NEVER else first_after(m, meter[NUMBER] - own.counted)
    kept = 0
    for i in range(own.fallen_start, own.fallen_start + own.fallen):
        if m.fallen[i] >= oldest and leaving(own, m.events, m.fallen[i]) > meter[CLOCK]:
            m.fallen[own.fallen_start + kept] = m.fallen[i]
            kept += 1
    own.fallen = kept
    if 2 * kept > own.fallen_room or own.fallen_room == 0:
        for i in range(kept):
            m.fallen[meter[FALLEN_USED] + i] = m.fallen[own.fallen_start + i]
        own.fallen_start, own.fallen_room = meter[FALLEN_USED], wider
        meter[FALLEN_USED] += wider
    return True


@borrowing_kernel
def settle(m: Any, place: Any) -> None:
    """Deadlines and radius of a list that was put together anew."""
    watch(m, place)
    spread(m, place)


@inlined
def watch(m: Any, place: Any) -> None:
    """Set the list's deadlines to the first leaving among its watched candidates."""
    own = m.lists[place]
    end = own.start + (own.viewed if own.bounded else min(own.k, own.viewed))
    instant, oldest = NEVER, LATEST
    leaves, marks = m.leaves[own.start : end], m.mark[own.start : end]
    if own.timed:
        for i in range(leaves.size):
            instant = min(instant, leaves[i])
    for i in range(marks.size):
        oldest = min(oldest, marks[i])
    number = NEVER if own.counted == NEVER or end == own.start else m.events[wide(oldest) >> 1].number + own.counted
    m.instant_due[place], m.number_due[place] = instant, number
    m.instant_first[place // BLOCK] = min(m.instant_first[place // BLOCK], instant)
    m.number_first[place // BLOCK] = min(m.number_first[place // BLOCK], number)


@inlined
def bring_forward(due: Any, first: Any, place: Any, value: int) -> None:
    """A new candidate may leave before those there are; a deadline that is too early is put right when it comes."""
    if value < due[place]:
        due[place] = value
        first[place // BLOCK] = min(first[place // BLOCK], value)


@inlined
def spread(m: Any, place: Any) -> None:
    """Set the radius: how far from the centre an event may lie and still change the list."""
    own = m.lists[place]
    radius = np.inf
    if own.bounded:
        if own.viewed == own.limit:
            radius = m.distance[own.start + own.viewed - 1]
    elif own.edge != NONE:
        radius = own.edge_distance
    set_radius(m.balls.radius, m.balls.stretch, m.balls.reach, place, radius)


@inlined
def can_tell(own: Any, m: Any) -> bool:
    """Whether `out` has places for all that one step of the list can notify: a new event and its whole list."""
    return fits(m.out, m.meter, min(own.k, own.limit))
