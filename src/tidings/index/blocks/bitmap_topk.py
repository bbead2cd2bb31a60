"""The k best of block bitmaps: groups in order of score, a block for all events that reach it. See `bitmaps` for the arrays.

An event keeps its best so far in a row of `Top`, and is *open* for a group while it has fewer than k or the group's best score is
not below its last. Group by group, the blocks that open events reach are read in order, each for all of them: its lines, boxes
and scores come from memory once a batch and not once an event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.compiling.pinned import Pinned, opened
from tidings.index.blocks.bitmap_match import Bitmaps, Blocks, Pairs, by_block, event_cells, key_cells, reach_pairs, survive
from tidings.index.blocks.layout import BLOCK
from tidings.index.blocks.lines import WORDS, Entries
from tidings.index.packed.record import Deaths, Events, Packed, Ranking, box_thresholds, dead, record_holds
from tidings.index.packed.simd import trailing_zeros, wide
from tidings.index.packed.types import Float64, Int32, Int64, Signed, Uint32, Uint64


class Top(NamedTuple):
    """The best so far of each event, best first, by owner: used[row] of its k places."""

    used: Int64
    score: Float64
    tie: Int64
    clause: Int32


@inlined
def offer(top_score: Float64, top_tie: Int64, top_clause: Int32, used: int, score: float, tie: int, clause: int) -> int:
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


@inlined
def boxes_left(packed: Packed, first: int, left: Uint64, thresholds: Signed, row: int, slots: Int32, counters: Int64) -> int:
    """Write the slots left of the block that begins at `first` whose boxes touch the event's to `slots`, in order; how many.

    Half of them fail, no saying which: without a branch for it a slot costs half.
    """
    box, count = packed.box, 0
    west, south, east, north = thresholds[row, 0], thresholds[row, 1], thresholds[row, 2], thresholds[row, 3]
    boxed = box.shape[1] > 0
    for w in range(WORDS):
        bits = left[w]
        while bits != 0:
            slot = first + (w << 6) + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            slots[count] = slot
            counters[1] += 1
            if boxed:
                count += (box[0, slot] <= west) & (box[1, slot] <= south) & (east <= box[2, slot]) & (north <= box[3, slot])
            else:
                count += 1
    return count


@inlined
def offer_slots(
    packed: Packed, slots: Int32, events: Events, event: int, row: int, ranking: Ranking, deaths: Deaths, top: Top, ordered: bool
) -> None:
    """Offer the slots that hold, until, if they are `ordered` by score, the score falls below the last of a full top."""
    used, k, score, tie = top.used[row], top.score.shape[1], ranking.score, ranking.tie
    for slot in slots:
        owner = packed.owner[slot]
        if used == k and score[owner] < top.score[row, k - 1]:
            if ordered:
                break
        elif record_holds(packed, slot, events, event) and not dead(packed, slot, deaths):
            used = offer(top.score[row], top.tie[row], top.clause[row], used, score[owner], tie[owner], packed.row[slot])
    top.used[row] = used


@kernel
def topk_events(
    packed: Packed,
    blocks: Blocks,
    entries: Entries,
    lines: Uint64,
    events: Events,
    first: int,
    last: int,
    k: int,
    ranking: Ranking,
    deaths: Deaths,
    counters: Int64,
) -> Pairs:
    """(event, clause) of the k > 0 best owners of each of the events [first, last), best first."""
    m = last - first
    top = Top(np.zeros(m, np.int64), np.empty((m, k)), np.empty((m, k), np.int64), np.empty((m, k), np.int32))
    cells, boxed = np.empty((m, 2, 3 * blocks.edges.shape[0] + 2), np.uint8), False
    thresholds = np.empty((m, 4), packed.box.dtype)
    for row in range(m):
        boxed |= event_cells(blocks, events, first + row, cells, row)
        box_thresholds(events.box, first + row, packed.place[0], thresholds, row)
    left, still_open, slots = np.empty(WORDS, np.uint64), np.empty(m, np.int32), np.empty(BLOCK, np.int32)
    for group in range(blocks.group_key.size):
        opened = 0
        for row in range(m):
            if top.used[row] < k or blocks.group_best[group] >= top.score[row, k - 1]:
                still_open[opened] = first + row
                opened += 1
        pair_block, pair_event = reach_pairs(blocks, (group, group + 1), events, still_open[:opened])
        low = wide(blocks.group_block[group])
        start, event_of = by_block(low, blocks.group_block[group + 1], pair_block, pair_event)
        counters[0] += pair_block.size
        for block in range(low, blocks.group_block[group + 1]):
            reaching = event_of[start[block - low] : start[block - low + 1]]
            key_cells(blocks, entries, block, events, reaching, first, cells)
            for event in reaching:
                row = event - first
                if top.used[row] == k and blocks.best[block] < top.score[row, k - 1]:
                    continue
                if survive(blocks, entries, lines, block, cells, row, boxed, left):
                    count = boxes_left(packed, wide(blocks.start[block]), left, thresholds, row, slots, counters)
                    # Without scores a block's best is inf, and its slots stand in no order.
                    ordered = blocks.best[block] < np.inf
                    offer_slots(packed, slots[:count], events, event, row, ranking, deaths, top, ordered)
    counters[2] += top.used.sum()
    return listed(top, first)


@kernel
def topk_event(
    bitmaps: Pinned[Bitmaps], asked: Pinned[Events], k: int, ranking: Pinned[Ranking], died: Uint32, snapshot: int
) -> Int32:
    """The same of the one event that is asked about: clauses, best first."""
    packed, blocks, entries, lines, counters = opened(bitmaps)
    deaths = Deaths(died, snapshot)
    return topk_events(packed, blocks, entries, lines, opened(asked), 0, 1, k, opened(ranking), deaths, counters)[1]


@kernel
def listed(top: Top, first: int) -> Pairs:
    """Every row's best, row by row; row 0 is event `first`."""
    event, clause = np.empty(top.used.sum(), np.int32), np.empty(top.used.sum(), np.int32)
    at = 0
    for row in range(top.used.size):
        end = at + top.used[row]
        event[at:end], clause[at:end] = first + row, top.clause[row, : end - at]
        at = end
    return event, clause
