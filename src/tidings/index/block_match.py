"""The kernels of block bitmaps: reach blocks, AND lines, verify, keep the best k. See `block_bitmaps` for the arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.block_layout import NO_KEY, PLACE
from tidings.index.block_lines import WORDS, Entries, global_cell, joined, local_cell
from tidings.index.simd import overlap64, trailing_zeros, wide
from tidings.index.verify import Events, Packed, box_thresholds, dead, holds


class Blocks(NamedTuple):
    start: NDArray[np.int32]
    alive: NDArray[np.uint64]
    best: NDArray[np.float64]
    group_key: NDArray[np.int16]
    group_block: NDArray[np.int32]
    group_at: NDArray[np.int32]
    group_best: NDArray[np.float64]
    bound: NDArray[np.float32]
    span: NDArray[np.float32]
    edges: NDArray[np.float32]
    cell_count: NDArray[np.uint8]


Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]


@kernel
def grown(array: NDArray[np.int32], used: int, room: int) -> NDArray[np.int32]:
    """The array, or a copy of twice the size when fewer than `room` places are free."""
    if used + room <= array.size:
        return array
    larger = np.empty(max(2 * array.size, used + room), np.int32)
    larger[:used] = array[:used]
    return larger


@kernel
def reach_group(blocks: Blocks, group: int, events: Events, event: int, reached: NDArray[np.int32], count: int) -> int:
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
def reach_events(blocks: Blocks, events: Events, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """For each block the events [first, last) that reach it: event[start[b]:start[b + 1]]."""
    count = blocks.best.size
    pair_block, pair_event = np.empty(64 + count, np.int32), np.empty(64 + count, np.int32)
    pairs = 0
    start = np.zeros(count + 1, np.int64)
    for event in range(first, last):
        pair_block, pair_event = grown(pair_block, pairs, count), grown(pair_event, pairs, count)
        begin = pairs
        for group in range(blocks.group_key.size):
            pairs = reach_group(blocks, group, events, event, pair_block, pairs)
        for i in range(begin, pairs):
            pair_event[i] = event
            start[pair_block[i] + 1] += 1
    for block in range(count):
        start[block + 1] += start[block]
    ordered = np.empty(pairs, np.int32)
    at = start.copy()
    for i in range(pairs):
        ordered[at[pair_block[i]]] = pair_event[i]
        at[pair_block[i]] += 1
    return start, ordered


@kernel
def event_cells(blocks: Blocks, events: Events, event: int, cells: NDArray[np.uint8]) -> None:
    """The event's cell in every dimension (0 missing), then of its box's xmin, xmax, ymin, ymax."""
    width = blocks.edges.shape[0] - 2
    for dim in range(width):
        cells[dim] = global_cell(np.float32(events.value[event, dim]), blocks.edges[dim], blocks.cell_count[dim])
    missing = events.box[event, 0] > events.box[event, 2]
    for axis in range(2):
        row, count = blocks.edges[width + axis], blocks.cell_count[width + axis]
        for end in range(2):
            cell = global_cell(np.float32(events.box[event, axis + 2 * end]), row, count)
            cells[width + 2 * axis + end] = 0 if missing else cell


@kernel
def place_cells(
    entries: Entries, entry: int, axis: int, width: int, events: Events, event: int, cells: NDArray[np.uint8]
) -> tuple[int, int]:
    """First and last cell of the event's box along x or y."""
    low, high = wide(cells[width + 2 * axis]), wide(cells[width + 2 * axis + 1])
    if entries.scale[entry] == 0 or low == 0:
        return joined(low, entries.shift[entry]), joined(high, entries.shift[entry])
    lo, scale = entries.lo[entry], entries.scale[entry]
    return (
        local_cell(np.float32(events.box[event, axis]), lo, scale),
        local_cell(np.float32(events.box[event, axis + 2]), lo, scale),
    )


@kernel
def survive(
    blocks: Blocks,
    entries: Entries,
    lines: NDArray[np.uint64],
    block: int,
    events: Events,
    event: int,
    cells: NDArray[np.uint8],
    left: NDArray[np.uint64],
) -> bool:
    """AND the block's lines for the event into `left`; whether any bit is left."""
    width = blocks.edges.shape[0] - 2
    for w in range(WORDS):
        left[w] = blocks.alive[block, w]
    for entry in range(entries.start[block], entries.start[block + 1]):
        dim = wide(entries.dim[entry])
        if dim >= width:
            first, last = place_cells(entries, entry, dim - width, width, events, event, cells)
        elif entries.scale[entry] > 0:
            first = last = local_cell(np.float32(events.value[event, dim]), entries.lo[entry], entries.scale[entry])
        else:
            first = last = joined(wide(cells[dim]), wide(entries.shift[entry]))
        line = wide(entries.line[entry])
        if not (and_line(lines, line + first, left) if first == last else and_lines(lines, line + first, line + last, left)):
            return False
    return True


@kernel
def and_line(lines: NDArray[np.uint64], line: int, left: NDArray[np.uint64]) -> bool:
    rest = np.uint64(0)
    for w in range(WORDS):
        word = left[w] & lines[line, w]
        left[w] = word
        rest |= word
    return bool(rest != 0)


@kernel
def and_lines(lines: NDArray[np.uint64], first: int, last: int, left: NDArray[np.uint64]) -> bool:
    """AND with the OR of several lines: a box of an event that lies in more than one cell."""
    rest = np.uint64(0)
    for w in range(WORDS):
        either = np.uint64(0)
        for line in range(first, last + 1):
            either |= lines[line, w]
        left[w] &= either
        rest |= left[w]
    return bool(rest != 0)


@kernel
def verify_block(
    packed: Packed,
    first: int,
    left: NDArray[np.uint64],
    events: Events,
    event: int,
    thresholds: NDArray[np.signedinteger],
    died: NDArray[np.uint32],
    snapshot: int,
    out: NDArray[np.int32],
    count: int,
    counters: NDArray[np.int64],
) -> int:
    """Append the rows of the living clauses left that hold; the new count. `first` is the block's first slot."""
    for w in range(WORDS):
        bits = left[w]
        while bits != 0:
            slot = first + (w << 6) + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            counters[1] += 1
            if holds(packed, slot, events, event, thresholds) and not dead(packed, slot, died, snapshot):
                out[count] = packed.row[slot]
                count += 1
    return count


@kernel
def match_pairs(
    packed: Packed,
    blocks: Blocks,
    entries: Entries,
    lines: NDArray[np.uint64],
    events: Events,
    first: int,
    last: int,
    start: NDArray[np.int64],
    reaching: NDArray[np.int32],
    died: NDArray[np.uint32],
    snapshot: int,
    counters: NDArray[np.int64],
) -> Pairs:
    """Matches of the events [first, last), block by block; `start` and `reaching` are what `reach_events` gave."""
    width = blocks.edges.shape[0] + 2
    cells = np.empty((last - first, width), np.uint8)
    thresholds = np.empty((last - first, 4), packed.box.dtype)
    for event in range(first, last):
        event_cells(blocks, events, event, cells[event - first])
        box_thresholds(events.box, event, packed.place[0], thresholds[event - first])
    left = np.empty(WORDS, np.uint64)
    out_event, out_clause = np.empty(4096, np.int32), np.empty(4096, np.int32)
    count = 0
    for block in range(blocks.best.size):
        for i in range(start[block], start[block + 1]):
            event = wide(reaching[i])
            if not survive(blocks, entries, lines, block, events, event, cells[event - first], left):
                continue
            out_event, out_clause = grown(out_event, count, 64 * WORDS), grown(out_clause, count, 64 * WORDS)
            slot, marks = wide(blocks.start[block]), thresholds[event - first]
            end = verify_block(packed, slot, left, events, event, marks, died, snapshot, out_clause, count, counters)
            out_event[count:end] = event
            count = end
    counters[0] += start[-1]
    counters[2] += count
    return out_event[:count].copy(), out_clause[:count].copy()


@kernel
def match_event(
    packed: Packed,
    blocks: Blocks,
    entries: Entries,
    lines: NDArray[np.uint64],
    events: Events,
    event: int,
    died: NDArray[np.uint32],
    snapshot: int,
    counters: NDArray[np.int64],
) -> NDArray[np.int32]:
    cells = np.empty(blocks.edges.shape[0] + 2, np.uint8)
    thresholds = np.empty(4, packed.box.dtype)
    event_cells(blocks, events, event, cells)
    box_thresholds(events.box, event, packed.place[0], thresholds)
    left = np.empty(WORDS, np.uint64)
    reached = np.empty(blocks.best.size, np.int32)
    out = np.empty(1024, np.int32)
    count = reaches = 0
    for group in range(blocks.group_key.size):
        reaches = reach_group(blocks, group, events, event, reached, reaches)
    for i in range(reaches):
        block = wide(reached[i])
        if survive(blocks, entries, lines, block, events, event, cells, left):
            out = grown(out, count, 64 * WORDS)
            slot = wide(blocks.start[block])
            count = verify_block(packed, slot, left, events, event, thresholds, died, snapshot, out, count, counters)
    counters[0] += reaches
    counters[2] += count
    return out[:count]


@kernel
def offer(
    top_score: NDArray[np.float64],
    top_tie: NDArray[np.int64],
    top_clause: NDArray[np.int32],
    used: int,
    score: float,
    tie: int,
    clause: int,
) -> int:
    """Put a clause into its place among the best so far, unless its owner (the tie) stands there already; how many stand now."""
    at = used
    while at > 0 and (top_score[at - 1] < score or (top_score[at - 1] == score and top_tie[at - 1] > tie)):
        at -= 1
    if at == top_score.size or (at > 0 and top_score[at - 1] == score and top_tie[at - 1] == tie):
        return used
    used = min(used + 1, top_score.size)
    for i in range(used - 1, at, -1):
        top_score[i], top_tie[i], top_clause[i] = top_score[i - 1], top_tie[i - 1], top_clause[i - 1]
    top_score[at], top_tie[at], top_clause[at] = score, tie, clause
    return used


@kernel
def offer_block(
    packed: Packed,
    first: int,
    left: NDArray[np.uint64],
    events: Events,
    event: int,
    thresholds: NDArray[np.signedinteger],
    score: NDArray[np.float64],
    tie: NDArray[np.int64],
    died: NDArray[np.uint32],
    snapshot: int,
    top_score: NDArray[np.float64],
    top_tie: NDArray[np.int64],
    top_clause: NDArray[np.int32],
    used: int,
    counters: NDArray[np.int64],
    ordered: bool,
) -> int:
    """Offer what is left of a block, until, in a block ordered by score, the score falls below the last of a full top."""
    for w in range(WORDS):
        bits = left[w]
        while bits != 0:
            slot = first + (w << 6) + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            owner = packed.owner[slot]
            if used == top_score.size and score[owner] < top_score[-1]:
                if ordered:
                    return used
                continue
            counters[1] += 1
            if holds(packed, slot, events, event, thresholds) and not dead(packed, slot, died, snapshot):
                used = offer(top_score, top_tie, top_clause, used, score[owner], tie[owner], packed.row[slot])
    return used


@kernel
def topk_events(
    packed: Packed,
    blocks: Blocks,
    entries: Entries,
    lines: NDArray[np.uint64],
    events: Events,
    k: int,
    score: NDArray[np.float64],
    tie: NDArray[np.int64],
    died: NDArray[np.uint32],
    snapshot: int,
    counters: NDArray[np.int64],
) -> Pairs:
    m = events.box.shape[0] if k > 0 else 0
    top_score, top_tie, top_clause = np.empty(k), np.empty(k, np.int64), np.empty(k, np.int32)
    cells = np.empty(blocks.edges.shape[0] + 2, np.uint8)
    thresholds = np.empty(4, packed.box.dtype)
    left, reached = np.empty(WORDS, np.uint64), np.empty(blocks.best.size, np.int32)
    out_event, out_clause = np.empty(4096, np.int32), np.empty(4096, np.int32)
    count = 0
    for event in range(m):
        event_cells(blocks, events, event, cells)
        box_thresholds(events.box, event, packed.place[0], thresholds)
        used = 0
        for group in range(blocks.group_key.size):
            if used == k and blocks.group_best[group] < top_score[-1]:
                continue
            reaches = reach_group(blocks, group, events, event, reached, 0)
            counters[0] += reaches
            for i in range(reaches):
                block = wide(reached[i])
                if used == k and blocks.best[block] < top_score[-1]:
                    continue
                if survive(blocks, entries, lines, block, events, event, cells, left):
                    top = (top_score, top_tie, top_clause, used, counters, blocks.best[block] < np.inf)
                    verified = (left, events, event, thresholds, score, tie, died, snapshot)
                    used = offer_block(packed, wide(blocks.start[block]), *verified, *top)
        out_event, out_clause = grown(out_event, count, used), grown(out_clause, count, used)
        out_event[count : count + used] = event
        out_clause[count : count + used] = top_clause[:used]
        count += used
    counters[2] += count
    return out_event[:count].copy(), out_clause[:count].copy()
