"""Paint-Batch: many updates at once, each watcher told of the net change only, in as few deliveries as its protocol allows.

Updates of one object are coalesced into one (the caller's `coalesce`). Let T0 be the objects before and T1 after the batch,
R0(i) and R1(i) the influence regions of object i in them, and S(i) the region that i would have in T1 at its *old* place. Told are

- of a changed object i: R1(i), and R0(i) where it meets S(i). In the first the new value belongs in the list; in the second the
  watcher holds the old value and it would stay in the list. Elsewhere the old value is pushed out by what comes;
- of an unchanged object h: R1(h) less R0(h).

Messages go out in descending order of the new rank, deletions and departures (an object that moved away in x) first. Then what a
watcher holds above the object it is told of belongs above it, so nothing that it must keep is pushed out on the way. Every one
of these deliveries is needed by any algorithm whose messages carry one object: so their number is the least (Theorem 6).

Unchanged objects that gain are found as in the paper: the raising updates are applied, then the lowering ones are swept in
descending order of the new rank, and what they expose is collected.

Cost: a copy of the index, then O(log n) for each raising update and a sweep for each lowering one, and 4 first_k an object told of.

Paper: range-topk, section IV-A.

Deviations. As printed, step 3 tells of i in its current region and "IRpre", i's region when the raising updates are applied and no
lowering one is. (1) That is too little: k = 2, a watcher holds a = 4 and i = 5; the batch is d: 100 -> 1, a: 4 -> 30, i: 5 -> 50,
and h = 7 stays. With d applied i ranks third, so IRpre does not hold the watcher and it is not told of i; it is told of a = 30,
h = 7 and d = 1 and ends with d = 1 and i = 5 in place of d = 1, h = 7. S(i) sees that a has gone. (2) It is also too much: there,
with i unchanged at 40, a watcher of a = 4, h = 7 is told of h although it holds it; taking R0(h) away mends that. (3) The paper's
T' saves keeping T0; here T0 is a copy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.boards.paint.paint import PaintDense
from tidings.boards.paint.sparse import merge_tiles, snap_tiles
from tidings.boards.paint.tiles import (
    NONE,
    Messages,
    Painting,
    Scratch,
    cut_out,
    emit,
    empty_messages,
    insert_neighbour,
    neighbours,
    paint_ir,
    put,
    scratch,
)
from tidings.index.points.object_arrays import ObjectArrays
from tidings.index.points.object_questions import below, min_y
from tidings.index.points.objects import ObjectIndex, delete_object, insert_object


def coalesce(
    numbers: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The last update of each object."""
    _, last = np.unique(numbers[::-1], return_index=True)
    keep = np.sort(len(numbers) - 1 - last)
    return numbers[keep], x[keep], y[keep]


def paint_batch(
    painter: PaintDense,
    before: ObjectIndex,
    numbers: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
) -> Messages:
    """Messages of a coalesced batch. `before` is a copy of the painter's index, which holds the new values afterwards."""
    there = (y < np.inf) | (before.arrays.block_of[numbers] >= 0)
    numbers, x, y = numbers[there], x[there], y[there]
    painting = painter.painting()
    now, s = painting.objects, scratch(painting.k)
    exposed = apply_batch(before.arrays, now, painting.k, numbers, x, y, s)
    told = np.concatenate([numbers, exposed])
    height = np.concatenate([y, now.y[exposed]])
    order = np.lexsort((-now.tie[told], -height))
    leaving = (y == np.inf) | ((before.arrays.block_of[numbers] >= 0) & (before.arrays.x[numbers] != x))  # gone, or elsewhere
    out, count = empty_messages(), 0
    for departing, chosen in ((True, np.flatnonzero(leaving)), (False, order)):
        out, count = tell_batch(painting, before.arrays, told[chosen], chosen < len(numbers), departing, s, out, count)
    return out[:count]


@kernel
def apply_batch(
    before: ObjectArrays,
    now: ObjectArrays,
    k: int,
    numbers: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    s: Scratch,
) -> NDArray[np.int64]:
    """Bring `now` up to date; the unchanged objects that may gain watchers. [range-topk, section IV-A, steps 2 and 3]"""
    changed = np.zeros(len(now.x), np.bool_)
    rank = np.empty(len(numbers))
    for i in range(len(numbers)):
        number = numbers[i]
        changed[number] = True
        was = before.block_of[number] >= 0
        moves = was and y[i] < np.inf and before.x[number] != x[i]
        rank[i] = np.inf if moves else y[i]
        if not moves and (not was or y[i] <= before.y[number]):
            if was:
                delete_object(now, number)
            if y[i] < np.inf:
                insert_object(now, number, x[i], y[i])
            rank[i] = -np.inf
    exposed = np.zeros(len(now.x), np.bool_)
    for i in np.argsort(-rank):
        if rank[i] == -np.inf:
            break
        number = numbers[i]
        delete_object(now, number)
        mark_exposed(now, k, before.x[number], before.y[number], now.tie[number], rank[i], s, exposed)
        if rank[i] < np.inf:
            insert_object(now, number, x[i], y[i])
    for i in range(len(numbers)):
        if rank[i] == np.inf and y[i] < np.inf:
            insert_object(now, numbers[i], x[i], y[i])
    return np.flatnonzero(exposed & ~changed)


@kernel
def mark_exposed(
    objects: ObjectArrays, k: int, x: float, y: float, tie: float, limit: float, s: Scratch, exposed: NDArray[np.bool_]
) -> None:
    """The sweep of Alg. 3, without its tiles."""
    wests, easts = neighbours(objects, x, y, tie, k, s.west, s.east)
    passed = tie
    while True:
        lo = -np.inf if wests < k else np.nextafter(s.west[k - 1], np.inf)
        hi = np.inf if easts < k else np.nextafter(s.east[k - 1], -np.inf)
        number = min_y(objects, lo, hi, y, passed)
        if number < 0 or not below(objects.y, objects.tie, number, limit, tie):
            return
        exposed[number] = True
        y, passed = objects.y[number], objects.tie[number]
        if objects.x[number] <= x:
            _, wests = insert_neighbour(s.west, wests, k, objects.x[number], -1)
        else:
            _, easts = insert_neighbour(s.east, easts, k, objects.x[number], 1)


@kernel
def region(objects: ObjectArrays, k: int, x: float, y: float, tie: float, s: Scratch, tile: NDArray[np.float64]) -> int:
    wests, easts = neighbours(objects, x, y, tie, k, s.west, s.east)
    return paint_ir(s.west, wests, s.east, easts, x, k, tile, s.strip)


@kernel
def height_at(tile: NDArray[np.float64], count: int, at: int, l: float, x: float) -> tuple[int, float, float]:
    """The step of a staircase that l stands on: (its number, how high r may be there, up to which l that holds)."""
    while at < count and tile[at, 1, 0] < l:
        at += 1
    if at == count:
        return at, -np.inf, x
    if tile[at, 0, 0] > l:
        return at, -np.inf, np.nextafter(tile[at, 0, 0], -np.inf)
    return at, tile[at, 1, 1], tile[at, 1, 0]


@kernel
def combine(stair: NDArray[np.float64], counts: tuple[int, int, int], x: float, gain: bool, tile: NDArray[np.float64]) -> int:
    """Of three staircases A, B, C with one corner: A or (B and C); `gain`: A less B. In rectangles from west to east."""
    count = 0
    p, q, o = 0, 0, 0
    l = x
    for i in range(3):
        if counts[i]:
            l = min(l, stair[i, 0, 0, 0])
    while l <= x:
        p, a, end = height_at(stair[0], counts[0], p, l, x)
        q, b, end_b = height_at(stair[1], counts[1], q, l, x)
        o, c, end_c = height_at(stair[2], counts[2], o, l, x)
        end = min(end, end_b, end_c)
        foot = x
        if gain:
            top = a
            if b > -np.inf:
                foot = np.inf if b == np.inf else np.nextafter(b, np.inf)
                top = -np.inf if b == np.inf else a
        else:
            top = max(a, min(b, c))
        if (
            count
            and tile[count - 1, 0, 1] == foot
            and tile[count - 1, 1, 1] == top
            and tile[count - 1, 1, 0] >= np.nextafter(l, -np.inf)
        ):
            tile[count - 1, 1, 0] = end
        else:
            count = put(tile, count, l, end, foot, top)
        l = np.nextafter(end, np.inf)
    return count


@kernel
def told_region(
    before: ObjectArrays, now: ObjectArrays, k: int, number: int, changed: bool, departing: bool, s: Scratch
) -> tuple[int, bool]:
    """Tile the watchers to tell of an object, or of its departure: (how many tiles, whether they are in `piece`)."""
    tie, x, was = now.tie[number], now.x[number], before.block_of[number] >= 0
    here = now.block_of[number] >= 0
    moved = was and here and before.x[number] != x
    a = region(now, k, x, now.y[number], tie, s, s.stair[0]) if here else 0
    if departing:
        if here:
            delete_object(now, number)
        b = region(now, k, before.x[number], before.y[number], tie, s, s.stair[1])
        c = region(before, k, before.x[number], before.y[number], tie, s, s.stair[2])
        if here:
            insert_object(now, number, x, now.y[number])
        tiles = combine(s.stair, (0, b, c), before.x[number], False, s.tile)
        return (cut_out(s.tile, tiles, s.stair[0], a, x, s.piece), True) if here else (tiles, False)
    b, c = 0, 0
    if was and not moved and (not changed or now.y[number] > before.y[number]):
        b = region(before, k, x, before.y[number], tie, s, s.stair[1])
        if changed:
            c = region(now, k, x, before.y[number], tie, s, s.stair[2])
    return combine(s.stair, (a, b, c), x, not changed, s.tile), False


@kernel
def tell_batch(
    p: Painting,
    before: ObjectArrays,
    numbers: NDArray[np.int64],
    changed: NDArray[np.bool_],
    departing: bool,
    s: Scratch,
    out: Messages,
    count: int,
) -> tuple[Messages, int]:
    now, watchers = p.objects, p.watchers
    for i in range(len(numbers)):
        number = numbers[i]
        here = now.block_of[number] >= 0
        if not here and not departing:
            continue
        tiles, cut = told_region(before, now, p.k, number, changed[i], departing, s)
        tile = s.piece if cut else s.tile
        if p.sparse:
            tiles = merge_tiles(watchers, tile, snap_tiles(watchers, tile, s.strip, tiles))
        x, y = (now.x[number], now.y[number]) if here else (before.x[number], np.inf)
        out, count = emit(out, count, tile, tiles, number, x, y, NONE, (x, y))
    return out, count
