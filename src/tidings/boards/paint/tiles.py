"""Tiling regions of the subscription space by rectangles: what Paint-Dense, -Sparse and -Batch share.

A watcher of [l, r] is the point (l, r). An object at x is of interest in the quadrant l <= x <= r; it stands in the top k of those
watchers whose range holds fewer than k better objects: a staircase of at most k steps with its corner at (x, x), the *influence
region*. `west` holds the x of the nearest k better objects with x' <= x, nearest first, `east` those with x' > x. Strip a of the
staircase, 0 <= a < k, is where exactly a western ones are in range:

    west[a] < l <= west[a - 1] (or x),   x <= r < east[k - 1 - a]

A list shorter than k leaves that side open. Tiles are closed: an open end becomes the next representable number, so that infinite
ends of watchers stay inside.

| array      | shape, dtype     | meaning                                                                                   |
|------------|------------------|-------------------------------------------------------------------------------------------|
| `tile`     | t x 2 x 2, float64 | tile[i, 0] = (least l, least r), tile[i, 1] = (greatest l, greatest r); ordered by l     |
| `strip`    | t, int64         | the strip of a tile's western end                                                          |
| message    | 10, float64      | least l, least r, greatest l, greatest r; object, its x, y; moved object, its x, y         |

A message tells every watcher in its rectangle: the moved object (NONE: nobody) has taken these values, and the object has these;
y = inf is an object gone.

Paper: range-topk, Lemma 2, Alg. 4 and 5, Theorem 7.

Deviations. (1) Equal x make empty strips, which are skipped, and adjacent strips of equal height, which become one tile; for
distinct x this is Alg. 4. (2) A message about an exposed object carries the new values of the object that it replaces, so that a
watcher that loses one object and gains another gets one message; as printed it gets two, although section II-B promises one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.sentinels import NONE as NONE
from tidings.index.points.object_arrays import ObjectArrays
from tidings.index.points.object_questions import EAST, WEST, first_k
from tidings.index.points.tree_arrays import TreeArrays

Messages = NDArray[np.float64]
Place = tuple[float, float]
"""(x, y) of an object; y = inf is absent."""
"""No object."""
OBJECT, X, Y, MOVED, MOVED_X, MOVED_Y, WIDTH = 4, 5, 6, 7, 8, 9, 10


class Painting(NamedTuple):
    """What a painter knows: the objects, and if it is `sparse` the watchers, with room (`few`) for a frontier of theirs.

    Tiles of `width` = ceil(epsilon k) adjacent strips are told together; 1 is exact."""

    objects: ObjectArrays
    watchers: TreeArrays
    few: TreeArrays
    k: int
    width: int
    sparse: bool


class Scratch(NamedTuple):
    """Room for one event: lists of x (k), tiles of a region, of a region cut up, and of the region cut out; and two boxes."""

    west: NDArray[np.float64]
    east: NDArray[np.float64]
    tile: NDArray[np.float64]
    strip: NDArray[np.int64]
    piece: NDArray[np.float64]
    stair: NDArray[np.float64]
    held: NDArray[np.float64]
    full: NDArray[np.bool_]
    box: NDArray[np.float64]


def scratch(k: int) -> Scratch:
    """`held[a]` is the tight box of the watchers in strip a, if `full[a]`; Paint-Sparse alone uses it.

    Linear in k. `piece` too: tiles have no l in common, nor have a staircase's steps, so t tiles and s steps meet at most t + s
    times, and a tile less the staircase has three more pieces at most."""
    tiles, steps = 4 * k + 4, 2 * k + 2
    return Scratch(
        west=np.empty(k + 1),
        east=np.empty(k + 1),
        tile=np.empty((tiles, 2, 2)),
        strip=np.zeros(tiles, np.int64),
        piece=np.empty((4 * tiles + steps, 2, 2)),
        stair=np.empty((3, steps, 2, 2)),
        held=np.empty((k + 1, 2, 2)),
        full=np.zeros(k + 1, np.bool_),
        box=np.empty((2, 2, 2)),
    )


def empty_messages(room: int = 64) -> Messages:
    """With room for so many; what is not used is never touched."""
    return np.empty((room + 1, WIDTH))


@inlined
def sinks(old: Place, new: Place) -> bool:
    """Whether the object was there and some watcher may lose it."""
    return old[1] < np.inf and (new[1] > old[1] or new[0] != old[0])


@borrowing_kernel
def neighbours(
    objects: ObjectArrays, x: float, y: float, tie: float, k: int, west: NDArray[np.float64], east: NDArray[np.float64]
) -> tuple[int, int]:
    """Fill both lists; their lengths."""
    return first_k(objects, x, y, tie, WEST, k, west), first_k(objects, x, y, tie, EAST, k, east)


@inlined
def insert_neighbour(found: NDArray[np.float64], count: int, k: int, x: float, side: int) -> tuple[int, int]:
    """Put x in its place among the nearest k and drop a k + 1st; (its place, the list's length)."""
    j = count
    while j > 0 and (found[j - 1] < x if side < 0 else found[j - 1] > x):
        found[j] = found[j - 1]
        j -= 1
    found[j] = x
    return j, min(count + 1, k)


@inlined
def strip_tile(
    west: NDArray[np.float64],
    wests: int,
    east: NDArray[np.float64],
    easts: int,
    x: float,
    k: int,
    a: int,
    tile: NDArray[np.float64],
) -> bool:
    """Strip a of the staircase; whether it is not empty."""
    b = k - 1 - a
    tile[0, 0] = -np.inf if a >= wests else np.nextafter(west[a], np.inf)
    tile[1, 0] = x if a == 0 else west[a - 1]
    tile[0, 1] = x
    tile[1, 1] = np.inf if b >= easts else np.nextafter(east[b], -np.inf)
    return bool(tile[0, 0] <= tile[1, 0] and a <= wests)


@borrowing_kernel
def paint_ir(
    west: NDArray[np.float64],
    wests: int,
    east: NDArray[np.float64],
    easts: int,
    x: float,
    k: int,
    tile: NDArray[np.float64],
    strip: NDArray[np.int64],
) -> int:
    """Tile the influence region of an object at x; how many tiles. [range-topk, Alg. 4]"""
    count = 0
    for a in range(min(wests, k - 1), -1, -1):
        if strip_tile(west, wests, east, easts, x, k, a, tile[count]):
            if count and tile[count - 1, 1, 1] == tile[count, 1, 1]:
                tile[count - 1, 1, 0] = tile[count, 1, 0]
            else:
                strip[count] = a
                count += 1
    return count


@inlined
def gain_tile(
    west: NDArray[np.float64],
    wests: int,
    east: NDArray[np.float64],
    easts: int,
    x: float,
    exposed_x: float,
    k: int,
    a: int,
    tile: NDArray[np.float64],
) -> bool:
    """Where, in strip a, exactly k - 1 objects rank before the exposed one besides the object at x; whether that is not empty."""
    b = k - 1 - a
    if b > easts or not strip_tile(west, wests, east, easts, x, k, a, tile):
        return False
    tile[1, 0] = min(tile[1, 0], exposed_x)
    tile[0, 1] = max(x, exposed_x, east[b - 1] if b else x)
    return bool(tile[0, 0] <= tile[1, 0] and tile[0, 1] <= tile[1, 1])


@borrowing_kernel
def stair_at(objects: ObjectArrays, place: Place, tie: float, k: int, s: Scratch) -> int:
    """Tile the influence region that an object has at a place into `stair[0]`; how many steps. The lists of neighbours are lost."""
    wests, easts = neighbours(objects, place[0], place[1], tie, k, s.west, s.east)
    return paint_ir(s.west, wests, s.east, easts, place[0], k, s.stair[0], s.strip)


@borrowing_kernel
def paint_exposed(
    west: NDArray[np.float64],
    wests: int,
    east: NDArray[np.float64],
    easts: int,
    x: float,
    exposed_x: float,
    k: int,
    tile: NDArray[np.float64],
    strip: NDArray[np.int64],
) -> int:
    """Tile what an exposed object gains as the object at x sinks past it: a diagonal chain. [range-topk, Alg. 5]"""
    count = 0
    for a in range(min(wests, k - 1), -1, -1):
        if gain_tile(west, wests, east, easts, x, exposed_x, k, a, tile[count]):
            strip[count] = a
            count += 1
    return count


@borrowing_kernel
def coarsen(tile: NDArray[np.float64], strip: NDArray[np.int64], count: int, width: int) -> int:
    """Cover tiles whose strips fall in the same `width` = ceil(epsilon k) by their bounding box. [range-topk, section IV-B]"""
    if width == 1:
        return count
    kept = 0
    for i in range(count):
        if kept and strip[kept - 1] // width == strip[i] // width:
            enclose(tile[kept - 1], tile[i])
        else:
            copy_box(tile[kept], tile[i])
            strip[kept] = strip[i]
            kept += 1
    return kept


@inlined
def copy_box(target: NDArray[np.float64], source: NDArray[np.float64]) -> None:
    """Number by number: Numba provides for overlap when it copies a slice, which costs more than the copy."""
    for d in range(source.shape[1]):
        target[0, d], target[1, d] = source[0, d], source[1, d]


@inlined
def enclose(box: NDArray[np.float64], other: NDArray[np.float64]) -> None:
    for d in range(box.shape[1]):
        box[0, d] = min(box[0, d], other[0, d])
        box[1, d] = max(box[1, d], other[1, d])


@inlined
def put(piece: NDArray[np.float64], count: int, l_lo: float, l_hi: float, r_lo: float, r_hi: float) -> int:
    """Add a rectangle unless it is empty; how many there are."""
    if l_lo > l_hi or r_lo > r_hi:
        return count
    piece[count, 0, 0], piece[count, 1, 0] = l_lo, l_hi
    piece[count, 0, 1], piece[count, 1, 1] = r_lo, r_hi
    return count + 1


@borrowing_kernel
def cut_out(
    tile: NDArray[np.float64], count: int, stair: NDArray[np.float64], steps: int, x: float, piece: NDArray[np.float64]
) -> int:
    """The tiles, ordered by l, less a staircase with its corner at (x, x), in rectangles."""
    pieces = 0
    after, before = np.nextafter(x, np.inf), np.nextafter(x, -np.inf)
    for i in range(count):
        l_lo, l_hi, r_lo, r_hi = tile[i, 0, 0], tile[i, 1, 0], tile[i, 0, 1], tile[i, 1, 1]
        pieces = put(piece, pieces, l_lo, min(l_hi, x), r_lo, min(r_hi, before))
        pieces = put(piece, pieces, max(l_lo, after), l_hi, r_lo, r_hi)
        l_hi, r_lo = min(l_hi, x), max(r_lo, x)
        if stair[0, 0, 0] > -np.inf:
            pieces = put(piece, pieces, l_lo, min(l_hi, np.nextafter(stair[0, 0, 0], -np.inf)), r_lo, r_hi)
        for s in range(steps):
            if stair[s, 1, 1] < np.inf:
                top = np.nextafter(stair[s, 1, 1], np.inf)
                pieces = put(piece, pieces, max(l_lo, stair[s, 0, 0]), min(l_hi, stair[s, 1, 0]), max(r_lo, top), r_hi)
    return pieces


@kernel
def emit(
    out: Messages,
    count: int,
    tile: NDArray[np.float64],
    tiles: int,
    number: int,
    x: float,
    y: float,
    moved: int,
    to: tuple[float, float],
) -> tuple[Messages, int]:
    """Append one message a tile; the (perhaps wider) array and its length."""
    if count + tiles > len(out):
        wider = np.empty((2 * len(out) + tiles, out.shape[1]))
        wider[:count] = out[:count]
        out = wider
    for i in range(tiles):
        row = out[count + i]
        row[0], row[1], row[2], row[3] = tile[i, 0, 0], tile[i, 0, 1], tile[i, 1, 0], tile[i, 1, 1]
        row[OBJECT], row[X], row[Y] = number, x, y
        row[MOVED], row[MOVED_X], row[MOVED_Y] = moved, to[0], to[1]
    return out, count + tiles
