"""What happens to one subscription's list of candidates; the layout and the invariants stand in `window_memory`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import kernel
from tidings.engine.window_memory import BEGINNING, CLOCK, NEVER, NONE, NUMBER, PRUNES, REFILLS, USED


@kernel
def insert(m: Any, slot: int, event: int, relevance: float) -> int:
    """Put the event among the slot's candidates: its position in the view, or NONE below it. There must be room for one."""
    own, pool = m.lists[slot], m.pool
    start, view, size = own.start, own.viewed, own.size
    if size > view or view == own.limit:
        last = start + view - 1
        if view == 0 or not before(m, relevance, event, pool[last].relevance, pool[last].event):
            if not own.bounded:
                put(pool, start + size, relevance, event, 0)
                own.size = size + 1
            return NONE
    lo, hi = 0, view
    while lo < hi:
        middle = (lo + hi) >> 1
        if before(m, relevance, event, pool[start + middle].relevance, pool[start + middle].event):
            hi = middle
        else:
            lo = middle + 1
    if size > view:
        move(pool, start + view, start + size)
    for i in range(start + view, start + lo, -1):
        move(pool, i - 1, i)
    put(pool, start + lo, relevance, event, 0)
    own.viewed = min(view + 1, own.limit)
    own.size = own.viewed if own.bounded else size + 1
    return lo


@kernel
def purge(m: Any, slot: int) -> None:
    """Take what has left out of the view; the reserve closes the gap from its end."""
    own, pool = m.lists[slot], m.pool
    start, view, size = own.start, own.viewed, own.size
    kept = 0
    for i in range(view):
        if alive(m, slot, pool[start + i].event):
            move(pool, start + i, start + kept)
            kept += 1
    gap = view - kept
    for i in range(min(gap, size - view)):
        move(pool, start + size - 1 - i, start + kept + i)
    own.viewed = kept
    own.size = size - gap


@kernel
def sweep(m: Any, slot: int) -> None:
    """Take what has left out of the reserve."""
    own, pool = m.lists[slot], m.pool
    kept = own.start + own.viewed
    for i in range(kept, own.start + own.size):
        if alive(m, slot, pool[i].event):
            move(pool, i, kept)
            kept += 1
    own.size = kept - own.start


@kernel
def refill(m: Any, slot: int) -> None:
    """The view has run short: sort what is alive of the reserve and take the best of it."""
    own = m.lists[slot]
    m.meter[REFILLS] += 1
    sweep(m, slot)
    sort_best_first(m, own.start + own.viewed, own.size - own.viewed)
    own.viewed = min(own.limit, own.size)


@kernel
def prune(m: Any, slot: int) -> None:
    """Forget every candidate of the reserve that k better ones outlive: it will never stand in the list."""
    own, pool = m.lists[slot], m.pool
    m.meter[PRUNES] += 1
    sweep(m, slot)
    start, view, size = own.start, own.viewed, own.size
    if size <= own.k:
        return
    sort_best_first(m, start + view, size - view)
    by_count = own.counted != NEVER
    latest = np.full(own.k, BEGINNING, np.int64)
    kept = start
    for i in range(start, start + size):
        instant, number = leaving(m, slot, pool[i].event)
        end = number if by_count else instant
        needed = latest[0] < end
        if needed and alive(m, slot, pool[i].event) and (not by_count or instant == NEVER):
            replace_first(latest, end)
        if needed or i < start + view:
            move(pool, i, kept)
            kept += 1
    own.size = kept - start


@kernel
def replace_first(smallest_first: Any, value: int) -> None:
    """Replace the top of a binary heap whose smallest is on top."""
    i, n = 0, smallest_first.size
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and smallest_first[child + 1] < smallest_first[child]:
            child += 1
        if smallest_first[child] >= value:
            break
        smallest_first[i] = smallest_first[child]
        i = child
    smallest_first[i] = value


@kernel
def make_room(m: Any, slot: int) -> bool:
    """Places for one more: by pruning, else by moving to twice the places at the end of the pool; False when the pool is full."""
    own, pool, meter = m.lists[slot], m.pool, m.meter
    start, room, size = own.start, own.room, own.size
    wider = min(max(8, 2 * room), own.limit + 1) if own.bounded else max(8, 2 * room)
    if meter[USED] + wider > pool.size:
        return False
    if not own.bounded and room > 0:
        prune(m, slot)
        size = own.size
        if 2 * size <= room:
            return True
    for i in range(size):
        move(pool, start + i, meter[USED] + i)
    own.start, own.room = meter[USED], wider
    meter[USED] += wider
    return True


@kernel
def sort_best_first(m: Any, start: int, n: int) -> None:
    """Heap sort of the places [start, start + n)."""
    for root in range(n // 2 - 1, -1, -1):
        sink(m, start, n, root)
    for last in range(n - 1, 0, -1):
        swap(m.pool, start, start + last)
        sink(m, start, last, 0)


@kernel
def sink(m: Any, start: int, n: int, root: int) -> None:
    """Restore the heap of the places [start, start + n), last-ranking on top, below `root`."""
    pool = m.pool
    while 2 * root + 1 < n:
        child = start + 2 * root + 1
        if child + 1 < start + n and before(
            m, pool[child].relevance, pool[child].event, pool[child + 1].relevance, pool[child + 1].event
        ):
            child += 1
        top = start + root
        if not before(m, pool[top].relevance, pool[top].event, pool[child].relevance, pool[child].event):
            return
        swap(pool, top, child)
        root = child - start


@kernel
def before(m: Any, relevance: float, event: int, other_relevance: float, other: int) -> bool:
    """Whether an event ranks before another: relevance desc, time asc, id asc, number asc."""
    if relevance != other_relevance:
        return relevance > other_relevance
    events = m.events
    if events[event].time != events[other].time:
        return bool(events[event].time < events[other].time)
    i, j = events[event].id_start, events[other].id_start
    i_end, j_end = events[event].id_end, events[other].id_end
    while i < i_end and j < j_end:
        if m.id_bytes[i] != m.id_bytes[j]:
            return bool(m.id_bytes[i] < m.id_bytes[j])
        i, j = i + 1, j + 1
    if i_end - i != j_end - j:
        return bool(i_end - i < j_end - j)
    return bool(events[event].number < events[other].number)


@kernel
def leaving(m: Any, slot: int, event: int) -> tuple[int, int]:
    """The instant and the publication number at which the event is no longer the slot's candidate."""
    own, published = m.lists[slot], m.events[event]
    instant, number = published.expires, NEVER
    if own.duration != NEVER:
        instant = min(instant, published.time + own.duration)
    if own.counted != NEVER:
        number = published.number + own.counted
    return instant, number


@kernel
def alive(m: Any, slot: int, event: int) -> bool:
    instant, number = leaving(m, slot, event)
    return bool(instant > m.meter[CLOCK] and number > m.meter[NUMBER])


@kernel
def watch(m: Any, slot: int) -> None:
    """Set the slot's deadlines to the first leaving among its watched candidates."""
    own = m.lists[slot]
    depth = own.limit if own.bounded else own.k
    first_instant, first_number = NEVER, NEVER
    for i in range(min(depth, own.viewed)):
        instant, number = leaving(m, slot, m.pool[own.start + i].event)
        first_instant, first_number = min(first_instant, instant), min(first_number, number)
    reschedule(m.instants, slot, first_instant)
    reschedule(m.numbers, slot, first_number)


@kernel
def watch_one(m: Any, slot: int, event: int) -> None:
    """Bring the slot's deadlines forward for a new candidate; a deadline that is too early is put right when it comes."""
    instant, number = leaving(m, slot, event)
    if instant < m.instants[slot].key:
        reschedule(m.instants, slot, instant)
    if number < m.numbers[slot].key:
        reschedule(m.numbers, slot, number)


@kernel
def reschedule(deadlines: Any, slot: int, value: int) -> None:
    """Set a key of the indexed heap."""
    deadlines[slot].key = value
    i, n = deadlines[slot].place, deadlines.size
    while i > 0:
        above = deadlines[(i - 1) >> 1].heap
        if deadlines[above].key <= value:
            break
        deadlines[i].heap, deadlines[above].place = above, i
        i = (i - 1) >> 1
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and deadlines[deadlines[child + 1].heap].key < deadlines[deadlines[child].heap].key:
            child += 1
        below = deadlines[child].heap
        if deadlines[below].key >= value:
            break
        deadlines[i].heap, deadlines[below].place = below, i
        i = child
    deadlines[i].heap, deadlines[slot].place = slot, i


@kernel
def put(pool: Any, place: int, relevance: float, event: int, told: int) -> None:
    pool[place].relevance, pool[place].event, pool[place].told = relevance, event, told


@kernel
def move(pool: Any, source: int, target: int) -> None:
    pool[target] = pool[source]


@kernel
def swap(pool: Any, a: int, b: int) -> None:
    relevance, event, told = pool[a].relevance, pool[a].event, pool[a].told
    pool[a] = pool[b]
    put(pool, b, relevance, event, told)
