"""The watchers of one family as columns: whom a change of an object may concern.

| array         | shape, dtype   | meaning                                                                                     |
|---------------|----------------|---------------------------------------------------------------------------------------------|
| `lo`, `hi`    | d x m, float64 | the watcher's interval of each attribute; (inf, -inf) in a free row                         |
| `bound`       | m, float64     | the rank of the last of a full list; inf while there is room in it, -inf in a free row      |
| `block_lo`, `block_hi`, `block_bound` | likewise for blocks of BLOCK rows | at least as wide as every row's         |

An object concerns a watcher only if it lies in its intervals and ranks no worse than its bound, at its old place or at its new one.
That is a scan of three columns that skips blocks. `arranged` puts rows in order of (width, place), so that a block's watchers are
alike: wide ones have low bounds, narrow ones are near each other. Rows that come later stand at the end as they come.

Invariant: a block's bound is never below that of a row of it. Rows raise it at once; it is lowered when the block is next read.

Cost: m / 64 tests of blocks a change, and the rows of those that remain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, inlined

BLOCK = 64


class WatchArrays(NamedTuple):
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    bound: NDArray[np.float64]
    block_lo: NDArray[np.float64]
    block_hi: NDArray[np.float64]
    block_bound: NDArray[np.float64]


def empty_watchers(attributes: int, rows: int) -> WatchArrays:
    """Free rows, as many as fill blocks."""
    blocks = -(-rows // BLOCK)
    arrays = []
    for count in (blocks * BLOCK, blocks):
        arrays += [np.full((attributes, count), np.inf), np.full((attributes, count), -np.inf), np.full(count, -np.inf)]
    return WatchArrays(*arrays)


def with_rows(watchers: WatchArrays, rows: NDArray[np.int64], count: int) -> WatchArrays:
    """`rows`, in that order, as rows 0, 1, ... of `count`; the others are free."""
    made = empty_watchers(len(watchers.lo), count)
    made.lo[:, : len(rows)], made.hi[:, : len(rows)] = watchers.lo[:, rows], watchers.hi[:, rows]
    made.bound[: len(rows)] = watchers.bound[rows]
    blocks = len(made.block_bound)
    made.block_lo[:] = made.lo.reshape(-1, blocks, BLOCK).min(2)
    made.block_hi[:] = made.hi.reshape(-1, blocks, BLOCK).max(2)
    made.block_bound[:] = made.bound.reshape(blocks, BLOCK).max(1)
    return made


def arranged(watchers: WatchArrays, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows in order of how wide, to a power of two, and where the first interval is."""
    lo, hi = watchers.lo[0, rows], watchers.hi[0, rows]
    width = np.frexp(hi - lo)[1]
    return rows[np.lexsort((np.maximum(lo, -1e300), np.where(np.isinf(hi - lo), 2000, width)))]


def free_row(w: WatchArrays, row: int) -> None:
    w.lo[:, row], w.hi[:, row], w.bound[row] = np.inf, -np.inf, -np.inf


def check_watchers(w: WatchArrays) -> None:
    blocks = len(w.block_bound)
    assert (w.block_lo <= w.lo.reshape(-1, blocks, BLOCK).min(2)).all()
    assert (w.block_hi >= w.hi.reshape(-1, blocks, BLOCK).max(2)).all()
    assert (w.block_bound >= w.bound.reshape(blocks, BLOCK).max(1)).all()


@inlined
def place_row(w: WatchArrays, row: int, ranges: NDArray[np.float64]) -> None:
    """Give a free row its intervals (d x 2); its bound stays -inf."""
    block = row // BLOCK
    for d in range(len(ranges)):
        w.lo[d, row], w.hi[d, row] = ranges[d, 0], ranges[d, 1]
        w.block_lo[d, block] = min(w.block_lo[d, block], ranges[d, 0])
        w.block_hi[d, block] = max(w.block_hi[d, block], ranges[d, 1])


@inlined
def set_bound(w: WatchArrays, row: int, bound: float) -> None:
    w.bound[row] = bound
    w.block_bound[row // BLOCK] = max(w.block_bound[row // BLOCK], bound)


@inlined
def inside(lo: NDArray[np.float64], hi: NDArray[np.float64], row: int, place: NDArray[np.float64]) -> bool:
    held = True
    for d in range(len(place)):
        held = held and lo[d, row] <= place[d] <= hi[d, row]
    return held


@borrowing_kernel
def concerned(
    w: WatchArrays, old: NDArray[np.float64], old_y: float, new: NDArray[np.float64], new_y: float, found: NDArray[np.int32]
) -> int:
    """The rows that an object may concern that goes from one place to another; how many. A y that is NaN is an object absent.

    NaN is at most no bound, so what is absent concerns nobody without being asked for."""
    lo, hi, bound = w.lo, w.hi, w.bound
    count = 0
    for block in range(len(w.block_bound)):
        limit = w.block_bound[block]
        if not (
            (old_y <= limit and inside(w.block_lo, w.block_hi, block, old))
            or (new_y <= limit and inside(w.block_lo, w.block_hi, block, new))
        ):
            continue
        limit = -np.inf
        for row in range(block * BLOCK, block * BLOCK + BLOCK):
            limit = max(limit, bound[row])
            if (old_y <= bound[row] and inside(lo, hi, row, old)) or (new_y <= bound[row] and inside(lo, hi, row, new)):
                found[count] = row
                count += 1
        w.block_bound[block] = limit
    return count
