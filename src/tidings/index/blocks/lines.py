"""The bit lines of block bitmaps: which dimensions a block has lines for, and their bits.

A block has an *entry* for each dimension that at least one in 32 of its clauses tests, about ENTRIES at most, the most used ones,
x and y of the place among them. An entry's lines are one for "the event lacks it" and one a cell. Cells are the dimension's
(`Layout.edges`), two or four joined where few clauses of the block test it; on the block's own key they are 32 even parts
of the block's extent instead.
Every cell function is monotone and the same for clause ends and event values, so no rounding can lose a match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.index.blocks.layout import BLOCK, CELLS, PLACE, Layout
from tidings.index.packed.packing import as_clauses
from tidings.index.packed.record import Clauses
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Float32, Int16, Int32, Int64, Uint64
from tidings.model.columns.arrays import IN, NULL, RANGE, ClauseColumns

ENTRIES = 24
WORDS = BLOCK // 64


class Entries(NamedTuple):
    """Block b's entries are [start[b], start[b + 1]), the most selective first. The line of an event's cell is line + cell[column],
    the cells of an event being, for each of the w dimensions, x and y: whole, joined by two, by four; then along the block's key.

    `column` is shift * w + dimension, or 3 * w and 3 * w + 1 on the block's key. `lo` and `scale` (2 x blocks) are of its cells.
    """

    start: Int32
    column: Int16
    line: Int32
    lo: Float32
    scale: Float32


def draw_lines(clauses: ClauseColumns, layout: Layout, bound: Float32) -> tuple[Entries, Uint64]:
    """`bound[:, block]` is the extent of the block along its key: lo, hi, and for a place ylo, yhi."""
    given = as_clauses(clauses)
    usage = count_usage(layout, given)
    block, dim = choose_entries(usage, np.diff(layout.block_start))
    share = usage[block, dim] / np.diff(layout.block_start)[block]
    shift = np.where(share >= 0.5, 0, np.where(share >= 0.25, 1, 2)).astype(np.uint8)
    lo, scale = key_cells(bound)
    axis = key_axis(layout, scale, block, dim)
    shift[axis >= 0] = 0
    lines_of = np.where(axis >= 0, CELLS + 1, ((layout.cell_count[dim] - 1) >> shift) + 2).astype(np.int64)
    line = np.cumsum(lines_of) - lines_of
    start = np.searchsorted(block, np.arange(len(layout.block_start))).astype(np.int32)
    width = len(layout.edges)
    column = np.where(axis >= 0, 3 * width + axis, shift * width + dim)
    entries = Entries(start, column.astype(np.int16), line.astype(np.int32), lo, scale)
    lines = aligned_lines(int(lines_of.sum()))
    fill_lines(entries, dim, lines, lines_of, layout, given)
    return _most_selective_first(entries, lines, lines_of, block), lines


def aligned_lines(count: int) -> Uint64:
    """Zeroed lines, each in one cache line of 64 bytes."""
    raw = np.zeros(count * WORDS + 8, np.uint64)
    skip = -raw.ctypes.data % 64 // 8
    return raw[skip : skip + count * WORDS].reshape(count, WORDS)


def choose_entries(usage: Int32, size: Int32) -> tuple[Int64, Int64]:
    """(block, dimension) of every entry, by block."""
    kept = usage * 32 >= np.maximum(size, 1)[:, None]
    kept &= usage > 0
    if kept.shape[1] > ENTRIES:
        least = -np.partition(-usage, ENTRIES - 1, axis=1)[:, ENTRIES - 1 : ENTRIES]
        kept &= usage >= least
    return np.nonzero(kept)  # type: ignore[return-value]


def key_cells(bound: Float32) -> tuple[Float32, Float32]:
    """(lo, scale) of the cells along each block's key and, if that is the place, along y; scale 0 where it has no finite size."""
    lo, hi = bound[::2].astype(np.float64), bound[1::2].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scale = (CELLS * 0.9999 / (hi - lo)).astype(np.float32)
    usable = np.isfinite(lo) & np.isfinite(hi) & np.isfinite(scale) & (scale > 0)
    return np.where(usable, lo, 0).astype(np.float32), np.where(usable, scale, 0).astype(np.float32)


def key_axis(layout: Layout, scale: Float32, block: Int64, dim: Int64) -> Int64:
    """Which of its block's key cells an entry uses: 0, 1 for y, or NONE."""
    key = layout.keys.dim[layout.order[layout.block_start[:-1]]].astype(np.int64)[block]
    width = len(layout.edges) - 2
    along_x, along_y = (key == PLACE) & (dim == width), (key == PLACE) & (dim == width + 1)
    axis = np.where(along_y, 1, np.where(along_x | (key == dim), 0, NONE))
    return np.where(scale[np.maximum(axis, 0), block] > 0, axis, NONE)


def _most_selective_first(entries: Entries, lines: Uint64, lines_of: Int64, block: Int64) -> Entries:
    """Entries of each block by ascending mean number of bits over their cells."""
    if not len(block):
        return entries
    bits = np.bitwise_count(lines).sum(axis=1, dtype=np.int64)
    mean = (np.add.reduceat(bits, entries.line) - bits[entries.line]) / (lines_of - 1)
    order = np.lexsort((mean, block))
    return entries._replace(column=entries.column[order], line=entries.line[order])


@kernel
def count_usage(layout: Layout, clauses: Clauses) -> Int32:
    """usage[block, dimension]: how many of the block's predicates test it; boxes count for x and y, the last two."""
    order, block_start, width = layout.order, layout.block_start, layout.edges.shape[0]
    pred_start, pred_dim, box = clauses.pred_start, clauses.pred_dim, clauses.box
    usage = np.zeros((block_start.size - 1, width), np.int32)
    for block in range(block_start.size - 1):
        for slot in range(block_start[block], block_start[block + 1]):
            clause = order[slot]
            for p in range(pred_start[clause], pred_start[clause + 1]):
                usage[block, pred_dim[p]] += 1
            usage[block, width - 2] += np.isfinite(box[clause, 0]) or np.isfinite(box[clause, 2])
            usage[block, width - 1] += np.isfinite(box[clause, 1]) or np.isfinite(box[clause, 3])
    return usage


@inlined
def global_cell(value: np.float32, edges: Float32, count: int) -> int:
    """1 + how many edges are at most the value, by five halvings without a branch; 0 when it is missing."""
    cell = 0
    for half in (16, 8, 4, 2, 1):
        cell += half if edges[cell + half - 1] <= value else 0
    return 0 if value != value else min(cell + 1, count)


@inlined
def local_cell(value: np.float32, lo: np.float32, scale: np.float32) -> int:
    if value != value:
        return 0
    cell = (value - lo) * scale
    # Not `cell < 0`: an infinite value times a scale of nothing, or less an infinite low end, is no number, and stands lowest.
    if not cell >= 0:
        return 1
    return CELLS if cell >= CELLS - 1 else 1 + wide(cell)


@inlined
def joined(cell: int, shift: int) -> int:
    """Cells 1 ... 2**shift become cell 1, and so on; 0 stays."""
    return (cell + (1 << shift) - 1) >> shift


@inlined
def entry_cell(entries: Entries, entry: int, block: int, value: float, layout: Layout) -> int:
    width, column = layout.edges.shape[0], wide(entries.column[entry])
    if column >= 3 * width:
        axis = column - 3 * width
        return local_cell(np.float32(value), entries.lo[axis, block], entries.scale[axis, block])
    dim = column % width
    return joined(global_cell(np.float32(value), layout.edges[dim], layout.cell_count[dim]), column // width)


@inlined
def set_bits(lines: Uint64, first: int, last: int, slot: int) -> None:
    """The slot's bit in the lines first ... last."""
    word, bit = slot >> 6, np.uint64(1) << np.uint64(slot & 63)
    for line in range(first, last + 1):
        lines[line, word] |= bit


@inlined
def set_range(entries: Entries, entry: int, block: int, lines: Uint64, slot: int, layout: Layout, lo: float, hi: float) -> None:
    """The slot's bits of an entry in the cells that [lo, hi] touches."""
    first, last = entry_cell(entries, entry, block, lo, layout), entry_cell(entries, entry, block, hi, layout)
    set_bits(lines, entries.line[entry] + first, entries.line[entry] + last, slot)


@inlined
def set_predicate(
    entries: Entries, entry: int, block: int, lines: Uint64, slot: int, layout: Layout, clauses: Clauses, p: int, end: int
) -> None:
    """The slot's bits of an entry, whose cells are 0 ... `end`: in every cell where predicate p may hold."""
    line, kind = entries.line[entry], wide(clauses.pred_kind[p])
    if kind == RANGE:
        set_range(entries, entry, block, lines, slot, layout, clauses.pred_lo[p], clauses.pred_hi[p])
    elif kind == IN:
        for j in range(wide(clauses.pred_lo[p]), wide(clauses.pred_lo[p] + clauses.pred_hi[p])):
            cell = entry_cell(entries, entry, block, np.float64(clauses.pool[j]), layout)
            set_bits(lines, line + cell, line + cell, slot)
    elif kind == NULL:
        set_bits(lines, line, line, slot)
    else:
        set_bits(lines, line + 1, line + end, slot)


@kernel
def fill_lines(entries: Entries, dim: Int64, lines: Uint64, lines_of: Int64, layout: Layout, clauses: Clauses) -> None:
    """`dim[entry]` and `lines_of[entry]`: the entry's dimension, and how many lines it has."""
    pred_start, pred_dim, box = clauses.pred_start, clauses.pred_dim, clauses.box
    width = layout.edges.shape[0] - 2
    entry_of, tested = np.full(width + 2, NONE, np.int64), np.full(width + 2, NONE, np.int64)
    # The clauses of a block that have no predicate on an entry's dimension: they pass in each of its cells.
    free = np.zeros((width + 2, lines.shape[1]), np.uint64)
    for block in range(layout.block_start.size - 1):
        first, last = entries.start[block], entries.start[block + 1]
        for entry in range(first, last):
            entry_of[dim[entry]] = entry
        for slot in range(layout.block_start[block], layout.block_start[block + 1]):
            clause, bit = layout.order[slot], slot - layout.block_start[block]
            for p in range(pred_start[clause], pred_start[clause + 1]):
                entry = entry_of[pred_dim[p]]
                if entry >= 0:
                    tested[pred_dim[p]] = slot
                    set_predicate(entries, entry, block, lines, bit, layout, clauses, p, lines_of[entry] - 1)
            for axis in range(2):
                lo, hi, entry = box[clause, axis], box[clause, axis + 2], entry_of[width + axis]
                if entry >= 0 and (np.isfinite(lo) or np.isfinite(hi)):
                    tested[width + axis] = slot
                    set_range(entries, entry, block, lines, bit, layout, lo, hi)
            for entry in range(first, last):
                if tested[dim[entry]] != slot:
                    free[entry - first, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        for entry in range(first, last):
            entry_of[dim[entry]] = NONE
            for line in range(entries.line[entry], entries.line[entry] + lines_of[entry]):
                for word in range(free.shape[1]):
                    lines[line, word] |= free[entry - first, word]
            free[entry - first] = 0
