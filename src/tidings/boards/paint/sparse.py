"""Paint-Sparse: the sweep of Paint-Dense over the watchers that are there.

For each strip of the staircase the sweep keeps the tight box of the watchers in it (`held`, `full` of the scratch). The hull
of these boxes is where the next interesting exposed object must lie; a strip that loses none of its box gives no tile; the boxes
left at the end are the tiles of the moved object itself. Tiles of one object are then merged from west to east while their
bounding box holds no other watcher. Most influence regions are small: when few leaves of the watchers' tree meet the box around
one, these are gathered into a frontier (`few`), which then answers every snap of the event.

Paper: range-topk, section III-B. Deviation: the paper snaps every strip again for each exposed object (k snaps); here a strip is
snapped again only when its box no longer fits it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, kernel
from tidings.boards.paint.tiles import (
    NONE,
    Messages,
    Painting,
    Place,
    Scratch,
    coarsen,
    copy_box,
    cut_out,
    emit,
    enclose,
    gain_tile,
    insert_neighbour,
    neighbours,
    sinks,
    stair_at,
    strip_tile,
)
from tidings.index.points.object_arrays import ObjectArrays
from tidings.index.points.object_questions import below, min_y
from tidings.index.points.tree_arrays import TreeArrays
from tidings.index.points.tree_questions import crowded, gather, snap


@borrowing_kernel
def clip_and_snap(watchers: TreeArrays, box: NDArray[np.float64], source: NDArray[np.float64], tight: NDArray[np.float64]) -> bool:
    """The tight box of the watchers in box and source, where `source` is tight itself; whether there are any."""
    fits = True
    for d in range(box.shape[1]):
        fits = fits and box[0, d] <= source[0, d] and source[1, d] <= box[1, d]
        box[0, d] = max(box[0, d], source[0, d])
        box[1, d] = min(box[1, d], source[1, d])
        if box[0, d] > box[1, d]:
            return False
    if fits:
        copy_box(tight, box)
        return True
    return snap(watchers, box, tight)


@kernel
def snap_tiles(watchers: TreeArrays, tile: NDArray[np.float64], strip: NDArray[np.int64], count: int) -> int:
    """Tighten each tile around its watchers and drop the empty ones."""
    kept = 0
    box = np.empty((2, tile.shape[2]))
    for i in range(count):
        copy_box(box, tile[i])
        if snap(watchers, box, tile[kept]):
            if len(strip) > i:
                strip[kept] = strip[i]
            kept += 1
    return kept


@kernel
def merge_tiles(watchers: TreeArrays, tile: NDArray[np.float64], count: int) -> int:
    """Enlarge the last rectangle while the next fits in without another watcher. [range-topk, section III-B, greedy]"""
    kept = min(count, 1)
    box = np.empty((2, tile.shape[2]))
    for i in range(1, count):
        copy_box(box, tile[kept - 1])
        enclose(box, tile[i])
        if crowded(watchers, box, tile[kept - 1], tile[i]):
            copy_box(tile[kept], tile[i])
            kept += 1
        else:
            copy_box(tile[kept - 1], box)
    return kept


@borrowing_kernel
def hold_strips(watchers: TreeArrays, wests: int, easts: int, x: float, k: int, s: Scratch) -> None:
    box = s.box[0]
    s.full[:] = False
    for a in range(min(wests, k - 1) + 1):
        s.full[a] = strip_tile(s.west, wests, s.east, easts, x, k, a, box) and snap(watchers, box, s.held[a])


@borrowing_kernel
def held_tiles(wests: int, k: int, s: Scratch) -> int:
    count = 0
    for a in range(min(wests, k - 1), -1, -1):
        if s.full[a]:
            copy_box(s.tile[count], s.held[a])
            s.strip[count] = a
            count += 1
    return count


@borrowing_kernel
def gained_tiles(watchers: TreeArrays, wests: int, easts: int, x: float, exposed_x: float, k: int, s: Scratch) -> int:
    """The watchers that an exposed object gains, in tight tiles. [range-topk, Alg. 5 over the watchers]"""
    count, box = 0, s.box[0]
    for a in range(min(wests, k - 1), -1, -1):
        if (
            s.full[a]
            and gain_tile(s.west, wests, s.east, easts, x, exposed_x, k, a, box)
            and clip_and_snap(watchers, box, s.held[a], s.tile[count])
        ):
            s.strip[count] = a
            count += 1
    return count


@borrowing_kernel
def shrink_strips(watchers: TreeArrays, wests: int, easts: int, x: float, exposed_x: float, k: int, s: Scratch) -> tuple[int, int]:
    """Count the exposed object among the neighbours and let every strip give up what it lost; the lists' lengths."""
    box, source = s.box[0], s.box[1]
    divided = k
    if exposed_x <= x:
        divided, wests = insert_neighbour(s.west, wests, k, exposed_x, -1)
    else:
        _, easts = insert_neighbour(s.east, easts, k, exposed_x, 1)
    for a in range(min(wests, k - 1), -1, -1):
        origin = a - 1 if a > divided else a  # the strip that this one was a part of
        copy_box(source, s.held[origin])
        s.full[a] = (
            s.full[origin]
            and strip_tile(s.west, wests, s.east, easts, x, k, a, box)
            and clip_and_snap(watchers, box, source, s.held[a])
        )
    return wests, easts


@borrowing_kernel
def next_interesting(objects: ObjectArrays, wests: int, k: int, s: Scratch, y: float, tie: float) -> int:
    """The next object that some watcher of the sinking one may get in its stead, or NONE. [range-topk, section III-B, Fig. 9]"""
    lo, hi = np.inf, -np.inf
    for a in range(min(wests, k - 1) + 1):
        if s.full[a]:
            lo = min(lo, s.held[a, 0, 0])
            hi = max(hi, s.held[a, 1, 1])
    return NONE if lo > hi else min_y(objects, lo, hi, y, tie)


@kernel
def send_ready(watchers: TreeArrays, s: Scratch, tiles: int, width: int, steps: int, x: float) -> tuple[NDArray[np.float64], int]:
    """Cut the staircase at the new x out of tight tiles if it has steps, and merge: the tiles to send."""
    tile = s.tile
    tiles = coarsen(tile, s.strip, tiles, width)
    if steps:
        tiles = cut_out(s.tile, tiles, s.stair[0], steps, x, s.piece)
        tile = s.piece
        tiles = snap_tiles(watchers, tile, s.strip, tiles)
    return tile, merge_tiles(watchers, tile, tiles)


@kernel
def nearby(watchers: TreeArrays, few: TreeArrays, wests: int, easts: int, x: float, k: int, s: Scratch) -> TreeArrays:
    """The leaves that meet the box around a staircase, if they are few, else the whole tree."""
    box = s.piece[0]
    box[0, 0] = -np.inf if wests < k else s.west[k - 1]
    box[1, 1] = np.inf if easts < k else s.east[k - 1]
    box[1, 0], box[0, 1] = x, x
    if gather(watchers, box, few):
        return few
    return watchers


@kernel
def paint_sparse(p: Painting, number: int, old: Place, new: Place, s: Scratch, out: Messages, count: int) -> tuple[Messages, int]:
    """[range-topk, section III-B, Paint-Sparse]"""
    objects, k = p.objects, p.k
    tie, stays = objects.tie[number], old[0] == new[0]
    if sinks(old, new):
        steps = 0 if stays or p.width > 1 else stair_at(objects, new, tie, k, s)
        wests, easts = neighbours(objects, old[0], old[1], tie, k, s.west, s.east)
        near = nearby(p.watchers, p.few, wests, easts, old[0], k, s)
        hold_strips(near, wests, easts, old[0], k, s)
        y, passed = old[1], tie
        while True:
            # (y, passed) only rises: what has been passed ranks before the sinking object and is counted in the lists.
            exposed = next_interesting(objects, wests, k, s, y, passed)
            if exposed < 0 or not below(objects.y, objects.tie, exposed, new[1] if stays else np.inf, tie):
                break
            x, y, passed = objects.x[exposed], objects.y[exposed], objects.tie[exposed]
            tile, tiles = send_ready(near, s, gained_tiles(near, wests, easts, old[0], x, k, s), p.width, steps, new[0])
            out, count = emit(out, count, tile, tiles, exposed, x, y, number, new)
            wests, easts = shrink_strips(near, wests, easts, old[0], x, k, s)
        tile, tiles = send_ready(near, s, held_tiles(wests, k, s), p.width, steps, new[0])
        out, count = emit(out, count, tile, tiles, number, new[0], new[1], NONE, new)
        if stays:
            return out, count
    if new[1] < np.inf:
        wests, easts = neighbours(objects, new[0], new[1], tie, k, s.west, s.east)
        near = nearby(p.watchers, p.few, wests, easts, new[0], k, s)
        hold_strips(near, wests, easts, new[0], k, s)
        tile, tiles = send_ready(near, s, held_tiles(wests, k, s), p.width, 0, new[0])
        out, count = emit(out, count, tile, tiles, number, new[0], new[1], NONE, new)
    return out, count
