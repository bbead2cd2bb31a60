"""A set of small integers that finds its next and previous member: a 64-ary tree of bits.

Layout. `words` is one uint64 array, `offset` int64[levels + 1]: level l is words[offset[l]:offset[l + 1]]. Bit b of level 0 is the
membership of b; bit b of level l + 1 says whether word b of level l is not zero. The last level is one word.
Every operation touches at most one word a level: O(log64 m), four words for sixteen million members.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import leading_zeros, trailing_zeros
from tidings.index.packed.types import Int64, Uint64

Words = Uint64
Offsets = Int64


def empty_set(members: int) -> tuple[Words, Offsets]:
    """The empty set of integers below `members`."""
    sizes = [(members + 63) // 64 or 1]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 63) // 64)
    offset = np.cumsum([0, *sizes], dtype=np.int64)
    return np.zeros(offset[-1], np.uint64), offset


@kernel
def add(words: Words, offset: Offsets, member: int) -> None:
    at = member
    for level in range(offset.size - 1):
        words[offset[level] + (at >> 6)] |= np.uint64(1) << np.uint64(at & 63)
        at >>= 6


@kernel
def remove(words: Words, offset: Offsets, member: int) -> None:
    at = member
    for level in range(offset.size - 1):
        word = offset[level] + (at >> 6)
        words[word] &= ~(np.uint64(1) << np.uint64(at & 63))
        if words[word] != np.uint64(0):
            return
        at >>= 6


@kernel
def next_member(words: Words, offset: Offsets, at: int) -> int:
    """The smallest member that is not below `at`; NONE if there is none."""
    for level in range(offset.size - 1):
        word = at >> 6
        if offset[level] + word >= offset[level + 1]:
            return NONE
        rest = words[offset[level] + word] >> np.uint64(at & 63)
        if rest != np.uint64(0):
            at += trailing_zeros(rest)
            for below in range(level - 1, -1, -1):
                at = (at << 6) + trailing_zeros(words[offset[below] + at])
            return at
        at = word + 1
    return NONE


@kernel
def previous_member(words: Words, offset: Offsets, at: int) -> int:
    """The largest member that is not above `at`; NONE if there is none."""
    for level in range(offset.size - 1):
        if at < 0:
            return NONE
        word = at >> 6
        rest = words[offset[level] + word] << np.uint64(63 - (at & 63))
        if rest != np.uint64(0):
            at -= leading_zeros(rest)
            for below in range(level - 1, -1, -1):
                at = (at << 6) + 63 - leading_zeros(words[offset[below] + at])
            return at
        at = word - 1
    return NONE
