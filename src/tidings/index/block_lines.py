"""The bit lines of block bitmaps: which dimensions a block has lines for, and their bits.

A block has an *entry* for each dimension that at least one in 32 of its clauses tests, about ENTRIES at most, the most used ones,
x and y of the place among them. An entry's lines are one for "the event lacks it" and one a cell. Cells are the dimension's
(`Layout.edges`), two or four joined where few clauses of the block test it; on the block's own key they are 32 even parts
of the block's extent instead.
Every cell function is monotone and the same for clause ends and event values, so no rounding can lose a match.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.block_layout import BLOCK, CELLS, NO_KEY, PLACE, Layout
from tidings.index.simd import wide
from tidings.model.arrays import IN, NULL, RANGE, ClauseColumns

ENTRIES = 24
WORDS = BLOCK // 64


class Entries(NamedTuple):
    """By entry; block b's are [start[b], start[b + 1]), the most selective first. `scale` 0 means the dimension's own cells."""

    start: NDArray[np.int32]
    dim: NDArray[np.int16]
    line: NDArray[np.int32]
    shift: NDArray[np.uint8]
    lo: NDArray[np.float32]
    scale: NDArray[np.float32]


def draw_lines(clauses: ClauseColumns, layout: Layout, bound: NDArray[np.float32]) -> tuple[Entries, NDArray[np.uint64]]:
    """`bound[:, block]` is the extent of the block along its key: lo, hi, and for a place ylo, yhi."""
    preds = (clauses.pred_start, clauses.pred_dim, clauses.pred_kind, clauses.pred_lo, clauses.pred_hi)
    usage = count_usage(layout.order, layout.block_start, *preds[:2], clauses.box, len(layout.edges))
    block, dim = choose_entries(usage, np.diff(layout.block_start))
    share = usage[block, dim] / np.diff(layout.block_start)[block]
    shift = np.where(share >= 0.5, 0, np.where(share >= 0.25, 1, 2)).astype(np.uint8)
    lo, scale = _local_cells(layout, bound, block, dim)
    shift[scale > 0] = 0
    lines_of = np.where(scale > 0, CELLS + 1, ((layout.cell_count[dim] - 1) >> shift) + 2).astype(np.int64)
    line = np.cumsum(lines_of) - lines_of
    start = np.searchsorted(block, np.arange(len(layout.block_start))).astype(np.int32)
    entries = Entries(start, dim.astype(np.int16), line.astype(np.int32), shift, lo, scale)
    lines = aligned_lines(int(lines_of.sum()))
    fill_lines(entries, lines, lines_of, layout, *preds, clauses.pool, clauses.box)
    return _most_selective_first(entries, lines, lines_of, block), lines


def aligned_lines(count: int) -> NDArray[np.uint64]:
    """Zeroed lines, each in one cache line of 64 bytes."""
    raw = np.zeros(count * WORDS + 8, np.uint64)
    skip = -raw.ctypes.data % 64 // 8
    return raw[skip : skip + count * WORDS].reshape(count, WORDS)


def choose_entries(usage: NDArray[np.int32], size: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(block, dimension) of every entry, by block."""
    kept = usage * 32 >= np.maximum(size, 1)[:, None]
    kept &= usage > 0
    if kept.shape[1] > ENTRIES:
        least = -np.partition(-usage, ENTRIES - 1, axis=1)[:, ENTRIES - 1 : ENTRIES]
        kept &= usage >= least
    return np.nonzero(kept)  # type: ignore[return-value]


def _local_cells(
    layout: Layout, bound: NDArray[np.float32], block: NDArray[np.int64], dim: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(lo, scale) of entries on their block's key; scale 0 elsewhere and where the extent is infinite or a point."""
    key = layout.key_dim[layout.order[layout.block_start[:-1]]].astype(np.int64)[block]
    width = len(layout.edges) - 2
    along_x, along_y = (key == PLACE) & (dim == width), (key == PLACE) & (dim == width + 1)
    local = along_x | along_y | ((key == dim) & (key != NO_KEY))
    side = np.where(along_y, 2, 0)
    lo, hi = bound[side, block].astype(np.float64), bound[side + 1, block].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scale = (CELLS * 0.9999 / (hi - lo)).astype(np.float32)
    local &= np.isfinite(lo) & np.isfinite(hi) & np.isfinite(scale) & (scale > 0)
    return np.where(local, lo, 0).astype(np.float32), np.where(local, scale, 0).astype(np.float32)


def _most_selective_first(
    entries: Entries, lines: NDArray[np.uint64], lines_of: NDArray[np.int64], block: NDArray[np.int64]
) -> Entries:
    """Entries of each block by ascending mean number of bits over their cells."""
    if not len(block):
        return entries
    bits = np.bitwise_count(lines).sum(axis=1, dtype=np.int64)
    mean = (np.add.reduceat(bits, entries.line) - bits[entries.line]) / (lines_of - 1)
    order = np.lexsort((mean, block))
    columns: list[NDArray[Any]] = [column[order] for column in entries[1:]]
    return Entries(entries.start, *columns)


@kernel
def count_usage(
    order: NDArray[np.int64],
    block_start: NDArray[np.int32],
    pred_start: NDArray[np.int64],
    pred_dim: NDArray[np.int16],
    box: NDArray[np.float64],
    width: int,
) -> NDArray[np.int32]:
    """usage[block, dimension]: how many of the block's predicates test it; boxes count for x and y, the last two."""
    usage = np.zeros((block_start.size - 1, width), np.int32)
    for block in range(block_start.size - 1):
        for slot in range(block_start[block], block_start[block + 1]):
            clause = order[slot]
            for p in range(pred_start[clause], pred_start[clause + 1]):
                usage[block, pred_dim[p]] += 1
            usage[block, width - 2] += np.isfinite(box[clause, 0]) or np.isfinite(box[clause, 2])
            usage[block, width - 1] += np.isfinite(box[clause, 1]) or np.isfinite(box[clause, 3])
    return usage


@kernel
def global_cell(value: np.float32, edges: NDArray[np.float32], count: int) -> int:
    """1 + how many edges are at most the value; 0 when it is missing."""
    if value != value:
        return 0
    cell = 1
    for j in range(edges.size):
        cell += edges[j] <= value
    return min(cell, count)


@kernel
def local_cell(value: np.float32, lo: np.float32, scale: np.float32) -> int:
    if value != value:
        return 0
    cell = (value - lo) * scale
    if cell < 0:
        return 1
    return CELLS if cell >= CELLS - 1 else 1 + wide(cell)


@kernel
def joined(cell: int, shift: int) -> int:
    return 0 if cell == 0 else 1 + ((cell - 1) >> shift)


@kernel
def entry_cell(entries: Entries, entry: int, value: float, edges: NDArray[np.float32], cell_count: NDArray[np.uint8]) -> int:
    single = np.float32(value)
    if entries.scale[entry] > 0:
        return local_cell(single, entries.lo[entry], entries.scale[entry])
    dim = entries.dim[entry]
    return joined(global_cell(single, edges[dim], cell_count[dim]), entries.shift[entry])


@kernel
def set_bits(lines: NDArray[np.uint64], first: int, last: int, slot: int) -> None:
    """The slot's bit in the lines first ... last."""
    word, bit = slot >> 6, np.uint64(1) << np.uint64(slot & 63)
    for line in range(first, last + 1):
        lines[line, word] |= bit


@kernel
def set_predicate(
    entries: Entries,
    entry: int,
    lines: NDArray[np.uint64],
    slot: int,
    layout: Layout,
    kind: int,
    lo: float,
    hi: float,
    pool: NDArray[np.int32],
    last_cell: int,
) -> None:
    """The slot's bits of an entry: in every cell where its predicate may hold."""
    line = entries.line[entry]
    if kind == RANGE:
        first = entry_cell(entries, entry, lo, layout.edges, layout.cell_count)
        last = entry_cell(entries, entry, hi, layout.edges, layout.cell_count)
        set_bits(lines, line + first, line + last, slot)
    elif kind == IN:
        for j in range(wide(lo), wide(lo + hi)):
            cell = entry_cell(entries, entry, np.float64(pool[j]), layout.edges, layout.cell_count)
            set_bits(lines, line + cell, line + cell, slot)
    elif kind == NULL:
        set_bits(lines, line, line, slot)
    else:
        set_bits(lines, line + 1, line + last_cell, slot)


@kernel
def fill_lines(
    entries: Entries,
    lines: NDArray[np.uint64],
    lines_of: NDArray[np.int64],
    layout: Layout,
    pred_start: NDArray[np.int64],
    pred_dim: NDArray[np.int16],
    pred_kind: NDArray[np.uint8],
    pred_lo: NDArray[np.float64],
    pred_hi: NDArray[np.float64],
    pool: NDArray[np.int32],
    box: NDArray[np.float64],
) -> None:
    width = layout.edges.shape[0] - 2
    entry_of = np.full(width + 2, -1, np.int64)
    tested = np.full(width + 2, -1, np.int64)
    for block in range(layout.block_start.size - 1):
        first, last = entries.start[block], entries.start[block + 1]
        for entry in range(first, last):
            entry_of[entries.dim[entry]] = entry
        for slot in range(layout.block_start[block], layout.block_start[block + 1]):
            clause, bit = layout.order[slot], slot - layout.block_start[block]
            for p in range(pred_start[clause], pred_start[clause + 1]):
                entry = entry_of[pred_dim[p]]
                if entry >= 0:
                    tested[pred_dim[p]] = slot
                    args = (wide(pred_kind[p]), pred_lo[p], pred_hi[p], pool, lines_of[entry] - 1)
                    set_predicate(entries, entry, lines, bit, layout, *args)
            for axis in range(2):
                lo, hi, entry = box[clause, axis], box[clause, axis + 2], entry_of[width + axis]
                if entry >= 0 and (np.isfinite(lo) or np.isfinite(hi)):
                    tested[width + axis] = slot
                    set_predicate(entries, entry, lines, bit, layout, RANGE, lo, hi, pool, lines_of[entry] - 1)
            for entry in range(first, last):
                if tested[entries.dim[entry]] != slot:
                    line = entries.line[entry]
                    set_bits(lines, line, line + lines_of[entry] - 1, bit)
        for entry in range(first, last):
            entry_of[entries.dim[entry]] = -1
