"""A priority queue for best-first searches: the entry with the greatest (bound, then least tie) comes out first.

Layout: `bound` float64, `tie` int64 and `entry` int64 of one capacity, used up to `size`, which the caller keeps; a binary heap
with the best on top.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.rank.bounded_heap import better

Queue = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]
"""bound, tie, entry"""


def new_queue(capacity: int) -> Queue:
    return np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64)


@kernel
def push(queue: Queue, size: int, bound: float, tie: int, entry: int) -> int:
    """The new size."""
    bounds, ties, entries = queue
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if not better(bound, tie, bounds[parent], ties[parent]):
            break
        bounds[at], ties[at], entries[at] = bounds[parent], ties[parent], entries[parent]
        at = parent
    bounds[at], ties[at], entries[at] = bound, tie, entry
    return size + 1


@kernel
def pop(queue: Queue, size: int) -> int:
    """Take the best away (read it before: it is at place 0); the new size."""
    bounds, ties, entries = queue
    size -= 1
    bound, tie, entry = bounds[size], ties[size], entries[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and better(bounds[child + 1], ties[child + 1], bounds[child], ties[child]):
            child += 1
        if not better(bounds[child], ties[child], bound, tie):
            break
        bounds[at], ties[at], entries[at] = bounds[child], ties[child], entries[child]
        at = child
    bounds[at], ties[at], entries[at] = bound, tie, entry
    return size
