"""The kernels of place blocks: which blocks an event touches, what their lanes let pass, and what of it holds.

A batch is walked block by block: its points are binned to a grid, and each block takes the points of the cells that it meets, so
that its lanes and records are read once for all of them. An event whose place has a size, and one alone, finds its blocks by their
spans. See `places` for the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.compiling.pinned import Pinned, opened
from tidings.index.blocks.lanes import Lanes, cell_of, step_of
from tidings.index.packed.groups import grown
from tidings.index.packed.record import Deaths, Events, Packed, box_thresholds, dead, holds
from tidings.index.packed.simd import LANES, overlap64, prefetch, trailing_zeros, wide, within64
from tidings.index.packed.types import Float32, Float64, Int8, Int32, Int64, Signed, Uint32

Pairs = tuple[Int32, Int32]
NOWHERE = np.float32(np.nan)
"""The place of what is not found by its cell: no block's extent has it."""
BLOCKS_AHEAD, ENTRIES_AHEAD, SLOTS_AHEAD = 6, 5, 16
"""Lanes are asked of the memory by so many pairs ahead, of so many entries: most blocks are done with after five. Records by
so many slots."""


class Asked(NamedTuple):
    """Events as lanes are asked about them, by row: the ends of the place, the cells of the values, the codes of the place."""

    box: Float32
    cell: Int8
    thresholds: Signed


@inlined
def ask(packed: Packed, lanes: Lanes, events: Events, event: int, asked: Asked, row: int) -> None:
    for side in range(4):
        asked.box[row, side] = np.float32(events.box[event, side])
    for dim in range(lanes.edges.shape[0]):
        asked.cell[row, dim] = cell_of(np.float32(events.value[event, dim]), lanes.edges[dim], wide(lanes.cell_count[dim]))
    box_thresholds(events.box, event, packed.place[0], asked.thresholds, row)


@inlined
def left_in_block(lanes: Lanes, block: int, asked: Asked, row: int) -> np.uint64:
    """A bit for each slot of the block whose lanes let the event pass."""
    entry, end = wide(lanes.entry[block]), wide(lanes.entry[block + 1])
    x, y, by_x, by_y = lanes.bound[0, block], lanes.bound[2, block], lanes.scale[0, block], lanes.scale[1, block]
    left = within64(lanes.lane, entry, step_of(asked.box[row, 0], x, by_x), step_of(asked.box[row, 2], x, by_x))
    left &= within64(lanes.lane, entry + 1, step_of(asked.box[row, 1], y, by_y), step_of(asked.box[row, 3], y, by_y))
    entry += 2
    while left != 0 and entry < end:
        cell = wide(asked.cell[row, lanes.column[entry]])
        left &= within64(lanes.lane, entry, cell, cell)
        entry += 1
    return left


@inlined
def touching(bound: Float32, word: int, box: Float32, row: int) -> np.uint64:
    """A bit for each of the 64 extents from 64 * word on that the event's place touches."""
    hits = overlap64(bound[0], bound[1], word << 6, box[row, 0], box[row, 2])
    if hits != 0:
        hits &= overlap64(bound[2], bound[3], word << 6, box[row, 1], box[row, 3])
    return hits


@inlined
def reach(lanes: Lanes, first: int, last: int, box: Float32, row: int, reached: Int32) -> int:
    """Write the blocks of [first, last) that the event's place touches; how many."""
    count = 0
    for word in range(first >> 12, (last + 4095) >> 12):
        near = touching(lanes.span, word, box, row)
        while near != 0:
            span = (word << 6) + trailing_zeros(near)
            near &= near - np.uint64(1)
            if span << 6 >= last or (span + 1) << 6 <= first:
                continue
            hits = touching(lanes.bound, span, box, row)
            while hits != 0:
                block = (span << 6) + trailing_zeros(hits)
                hits &= hits - np.uint64(1)
                reached[count] = block
                count += first <= block < last
    return count


@inlined
def column_of(value: float, lo: float, scale: float, side: int) -> int:
    """The column, or line, of a grid of `side`."""
    at = (value - lo) * scale
    if not at > 0:
        return 0
    return side - 1 if at >= side - 1 else wide(at)


@kernel
def grid_of(extent: Float64, side: int) -> Float64:
    """Where a grid of `side` columns over the extent begins, and its columns by length: xmin, ymin, x scale, y scale."""
    grid = np.zeros(4)
    for axis in range(2):
        length = extent[axis + 2] - extent[axis]
        if np.isfinite(length) and length > 0 and np.isfinite(side / length):
            grid[axis], grid[axis + 2] = extent[axis], side / length
    return grid


@kernel
def binned(grid: Float64, side: int, box: Float64, first: int, last: int) -> tuple[Int64, Int32]:
    """The events [first, last) by the cell of their lower corner: cell c has order[start[c]:start[c + 1]]."""
    cell, start = np.empty(last - first, np.int32), np.zeros(side * side + 1, np.int64)
    for i in range(last - first):
        x, y = np.float64(np.float32(box[first + i, 0])), np.float64(np.float32(box[first + i, 1]))
        cell[i] = column_of(y, grid[1], grid[3], side) * side + column_of(x, grid[0], grid[2], side)
        start[cell[i] + 1] += 1
    for c in range(side * side):
        start[c + 1] += start[c]
    at, order = start.copy(), np.empty(last - first, np.int32)
    for i in range(last - first):
        order[at[cell[i]]] = first + i
        at[cell[i]] += 1
    return start, order


@inlined
def points_in(lanes: Lanes, block: int, box: Float32, grid: Float64, side: int, start: Int64, rows: Int32, count: int) -> int:
    """Append the rows whose point lies in the block's extent; the new count. A row's place is its lower corner."""
    bound = lanes.bound
    xmin, xmax, ymin, ymax = bound[0, block], bound[1, block], bound[2, block], bound[3, block]
    west, east = column_of(xmin, grid[0], grid[2], side), column_of(xmax, grid[0], grid[2], side)
    south, north = column_of(ymin, grid[1], grid[3], side), column_of(ymax, grid[1], grid[3], side)
    for line in range(south, north + 1):
        for row in range(start[line * side + west], start[line * side + east + 1]):
            x, y = box[row, 0], box[row, 1]
            rows[count] = row
            count += (xmin <= x) & (x <= xmax) & (ymin <= y) & (y <= ymax)
    return count


@inlined
def fill_pairs(
    lanes: Lanes, block: int, box: Float32, grid: Float64, side: int, start: Int64, pair_block: Int32, pair_row: Int32
) -> tuple[int, int]:
    """Write pairs while there is room for all points and one more; the block to go on with, and how many pairs."""
    count = 0
    while block < lanes.best.size and count + start[-1] < pair_row.size:
        end = points_in(lanes, block, box, grid, side, start, pair_row, count)
        for i in range(count, end):
            pair_block[i] = block
        block, count = block + 1, end
    return block, count


@kernel
def pairs_by_cell(lanes: Lanes, asked: Asked, grid: Float64, start: Int64, block: int, room: int) -> tuple[Int32, Int32, int]:
    """(block, row) for each block from `block` on and each point in its extent, about `room` of them; the block to go on with."""
    pair_block, pair_row = np.empty(room + start[-1] + 1, np.int32), np.empty(room + start[-1] + 1, np.int32)
    block, count = fill_pairs(lanes, block, asked.box, grid, wide(np.sqrt(start.size - 1)), start, pair_block, pair_row)
    return pair_block[:count], pair_row[:count], block


@kernel
def pairs_by_span(lanes: Lanes, asked: Asked, rows: Int32, at: int, room: int) -> tuple[Int32, Int32, int]:
    """(block, row) for each of `rows` from rows[at] on and each block it touches, until there are `room`; where to go on."""
    pair_block, pair_row, count = np.empty(room, np.int32), np.empty(room, np.int32), 0
    while at < rows.size and count < room:
        pair_block, pair_row = grown(pair_block, count, lanes.best.size + 1), grown(pair_row, count, lanes.best.size + 1)
        reaches = reach(lanes, 0, lanes.best.size, asked.box, rows[at], pair_block[count:])
        pair_row[count : count + reaches] = rows[at]
        count, at = count + reaches, at + 1
    return pair_block[:count], pair_row[:count], at


@inlined
def ask_ahead(lanes: Lanes, block: int) -> None:
    """Have the lanes fetched that will most likely be needed of the block."""
    first = wide(lanes.entry[block])
    for entry in range(first, min(first + ENTRIES_AHEAD, wide(lanes.entry[block + 1]))):
        prefetch(lanes.lane, 2 * LANES * entry)
        prefetch(lanes.lane, 2 * LANES * entry + LANES)


@inlined
def fill_candidates(
    lanes: Lanes, asked: Asked, pair_block: Int32, pair_row: Int32, at: int, out_row: Int32, out_slot: Int32, count: int
) -> tuple[int, int]:
    """Append what the lanes of the pairs from `at` on let pass while there is room; where to go on, and the new count."""
    last = pair_block.size - 1
    while at <= last and count + LANES <= out_row.size:
        ask_ahead(lanes, wide(pair_block[min(at + BLOCKS_AHEAD, last)]))
        block, row = wide(pair_block[at]), wide(pair_row[at])
        left, first = left_in_block(lanes, block, asked, row), wide(lanes.start[block])
        while left != 0:
            out_row[count], out_slot[count] = row, first + trailing_zeros(left)
            left &= left - np.uint64(1)
            count += 1
        at += 1
    return at, count


@kernel
def candidates(lanes: Lanes, asked: Asked, pair_block: Int32, pair_row: Int32) -> Pairs:
    """(row, slot) of what the lanes of each pair let pass."""
    out_row, out_slot, count, at = np.empty(4096, np.int32), np.empty(4096, np.int32), 0, 0
    while at < pair_block.size:
        out_row, out_slot = grown(out_row, count, LANES), grown(out_slot, count, LANES)
        at, count = fill_candidates(lanes, asked, pair_block, pair_row, at, out_row, out_slot, count)
    return out_row[:count], out_slot[:count]


@inlined
def fill_verified(
    packed: Packed,
    events: Events,
    order: Int32,
    asked: Asked,
    row_of: Int32,
    slot_of: Int32,
    deaths: Deaths,
    event_of: Int32,
    clause_of: Int32,
) -> int:
    """Write (event, clause) of the candidates that live and hold; how many."""
    last, count, boxes = row_of.size - 1, 0, packed.box.shape[1]
    for i in range(row_of.size):
        later, soon = wide(slot_of[min(i + SLOTS_AHEAD, last)]), wide(slot_of[min(i + SLOTS_AHEAD // 2, last)])
        for side in range(4):
            prefetch(packed.box, side * boxes + later)
        if packed.start.size > 0:
            prefetch(packed.start, later)
            prefetch(packed.record, wide(packed.start[soon]))
        slot, row = wide(slot_of[i]), wide(row_of[i])
        event_of[count], clause_of[count] = order[row], packed.row[slot]
        count += holds(packed, slot, events, wide(order[row]), asked.thresholds, row) and not dead(packed, slot, deaths)
    return count


@kernel
def verified(packed: Packed, events: Events, order: Int32, asked: Asked, row_of: Int32, slot_of: Int32, deaths: Deaths) -> Pairs:
    """(event, clause) of the candidates that live and hold; row r is event order[r]."""
    event_of, clause_of = np.empty(row_of.size, np.int32), np.empty(row_of.size, np.int32)
    count = fill_verified(packed, events, order, asked, row_of, slot_of, deaths, event_of, clause_of)
    return event_of[:count], clause_of[:count]


@kernel
def ask_all(packed: Packed, lanes: Lanes, events: Events, order: Int32) -> Asked:
    """Row r is event order[r]."""
    m = order.size
    asked = Asked(np.empty((m, 4), np.float32), np.empty((m, lanes.edges.shape[0]), np.int8), np.empty((m, 4), packed.box.dtype))
    for row in range(m):
        ask(packed, lanes, events, wide(order[row]), asked, row)
    return asked


@kernel
def match_each(
    packed: Packed,
    lanes: Lanes,
    events: Events,
    order: Int32,
    asked: Asked,
    rows: Int32,
    room: int,
    deaths: Deaths,
    counters: Int64,
) -> Pairs:
    """Matches of the rows, each of which finds its blocks by their spans."""
    out_event, out_clause, count, at = np.empty(1024, np.int32), np.empty(1024, np.int32), 0, 0
    while at < rows.size:
        block, row, at = pairs_by_span(lanes, asked, rows, at, room)
        out_event, out_clause, count = settle(
            packed, lanes, events, order, asked, block, row, deaths, counters, out_event, out_clause, count
        )
    return out_event[:count], out_clause[:count]


@kernel
def match_points(
    packed: Packed,
    lanes: Lanes,
    events: Events,
    order: Int32,
    asked: Asked,
    grid: Float64,
    start: Int64,
    room: int,
    deaths: Deaths,
    counters: Int64,
) -> Pairs:
    """Matches of the rows whose place is a point, block by block, about `room` pairs at a time."""
    points = Asked(asked.box.copy(), asked.cell, asked.thresholds)
    for i in range(order.size):
        if not is_point(events, wide(order[i])):
            points.box[i, 0] = NOWHERE
    out_event, out_clause, count, at = np.empty(1024, np.int32), np.empty(1024, np.int32), 0, 0
    while at < lanes.best.size:
        block, row, at = pairs_by_cell(lanes, points, grid, start, at, room)
        out_event, out_clause, count = settle(
            packed, lanes, events, order, asked, block, row, deaths, counters, out_event, out_clause, count
        )
    return out_event[:count], out_clause[:count]


@kernel
def settle(
    packed: Packed,
    lanes: Lanes,
    events: Events,
    order: Int32,
    asked: Asked,
    block: Int32,
    row: Int32,
    deaths: Deaths,
    counters: Int64,
    out_event: Int32,
    out_clause: Int32,
    count: int,
) -> tuple[Int32, Int32, int]:
    """Append the matches of (block, row) pairs."""
    row_of, slot_of = candidates(lanes, asked, block, row)
    event, clause = verified(packed, events, order, asked, row_of, slot_of, deaths)
    counters[0] += block.size
    counters[1] += row_of.size
    counters[2] += event.size
    out_event, out_clause = grown(out_event, count, event.size), grown(out_clause, count, event.size)
    out_event[count : count + event.size], out_clause[count : count + event.size] = event, clause
    return out_event, out_clause, count + event.size


@inlined
def is_point(events: Events, event: int) -> bool:
    return bool(events.box[event, 0] == events.box[event, 2] and events.box[event, 1] == events.box[event, 3])


@kernel
def sized_rows(box: Float64, order: Int32) -> Int32:
    """The rows whose event has a place that is not a point."""
    found, count = np.empty(order.size, np.int32), 0
    for row in range(order.size):
        event = wide(order[row])
        found[count] = row
        count += box[event, 0] < box[event, 2] or (box[event, 0] == box[event, 2] and box[event, 1] < box[event, 3])
    return found[:count]


class Placed(NamedTuple):
    """All of a structure: what a single event's call is given as one address."""

    packed: Packed
    lanes: Lanes
    counters: Int64


@kernel
def match_event(placed: Pinned[Placed], single: Pinned[Events], event: int, died: Uint32, snapshot: int) -> Int32:
    """The rows that one event matches. `Deaths` one by one: a tuple costs a call from Python more."""
    packed, lanes, counters = opened(placed)
    events = opened(single)
    order, itself = np.full(1, event, np.int32), np.zeros(1, np.int32)
    asked = ask_all(packed, lanes, events, order)
    return match_each(packed, lanes, events, order, asked, itself, 1, Deaths(died, snapshot), counters)[1]
