"""The k best of place blocks: tiers in order of score, and in each the blocks that an event touches. See `places` for the arrays.

Events are taken in the order of their places, so that the blocks that one has read are at hand for the next.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import inlined, kernel
from tidings.compiling.pinned import Pinned, opened
from tidings.index.blocks.bitmap_topk import Top, listed, offer
from tidings.index.blocks.lanes import Lanes
from tidings.index.blocks.place_match import Asked, Pairs, Placed, ask, left_in_block, reach
from tidings.index.packed.record import Deaths, Events, Packed, Ranking, dead, holds
from tidings.index.packed.simd import trailing_zeros, wide
from tidings.index.packed.types import Int32, Int64, Uint32


@kernel
def reach_blocks(lanes: Lanes, events: Events, event: int) -> Int32:
    """The blocks that an event's place touches."""
    box, reached = np.empty((1, 4), np.float32), np.empty(lanes.best.size + 1, np.int32)
    for side in range(4):
        box[0, side] = np.float32(events.box[event, side])
    return reached[: reach(lanes, 0, lanes.best.size, box, 0, reached)]


@kernel
def count_reached(lanes: Lanes, events: Events, probed: int) -> int:
    """How many blocks the first `probed` events touch, in all."""
    count, box, reached = 0, np.empty((1, 4), np.float32), np.empty(lanes.best.size + 1, np.int32)
    for event in range(probed):
        for side in range(4):
            box[0, side] = np.float32(events.box[event, side])
        count += reach(lanes, 0, lanes.best.size, box, 0, reached)
    return count


@inlined
def offer_left(
    packed: Packed,
    first: int,
    left: np.uint64,
    events: Events,
    event: int,
    asked: Asked,
    ranking: Ranking,
    deaths: Deaths,
    top: Top,
    row: int,
    counters: Int64,
) -> None:
    """Offer the slots left of the block that begins at `first` whose clauses hold to the best of the row."""
    used, k, score, tie = top.used[row], top.score.shape[1], ranking.score, ranking.tie
    while left != 0:
        slot = first + trailing_zeros(left)
        left &= left - np.uint64(1)
        owner = packed.owner[slot]
        if used == k and score[owner] < top.score[row, k - 1]:
            continue
        counters[1] += 1
        if holds(packed, slot, events, event, asked.thresholds, 0) and not dead(packed, slot, deaths):
            used = offer(top.score[row], top.tie[row], top.clause[row], used, score[owner], tie[owner], packed.row[slot])
    top.used[row] = used


@kernel
def topk_events(
    packed: Packed,
    lanes: Lanes,
    events: Events,
    first: int,
    order: Int32,
    k: int,
    ranking: Ranking,
    deaths: Deaths,
    counters: Int64,
) -> Pairs:
    """(event, clause) of the k > 0 best owners of each event of `order`, best first, which are those from `first` on."""
    m = order.size
    top = Top(np.zeros(m, np.int64), np.empty((m, k)), np.empty((m, k), np.int64), np.empty((m, k), np.int32))
    asked = Asked(np.empty((1, 4), np.float32), np.empty((1, lanes.edges.shape[0]), np.int8), np.empty((1, 4), packed.box.dtype))
    reached = np.empty(lanes.best.size + 1, np.int32)
    for event in order:
        row = event - first
        ask(packed, lanes, events, event, asked, 0)
        for tier in range(lanes.tier_best.size):
            if top.used[row] == k and lanes.tier_best[tier] < top.score[row, k - 1]:
                break
            reaches = reach(lanes, wide(lanes.tier_block[tier]), wide(lanes.tier_block[tier + 1]), asked.box, 0, reached)
            counters[0] += reaches
            for i in range(reaches):
                block = wide(reached[i])
                if top.used[row] < k or lanes.best[block] >= top.score[row, k - 1]:
                    left = left_in_block(lanes, block, asked, 0)
                    slot = wide(lanes.start[block])
                    offer_left(packed, slot, left, events, event, asked, ranking, deaths, top, row, counters)
    counters[2] += top.used.sum()
    return listed(top, first)


@kernel
def topk_event(
    placed: Pinned[Placed], single: Pinned[Events], k: int, ranking: Pinned[Ranking], died: Uint32, snapshot: int
) -> Int32:
    """The same of the one event that is asked about: clauses, best first."""
    packed, lanes, counters = opened(placed)
    itself, deaths = np.zeros(1, np.int32), Deaths(died, snapshot)
    return topk_events(packed, lanes, opened(single), 0, itself, k, opened(ranking), deaths, counters)[1]
