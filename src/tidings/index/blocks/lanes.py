"""How place blocks lay clauses out: their order, the cut into blocks of 64, and the lanes, one byte for each end of a predicate.

Clauses are ordered by (tier, size of the box, Hilbert code of its centre); a run of one tier and size that fills half a block gets
blocks of its own, and within a block the best score comes first: the k best are full sooner, and fewer are put into their midst.
A block's *entries* are x and y of its boxes and the dimensions that at least one in 32 of its clauses tests, the
most telling first. An entry is two lanes of 64 bytes: the first cell and the last that each clause lets pass.

Cells of a dimension are 1 ... 127, at even shares of the clauses' ends (`cell_edges`), 0 being that the event lacks it. Along x and
y they are 0 ... 127, even parts of the block's own extent. Every cell function is monotone and the same for clause ends and event
values, so no rounding can lose a match; what lanes let through is verified exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.index.blocks.layout import by_rank_within, cell_edges, cut, run_of, sample_ends, size_levels, tiers, usual_extent
from tidings.index.packed.hilbert import hilbert_codes
from tidings.index.packed.packing import as_clauses, readonly
from tidings.index.packed.record import Clauses
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import LANES, wide
from tidings.index.packed.types import Float32, Float64, Int8, Int16, Int32, Int64, Uint8
from tidings.model.columns.arrays import IN, NULL, RANGE, ClauseColumns

LAST = 127
"""The last cell: lanes are signed bytes, which machines compare best."""
NOTHING = -1
"""The last cell of a lane that no clause has: below every cell."""


class Lanes(NamedTuple):
    """See `places`."""

    start: Int32
    best: Float64
    scale: Float32
    entry: Int32
    """These by block."""
    tier_block: Int32
    tier_best: Float64
    """These by tier."""
    bound: Float32
    span: Float32
    column: Int16
    lane: Int8
    edges: Float32
    cell_count: Uint8
    extent: Float64


def lay_lanes(clauses: ClauseColumns, score: Float64 | None) -> tuple[Lanes, Int64]:
    """The lanes of clauses that all have a finite box, and the clause of each slot."""
    tier, rank = tiers(len(clauses), score)
    extent = usual_extent(clauses.box)
    run = run_of(tier, np.zeros(len(clauses), np.int16), size_levels(clauses.box))
    order = np.lexsort((hilbert_codes(clauses.box, extent), run))
    start = cut(run[order], LANES)
    order = by_rank_within(order, start, rank)
    bound, scale = block_extents(clauses.box[order], start)
    edges, cell_count = cell_edges(sample_ends(clauses)[:-2], LAST)
    edges = np.hstack([edges, np.full((len(edges), 1), np.inf, np.float32)])
    entry, column, lane = draw_lanes(as_clauses(clauses), order, start, bound, scale, edges, cell_count)
    best, tier_block, tier_best = bests(None if score is None else score[order], tier[order], start)
    bound, span = padded(bound), spans(padded(bound))
    lanes = Lanes(start, best, scale, entry, tier_block, tier_best, bound, span, column, lane, edges, cell_count, extent)
    return Lanes(*(readonly(array) for array in lanes)), order


def block_extents(box: Float64, start: Int32) -> tuple[Float32, Float32]:
    """By block: the extent of its boxes as xmin, xmax, ymin, ymax, and the scale of its cells along x and y, 0 without a size."""
    bound = np.empty((4, len(start) - 1), np.float32)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for side, (reduce, column) in enumerate(((np.minimum, 0), (np.maximum, 2), (np.minimum, 1), (np.maximum, 3))):
            bound[side] = reduce.reduceat(box[:, column], start[:-1]) if len(box) else 0.0
        scale = (LAST * 0.9999 / (bound[1::2].astype(np.float64) - bound[::2])).astype(np.float32)
    return bound, np.where(np.isfinite(scale) & np.isfinite(bound[::2]) & np.isfinite(bound[1::2]), scale, 0).astype(np.float32)


def bests(score: Float64 | None, tier: Int64, start: Int32) -> tuple[Float64, Int32, Float64]:
    """The highest score of each block, the first block of each tier and the end, and the highest score of each tier."""
    blocks = len(start) - 1
    if not blocks:
        return np.empty(0), np.zeros(1, np.int32), np.empty(0)
    best = np.full(blocks, np.inf) if score is None else np.maximum.reduceat(score, start[:-1])
    tier_of = tier[start[:-1]]
    first = np.flatnonzero(np.concatenate(([True], tier_of[1:] != tier_of[:-1])))
    return best, np.append(first, blocks).astype(np.int32), np.maximum.reduceat(best, first)


def padded(bound: Float32) -> Float32:
    """Extents in whole 64s, the rest such that nothing touches them."""
    size = bound.shape[1]
    whole = np.empty((4, -(-size // LANES) * LANES), np.float32)
    whole[::2], whole[1::2] = np.inf, -np.inf
    whole[:, :size] = bound
    return whole


def spans(bound: Float32) -> Float32:
    """The extents of 64 blocks together, in whole 64s themselves."""
    parts = bound.reshape(4, -1, LANES)
    return padded(np.stack([parts[side].max(axis=1) if side % 2 else parts[side].min(axis=1) for side in range(4)]))


def draw_lanes(
    clauses: Clauses, order: Int64, start: Int32, bound: Float32, scale: Float32, edges: Float32, cell_count: Uint8
) -> tuple[Int32, Int16, Int8]:
    """(first entry of each block and the end, dimension and lanes of each entry): x and y, then the most telling first."""
    width, size = len(edges), np.diff(start)
    usage = count_tests(clauses, order, start, width)
    block, dim = np.nonzero((usage * 32 >= size[:, None]) & (usage > 0))
    every = np.arange(len(size))
    block, dim = np.concatenate([every, every, block]), np.concatenate([every * 0 + width, every * 0 + width + 1, dim])
    by_block = np.argsort(block, kind="stable")
    block, column = block[by_block], dim[by_block].astype(np.int16)
    entry = np.searchsorted(block, np.arange(len(size) + 1)).astype(np.int32)
    lane = aligned_lanes(len(block))
    fill_lanes(clauses, order, start, bound, scale, edges, cell_count, entry, column, lane)
    passed = np.where(column >= width, NONE, open_cells(lane) / np.append(cell_count, [1, 1])[column])
    telling = np.lexsort((column, passed, block))
    return entry, column[telling], _in_order(lane, telling)


def aligned_lanes(entries: int) -> Int8:
    """Lanes that let everything pass, each in one cache line of 64 bytes."""
    raw = np.empty(2 * entries * LANES + 64, np.int8)
    skip = -raw.ctypes.data % 64
    lane = raw[skip : skip + 2 * entries * LANES].reshape(entries, 2, LANES)
    lane[:, 0], lane[:, 1] = 0, LAST
    return lane


def _in_order(lane: Int8, order: Int64) -> Int8:
    ordered = aligned_lanes(len(lane))
    np.take(lane, order, axis=0, out=ordered)
    return ordered


@kernel
def open_cells(lane: Int8) -> Int64:
    """How many cells the clauses of each entry let pass, in all."""
    total = np.zeros(lane.shape[0], np.int64)
    for entry in range(lane.shape[0]):
        for t in range(lane.shape[2]):
            total[entry] += max(wide(lane[entry, 1, t]) - wide(lane[entry, 0, t]) + 1, 0)
    return total


@kernel
def count_tests(clauses: Clauses, order: Int64, start: Int32, width: int) -> Int32:
    """usage[block, dimension]: how many predicates of the block's clauses test it."""
    usage = np.zeros((start.size - 1, width), np.int32)
    for block in range(start.size - 1):
        for slot in range(start[block], start[block + 1]):
            for p in range(clauses.pred_start[order[slot]], clauses.pred_start[order[slot] + 1]):
                usage[block, clauses.pred_dim[p]] += 1
    return usage


@inlined
def cell_of(value: np.float32, edges: Float32, count: int) -> int:
    """1 + how many edges are at most the value, by seven halvings without a branch; 0 when it is missing."""
    cell = 0
    for half in (64, 32, 16, 8, 4, 2, 1):
        cell += half if edges[cell + half - 1] <= value else 0
    return 0 if value != value else min(cell + 1, count)


@inlined
def step_of(value: np.float32, lo: np.float32, scale: np.float32) -> int:
    """The cell along x or y of a block that begins at `lo`."""
    step = (value - lo) * scale
    if not step > 0:
        return 0
    return LAST if step >= LAST else wide(step)


@inlined
def narrow(clauses: Clauses, p: int, edges: Float32, count: int, lane: Int8, entry: int, lane_at: int) -> None:
    """Leave to a lane what predicate p may hold for."""
    kind, low, high = wide(clauses.pred_kind[p]), 1, LAST
    if kind == RANGE:
        low = cell_of(np.float32(clauses.pred_lo[p]), edges, count)
        high = cell_of(np.float32(clauses.pred_hi[p]), edges, count)
    elif kind == IN and clauses.pred_hi[p] > 0:
        first = wide(clauses.pred_lo[p])
        low = cell_of(np.float32(clauses.pool[first]), edges, count)
        high = cell_of(np.float32(clauses.pool[first + wide(clauses.pred_hi[p]) - 1]), edges, count)
    elif kind == NULL:
        low, high = 0, 0
    lane[entry, 0, lane_at] = max(low, wide(lane[entry, 0, lane_at]))
    lane[entry, 1, lane_at] = min(high, wide(lane[entry, 1, lane_at]))


@kernel
def fill_lanes(
    clauses: Clauses,
    order: Int64,
    start: Int32,
    bound: Float32,
    scale: Float32,
    edges: Float32,
    cell_count: Uint8,
    entry: Int32,
    column: Int16,
    lane: Int8,
) -> None:
    width = edges.shape[0]
    entry_of = np.full(width + 2, NONE, np.int64)
    for block in range(start.size - 1):
        for e in range(entry[block], entry[block + 1]):
            entry_of[column[e]] = e
        first = wide(start[block])
        for slot in range(first, start[block + 1]):
            clause = order[slot]
            for axis in range(2):
                e, lo, by = entry_of[width + axis], bound[2 * axis, block], scale[axis, block]
                lane[e, 0, slot - first] = step_of(np.float32(clauses.box[clause, axis]), lo, by)
                lane[e, 1, slot - first] = step_of(np.float32(clauses.box[clause, axis + 2]), lo, by)
            for p in range(clauses.pred_start[clause], clauses.pred_start[clause + 1]):
                dim = wide(clauses.pred_dim[p])
                if entry_of[dim] != NONE:
                    narrow(clauses, p, edges[dim], wide(cell_count[dim]), lane, entry_of[dim], slot - first)
        for unused in range(start[block + 1] - first, lane.shape[2]):
            lane[entry_of[width], 1, unused] = NOTHING
        for e in range(entry[block], entry[block + 1]):
            entry_of[column[e]] = NONE
