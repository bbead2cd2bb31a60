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
    Ints,
    ListRow,
    Memory,
)
from tidings.windows.near.points import Points
from tidings.windows.sorted_view import alive, close_up, leaving, place_of_group, put, ranks


@inlined
def offer(m: Memory, near: Points | None, own: ListRow, mark: int, cost: float, instant: int, group: int) -> int:
    """Take a candidate into the view if it ranks before the edge: its position there, or -1. There must be room for one.

    Where one of a group counts, it takes the place of a worse one, and has none before a better one.
    """
    if own.per and group != 0:
        other = place_of_group(m, own, group)
        if other != NONE:
            if not ranks(m, cost, mark >> 1, m.cost[other], wide(m.mark[other] >> 1)):
                keep(m, own, mark, cost, group)
                return -1
            keep(m, own, wide(m.mark[other]), m.cost[other], group)
            close_up(m, own, other + 1, other, own.start + own.viewed - other - 1)
            own.viewed -= 1
            return put(m, own, mark, cost, instant, group)
    if own.bounded:
        last = own.start + own.limit - 1
        if own.viewed == own.limit and not ranks(m, cost, mark >> 1, m.cost[last], wide(m.mark[last] >> 1)):
            return -1
    elif own.edge != NONE and not ranks(m, cost, mark >> 1, own.edge_cost, own.edge):
        if near is None:
            keep(m, own, mark, cost, group)
        return -1
    position = put(m, own, mark, cost, instant, group)
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
        keep(m, own, wide(m.mark[at]), m.cost[at], group_at(m, own, at))


@inlined
def group_at(m: Memory, own: ListRow, at: int) -> int:
    return m.group[at] if own.per else wide(0)


@inlined
def keep(m: Memory, own: ListRow, mark: int, cost: float, group: int) -> None:
    at = own.spare_start + own.spare
    m.spare_cost[at], m.spare_mark[at] = cost, mark
    if own.per:
        m.spare_group[at] = group
    own.spare += 1


@borrowing_kernel
def refill_from_spare(m: Memory, near: Points | None, row: int) -> None:
    """Offer all spare to the view again. Who is not taken goes back to the front, where at most as many stand as were read."""
    own: ListRow = m.lists[row]
    n, own.spare, own.edge = own.spare, 0, NONE
    for i in range(own.spare_start, own.spare_start + n):
        mark, cost = wide(m.spare_mark[i]), m.spare_cost[i]
        if alive(m, own, mark >> 1):
            offer(m, near, own, mark, cost, leaving(m, own, m.events[mark >> 1]), m.spare_group[i] if own.per else wide(0))


@inlined
def has_room(own: ListRow) -> bool:
    """Whether the view can take one more, and the spare what falls off."""
    if own.k <= 0:
        return True
    nobody_falls = own.bounded or own.spare < own.spare_room or (own.edge == NONE and own.viewed < own.limit and not own.per)
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
            copy_spare(m, own, own.spare_start + i, m.meter[SPARE_USED] + i)
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
        if own.per:
            m.group[to + i] = m.group[at]
    own.start, own.room = to, wider
    m.meter[VIEW_USED] += wider
    return True


@borrowing_kernel
def sweep(m: Memory, own: ListRow) -> None:
    """Forget the spare that have left."""
    kept = own.spare_start
    for i in range(own.spare_start, own.spare_start + own.spare):
        if alive(m, own, wide(m.spare_mark[i] >> 1)):
            copy_spare(m, own, i, kept)
            kept += 1
    own.spare = kept - own.spare_start


@kernel
def prune(m: Memory, own: ListRow) -> None:
    """Forget every spare match that k better ones outlive, or one of its group: it will never stand in the list. Of a group only
    the best is one of the k. [topkw, Section 3]"""
    m.meter[PRUNES] += 1
    if own.spare == 0:
        return
    sort_best_first(m, own, own.spare_start, own.spare)
    # `latest`: when the k that leave last of those looked at do so, the first of them on top; one more than all if k are not there.
    latest = np.full(min(own.k, own.viewed + own.spare + 1), BEGINNING, np.int64)
    groups, ends = no_groups(own.viewed + own.spare if own.per else 0)
    kept, better, view_end = own.spare_start, own.start, own.start + own.viewed
    for at in range(own.spare_start, own.spare_start + own.spare):
        event, end = wide(m.spare_mark[at] >> 1), end_of(m, own, wide(m.spare_mark[at] >> 1))
        # What a better one of its group keeps out of the view may rank before others there.
        while better < view_end and ranks(m, m.cost[better], wide(m.mark[better] >> 1), m.spare_cost[at], event):
            outlive(m, own, latest, wide(m.mark[better] >> 1))
            if own.per and m.group[better] != 0:
                note_group(m, own, groups, ends, m.group[better], wide(m.mark[better] >> 1))
            better += 1
        group = m.spare_group[at] if own.per else wide(0)
        first = group == 0 or groups[cell_of(groups, group)] == 0
        if latest[0] < end and (first or ends[cell_of(groups, group)] < end):
            copy_spare(m, own, at, kept)
            kept += 1
            if first:
                outlive(m, own, latest, event)
            if group != 0:
                note_group(m, own, groups, ends, group, event)
    own.spare = kept - own.spare_start


@kernel
def no_groups(n: int) -> tuple[Ints, Ints]:
    """Room for n groups, and for when the last of each leaves: a hash table, half empty."""
    size = 2
    while size < 2 * n:
        size *= 2
    return np.zeros(size, np.int64), np.full(size, BEGINNING, np.int64)


@inlined
def cell_of(groups: Ints, group: int) -> int:
    """Where a group stands, or would."""
    cell = wide((group ^ (group >> 32)) & (groups.size - 1))
    while groups[cell] != 0 and groups[cell] != group:
        cell = (cell + 1) & (groups.size - 1)
    return cell


@inlined
def note_group(m: Memory, own: ListRow, groups: Ints, ends: Ints, group: int, event: int) -> None:
    """Those of its group after `event` have it to outlive."""
    cell = cell_of(groups, group)
    groups[cell] = group
    if outlives(m, own, event):
        ends[cell] = max(ends[cell], end_of(m, own, event))


@inlined
def end_of(m: Memory, own: ListRow, event: int) -> int:
    """When it leaves, on the clock that the list goes by: the count's where there is one."""
    return m.events[event].number if own.counted != NEVER else leaving(m, own, m.events[event])


@inlined
def outlive(m: Memory, own: ListRow, latest: Ints, event: int) -> None:
    """Those after `event` have one more to outlive."""
    end = end_of(m, own, event)
    if end > latest[0] and outlives(m, own, event):
        replace_first(latest, end)


@inlined
def outlives(m: Memory, own: ListRow, event: int) -> bool:
    """Whether an event is sure to stay until its end: not if it may leave by the other clock."""
    sure = own.counted == NEVER or leaving(m, own, m.events[event]) == NEVER
    return bool(sure and alive(m, own, event))


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
def sort_best_first(m: Memory, own: ListRow, start: int, n: int) -> None:
    """Heap sort of the spare [start, start + n)."""
    for root in range(n // 2 - 1, -1, -1):
        sink(m, own, start, n, root)
    for last in range(n - 1, 0, -1):
        swap(m, own, start, start + last)
        sink(m, own, start, last, 0)


@borrowing_kernel
def sink(m: Memory, own: ListRow, start: int, n: int, root: int) -> None:
    """Restore the heap of the spare [start, start + n), last-ranking on top, below `root`."""
    while 2 * root + 1 < n:
        child = start + 2 * root + 1
        if child + 1 < start + n and spare_ranks(m, child, child + 1):
            child += 1
        if not spare_ranks(m, start + root, child):
            return
        swap(m, own, start + root, child)
        root = child - start


@inlined
def spare_ranks(m: Memory, a: int, b: int) -> bool:
    return ranks(m, m.spare_cost[a], wide(m.spare_mark[a] >> 1), m.spare_cost[b], wide(m.spare_mark[b] >> 1))


@inlined
def copy_spare(m: Memory, own: ListRow, source: int, target: int) -> None:
    m.spare_cost[target], m.spare_mark[target] = m.spare_cost[source], m.spare_mark[source]
    if own.per:
        m.spare_group[target] = m.spare_group[source]


@inlined
def swap(m: Memory, own: ListRow, a: int, b: int) -> None:
    m.spare_cost[a], m.spare_cost[b] = m.spare_cost[b], m.spare_cost[a]
    m.spare_mark[a], m.spare_mark[b] = m.spare_mark[b], m.spare_mark[a]
    if own.per:
        m.spare_group[a], m.spare_group[b] = m.spare_group[b], m.spare_group[a]
