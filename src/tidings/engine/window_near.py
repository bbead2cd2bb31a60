"""Lists of ideal points: relevance is minus the weighted distance to the slot's centre, and every event concerns every slot.

Nothing is kept of an event that cannot enter the view. Such a slot has a *view*, complete up to its *edge*: every live event
that ranks before the edge is in it. When fewer than k are left, the view is filled again from the points of all live events.
What was told and then fell off the view stays in the reserve, so that it is not told again when a refill brings it back.

`radius` follows from that: the distance of the edge (of the last in a full bounded queue), or infinite while everything fits.
An event farther away than that changes nothing, which is what makes an index of these balls, or a grid of a batch's events,
exact.

Cost: a refill is one pass over the stored events (vectorised distances, then a bounded insertion); with a view of a few times k
it is rare. [topkw, Section 4]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.engine.window_lists import alive, before, insert_near, move, sweep
from tidings.engine.window_memory import NEVER, NONE, NUMBER, RAISED, REFILLS, STORED

ROUNDING = 1.0 + 1e-12
"""A bound on a squared distance is widened by it, so that it never excludes what the distance itself would admit."""


@inlined
def squared_distance(points: Any, centre: Any, weight: Any, slot: Any, event: Any) -> float:
    total = 0.0
    for d in range(points.shape[0]):
        off = points[d, event] - centre[slot, d]
        total += weight[slot, d] * (off * off)
    return total


@borrowing_kernel
def set_radius(own: Any, pool: Any, radii: Any, raised: Any, meter: Any, slot: Any) -> None:
    """How far from the centre an event may lie and still change the list; a growing radius is written down in `raised`."""
    radius = np.inf
    if own.bounded:
        if own.viewed == own.limit:
            radius = -pool[own.start + own.viewed - 1].relevance
    elif own.edge != NONE:
        radius = -own.edge_relevance
    if radius > radii[slot] and meter[RAISED] < raised.size:
        raised[meter[RAISED]] = slot
        meter[RAISED] += 1
    radii[slot] = radius


@kernel
def refill_near(m: Any, slot: Any) -> None:
    """Fill the view with the best live events at and after the old edge."""
    own = m.lists[slot]
    m.meter[REFILLS] += 1
    sweep(own, m.pool, m.events, m.meter)
    first, last = stored_range(m, slot)
    squares = np.zeros(last - first)
    add_squares(m, slot, first, squares)
    edge, edge_relevance = own.edge, own.edge_relevance
    own.edge = NONE
    known = own.viewed
    bound = np.inf
    for event in range(first, last):
        if squares[event - first] > bound or m.events[event].time <= own.since or not alive(own, m.events[event], m.meter):
            continue
        relevance = -np.sqrt(squares[event - first])
        if edge != NONE and event != edge and before(m.events, m.id_bytes, relevance, event, edge_relevance, edge):
            continue
        insert_near(own, m.pool, m.events, m.id_bytes, event, relevance)
        if own.edge != NONE:
            bound = own.edge_relevance * own.edge_relevance * ROUNDING
    recall(m, slot, known)


@borrowing_kernel
def stored_range(m: Any, slot: Any) -> tuple[int, int]:
    """The events published since the activation that a count window still holds: they are stored in order of publication."""
    own, count = m.lists[slot], m.meter[NUMBER]
    oldest = own.after if own.counted == NEVER else max(own.after, count - own.counted)
    return first_after(m, oldest), first_after(m, count)


@borrowing_kernel
def first_after(m: Any, number: int) -> int:
    """The first stored event with a greater publication number."""
    lo, hi = 0, m.meter[STORED]
    while lo < hi:
        middle = (lo + hi) >> 1
        if m.events[middle].number > number:
            hi = middle
        else:
            lo = middle + 1
    return lo


@borrowing_kernel
def add_squares(m: Any, slot: Any, first: Any, squares: Any) -> None:
    """squares[i] += the squared distance of event first + i, in the order of `squared_distance`, so that the sums are equal."""
    for d in range(m.points.shape[0]):
        centre, weight = m.centre[slot, d], m.weight[slot, d]
        values = m.points[d, first : first + squares.size]
        for i in range(squares.size):
            off = values[i] - centre
            squares[i] += weight * (off * off)


@borrowing_kernel
def recall(m: Any, slot: Any, known: int) -> None:
    """Take those of the reserve that stand in the view again, from position `known` on, out of it: they were told."""
    own, pool = m.lists[slot], m.pool
    kept = own.start + own.viewed
    for i in range(own.start + own.viewed, own.start + own.size):
        back = False
        for place in range(own.start + known, own.start + own.viewed):
            if np.int64(pool[place].event) == np.int64(pool[i].event):
                pool[place].told = 1
                back = True
                break
        if not back:
            move(pool, i, kept)
            kept += 1
    own.size = kept - own.start
