"""The kernels of word blocks: find lists, test 64 boxes and signatures at once, verify. See `words` for the arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.compiling.pinned import Pinned, opened
from tidings.index.blocks.bitmap_topk import offer
from tidings.index.packed.groups import grown
from tidings.index.packed.record import Deaths, Events, Packed, Ranking, box_thresholds, dead, record_holds
from tidings.index.packed.simd import disjoint64, overlap64, trailing_zeros, wide
from tidings.index.packed.types import Int32, Int64, Signed, Uint32

SHORT = 8
"""Fewer slots than this are tested one by one."""
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Lists(NamedTuple):
    """See `words`."""

    table: Int32
    signature: Uint32
    bound: Signed


class Message(NamedTuple):
    """One event as lists are scanned for it: its `box_thresholds` (1 x 4), and the bits that no word of it has."""

    events: Events
    event: int
    thresholds: Signed
    lacking: np.uint32


@inlined
def slot_of_word(table: Int32, word: int) -> int:
    """The word's place in the table, or the free place where it would stand."""
    mask = table.shape[0] - 1
    at: int = wide((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
    while table[at, 0] != word and table[at, 0] != -1:
        at = (at + 1) & mask
    return at


@inlined
def word_bit(word: int) -> np.uint32:
    """One of 32 bits for a word."""
    return np.uint32(1) << np.uint32((np.uint64(word) * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)) >> np.uint64(27))


@inlined
def touching(box: Signed, at: int, count: int, thresholds: Signed) -> np.uint64:
    """Bit i: box at + i touches the event's, i < count <= 64."""
    n = box.shape[1]
    if count < SHORT or n < 64:
        hits = np.uint64(0)
        for i in range(count):
            low = box[0, at + i] <= thresholds[0, 0] and box[1, at + i] <= thresholds[0, 1]
            if low and thresholds[0, 2] <= box[2, at + i] and thresholds[0, 3] <= box[3, at + i]:
                hits |= np.uint64(1) << np.uint64(i)
        return hits
    # 64 are read in any case: near the end of the array from n - 64 on, and what lies before `at` is shifted out.
    base = min(at, n - 64)
    hits = overlap64(box[0], box[2], base, thresholds[0, 2], thresholds[0, 0])
    hits &= overlap64(box[1], box[3], base, thresholds[0, 3], thresholds[0, 1])
    return hits >> np.uint64(at - base) & ALL >> np.uint64(64 - count)


@inlined
def unrefused(signature: Uint32, at: int, count: int, lacking: np.uint32) -> np.uint64:
    """Bit i: the signature at + i asks for no bit that the event lacks, i < count <= 64."""
    n = signature.size
    if count < SHORT or n < 64:
        hits = np.uint64(0)
        for i in range(count):
            if signature[at + i] & lacking == 0:
                hits |= np.uint64(1) << np.uint64(i)
        return hits
    base = min(at, n - 64)
    return disjoint64(signature, base, lacking) >> np.uint64(at - base) & ALL >> np.uint64(64 - count)


@inlined
def scan_slots(packed: Packed, lists: Lists, at: int, count: int, message: Message, out: Int32, used: int, counters: Int64) -> int:
    """Append the slots of [at, at + count) that hold; how many stand in `out` now."""
    hits = unrefused(lists.signature, at, count, message.lacking)
    counters[0] += count
    if hits != 0 and packed.box.shape[1] > 0:
        hits &= touching(packed.box, at, count, message.thresholds)
    while hits != 0:
        slot = at + trailing_zeros(hits)
        hits &= hits - np.uint64(1)
        counters[1] += 1
        if record_holds(packed, slot, message.events, message.event):
            out[used] = slot
            used += 1
    return used


@inlined
def scan_list(packed: Packed, lists: Lists, first: int, end: int, message: Message, out: Int32, used: int, counters: Int64) -> int:
    """Append the slots of a list that hold, block by block; how many stand in `out` now. It has room for the whole list."""
    block, last_block = first >> 6, (end - 1) >> 6
    narrowed = lists.bound.shape[1] > 0 and last_block - block > 1
    while block <= last_block:
        count = min(64, last_block - block + 1)
        hits = touching(lists.bound, block, count, message.thresholds) if narrowed else ALL >> np.uint64(64 - count)
        while hits != 0:
            reached = block + trailing_zeros(hits)
            hits &= hits - np.uint64(1)
            # The first and the last block of a list may hold slots of its neighbours.
            at = max(first, reached << 6)
            size = min(end, (reached << 6) + 64) - at
            used = scan_slots(packed, lists, at, size, message, out, used, counters)
        block += count
    return used


@kernel
def scan_event(
    packed: Packed,
    lists: Lists,
    events: Events,
    event: int,
    thresholds: Signed,
    deaths: Deaths,
    out: Int32,
    used: int,
    counters: Int64,
) -> tuple[Int32, int]:
    """Append the living slots that hold for the event; `thresholds` (1 x 4) is scratch."""
    box_thresholds(events.box, event, packed.place[0], thresholds, 0)
    words = events.word[events.word_start[event] : events.word_start[event + 1]]
    carried = np.uint32(0)
    for i in range(words.size):
        carried |= word_bit(wide(words[i]))
    message = Message(events, event, thresholds, ~carried)
    before = used
    for i in range(words.size):
        at = slot_of_word(lists.table, words[i])
        if lists.table[at, 0] >= 0:
            first, end = wide(lists.table[at, 1]), wide(lists.table[at, 2])
            out = grown(out, used, end - first)
            used = scan_list(packed, lists, first, end, message, out, used, counters)
    if deaths.died.size > 0:
        kept = before
        for i in range(before, used):
            if not dead(packed, wide(out[i]), deaths):
                out[kept] = out[i]
                kept += 1
        used = kept
    return out, used


@kernel
def match_words(
    packed: Packed, lists: Lists, events: Events, first: int, last: int, died: Uint32, snapshot: int, counters: Int64
) -> tuple[Int32, Int32]:
    """(event row, clause row) of the matches of the events [first, last).

    `Deaths` come one by one: a tuple makes a call from Python slower by a microsecond.
    """
    deaths = Deaths(died, snapshot)
    out = np.empty(1024, np.int32)
    count = np.empty(last - first, np.int64)
    thresholds = np.empty((1, 4), packed.box.dtype)
    used = 0
    for event in range(first, last):
        before = used
        out, used = scan_event(packed, lists, events, event, thresholds, deaths, out, used, counters)
        count[event - first] = used - before
    counters[2] += used
    out_event, out_clause = np.empty(used, np.int32), np.empty(used, np.int32)
    at = 0
    for event in range(first, last):
        for _ in range(count[event - first]):
            out_event[at], out_clause[at] = event, packed.row[out[at]]
            at += 1
    return out_event, out_clause


class Worded(NamedTuple):
    """All of a structure: what a single event's call is given as one address."""

    packed: Packed
    lists: Lists
    counters: Int64


@kernel
def match_message(worded: Pinned[Worded], asked: Pinned[Events], event: int, died: Uint32, snapshot: int) -> Int32:
    """The rows that one event matches."""
    packed, lists, counters = opened(worded)
    thresholds = np.empty((1, 4), packed.box.dtype)
    deaths, room = Deaths(died, snapshot), np.empty(1024, np.int32)
    out, used = scan_event(packed, lists, opened(asked), event, thresholds, deaths, room, 0, counters)
    counters[2] += used
    for i in range(used):
        out[i] = packed.row[out[i]]
    return out[:used]


@kernel
def topk_message(
    worded: Pinned[Worded], asked: Pinned[Events], k: int, ranking: Pinned[Ranking], died: Uint32, snapshot: int
) -> Int32:
    """The clauses of the k best owners of the one event that is asked about, best first."""
    packed, lists, counters = opened(worded)
    return topk_words(packed, lists, opened(asked), k, opened(ranking), Deaths(died, snapshot), counters)[1]


@kernel
def topk_words(
    packed: Packed, lists: Lists, events: Events, k: int, ranking: Ranking, deaths: Deaths, counters: Int64
) -> tuple[Int32, Int32]:
    score, tie = ranking.score, ranking.tie
    top_score, top_tie, top_clause = np.empty(k), np.empty(k, np.int64), np.empty(k, np.int32)
    found, thresholds = np.empty(1024, np.int32), np.empty((1, 4), packed.box.dtype)
    out_event, out_clause = np.empty(4096, np.int32), np.empty(4096, np.int32)
    count = 0
    for event in range(events.box.shape[0] if k > 0 else 0):
        found, size = scan_event(packed, lists, events, event, thresholds, deaths, found, 0, counters)
        used = 0
        for i in range(size):
            owner = packed.owner[found[i]]
            if used < k or score[owner] >= top_score[-1]:
                used = offer(top_score, top_tie, top_clause, used, score[owner], tie[owner], packed.row[found[i]])
        out_event, out_clause = grown(out_event, count, used), grown(out_clause, count, used)
        out_event[count : count + used] = event
        out_clause[count : count + used] = top_clause[:used]
        count += used
    counters[2] += count
    return out_event[:count].copy(), out_clause[:count].copy()
