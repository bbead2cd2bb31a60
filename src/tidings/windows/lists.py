"""What happens to one list: it hears of an event (`join`), loses what has left (`leave`), is filled again when it has run short.

A list is named by its row. Whoever calls has made sure of room (`ready`). `near` is None for lists of matches. Layout and
invariants stand in `memory`. [topkw, Section 2]
"""

from __future__ import annotations

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.simd import wide
from tidings.index.points.ball_index import set_radius
from tidings.windows.memory import (
    ALL,
    BLOCK,
    CLOCK,
    DONE,
    ENTERED,
    NEVER,
    NONE,
    OUT_FULL,
    PROMOTED,
    REFILLS,
    TOUCHED,
    UNRANKED,
    WRITTEN,
    Ints,
    ListRow,
    Memory,
    tell,
)
from tidings.windows.near.points import Points
from tidings.windows.near.seeking import refill_from_points
from tidings.windows.reserve import has_room, make_room, offer, refill_from_spare
from tidings.windows.sorted_view import LATEST, leaving, purge


@inlined
def join(m: Memory, near: Points | None, row: int, event: int, cost: float, group: int) -> None:
    """The event just published concerns the list, if its cost is finite, and pushes nothing out of its window."""
    own: ListRow = m.lists[row]
    instant = leaving(m, own, m.events[event])
    if own.k == 0 or m.events[event].time <= own.since or instant <= m.meter[CLOCK] or cost == np.inf:
        return
    if own.k == ALL:
        tell(m, slot_of(near, row), event, cost, UNRANKED, ENTERED)
        return
    own.changed = 1
    m.meter[TOUCHED] += 1
    position = offer(m, near, own, 2 * event, cost, instant, group)
    if 0 <= position < own.k:
        m.mark[own.start + position] |= 1
        tell(m, slot_of(near, row), event, cost, position + 1, ENTERED)
    if 0 <= position < own.k or (own.bounded and position >= 0):
        bring_forward(m.instant_due, m.instant_first, row, instant)
        if own.counted != NEVER:
            bring_forward(m.number_due, m.number_first, row, m.events[event].number + own.counted)
    if near is not None:
        spread(m, near, row)


@inlined
def leave(m: Memory, near: Points | None, row: int, event: int, cost: float, group: int) -> None:
    """A deadline of the list has come, by the clock or by the publication of `event` (NONE: by the clock).

    The event, if it concerns the list (its cost is not NaN), competes with those that stay. A bounded queue gives it a place that
    has become free, however far away it lies.
    """
    own: ListRow = m.lists[row]
    own.changed = 1
    m.meter[TOUCHED] += 1
    gone = purge(m, own)
    # Only what stood in the first k before, and nobody new has come before, is certain to have been told; the next of a group may
    # come anywhere.
    certain = wide(0) if own.per else max(min(own.k, own.viewed + gone) - gone, 0)
    if event != NONE and not np.isnan(cost):
        instant = leaving(m, own, m.events[event])
        if m.events[event].time > own.since and instant > m.meter[CLOCK]:
            position = offer(m, near, own, 2 * event, cost, instant, group)
            certain = min(certain, position) if position >= 0 else certain
    if (own.viewed < own.k and own.edge != NONE) or (own.per and gone > 0 and own.spare > 0):
        refill(m, near, row)
    for rank in range(certain, min(own.k, own.viewed)):
        at = own.start + rank
        if not m.mark[at] & 1:
            m.mark[at] |= 1
            told = wide(m.mark[at] >> 1)
            tell(m, slot_of(near, row), told, m.cost[at], rank + 1, ENTERED if told == event else PROMOTED)
    watch(m, row)
    if near is not None:
        spread(m, near, row)


@borrowing_kernel
def leave_apart(m: Memory, near: Points | None, row: int, event: int, cost: float, group: int) -> None:
    """`leave`, compiled once and called: where it need not be the fastest it would be copied for the fourth time."""
    leave(m, near, row, event, cost, group)


@inlined
def refill(m: Memory, near: Points | None, row: int) -> None:
    """Fill the view with the best live candidates at and after the old edge: the only thing in which lists of two kinds differ."""
    m.meter[REFILLS] += 1
    if near is None or m.lists[row].bounded:
        refill_from_spare(m, near, row)
    else:
        refill_from_points(m, near, row)


@kernel
def put_back(m: Memory, near: Points | None, rows: Ints) -> None:
    """Lists whose candidates (of an exact one around an ideal point: those told) were all made spare get views and deadlines."""
    for row in rows:
        if m.lists[row].k > 0:
            refill(m, near, row)
        watch(m, row)
        if near is not None and m.lists[row].k > 0:
            spread(m, near, row)


@inlined
def watch(m: Memory, row: int) -> None:
    """Set the list's deadlines to the first leaving among its watched candidates."""
    own: ListRow = m.lists[row]
    end = own.start + (own.viewed if own.bounded else max(min(own.k, own.viewed), 0))
    instant, oldest = NEVER, LATEST
    leaves, marks = m.leaves[own.start : end], m.mark[own.start : end]
    if own.timed:
        for i in range(leaves.size):
            instant = min(instant, leaves[i])
    for i in range(marks.size):
        oldest = min(oldest, marks[i])
    number = NEVER if own.counted == NEVER or end == own.start else m.events[wide(oldest) >> 1].number + own.counted
    m.instant_due[row], m.number_due[row] = instant, number
    m.instant_first[row // BLOCK] = min(m.instant_first[row // BLOCK], instant)
    m.number_first[row // BLOCK] = min(m.number_first[row // BLOCK], number)


@inlined
def bring_forward(due: Ints, first: Ints, row: int, value: int) -> None:
    """A new candidate may leave before those there are; a deadline that is too early is put right when it comes."""
    if value < due[row]:
        due[row] = value
        first[row // BLOCK] = min(first[row // BLOCK], value)


@inlined
def spread(m: Memory, near: Points, row: int) -> None:
    """Set the radius: how far from the centre an event may lie and still change the list."""
    own: ListRow = m.lists[row]
    radius = np.inf
    if own.bounded:
        if own.viewed == own.limit:
            radius = m.cost[own.start + own.viewed - 1]
    elif own.edge != NONE:
        radius = own.edge_cost
    set_radius(near.balls.radius, near.balls.stretch, near.balls.reach, row, radius)


@inlined
def slot_of(near: Points | None, row: int) -> int:
    return row if near is None else wide(near.balls.ball[row])


@inlined
def ready(m: Memory, near: Points | None, row: int) -> int:
    """DONE when there is room for one step of the list: a new event, and notifications of it and of the whole list."""
    own: ListRow = m.lists[row]
    # Of a list of matches no more can be told than it holds: whoever asks for a k of millions must not cost their room.
    most = own.limit if near is not None else own.viewed + own.spare + 1
    if m.meter[WRITTEN] + max(min(own.k, most), 0) + 1 > m.out.size:
        return OUT_FULL
    return DONE if has_room(own) else make_room(m, near, row)
