"""Tokens of tree nodes: one hash table for the token sets and inverted lists of a whole R^t tree.

The paper gives every node a hash table from token to how many subscriptions below contain it, and in R^t++ an inverted list of
them. Here all nodes share one open-addressing table keyed by (node, token), so that a node costs nothing when it has no tokens.

| array     | shape, dtype     | meaning                                                                                    |
|-----------|------------------|--------------------------------------------------------------------------------------------|
| `key`     | capacity, int64  | node << 32 \\| token; NONE where the slot is free                                      |
| `held`    | capacity, int32  | entries below the node that have the token there; 0 is a key waiting for the next rehash    |
| `start`   | capacity, int32  | the inverted list is posting[start:start + held]; length 0 where lists are not kept         |
| `posting` | room, int32      | entries of the inverted lists                                                              |
| `state`   | 3, int64         | KEYS taken slots, ROOM_USED end of the used postings, LONGEST list since the last rehash    |

Invariants: taken slots are found by linear probing from the hash's share of the capacity; at most `FULL` of them are taken; a list
has room for the next power of two of its length, so an append moves it only when the length is a power of two, and what it leaves
is reclaimed by the next rehash. Cost: O(1) expected per lookup, count and append; O(list) to remove from a list, by one pass over
contiguous int32.

Deviation from the paper: lists are contiguous arrays, not hash tables, because reading them is what matching does all day.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Int32, Int64

KEYS, ROOM_USED, LONGEST = 0, 1, 2
FULL = 0.6


class Tokens(NamedTuple):
    state: Int64
    key: Int64
    held: Int32
    start: Int32
    posting: Int32

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


def empty_tokens(keys: int, room: int, lists: bool) -> Tokens:
    """A table with space for `keys` keys and, with `lists`, for `room` postings."""
    capacity = int(keys / FULL) + 8
    return Tokens(
        state=np.zeros(3, np.int64),
        key=np.full(capacity, NONE, np.int64),
        held=np.zeros(capacity, np.int32),
        start=np.zeros(capacity if lists else 0, np.int32),
        posting=np.empty(room, np.int32),
    )


def with_space(tokens: Tokens, keys: int, room: int) -> Tokens:
    """`tokens` if `keys` more keys and `room` more postings fit, else a table that holds them, without dead keys and holes."""
    fits = tokens.state[KEYS] + keys <= FULL * len(tokens.key)
    if fits and tokens.state[ROOM_USED] + room <= len(tokens.posting):
        return tokens
    live = int(np.count_nonzero(tokens.held))
    lists = len(tokens.start) > 0
    used = int(rooms(tokens.held)) if lists else 0
    bigger = empty_tokens(max(live + keys, live * 3 // 2), max(used + room, used * 5 // 4) if lists else 0, lists)
    rehash(tokens, bigger)
    return bigger


def trimmed(tokens: Tokens) -> Tokens:
    """The same table in the least space, for one that will hardly change."""
    lists = len(tokens.start) > 0
    smallest = empty_tokens(int(np.count_nonzero(tokens.held)), int(rooms(tokens.held)) if lists else 0, lists)
    rehash(tokens, smallest)
    return smallest


@borrowing_kernel
def key_of(node: int, token: int) -> int:
    return wide(node) << 32 | wide(token)


@borrowing_kernel
def probe_start(key: int, capacity: int) -> int:
    """The slot where probing for `key` begins."""
    mixed = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return wide((mixed * np.uint64(capacity)) >> np.uint64(32))


@borrowing_kernel
def probe(tokens: Tokens, key: int) -> int:
    """The slot of `key`, or the free slot where it would stand: some are always free (FULL)."""
    slot = probe_start(key, len(tokens.key))
    while tokens.key[slot] != NONE and tokens.key[slot] != key:
        slot += 1
        if slot == len(tokens.key):
            slot = 0
    return slot


@borrowing_kernel
def find(tokens: Tokens, key: int) -> int:
    """The slot of `key`, or NONE."""
    slot = probe(tokens, key)
    return slot if tokens.key[slot] == key else NONE


@borrowing_kernel
def claim(tokens: Tokens, key: int) -> int:
    """The slot of `key`, taken if it was free."""
    slot = probe(tokens, key)
    if tokens.key[slot] == NONE:
        tokens.key[slot] = key
        tokens.state[KEYS] += 1
    return slot


@borrowing_kernel
def has_any(tokens: Tokens, node: int, words: Int32) -> bool:
    """Whether the node's token set shares a token with the message. [rttree, MBRTokenFilter]"""
    for token in words:
        slot = find(tokens, key_of(node, token))
        if slot >= 0 and tokens.held[slot] > 0:
            return True
    return False


@borrowing_kernel
def room_for(count: int) -> int:
    """The postings that a list of `count` occupies: the next power of two."""
    room = 1
    while room < count:
        room *= 2
    return room


@kernel
def rooms(count: Int32) -> int:
    total = 0
    for length in count:
        if length > 0:
            total += room_for(length)
    return total


@borrowing_kernel
def append(tokens: Tokens, key: int, entry: int) -> None:
    """Count the entry under the key and, where lists are kept, add it to the list. Space must be there."""
    slot = claim(tokens, key)
    length = tokens.held[slot]
    tokens.held[slot] = length + 1
    if len(tokens.start) == 0:
        return
    start = np.int64(tokens.start[slot])
    if length == 0 or room_for(length) == length:
        end = tokens.state[ROOM_USED]
        for at in range(length):
            tokens.posting[end + at] = tokens.posting[start + at]
        tokens.state[ROOM_USED] = end + room_for(length + 1)
        tokens.start[slot] = end
        start = end
    tokens.posting[start + length] = entry
    tokens.state[LONGEST] = max(tokens.state[LONGEST], length + 1)


@borrowing_kernel
def remove(tokens: Tokens, key: int, entry: int) -> None:
    """Undo `append`; the list's last entry takes the place of the one that leaves."""
    slot = find(tokens, key)
    length = tokens.held[slot] - 1
    tokens.held[slot] = length
    if len(tokens.start) == 0:
        return
    start = np.int64(tokens.start[slot])
    at = start
    while tokens.posting[at] != entry:
        at += 1
    tokens.posting[at] = tokens.posting[start + length]


@kernel
def rehash(old: Tokens, new: Tokens) -> None:
    """Bring the live keys and lists of `old` into the empty `new`."""
    lists = len(old.start) > 0
    for slot in range(len(old.key)):
        length = old.held[slot]
        if length == 0:
            continue
        to = claim(new, old.key[slot])
        new.held[to] = length
        if lists:
            start, end = np.int64(old.start[slot]), new.state[ROOM_USED]
            new.posting[end : end + length] = old.posting[start : start + length]
            new.start[to] = end
            new.state[ROOM_USED] = end + room_for(length)
            new.state[LONGEST] = max(new.state[LONGEST], length)


@kernel
def lay_out_lists(tokens: Tokens) -> None:
    """Give each key a list with room for its count and set the counts to zero; `fill` then fills the lists."""
    end = 0
    for slot in range(len(tokens.key)):
        if tokens.held[slot] > 0:
            tokens.start[slot] = end
            end += room_for(tokens.held[slot])
            tokens.state[LONGEST] = max(tokens.state[LONGEST], tokens.held[slot])
            tokens.held[slot] = 0
    tokens.state[ROOM_USED] = end


@borrowing_kernel
def fill(tokens: Tokens, key: int, entry: int) -> None:
    """Append to a list that `lay_out_lists` has given its room."""
    slot = find(tokens, key)
    tokens.posting[np.int64(tokens.start[slot]) + tokens.held[slot]] = entry
    tokens.held[slot] += 1


def check_tokens(tokens: Tokens, expected: Tokens) -> None:
    """That both tables hold the same counts and lists."""
    assert tokens.state[KEYS] == np.count_nonzero(tokens.key != NONE) <= FULL * len(tokens.key)
    assert _content(tokens) == _content(expected)


def _content(tokens: Tokens) -> dict[int, tuple[int, list[int]]]:
    live = np.flatnonzero(tokens.held)
    assert (tokens.held >= 0).all()
    if not len(tokens.start):
        return {int(tokens.key[slot]): (int(tokens.held[slot]), []) for slot in live}
    ends = tokens.start[live].astype(np.int64) + tokens.held[live]
    assert (ends <= tokens.state[ROOM_USED]).all()
    return {
        int(tokens.key[slot]): (int(tokens.held[slot]), sorted(tokens.posting[end - tokens.held[slot] : end].tolist()))
        for slot, end in zip(live, ends, strict=True)
    }
