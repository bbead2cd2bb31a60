"""What happens to one subscription's list of candidates; the layout and the invariants stand in `window_memory`.

`own` is the slot's row of `lists`, `ids` is `id_bytes`. What is called for every match takes the arrays it needs and not the
whole `Memory`: an argument of a hundred words costs more than the work wherever the call is not inlined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.windows.memory import BEGINNING, CLOCK, NEVER, NONE, NUMBER, PRUNES, REFILLS, USED


@borrowing_kernel
def insert(own: Any, pool: Any, events: Any, ids: Any, event: Any, relevance: float) -> Any:
    """Put the event among the slot's candidates: its position in the view, or NONE below it. There must be room for one."""
    if own.size > own.viewed or own.viewed == own.limit:
        last = own.start + own.viewed - 1
        if own.viewed == 0 or not before(events, ids, relevance, event, pool[last].relevance, np.int64(pool[last].event)):
            if not own.bounded:
                put(pool, own.start + own.size, relevance, event, 0)
                own.size += 1
            return NONE
    position = rank_in_view(own, pool, events, ids, event, relevance)
    own.viewed = min(own.viewed, own.limit)
    if own.bounded:
        own.size = own.viewed
    return position


@borrowing_kernel
def rank_in_view(own: Any, pool: Any, events: Any, ids: Any, event: Any, relevance: float) -> int:
    """Insert into the view, which may outgrow its limit by this one; the first of the reserve makes way to its end."""
    start, view = own.start, own.viewed
    lo, hi = 0, view
    while lo < hi:
        middle = (lo + hi) >> 1
        if before(events, ids, relevance, event, pool[start + middle].relevance, np.int64(pool[start + middle].event)):
            hi = middle
        else:
            lo = middle + 1
    if own.size > view:
        move(pool, start + view, start + own.size)
    for i in range(start + view, start + lo, -1):
        move(pool, i - 1, i)
    put(pool, start + lo, relevance, event, 0)
    own.viewed += 1
    own.size += 1
    return lo


@borrowing_kernel
def purge(own: Any, pool: Any, events: Any, meter: Any) -> None:
    """Take what has left out of the view; the reserve closes the gap from its end."""
    start, view, size = own.start, own.viewed, own.size
    kept = 0
    for i in range(view):
        if alive(own, events[pool[start + i].event], meter):
            move(pool, start + i, start + kept)
            kept += 1
    gap = view - kept
    for i in range(min(gap, size - view)):
        move(pool, start + size - 1 - i, start + kept + i)
    own.viewed = kept
    own.size = size - gap


@borrowing_kernel
def sweep(own: Any, pool: Any, events: Any, meter: Any) -> None:
    """Take what has left out of the reserve."""
    kept = own.start + own.viewed
    for i in range(kept, own.start + own.size):
        if alive(own, events[pool[i].event], meter):
            move(pool, i, kept)
            kept += 1
    own.size = kept - own.start


@borrowing_kernel
def refill(m: Any, slot: Any) -> None:
    """The view has run short: sort what is alive of the reserve and take the best of it."""
    own = m.lists[slot]
    m.meter[REFILLS] += 1
    sweep(own, m.pool, m.events, m.meter)
    sort_best_first(m.pool, m.events, m.id_bytes, own.start + own.viewed, own.size - own.viewed)
    own.viewed = min(own.limit, own.size)


@kernel
def prune(m: Any, slot: Any) -> None:
    """Forget every candidate of the reserve that k better ones outlive: it will never stand in the list."""
    own, pool = m.lists[slot], m.pool
    m.meter[PRUNES] += 1
    sweep(own, m.pool, m.events, m.meter)
    start, view, size = own.start, own.viewed, own.size
    if size <= own.k:
        return
    sort_best_first(m.pool, m.events, m.id_bytes, start + view, size - view)
    by_count = own.counted != NEVER
    latest = np.full(own.k, BEGINNING, np.int64)
    kept = start
    for i in range(start, start + size):
        instant, number = leaving(own, m.events[pool[i].event])
        end = number if by_count else instant
        needed = latest[0] < end
        if needed and alive(own, m.events[pool[i].event], m.meter) and (not by_count or instant == NEVER):
            replace_first(latest, end)
        if needed or i < start + view:
            move(pool, i, kept)
            kept += 1
    own.size = kept - start


@borrowing_kernel
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
def make_room(m: Any, slot: Any) -> bool:
    """Places for one more: by pruning, else by moving to twice the places at the end of the pool; False when the pool is full."""
    own, pool, meter = m.lists[slot], m.pool, m.meter
    wider = max(8, 2 * own.room)
    if own.bounded:
        wider = min(wider, own.limit + 1)
    if meter[USED] + wider > pool.size:
        return False
    if not own.bounded and own.room > 0:
        prune(m, slot)
        if 2 * own.size <= own.room:
            return True
    for i in range(own.size):
        move(pool, own.start + i, meter[USED] + i)
    own.start, own.room = meter[USED], wider
    meter[USED] += wider
    return True


@borrowing_kernel
def sort_best_first(pool: Any, events: Any, ids: Any, start: int, n: int) -> None:
    """Heap sort of the places [start, start + n)."""
    for root in range(n // 2 - 1, -1, -1):
        sink(pool, events, ids, start, n, root)
    for last in range(n - 1, 0, -1):
        swap(pool, start, start + last)
        sink(pool, events, ids, start, last, 0)


@borrowing_kernel
def sink(pool: Any, events: Any, ids: Any, start: int, n: int, root: int) -> None:
    """Restore the heap of the places [start, start + n), last-ranking on top, below `root`."""
    while 2 * root + 1 < n:
        child = start + 2 * root + 1
        if child + 1 < start + n and ranks(pool, events, ids, child, child + 1):
            child += 1
        if not ranks(pool, events, ids, start + root, child):
            return
        swap(pool, start + root, child)
        root = child - start


@inlined
def ranks(pool: Any, events: Any, ids: Any, a: int, b: int) -> bool:
    """Whether the candidate in place a ranks before that in place b."""
    return before(events, ids, pool[a].relevance, np.int64(pool[a].event), pool[b].relevance, np.int64(pool[b].event))


@inlined
def before(events: Any, ids: Any, relevance: float, event: Any, other_relevance: float, other: Any) -> bool:
    """Whether an event ranks before another: relevance desc, time asc, id asc, number asc."""
    if relevance != other_relevance:
        return relevance > other_relevance
    return earlier(events, ids, event, other)


@borrowing_kernel
def earlier(events: Any, ids: Any, event: Any, other: Any) -> bool:
    """Whether an event ranks before another that is as relevant."""
    if events[event].time != events[other].time:
        return bool(events[event].time < events[other].time)
    i, j = events[event].id_start, events[other].id_start
    i_end, j_end = events[event].id_end, events[other].id_end
    while i < i_end and j < j_end:
        if ids[i] != ids[j]:
            return bool(ids[i] < ids[j])
        i, j = i + 1, j + 1
    if i_end - i != j_end - j:
        return bool(i_end - i < j_end - j)
    return bool(events[event].number < events[other].number)


@inlined
def leaving(own: Any, published: Any) -> tuple[int, int]:
    """The instant and the publication number at which an event is no longer a candidate: rows of `lists` and `events`."""
    instant, number = published.expires, NEVER
    if own.duration != NEVER:
        instant = min(instant, published.time + own.duration)
    if own.counted != NEVER:
        number = published.number + own.counted
    return instant, number


@inlined
def alive(own: Any, published: Any, meter: Any) -> bool:
    instant, number = leaving(own, published)
    return bool(instant > meter[CLOCK] and number > meter[NUMBER])


@borrowing_kernel
def watch(m: Any, slot: Any) -> None:
    """Set the slot's deadlines to the first leaving among its watched candidates."""
    own = m.lists[slot]
    depth = own.limit if own.bounded else own.k
    first_instant, first_number = NEVER, NEVER
    for i in range(min(depth, own.viewed)):
        instant, number = leaving(own, m.events[m.pool[own.start + i].event])
        first_instant, first_number = min(first_instant, instant), min(first_number, number)
    reschedule(m.instants, slot, first_instant)
    reschedule(m.numbers, slot, first_number)


@borrowing_kernel
def watch_one(own: Any, published: Any, instants: Any, numbers: Any, slot: Any) -> None:
    """Bring the slot's deadlines forward for a new candidate; a deadline that is too early is put right when it comes."""
    instant, number = leaving(own, published)
    if instant < instants[slot].key:
        reschedule(instants, slot, instant)
    if number < numbers[slot].key:
        reschedule(numbers, slot, number)


@borrowing_kernel
def reschedule(deadlines: Any, slot: Any, value: int) -> None:
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


@inlined
def put(pool: Any, place: Any, relevance: float, event: Any, told: Any) -> None:
    pool[place].relevance, pool[place].event, pool[place].told = relevance, event, told


@inlined
def move(pool: Any, source: int, target: int) -> None:
    """Field by field: Numba copies a whole record byte by byte."""
    put(pool, target, pool[source].relevance, np.int64(pool[source].event), np.int64(pool[source].told))


@borrowing_kernel
def swap(pool: Any, a: int, b: int) -> None:
    relevance, event, told = pool[a].relevance, np.int64(pool[a].event), np.int64(pool[a].told)
    move(pool, b, a)
    put(pool, b, relevance, event, told)
