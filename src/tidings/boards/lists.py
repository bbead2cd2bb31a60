"""The watchers' lists: sorted, of any length up to each one's own k, in one pool that grows with what is held.

| array    | shape, dtype | meaning                                                                              |
|----------|--------------|--------------------------------------------------------------------------------------|
| `k`      | m, int64     | the most that a watcher's list may hold                                              |
| `size`   | m, int64     | objects in it                                                                        |
| `start`  | m, int64     | where it begins in the pool                                                          |
| `room`   | m, int64     | how far it may grow before it moves, at most k                                       |
| `held`   | pool, int32  | numbers of objects, best first                                                       |
| `y`      | pool, float64 | their ranks, ascending; ties by the objects' `tie`                                  |
| `used`   | 1, int64     | the pool's beginning that has been given out                                         |

A list that is full moves to the pool's end with twice the room. When the pool is full it is copied without what was left behind, to
twice the size: memory is at most four times what the lists hold (and FIRST entries each), however large k is.

`Saved` has lists as they were before a batch first touched them; `net` compares them with what they are.

Cost: an insertion or removal moves a part of one list; `net` is linear in the lists touched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, inlined, kernel

FIRST = 4
LEFT, ENTERED, UPDATED = 0, 1, 2
WHY = ("left", "entered", "updated")


class ListArrays(NamedTuple):
    k: NDArray[np.int64]
    size: NDArray[np.int64]
    start: NDArray[np.int64]
    room: NDArray[np.int64]
    held: NDArray[np.int32]
    y: NDArray[np.float64]
    used: NDArray[np.int64]


class Saved(NamedTuple):
    """List i was that of `watcher[i]` and lies in [start[i], start[i + 1])."""

    watcher: NDArray[np.int32]
    start: NDArray[np.int64]
    held: NDArray[np.int32]
    y: NDArray[np.float64]


class Net(NamedTuple):
    """Changes of lists as columns: by watcher, what left before what stands in the list, best first. `rank` 0 is none."""

    watcher: NDArray[np.int32]
    object: NDArray[np.int32]
    y: NDArray[np.float64]
    rank: NDArray[np.int32]
    why: NDArray[np.int8]


def empty_lists(watchers: int) -> ListArrays:
    k, size, start, room = (np.zeros(watchers, np.int64) for _ in range(4))
    return ListArrays(k, size, start, room, np.empty(16 * FIRST, np.int32), np.empty(16 * FIRST), np.zeros(1, np.int64))


def with_rows(lists: ListArrays, rows: NDArray[np.int64], watchers: int) -> ListArrays:
    """The lists of `rows`, in that order, as those of watchers 0, 1, ... of `watchers`; the others are empty."""
    made = empty_lists(watchers)
    for old, new in zip(lists[:4], made[:4], strict=True):
        new[: len(rows)] = old[rows]
    return made._replace(held=lists.held, y=lists.y, used=lists.used)


@kernel
def no_saved() -> Saved:
    return Saved(np.empty(16, np.int32), np.zeros(17, np.int64), np.empty(64, np.int32), np.empty(64))


@kernel
def moved_pool(a: ListArrays, more: int) -> ListArrays:
    """The lists one after another in a pool of twice their room, and `more` entries."""
    total = 0
    for watcher in range(len(a.k)):
        total += a.room[watcher]
    held, y = np.empty(2 * total + more, np.int32), np.empty(2 * total + more)
    at = 0
    for watcher in range(len(a.k)):
        start, size = a.start[watcher], a.size[watcher]
        held[at : at + size] = a.held[start : start + size]
        y[at : at + size] = a.y[start : start + size]
        a.start[watcher] = at
        at += a.room[watcher]
    a.used[0] = at
    return ListArrays(a.k, a.size, a.start, a.room, held, y, a.used)


@kernel
def with_room(a: ListArrays, watcher: int, wanted: int) -> ListArrays:
    """The lists, the watcher's with room for `wanted` entries, more than it has, at least."""
    room = min(a.k[watcher], max(wanted, FIRST, 2 * a.room[watcher]))
    if a.used[0] + room > len(a.held):
        a = moved_pool(a, room)
    start, to = a.start[watcher], a.used[0]
    for j in range(a.size[watcher]):
        a.held[to + j], a.y[to + j] = a.held[start + j], a.y[start + j]
    a.start[watcher], a.room[watcher] = to, room
    a.used[0] = to + room
    return a


@inlined
def position(a: ListArrays, tie: NDArray[np.float64], watcher: int, y: float, mark: float) -> int:
    """How many of the list rank before (y, mark)."""
    start = a.start[watcher]
    lo, hi = 0, a.size[watcher]
    while lo < hi:
        middle = (lo + hi) >> 1
        height = a.y[start + middle]
        if height < y or (height == y and tie[a.held[start + middle]] < mark):
            lo = middle + 1
        else:
            hi = middle
    return lo


@inlined
def take_out(a: ListArrays, watcher: int, j: int) -> None:
    a.size[watcher] -= 1
    start = a.start[watcher]
    for q in range(start + j, start + a.size[watcher]):
        a.held[q], a.y[q] = a.held[q + 1], a.y[q + 1]


@inlined
def put_in(a: ListArrays, watcher: int, j: int, number: int, y: float) -> None:
    """The object becomes the j-th; a k + 1st drops out. There is room unless the list has k."""
    last = min(a.size[watcher], a.k[watcher] - 1)
    start = a.start[watcher]
    for q in range(start + last, start + j, -1):
        a.held[q], a.y[q] = a.held[q - 1], a.y[q - 1]
    a.held[start + j], a.y[start + j] = number, y
    a.size[watcher] = last + 1


@kernel
def with_space(s: Saved, count: int, size: int) -> Saved:
    """`s`, in which `count` lists lie, with space for one more of this size."""
    if count + 1 >= len(s.watcher):
        owner, start = np.empty(2 * len(s.watcher), np.int32), np.zeros(2 * len(s.watcher) + 1, np.int64)
        owner[:count], start[: count + 1] = s.watcher[:count], s.start[: count + 1]
        s = Saved(owner, start, s.held, s.y)
    begin = s.start[count]
    if begin + size > len(s.held):
        held, y = np.empty(2 * (begin + size), np.int32), np.empty(2 * (begin + size))
        held[:begin], y[:begin] = s.held[:begin], s.y[:begin]
        s = Saved(s.watcher, s.start, held, y)
    return s


@inlined
def lacks_space(s: Saved, count: int, size: int) -> bool:
    return count + 1 >= len(s.watcher) or s.start[count] + size > len(s.held)


@borrowing_kernel
def save(s: Saved, count: int, a: ListArrays, watcher: int) -> None:
    """The watcher's list becomes the last of `s`, which has space for it."""
    begin, start = s.start[count], a.start[watcher]
    for j in range(a.size[watcher]):
        s.held[begin + j], s.y[begin + j] = a.held[start + j], a.y[start + j]
    s.watcher[count], s.start[count + 1] = watcher, begin + a.size[watcher]


@kernel
def net(a: ListArrays, s: Saved, count: int, changed: NDArray[np.bool_], mark: NDArray[np.int8]) -> Net:
    """What differs between the first `count` saved lists and now. An object in both is `updated` if it is among the `changed`.

    `mark` is 0 for every object before and after; while a watcher is compared, 1 is what its list has, 2 what it also had."""
    most = s.start[count]
    for i in range(count):
        most += a.size[s.watcher[i]]
    out = Net(np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most), np.empty(most, np.int32), np.empty(most, np.int8))
    row = 0
    for i in range(count):
        watcher = s.watcher[i]
        start, end = a.start[watcher], a.start[watcher] + a.size[watcher]
        for j in range(start, end):
            mark[a.held[j]] = 1
        for j in range(s.start[i], s.start[i + 1]):
            if mark[s.held[j]]:
                mark[s.held[j]] = 2
            else:
                row = note(out, row, watcher, s.held[j], s.y[j], 0, LEFT)
        for j in range(start, end):
            number = a.held[j]
            if mark[number] == 1:
                row = note(out, row, watcher, number, a.y[j], j - start + 1, ENTERED)
            elif changed[number]:
                row = note(out, row, watcher, number, a.y[j], j - start + 1, UPDATED)
            mark[number] = 0
    return Net(out.watcher[:row], out.object[:row], out.y[:row], out.rank[:row], out.why[:row])


@inlined
def note(out: Net, row: int, watcher: int, number: int, y: float, rank: int, why: int) -> int:
    out.watcher[row], out.object[row], out.y[row], out.rank[row], out.why[row] = watcher, number, y, rank, why
    return row + 1
