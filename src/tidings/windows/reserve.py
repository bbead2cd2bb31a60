"""What is not in the view of a list: candidates that fell off it, who of them comes back, and who can be forgotten.

`near` is None for lists of matches, and each kernel is compiled for it alone: Numba drops a branch on None before it compiles.
Layout and invariants stand in `memory`.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.simd import LANES, wide
from tidings.windows.memory import (
    BEGINNING,
    DONE,
    NEVER,
    NONE,
    PRUNES,
    SPARE_FULL,
    SPARE_USED,
    VIEW_USED,
    VIEWS_FULL,
    Floats,
    Handles,
    Ints,
    ListRow,
    Memory,
)
from tidings.windows.near.points import Points
from tidings.windows.sorted_view import alive, leaving, put, ranks


@inlined
def offer(m: Memory, near: Points | None, own: ListRow, mark: int, cost: float, instant: int) -> int:
    """Take a candidate into the view if it ranks before the edge: its position there, or -1. There must be room for one."""
    if own.bounded:
        last = own.start + own.limit - 1
        if own.viewed == own.limit and not ranks(m, cost, mark >> 1, m.cost[last], wide(m.mark[last] >> 1)):
            return -1
    elif own.edge != NONE and not ranks(m, cost, mark >> 1, own.edge_cost, own.edge):
        if near is None:
            keep(m, own, mark, cost)
        return -1
    position = put(m, own, mark, cost, instant)
    if own.viewed > own.limit:
        own.viewed = own.limit
        if not own.bounded:
            fall(m, near, own, own.start + own.limit)
    return position if position < own.limit else -1


@inlined
def fall(m: Memory, near: Points | None, own: ListRow, at: int) -> None:
    """What stands at `at` falls off the view: it ranks before the old edge, so it is the edge now."""
    own.edge, own.edge_cost = wide(m.mark[at] >> 1), m.cost[at]
    if near is None or m.mark[at] & 1:
        keep(m, own, wide(m.mark[at]), m.cost[at])


@inlined
def keep(m: Memory, own: ListRow, mark: int, cost: float) -> None:
    at = own.spare_start + own.spare
    m.spare_cost[at], m.spare_mark[at] = cost, mark
    own.spare += 1


@borrowing_kernel
def refill_from_spare(m: Memory, near: Points | None, row: int) -> None:
    """Offer all spare to the view again. Who is not taken goes back to the front, where at most as many stand as were read."""
    own: ListRow = m.lists[row]
    n, own.spare, own.edge = own.spare, 0, NONE
    for i in range(own.spare_start, own.spare_start + n):
        mark, cost = wide(m.spare_mark[i]), m.spare_cost[i]
        if alive(m, own, mark >> 1):
            offer(m, near, own, mark, cost, leaving(own, m.events[mark >> 1]))


@inlined
def has_room(own: ListRow) -> bool:
    """Whether the view can take one more, and the spare what falls off."""
    if own.k <= 0:
        return True
    nobody_falls = own.bounded or own.spare < own.spare_room or (own.edge == NONE and own.viewed < own.limit)
    return bool(own.viewed < own.room and nobody_falls)


@kernel
def make_room(m: Memory, near: Points | None, row: int) -> int:
    """Room for one more: the spare by forgetting, else both by moving to twice the room; DONE, or what is full."""
    own: ListRow = m.lists[row]
    if own.viewed == own.room and not widen_view(m, own):
        return VIEWS_FULL
    if has_room(own):
        return DONE
    wider = max(8, 2 * own.spare_room)
    if m.meter[SPARE_USED] + wider > m.spare_mark.size:
        return SPARE_FULL
    sweep(m, own)
    if near is None:
        prune(m, own)
    if 2 * own.spare > own.spare_room or own.spare_room == 0:
        for i in range(own.spare):
            copy_spare(m, own.spare_start + i, m.meter[SPARE_USED] + i)
        own.spare_start, own.spare_room = m.meter[SPARE_USED], wider
        m.meter[SPARE_USED] += wider
    return DONE


@borrowing_kernel
def widen_view(m: Memory, own: ListRow) -> bool:
    wider, to = min(max(8, 2 * own.room), own.limit + 1), m.meter[VIEW_USED]
    if to + wider > m.mark.size - LANES:
        return False
    for i in range(own.viewed):
        at = own.start + i
        m.cost[to + i], m.mark[to + i], m.leaves[to + i] = m.cost[at], m.mark[at], m.leaves[at]
    own.start, own.room = to, wider
    m.meter[VIEW_USED] += wider
    return True


@borrowing_kernel
def sweep(m: Memory, own: ListRow) -> None:
    """Forget the spare that have left."""
    kept = own.spare_start
    for i in range(own.spare_start, own.spare_start + own.spare):
        if alive(m, own, wide(m.spare_mark[i] >> 1)):
            copy_spare(m, i, kept)
            kept += 1
    own.spare = kept - own.spare_start


@kernel
def prune(m: Memory, own: ListRow) -> None:
    """Forget every spare match that k better ones outlive: it will never stand in the list. [topkw, Section 3]"""
    m.meter[PRUNES] += 1
    if own.spare == 0:
        return
    sort_best_first(m, own.spare_start, own.spare)
    # `latest`: when the k that leave last of those looked at do so, the first of them on top.
    latest = np.full(own.k, BEGINNING, np.int64)
    for at in range(own.start, own.start + own.viewed):
        outlive(m, own, latest, wide(m.mark[at] >> 1))
    kept = own.spare_start
    for at in range(own.spare_start, own.spare_start + own.spare):
        event = wide(m.spare_mark[at] >> 1)
        if latest[0] < end_of(m, own, event):
            copy_spare(m, at, kept)
            kept += 1
            outlive(m, own, latest, event)
    own.spare = kept - own.spare_start


@inlined
def end_of(m: Memory, own: ListRow, event: int) -> int:
    """When it leaves, on the clock that the list goes by: the count's where there is one."""
    return m.events[event].number if own.counted != NEVER else leaving(own, m.events[event])


@inlined
def outlive(m: Memory, own: ListRow, latest: Ints, event: int) -> None:
    """Those after `event` have one more to outlive; not if it may leave by the other clock."""
    end = end_of(m, own, event)
    sure = own.counted == NEVER or leaving(own, m.events[event]) == NEVER
    if end > latest[0] and sure and alive(m, own, event):
        replace_first(latest, end)


@borrowing_kernel
def replace_first(smallest_first: Ints, value: int) -> None:
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


@borrowing_kernel
def sort_best_first(m: Memory, start: int, n: int) -> None:
    """Heap sort of the spare [start, start + n)."""
    for root in range(n // 2 - 1, -1, -1):
        sink(m, start, n, root)
    for last in range(n - 1, 0, -1):
        swap(m.spare_cost, m.spare_mark, start, start + last)
        sink(m, start, last, 0)


@borrowing_kernel
def sink(m: Memory, start: int, n: int, root: int) -> None:
    """Restore the heap of the spare [start, start + n), last-ranking on top, below `root`."""
    while 2 * root + 1 < n:
        child = start + 2 * root + 1
        if child + 1 < start + n and spare_ranks(m, child, child + 1):
            child += 1
        if not spare_ranks(m, start + root, child):
            return
        swap(m.spare_cost, m.spare_mark, start + root, child)
        root = child - start


@inlined
def spare_ranks(m: Memory, a: int, b: int) -> bool:
    return ranks(m, m.spare_cost[a], wide(m.spare_mark[a] >> 1), m.spare_cost[b], wide(m.spare_mark[b] >> 1))


@inlined
def copy_spare(m: Memory, source: int, target: int) -> None:
    m.spare_cost[target], m.spare_mark[target] = m.spare_cost[source], m.spare_mark[source]


@inlined
def swap(cost: Floats, mark: Handles, a: int, b: int) -> None:
    cost[a], cost[b] = cost[b], cost[a]
    mark[a], mark[b] = mark[b], mark[a]
