"""An R-tree without pointers over scored intervals in a given order, and its two searches.

| array     | shape, dtype         | meaning                                                                               |
|-----------|----------------------|---------------------------------------------------------------------------------------|
| `offset`  | levels + 1, int64    | level l of the tree is the slice offset[l]:offset[l + 1] of the two arrays below      |
| `lo32`    | -, float32           | level 0: lower ends in the given order; above: least lower end of 64 entries below    |
| `hi32`    | -, float32           | the same of upper ends, and the greatest                                              |
| `row`     | n, int32             | the caller's row of the interval at each place of the order                           |
| `lo`, `hi`| n, float64           | the caller's columns by row, referred to and not copied                                |
| `alive`   | n or 0, bool         | by row; rows that are not alive are passed over (size 0: all live)                    |

Every level is padded to a multiple of 64 with NaN, which no query hits, not even [-inf, inf]; the last level has one block.
Entry e of level l + 1 covers entries 64 e .. 64 e + 63 of level l.

Rounding. float32 ends are rounded to nearest, which keeps the order of any two numbers but may make them equal; so only an entry
whose end equals the rounded query is asked again in float64. (Rounding outwards would let a false hit into the first k.)

`next_stabbed` gives what contains a point, in the given order. `bounded_search` gives the best of what meets a range, by a score
that may depend on the event: `score[row] + sum over j of coefficient[row, j] * attribute[j]`, added from left to right. Bounds:

| array         | shape, dtype       | meaning                                                                              |
|---------------|--------------------|--------------------------------------------------------------------------------------|
| `score`       | n, float64         | the caller's, by row                                                                  |
| `coefficient` | n x j, float64     | the caller's, by row; j may be 0                                                      |
| `best`        | entries, float64   | greatest score below an entry of levels 1, 2, ...; entry e is at e - offset[1]        |
| `least`, `most` | entries x j, float64 | least and greatest coefficient below an entry                                    |

Rounded addition and multiplication keep order, so a bound computed in the same order of operations is never below a score
that it bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import hit64, overlap64, trailing_zeros
from tidings.index.packed.types import Bool, Float32, Float64, Int32, Int64, Uint32
from tidings.rank.bounded_heap import accepts, offer, sort_best_first

FANOUT = 64
MAX_LEVELS = 6


class Tree(NamedTuple):
    lo32: Float32
    hi32: Float32
    offset: Int64
    row: Int32
    lo: Float64
    hi: Float64
    alive: Bool


class Bounds(NamedTuple):
    score: Float64
    coefficient: Float64
    best: Float64
    least: Float64
    most: Float64


def pack(lo: Float64, hi: Float64) -> tuple[Float32, Float32, Int64]:
    """The levels (lo32, hi32, offset) of an R-tree over intervals in the given order."""
    with np.errstate(over="ignore"):
        lows, highs = [_padded(lo.astype(np.float32))], [_padded(hi.astype(np.float32))]
    while lows[-1].size > FANOUT:
        lows.append(_padded(np.fmin.reduce(lows[-1].reshape(-1, FANOUT), axis=1)))
        highs.append(_padded(np.fmax.reduce(highs[-1].reshape(-1, FANOUT), axis=1)))
    offset = np.cumsum([0, *(level.size for level in lows)], dtype=np.int64)
    return np.concatenate(lows), np.concatenate(highs), offset


def _padded(values: Float32) -> Float32:
    width = max(FANOUT, -(-values.size // FANOUT) * FANOUT)
    result = np.full(width, np.nan, np.float32)
    result[: values.size] = values
    return result


@kernel
def next_stabbed(tree: Tree, q: float, at: int, out: Int64) -> tuple[int, int, int]:
    """Rows of the next `out.size` live intervals that contain q, from place `at` of the arrangement on.

    (how many, the place to go on from or NONE when there are no more, nodes read). Left-first depth-first search on hit masks.
    [ranked, section 2.2.3 and Lemma 3.2]
    """
    lo32, hi32, offset, row, lo, hi, alive = tree
    if out.size == 0:
        return 0, at, 0
    q32 = np.float32(q)
    levels = offset.size - 1
    mask = np.empty(MAX_LEVELS, np.uint64)
    block = np.empty(MAX_LEVELS, np.int64)
    found, visits = 0, levels
    for level in range(levels):
        here = at >> (6 * level)
        block[level] = here >> 6
        bits = hit64(lo32, hi32, offset[level] + block[level] * FANOUT, q32)
        # Above the leaves the entry at `here` is the node being walked: it is done, like all on its left.
        passed = np.uint64((here & 63) + (0 if level == 0 else 1))
        mask[level] = bits & (~np.uint64(0) << passed) if passed < np.uint64(64) else np.uint64(0)
    level = 0
    while level < levels:
        if mask[level] == np.uint64(0):
            level += 1
            continue
        entry = block[level] * FANOUT + trailing_zeros(mask[level])
        mask[level] &= mask[level] - np.uint64(1)
        if level > 0:
            level -= 1
            block[level] = entry
            mask[level] = hit64(lo32, hi32, offset[level] + entry * FANOUT, q32)
            visits += 1
            continue
        interval = row[entry]
        if (lo32[entry] == q32 or hi32[entry] == q32) and not (lo[interval] <= q <= hi[interval]):
            continue
        if alive.size > 0 and not alive[interval]:
            continue
        out[found] = interval
        found += 1
        if found == out.size:
            return found, entry + 1 if entry + 1 < row.size else NONE, visits
    return found, NONE, visits


@kernel
def stab_batch(tree: Tree, q: Float64, out: Int64) -> None:
    """Row i of `out`: what contains q[i], first in order first, padded with NONE."""
    for query in range(q.size):
        found, _, _ = next_stabbed(tree, q[query], 0, out[query])
        out[query, found:] = NONE


@kernel
def stab_living(tree: Tree, q: Float64, died: Uint32, snapshot: int, out: Int64) -> None:
    """`stab_batch` without the rows that have `died[row] <= snapshot`; `died` may be empty."""
    for query in range(q.size):
        kept, at = 0, 0
        while kept < out.shape[1] and at >= 0:
            found, at, _ = next_stabbed(tree, q[query], at, out[query, kept:])
            for i in range(kept, kept + found):
                if died.size == 0 or died[out[query, i]] > snapshot:
                    out[query, kept] = out[query, i]
                    kept += 1
        out[query, kept:] = NONE


def bounds_of(tree: Tree, score: Float64, coefficient: Float64) -> Bounds:
    """The bounds of every inner entry; `coefficient` is n x j."""
    offset, row = tree.offset, tree.row
    best = _summaries(score[row], offset, -np.inf, np.maximum)
    columns = coefficient[row]
    least, most = _summaries(columns, offset, np.inf, np.minimum), _summaries(columns, offset, -np.inf, np.maximum)
    return Bounds(score, coefficient, best, least, most)


def _summaries(values: Float64, offset: Int64, filler: float, reduce: np.ufunc) -> Float64:
    """What `reduce` makes of the values below each entry of levels 1, 2, ..., one level after the other."""
    levels = [np.empty((0, *values.shape[1:]))]
    for width in np.diff(offset)[:-1]:
        padded = np.full((width, *values.shape[1:]), filler)
        padded[: len(values)] = values
        values = reduce.reduce(padded.reshape(width // FANOUT, FANOUT, *values.shape[1:]), axis=1)
        unused = int(-len(values) % FANOUT)
        levels.append(np.concatenate([values, np.full((unused, *values.shape[1:]), filler)]))
    return np.concatenate(levels)


@kernel
def upper_bound(bounds: Bounds, entry: int, attribute: Float64) -> float:
    """No score below the inner entry is greater."""
    best, least, most = bounds.best, bounds.least, bounds.most
    bound = float(best[entry])
    for j in range(attribute.size):
        bound += max(least[entry, j] * attribute[j], most[entry, j] * attribute[j])
    return bound


@kernel
def bounded_search(
    tree: Tree, bounds: Bounds, number: Int64, attribute: Float64, qlo: float, qhi: float, scores: Float64, numbers: Int64
) -> tuple[int, int]:
    """The best live intervals that meet [qlo, qhi], best first, into (scores, numbers): (how many, nodes read)."""
    lo32, hi32, offset, row, lo, hi, alive = tree
    low, high = np.float32(qlo), np.float32(qhi)
    levels = offset.size - 1
    mask = np.zeros(MAX_LEVELS, np.uint64)
    block = np.zeros(MAX_LEVELS, np.int64)
    level, size, visits = levels - 1, 0, 1
    mask[level] = overlap64(lo32, hi32, offset[level], low, high)
    while level < levels:
        if mask[level] == np.uint64(0):
            level += 1
            continue
        entry = block[level] * FANOUT + trailing_zeros(mask[level])
        mask[level] &= mask[level] - np.uint64(1)
        if level > 0:
            bound = upper_bound(bounds, offset[level] - offset[1] + entry, attribute)
            if accepts(scores, numbers, size, bound, -1):
                level -= 1
                block[level] = entry
                mask[level] = overlap64(lo32, hi32, offset[level] + entry * FANOUT, low, high)
                visits += 1
            continue
        interval = row[entry]
        if (lo32[entry] == high or hi32[entry] == low) and not (lo[interval] <= qhi and qlo <= hi[interval]):
            continue
        if alive.size > 0 and not alive[interval]:
            continue
        score = bounds.score[interval]
        for j in range(attribute.size):
            score += bounds.coefficient[interval, j] * attribute[j]
        size = offer(scores, numbers, size, score, number[interval] if number.size > 0 else interval)
    sort_best_first(scores, numbers, size)
    return size, visits
