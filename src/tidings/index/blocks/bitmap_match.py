"""The kernels of block bitmaps: reach blocks, AND lines, verify. See `bitmaps` for the arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.compiling.pinned import Pinned, opened
from tidings.index.blocks.layout import NO_KEY, PLACE
from tidings.index.blocks.lines import WORDS, Entries, global_cell, joined, local_cell
from tidings.index.packed.groups import grown
from tidings.index.packed.record import Deaths, Events, Packed, box_thresholds, dead, holds
from tidings.index.packed.simd import and512, overlap64, prefetch, trailing_zeros, wide
from tidings.index.packed.types import Float32, Float64, Int16, Int32, Int64, Signed, Uint8, Uint32, Uint64


class Blocks(NamedTuple):
    """See `bitmaps`."""

    start: Int32
    alive: Uint64
    best: Float64
    key: Int16
    """These by block."""
    group_key: Int16
    group_block: Int32
    group_at: Int32
    group_best: Float64
    """These by group."""
    bound: Float32
    span: Float32
    """These by position."""
    edges: Float32
    cell_count: Uint8


AHEAD, EVENTS_AHEAD = 8, 3
"""Lines of a block that are asked for ahead, and by how many events: most blocks are done with after seven."""
Pairs = tuple[Int32, Int32]
Starts = tuple[Int64, Int32]


@inlined
def reach_group(blocks: Blocks, group: int, events: Events, event: int, reached: Int32, count: int) -> int:
    """Append the group's blocks that the event touches along their key; the new count."""
    first, last, at = blocks.group_block[group], blocks.group_block[group + 1], wide(blocks.group_at[group])
    key = wide(blocks.group_key[group])
    if key == NO_KEY:
        for block in range(first, last):
            reached[count] = block
            count += 1
        return count
    if key == PLACE:
        top, bottom = np.float32(events.box[event, 2]), np.float32(events.box[event, 0])
        ytop, ybottom = np.float32(events.box[event, 3]), np.float32(events.box[event, 1])
    else:
        top = bottom = np.float32(events.value[event, key])
        ytop, ybottom = np.float32(np.inf), np.float32(-np.inf)
    span, bound = blocks.span, blocks.bound
    # A group begins at a multiple of 64 and is padded with bounds that nothing touches: whole words are read, none shared.
    for s in range(at >> 6, (at + last - first + 63) >> 6):
        if span[0, s] <= top and bottom <= span[1, s] and (key != PLACE or (span[2, s] <= ytop and ybottom <= span[3, s])):
            hits = overlap64(bound[0], bound[1], s << 6, bottom, top)
            if key == PLACE and hits != 0:
                hits &= overlap64(bound[2], bound[3], s << 6, ybottom, ytop)
            while hits != 0:
                reached[count] = first + (s << 6) - at + trailing_zeros(hits)
                count += 1
                hits &= hits - np.uint64(1)
    return count


@kernel
def reach_pairs(blocks: Blocks, groups: tuple[int, int], events: Events, asked: Int32) -> Pairs:
    """(block, event) for each block of groups[0] ... groups[1] - 1 that each of the events `asked` reaches, event by event."""
    first, last = groups
    count = wide(blocks.group_block[last] - blocks.group_block[first])
    pair_block, pair_event = np.empty(64 + count, np.int32), np.empty(64 + count, np.int32)
    pairs = 0
    for event in asked:
        pair_block, pair_event = grown(pair_block, pairs, count), grown(pair_event, pairs, count)
        begin = pairs
        for group in range(first, last):
            pairs = reach_group(blocks, group, events, event, pair_block, pairs)
        pair_event[begin:pairs] = event
    return pair_block[:pairs], pair_event[:pairs]


@kernel
def by_block(first: int, last: int, pair_block: Int32, pair_event: Int32) -> Starts:
    """The events of each block of first ... last - 1: event[start[b - first] : start[b - first + 1]], in the order of the pairs."""
    start = np.zeros(last - first + 1, np.int64)
    for block in pair_block:
        start[block - first + 1] += 1
    for block in range(last - first):
        start[block + 1] += start[block]
    event = np.empty(pair_event.size, np.int32)
    at = start.copy()
    for i in range(pair_block.size):
        block = pair_block[i] - first
        event[at[block]] = pair_event[i]
        at[block] += 1
    return start, event


@kernel
def reach_events(blocks: Blocks, events: Events, first: int, last: int) -> Starts:
    """For each block the events [first, last) that reach it: event[start[b]:start[b + 1]]."""
    block, event = reach_pairs(blocks, (0, blocks.group_key.size), events, np.arange(first, last).astype(np.int32))
    return by_block(0, blocks.best.size, block, event)


@inlined
def end_cells(blocks: Blocks, events: Events, event: int, end: int, cells: Uint8) -> None:
    """The event's cells as `Entries` counts them, but those along a key, with its box's lower (end 0) or upper ends; 0: missing."""
    width = blocks.edges.shape[0]
    for dim in range(width - 2):
        cells[dim] = global_cell(np.float32(events.value[event, dim]), blocks.edges[dim], blocks.cell_count[dim])
    missing = events.box[event, 0] > events.box[event, 2]
    for axis in range(2):
        dim = width - 2 + axis
        cell = global_cell(np.float32(events.box[event, axis + 2 * end]), blocks.edges[dim], blocks.cell_count[dim])
        cells[dim] = 0 if missing else cell
    for dim in range(width):
        cells[width + dim], cells[2 * width + dim] = joined(cells[dim], 1), joined(cells[dim], 2)


@kernel
def event_cells(blocks: Blocks, events: Events, event: int, cells: Uint8, row: int) -> bool:
    """cells[row]: the event's cells with its box's lower ends, and with its upper ends. Whether the box has any size."""
    end_cells(blocks, events, event, 0, cells[row, 0])
    if events.box[event, 0] < events.box[event, 2] or events.box[event, 1] < events.box[event, 3]:
        end_cells(blocks, events, event, 1, cells[row, 1])
        return True
    cells[row, 1] = cells[row, 0]
    return False


@inlined
def key_cells(blocks: Blocks, entries: Entries, block: int, events: Events, reaching: Int32, first: int, cells: Uint8) -> None:
    """The cells of the reaching events along the block's key; event e's row is e - first."""
    key, at = wide(blocks.key[block]), 3 * blocks.edges.shape[0]
    if key >= 0:
        lo, scale = entries.lo[0, block], entries.scale[0, block]
        for event in reaching:
            cell = local_cell(np.float32(events.value[event, key]), lo, scale)
            cells[event - first, 0, at] = cells[event - first, 1, at] = cell
    elif key == PLACE:
        for axis in range(2):
            lo, scale = entries.lo[axis, block], entries.scale[axis, block]
            for event in reaching:
                for end in range(2):
                    value = np.float32(events.box[event, axis + 2 * end])
                    cells[event - first, end, at + axis] = local_cell(value, lo, scale)


@inlined
def ask_ahead(entries: Entries, lines: Uint64, block: int, cells: Uint8, row: int) -> None:
    """Have the lines fetched that the event with these cells will most likely need of the block; the first two are used by all."""
    first = wide(entries.start[block])
    for entry in range(first + 2, min(first + AHEAD, wide(entries.start[block + 1]))):
        prefetch(lines, WORDS * (wide(entries.line[entry]) + cells[row, 0, entries.column[entry]]))


@inlined
def survive(blocks: Blocks, entries: Entries, lines: Uint64, block: int, cells: Uint8, row: int, boxed: bool, left: Uint64) -> bool:
    """AND the block's lines for the event with these cells into `left`; whether any bit is left. `boxed`: boxes may have a size."""
    for w in range(WORDS):
        left[w] = blocks.alive[block, w]
    first, end = wide(entries.start[block]), wide(entries.start[block + 1])
    if boxed:
        return survive_box(entries, lines, first, end, cells[row], left)
    entry, alive = first, True
    while alive and entry < end:
        alive = and512(lines, wide(entries.line[entry]) + cells[row, 0, entries.column[entry]], left)
        entry += 1
    return alive


@kernel
def survive_box(entries: Entries, lines: Uint64, first: int, end: int, cells: Uint8, left: Uint64) -> bool:
    """`survive` for an event whose box may lie in several cells: AND with the OR of their lines."""
    either = np.empty(WORDS, np.uint64)
    # Cells ascend with their values, so a box lies in all cells from that of its lower end to that of its upper.
    for entry in range(first, end):
        column, line = entries.column[entry], wide(entries.line[entry])
        either[:] = lines[line + cells[0, column]]
        for cell in range(cells[0, column] + 1, cells[1, column] + 1):
            for w in range(WORDS):
                either[w] |= lines[line + cell, w]
        rest = np.uint64(0)
        for w in range(WORDS):
            left[w] &= either[w]
            rest |= left[w]
        if rest == 0:
            return False
    return True


@inlined
def verify_block(
    packed: Packed,
    first: int,
    left: Uint64,
    events: Events,
    event: int,
    thresholds: Signed,
    row: int,
    deaths: Deaths,
    out: Int32,
    count: int,
    counters: Int64,
) -> int:
    """Append the rows of the living clauses left that hold; the new count. `first` is the block's first slot."""
    for w in range(WORDS):
        bits = left[w]
        while bits != 0:
            slot = first + (w << 6) + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            counters[1] += 1
            if holds(packed, slot, events, event, thresholds, row) and not dead(packed, slot, deaths):
                out[count] = packed.row[slot]
                count += 1
    return count


@kernel
def match_pairs(
    packed: Packed,
    blocks: Blocks,
    entries: Entries,
    lines: Uint64,
    events: Events,
    first: int,
    last: int,
    deaths: Deaths,
    counters: Int64,
) -> Pairs:
    """Matches of the events [first, last), block by block."""
    start, reaching = reach_events(blocks, events, first, last)
    cells = np.empty((last - first, 2, 3 * blocks.edges.shape[0] + 2), np.uint8)
    thresholds = np.empty((last - first, 4), packed.box.dtype)
    boxed = False
    for event in range(first, last):
        boxed |= event_cells(blocks, events, event, cells, event - first)
        box_thresholds(events.box, event, packed.place[0], thresholds, event - first)
    left = np.empty(WORDS, np.uint64)
    out_event, out_clause = np.empty(4096, np.int32), np.empty(4096, np.int32)
    count = 0
    for block in range(blocks.best.size):
        key_cells(blocks, entries, block, events, reaching[start[block] : start[block + 1]], first, cells)
        for i in range(start[block], start[block + 1]):
            event = wide(reaching[i])
            ask_ahead(entries, lines, block, cells, reaching[min(i + EVENTS_AHEAD, start[block + 1] - 1)] - first)
            if not survive(blocks, entries, lines, block, cells, event - first, boxed, left):
                continue
            # A block has 64 * WORDS slots at most, so that `verify_block` need not ask for room.
            out_event, out_clause = grown(out_event, count, 64 * WORDS), grown(out_clause, count, 64 * WORDS)
            slot, row = wide(blocks.start[block]), event - first
            end = verify_block(packed, slot, left, events, event, thresholds, row, deaths, out_clause, count, counters)
            out_event[count:end] = event
            count = end
    counters[0] += start[-1]
    counters[2] += count
    return out_event[:count].copy(), out_clause[:count].copy()


class Bitmaps(NamedTuple):
    """All of a structure: what a single event's call is given as one address."""

    packed: Packed
    blocks: Blocks
    entries: Entries
    lines: Uint64
    counters: Int64


@kernel
def match_event(bitmaps: Pinned[Bitmaps], asked: Pinned[Events], event: int, died: Uint32, snapshot: int) -> Int32:
    """The rows that one event matches. `Deaths` one by one: a tuple costs a call from Python more."""
    packed, blocks, entries, lines, counters = opened(bitmaps)
    events = opened(asked)
    cells = np.empty((1, 2, 3 * blocks.edges.shape[0] + 2), np.uint8)
    thresholds = np.empty((1, 4), packed.box.dtype)
    boxed = event_cells(blocks, events, event, cells, 0)
    box_thresholds(events.box, event, packed.place[0], thresholds, 0)
    left, deaths = np.empty(WORDS, np.uint64), Deaths(died, snapshot)
    reached = np.empty(blocks.best.size, np.int32)
    out, itself = np.empty(1024, np.int32), np.full(1, event, np.int32)
    count = reaches = 0
    for group in range(blocks.group_key.size):
        reaches = reach_group(blocks, group, events, event, reached, reaches)
    for i in range(reaches):
        block = wide(reached[i])
        key_cells(blocks, entries, block, events, itself, event, cells)
        if survive(blocks, entries, lines, block, cells, 0, boxed, left):
            out = grown(out, count, 64 * WORDS)
            slot = wide(blocks.start[block])
            count = verify_block(packed, slot, left, events, event, thresholds, 0, deaths, out, count, counters)
    counters[0] += reaches
    counters[2] += count
    return out[:count]
