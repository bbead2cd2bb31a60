"""Paint-Batch: many updates at once, each watcher told of the net change only, in as few deliveries as its protocol allows.

Updates of one object are coalesced into one (the caller's `coalesce`). Let T0 be the objects before and T1 after the batch,
R0(i) and R1(i) the influence regions of object i in them, and S(i) the region that i would have in T1 at its *old* place. Told are

- of a changed object i: R1(i), and R0(i) where it meets S(i). In the first the new value belongs in the list; in the second the
  watcher holds the old value and it would stay in the list. Elsewhere the old value is pushed out by what comes;
- of an unchanged object h: R1(h) less R0(h).

Messages go out in descending order of the new rank, deletions and departures (an object that moved away in x) first. Then what a
watcher holds above the object it is told of belongs above it, so nothing that it must keep is pushed out on the way. Every one
of these deliveries is needed by any algorithm whose messages carry one object: so their number is the least (Theorem 6).

An unchanged object h gains a watcher only if an object that ranked above it there ranks below it now, or has left: so only who is
among the best k, as things stand now, of a range with such an object's old place, and ranks between its old height and the new one.
These are marked (`line.mark_exposed`); those of them that gain nothing have no tiles.

Cost: O(log n) an update, O(n) to draw the line (`line`), and of every object told of or marked a walk to the kth better one on both
sides, then and now.

Paper: range-topk, section IV-A.

Deviations. As printed, step 3 tells of i in its current region and "IRpre", i's region when the raising updates are applied and no
lowering one is. (1) That is too little: k = 2, a watcher holds a = 4 and i = 5; the batch is d: 100 -> 1, a: 4 -> 30, i: 5 -> 50,
and h = 7 stays. With d applied i ranks third, so IRpre does not hold the watcher and it is not told of i; it is told of a = 30,
h = 7 and d = 1 and ends with d = 1 and i = 5 in place of d = 1, h = 7. S(i) sees that a has gone. (2) It is also too much: there,
with i unchanged at 40, a watcher of a = 4, h = 7 is told of h although it holds it; taking R0(h) away mends that. (3) The paper's
T' saves keeping T0; here the line has both. (4) The paper sweeps the lowering updates one after another, in descending order of the
new rank, asking min_y of a changing index; here each is swept over the objects of T1, which marks some more and asks nothing. In
`stats` what is marked counts as min_y, and one for the end of each sweep.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.boards.paint.line import NOW, WAS, Line, draw_line, mark_exposed, places_above, places_above_twice
from tidings.boards.paint.paint import PaintDense
from tidings.boards.paint.sparse import merge_tiles, snap_tiles
from tidings.boards.paint.tiles import NONE, Messages, Painting, Scratch, cut_out, emit, empty_messages, enclose, scratch
from tidings.index.packed.types import Bool, Float64, Int32, Int64
from tidings.index.points.object_arrays import MIN_Y_CALLS, ObjectArrays
from tidings.index.points.objects import move_all
from tidings.index.points.tree_arrays import TreeArrays
from tidings.index.points.tree_questions import gather

A, B, C = 0, 1, 2
"""Staircases of one corner: where the object belongs now, where its old value was held, and where that would stay."""


class Stairs(NamedTuple):
    """`west[s, a]` is the place of the a-th better object west of staircase s's corner, nearest first, `east` alike; there are
    `wests[s]` and `easts[s]` of them, k at most. A staircase that is not there has k of them in the west and `absent`."""

    west: Int32
    east: Int32
    wests: Int64
    easts: Int64
    absent: Bool


def stairs(k: int) -> Stairs:
    return Stairs(
        np.zeros((3, k), np.int32), np.zeros((3, k), np.int32), np.zeros(3, np.int64), np.zeros(3, np.int64), np.ones(3, np.bool_)
    )


def coalesce(numbers: Int64, x: Float64, y: Float64) -> tuple[Int64, Float64, Float64]:
    """The last update of each object."""
    _, last = np.unique(numbers[::-1], return_index=True)
    keep = np.sort(len(numbers) - 1 - last)
    return numbers[keep], x[keep], y[keep]


def paint_batch(painter: PaintDense, numbers: Int64, x: Float64, y: Float64) -> Messages:
    """Messages of a coalesced batch, which the painter's index holds afterwards."""
    painting = painter.painting()
    now, k = painting.objects, painting.k
    there = (y < np.inf) | (now.block_of[numbers] >= 0)
    numbers, x, y = numbers[there], x[there], y[there]
    old_x, old_y = now.x[numbers], np.where(now.block_of[numbers] >= 0, now.y[numbers], np.inf)
    move_all(now, numbers, x, y)
    line = draw_line(now, numbers, old_x, old_y)
    exposed = find_exposed(now, line, k, numbers)
    told = np.concatenate([numbers, exposed])
    height = np.concatenate([y, now.y[exposed]])
    order = np.lexsort((-now.tie[told], -height))
    leaving = (old_y < np.inf) & ((y == np.inf) | (old_x != x))  # gone, or elsewhere
    s, out, count = scratch(k), empty_messages(4 * k * len(numbers)), 0
    for departing, chosen in ((True, np.flatnonzero(leaving)), (False, order)):
        out, count = tell_batch(painting, line, told[chosen], chosen < len(numbers), departing, s, stairs(k), out, count)
    return out[:count]


@kernel
def find_exposed(now: ObjectArrays, line: Line, k: int, numbers: Int64) -> Int64:
    """The unchanged objects that may gain watchers. [range-topk, section IV-A, steps 2 and 3]"""
    exposed, seen = np.zeros(len(now.x), np.int64), np.empty(k)
    for number in numbers:
        was, here = line.place[WAS, number], line.place[NOW, number]
        if was < 0:
            continue
        limit = line.y[NOW, here] if here == was else np.inf
        if limit >= line.y[WAS, was]:
            now.meta[MIN_Y_CALLS] += 1 + mark_exposed(line, was, line.y[WAS, was], limit, k, seen, exposed)
    for number in numbers:
        exposed[number] = 0
    return np.flatnonzero(exposed)


@borrowing_kernel
def climb(line: Line, time: int, place: int, height: float, mark: float, without: int, k: int, stair: int, s: Stairs) -> None:
    """The staircase that an object of that height would have there, among the objects of that time."""
    s.absent[stair] = False
    s.wests[stair] = places_above(line, time, place, -1, height, mark, without, k, s.west[stair])
    s.easts[stair] = places_above(line, time, place, 1, height, mark, without, k, s.east[stair])


@borrowing_kernel
def climb_twice(line: Line, place: int, tie: float, k: int, s: Stairs) -> None:
    """A and B of an object that stands where it stood."""
    height = line.y[NOW, place]
    s.absent[A], s.absent[B] = False, False
    s.wests[B], s.wests[A] = places_above_twice(line, place, -1, height, tie, k, s.west[B], s.west[A])
    s.easts[B], s.easts[A] = places_above_twice(line, place, 1, height, tie, k, s.east[B], s.east[A])


@borrowing_kernel
def top_of(s: Stairs, stair: int, passed: int, k: int, end: int) -> int:
    """The place before which r must stay where so many in the west are in range: NONE if nobody has it, `end` if all have."""
    if s.absent[stair] or passed == k:
        return NONE
    return end if k - 1 - passed >= s.easts[stair] else s.east[stair, k - 1 - passed]


@borrowing_kernel
def combine(line: Line, place: int, k: int, gain: bool, s: Stairs, tile: Float64) -> int:
    """Of three staircases with their corner at a place: A or (B and C); `gain`: A less B. In rectangles from west to east."""
    x, end, count = line.x, len(line.x), 0
    a, b, c, east = 0, 0, 0, place
    last_top, last_foot, last_west = NONE, NONE, NONE
    while True:
        west = NONE
        if a < s.wests[A] and not s.absent[A]:
            west = max(west, s.west[A, a])
        if b < s.wests[B] and not s.absent[B]:
            west = max(west, s.west[B, b])
        if c < s.wests[C] and not s.absent[C]:
            west = max(west, s.west[C, c])
        top, foot = top_of(s, A, a, k, end), place
        below = top_of(s, B, b, k, end)
        if not gain:
            top = max(top, min(below, top_of(s, C, c, k, end)))
        elif below >= 0:
            foot = below
        l_lo = -np.inf if west < 0 else np.nextafter(x[west], np.inf)
        if top > foot and l_lo <= x[east]:
            r_hi = np.inf if top == end else np.nextafter(x[top], -np.inf)
            if top == last_top and foot == last_foot and x[east] == x[last_west]:
                tile[count - 1, 0, 0] = l_lo
                last_west = west
            elif x[foot] <= r_hi:
                tile[count, 0, 0], tile[count, 1, 0], tile[count, 0, 1], tile[count, 1, 1] = l_lo, x[east], x[foot], r_hi
                last_top, last_foot, last_west = top, foot, west
                count += 1
        if west < 0:
            break
        a += a < s.wests[A] and s.west[A, a] == west
        b += b < s.wests[B] and s.west[B, b] == west
        c += c < s.wests[C] and s.west[C, c] == west
        east = west
    for i in range(count >> 1):
        for d in range(2):
            for e in range(2):
                tile[i, d, e], tile[count - 1 - i, d, e] = tile[count - 1 - i, d, e], tile[i, d, e]
    return count


@borrowing_kernel
def told_region(
    line: Line, k: int, number: int, tie: float, changed: bool, departing: bool, s: Scratch, t: Stairs
) -> tuple[int, bool]:
    """Tile the watchers to tell of an object, or of its departure: (how many tiles, whether they are in `piece`)."""
    was, here = line.place[WAS, number], line.place[NOW, number]
    t.absent[:] = True
    if not changed:
        climb_twice(line, here, tie, k, t)
        return combine(line, here, k, True, t, s.tile), False
    if here >= 0:
        climb(line, NOW, here, line.y[NOW, here], tie, NONE, k, A, t)
    if departing:
        steps = combine(line, here, k, False, t, s.stair[0]) if here >= 0 else 0
        t.absent[A] = True
        climb(line, WAS, was, line.y[WAS, was], tie, NONE, k, B, t)
        climb(line, NOW, was, line.y[WAS, was], tie, here, k, C, t)
        tiles = combine(line, was, k, False, t, s.tile)
        return (cut_out(s.tile, tiles, s.stair[0], steps, line.x[here], s.piece), True) if steps else (tiles, False)
    if was == here and line.y[NOW, here] > line.y[WAS, here]:
        climb(line, WAS, here, line.y[WAS, here], tie, NONE, k, B, t)
        climb(line, NOW, here, line.y[WAS, here], tie, NONE, k, C, t)
    return combine(line, here, k, False, t, s.tile), False


@kernel
def around(p: Painting, tile: Float64, tiles: int, s: Scratch) -> TreeArrays:
    """The leaves that meet the box around some tiles, if they are few, else the whole tree."""
    box = s.box[0]
    box[0], box[1] = np.inf, -np.inf
    for i in range(tiles):
        enclose(box, tile[i])
    if tiles > 1 and gather(p.watchers, box, p.few):
        return p.few
    return p.watchers


@kernel
def tell_batch(
    p: Painting,
    line: Line,
    numbers: Int64,
    changed: Bool,
    departing: bool,
    s: Scratch,
    t: Stairs,
    out: Messages,
    count: int,
) -> tuple[Messages, int]:
    now = p.objects
    for i in range(len(numbers)):
        number = numbers[i]
        here = now.block_of[number] >= 0
        if not here and not departing:
            continue
        tiles, cut = told_region(line, p.k, number, now.tie[number], changed[i], departing, s, t)
        tile = s.piece if cut else s.tile
        if p.sparse:
            near = around(p, tile, tiles, s)
            tiles = merge_tiles(near, tile, snap_tiles(near, tile, s.strip, tiles))
        x, y = (now.x[number], now.y[number]) if here else (line.x[line.place[WAS, number]], np.inf)
        out, count = emit(out, count, tile, tiles, number, x, y, NONE, (x, y))
    return out, count
