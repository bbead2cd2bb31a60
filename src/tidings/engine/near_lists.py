"""What happens to the list of one ideal point; the layout and the invariants stand in `near_memory`.

A list is named by its place, that of its ball; `own` is its row of `lists`. A list hears of an event (`join`), loses what has left (`leave`) and is filled again when it
has run short (`refill`). Whoever calls has made sure of places for notifications (`can_tell`) and fallen (`make_room`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined
from tidings.engine.near_memory import BLOCK
from tidings.engine.window_lists import earlier
from tidings.engine.window_memory import (
    ALL,
    CLOCK,
    ENTERED,
    FALLEN_USED,
    GRIDDED,
    NEVER,
    NONE,
    NUMBER,
    PROMOTED,
    REFILLS,
    STORED,
    TOUCHED,
    UNRANKED,
    WRITTEN,
)
from tidings.index.ball_index import ROUNDING, set_radius
from tidings.index.point_grid import cell_range
from tidings.index.simd import slide, wide

GROWTH = 1.5
"""How much farther than the old edge a refill looks first, and how much farther again while it finds too few."""
WIDE = 32
"""A ball over more than one cell in WIDE is looked for among all events, without the grid."""


@inlined
def join(m: Any, place: Any, event: Any, distance: float) -> None:
    """The event just published lies within the list's radius, and pushes nothing out of its window."""
    own = m.lists[place]
    instant = leaving(own, m.events, event)
    if m.events[event].time <= own.since or instant <= m.meter[CLOCK]:
        return
    if own.k == ALL:
        tell(m, place, event, distance, UNRANKED, ENTERED)
        return
    own.changed = 1
    m.meter[TOUCHED] += 1
    position = insert(own, m, event, distance, instant)
    if 0 <= position < own.k:
        m.mark[own.start + position] |= 1
        tell(m, place, event, distance, position + 1, ENTERED)
    if 0 <= position < own.k or (own.bounded and position >= 0):
        bring_forward(m.instant_due, m.instant_first, place, instant)
        if own.counted != NEVER:
            bring_forward(m.number_due, m.number_first, place, m.events[event].number + own.counted)
    spread(m, place)


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
    start, lo, hi = own.start, 0, own.viewed
    while lo < hi:
        middle = (lo + hi) >> 1
        if ranks(m, distance, event, m.distance[start + middle], m.mark[start + middle] >> 1):
            hi = middle
        else:
            lo = middle + 1
    at, after = start + lo, own.viewed - lo
    slide(m.distance, at, at + 1, after)
    slide(m.mark, at, at + 1, after)
    slide(m.leaves, at, at + 1, after)
    m.distance[at], m.mark[at], m.leaves[at] = distance, 2 * event, instant
    own.viewed += 1
    return lo


@inlined
def fall(own: Any, m: Any, at: int) -> None:
    """What stands at `at` falls off the view: it is the edge now, and remembered if it was told."""
    own.edge, own.edge_distance = m.mark[at] >> 1, m.distance[at]
    if m.mark[at] & 1:
        m.fallen[own.fallen_start + own.fallen] = own.edge
        own.fallen += 1


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
            tell(m, place, told, m.distance[at], rank + 1, ENTERED if told == event else PROMOTED)
    watch(m, place)
    spread(m, place)


@inlined
def purge(own: Any, m: Any) -> Any:
    """Take what has left out of the view; how many."""
    start, end, clock = own.start, own.start + own.viewed, m.meter[CLOCK]
    oldest: Any = np.int64(0)
    if own.counted != NEVER:
        oldest = 2 * first_after(m, m.meter[NUMBER] - own.counted)
    kept = i = start
    while i < end:
        run = i
        while i < end and m.mark[i] >= oldest and m.leaves[i] > clock:
            i += 1
        if kept < run < i:
            slide(m.distance, run, kept, i - run)
            slide(m.mark, run, kept, i - run)
            slide(m.leaves, run, kept, i - run)
        kept += i - run
        i += 1
    own.viewed = kept - start
    return end - kept


@borrowing_kernel
def refill(m: Any, place: Any) -> None:
    """Fill the view with the best live events at and after the old edge."""
    own = m.lists[place]
    m.meter[REFILLS] += 1
    known = own.viewed
    reach = own.edge_distance * GROWTH if own.edge != NONE and own.edge_distance > 0.0 else np.inf
    reach, found = seek(m, place, reach)
    while reach < np.inf and own.viewed + found <= own.limit:
        reach, found = seek(m, place, reach * GROWTH)
    own.edge = NONE
    for i in range(found):
        event = np.int64(m.sought[i])
        distance = np.sqrt(m.sought_squares[i])
        if own.edge == NONE or distance <= own.edge_distance:
            insert(own, m, event, distance, leaving(own, m.events, event))
    recall(own, m, known)


@borrowing_kernel
def seek(m: Any, place: Any, reach: float) -> tuple[float, int]:
    """Write to `sought` the list's live candidates within reach that do not rank before its edge: how far it looked, how many.

    Events stored after the grid was made are looked at one by one; so are all when the ball covers much of the grid.
    """
    own, grid, meter = m.lists[place], m.grid, m.meter
    oldest = own.after if own.counted == NEVER else max(own.after, meter[NUMBER] - own.counted)
    first, last = first_after(m, oldest), first_after(m, meter[NUMBER])
    x_first, x_last, y_first, y_last = covered(m, place, reach)
    found, rest = 0, first
    if WIDE * (x_last - x_first + 1) * (y_last - y_first + 1) > grid.start.size:
        reach = np.inf
    bound = reach * reach * ROUNDING
    if reach < np.inf:
        for x in range(x_first, x_last + 1):
            lo, hi = grid.start[x * grid.sides[1] + y_first], grid.start[x * grid.sides[1] + y_last + 1]
            write_squares(m, place, grid.points, lo, hi, m.sought_squares[found:])
            begin = found
            for i in range(hi - lo):
                total, event = m.sought_squares[begin + i], np.int64(grid.row[lo + i])
                if total <= bound and first <= event < last and is_sought(own, m, event, total):
                    m.sought[found], m.sought_squares[found] = event, total
                    found += 1
        rest = max(first, meter[GRIDDED])
    if rest < last:
        write_squares(m, place, m.points, rest, last, m.sought_squares[found:])
    begin = found
    for i in range(last - rest):
        total = m.sought_squares[begin + i]
        if total <= bound and is_sought(own, m, rest + i, total):
            m.sought[found], m.sought_squares[found] = rest + i, total
            found += 1
    return reach, found


@inlined
def is_sought(own: Any, m: Any, event: Any, total: float) -> bool:
    if m.events[event].time <= own.since or leaving(own, m.events, event) <= m.meter[CLOCK]:
        return False
    return bool(own.edge == NONE or event == own.edge or not ranks(m, np.sqrt(total), event, own.edge_distance, own.edge))


@inlined
def covered(m: Any, place: Any, reach: float) -> tuple[int, int, int, int]:
    """The first and last cell of the grid within reach, along x and y."""
    grid, centre, weight = m.grid, m.balls.centre, m.balls.weight
    half = reach / np.sqrt(weight[0, place]) * ROUNDING + 1e-300
    x_first, x_last = cell_range(grid, 0, centre[0, place], half)
    if centre.shape[0] == 1:
        return x_first, x_last, 0, 0
    half = reach / np.sqrt(weight[1, place]) * ROUNDING + 1e-300
    y_first, y_last = cell_range(grid, 1, centre[1, place], half)
    return x_first, x_last, y_first, y_last


@inlined
def write_squares(m: Any, place: Any, points: Any, lo: int, hi: int, squares: Any) -> None:
    """squares[:hi - lo] = squared distances of the positions [lo, hi), summed in the order of `square`."""
    target = squares[: hi - lo]
    target[:] = 0.0
    for d in range(points.shape[0]):
        centre, weight = m.balls.centre[d, place], m.balls.weight[d, place]
        values = points[d, lo:hi]
        for i in range(target.size):
            off = values[i] - centre
            target[i] += weight * (off * off)


@inlined
def square(m: Any, place: Any, event: Any) -> float:
    total = 0.0
    for d in range(m.points.shape[0]):
        off = m.points[d, event] - m.balls.centre[d, place]
        total += m.balls.weight[d, place] * (off * off)
    return total


@borrowing_kernel
def recall(own: Any, m: Any, known: int) -> None:
    """Those of the fallen that stand in the view again, from position `known` on, are told and not fallen."""
    kept = own.fallen_start
    for i in range(own.fallen_start, own.fallen_start + own.fallen):
        back = False
        for at in range(own.start + known, own.start + own.viewed):
            if m.mark[at] >> 1 == m.fallen[i]:
                m.mark[at] |= 1
                back = True
                break
        if not back:
            m.fallen[kept] = m.fallen[i]
            kept += 1
    own.fallen = kept - own.fallen_start


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
    instant, oldest = NEVER, NEVER
    for value in m.leaves[own.start : end]:
        instant = value if value < instant else instant
    for value in m.mark[own.start : end]:
        oldest = value if value < oldest else oldest
    number = NEVER if own.counted == NEVER or oldest == NEVER else m.events[oldest >> 1].number + own.counted
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
    """The first stored event with a greater publication number: where it stands if no number is missing, else searched for."""
    stored = m.meter[STORED]
    guess = number + 1 - m.events[0].number
    if 0 < guess < stored and m.events[guess].number == number + 1:
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


@inlined
def can_tell(own: Any, m: Any) -> bool:
    """Whether `out` has places for all that one step of the list can notify: a new event and its whole list."""
    return bool(m.meter[WRITTEN] + max(min(own.k, own.limit), 0) + 1 <= m.out.size)


@inlined
def tell(m: Any, place: Any, event: Any, distance: float, rank: Any, why: Any) -> None:
    row, meter = m.out[m.meter[WRITTEN]], m.meter
    row.slot, row.event, row.relevance, row.rank, row.why = m.balls.ball[place], event, -distance, rank, why
    row.at, row.number = meter[CLOCK], meter[NUMBER]
    meter[WRITTEN] += 1
