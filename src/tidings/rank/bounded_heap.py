"""The k best of a stream, by (score desc, number asc): a binary heap of at most k entries with the worst on top.

Layout: `score` float64[k] and `number` int64[k], used up to `size`, which the caller keeps. Entry i is not better than its children
2i + 1 and 2i + 2. An offer costs one comparison when it is refused, O(log k) when it is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel

Scores = NDArray[np.float64]
Numbers = NDArray[np.int64]


@kernel
def better(score: float, number: int, than_score: float, than_number: int) -> bool:
    return score > than_score or (score == than_score and number < than_number)


@kernel
def accepts(scores: Scores, numbers: Numbers, size: int, score: float, number: int) -> bool:
    """Whether an offer of (score, number) would be taken."""
    if size < scores.size:
        return True
    return scores.size > 0 and better(score, number, scores[0], numbers[0])


@kernel
def offer(scores: Scores, numbers: Numbers, size: int, score: float, number: int) -> int:
    """Take (score, number) if it is among the best; the new size."""
    if not accepts(scores, numbers, size, score, number):
        return size
    if size < scores.size:
        at = size
        while at > 0:
            parent = (at - 1) >> 1
            if not better(scores[parent], numbers[parent], score, number):
                break
            scores[at], numbers[at] = scores[parent], numbers[parent]
            at = parent
        scores[at], numbers[at] = score, number
        return size + 1
    _sink(scores, numbers, size, 0, score, number)
    return size


@kernel
def offer_distinct(scores: Scores, numbers: Numbers, size: int, score: float, number: int) -> int:
    """Like `offer`, for streams in which a number may come again: only its best offer counts. O(k)."""
    for at in range(size):
        if numbers[at] == number:
            if score > scores[at]:
                _sink(scores, numbers, size, at, score, number)
            return size
    return offer(scores, numbers, size, score, number)


@kernel
def _sink(scores: Scores, numbers: Numbers, size: int, at: int, score: float, number: int) -> None:
    """Put (score, number), which is better, in place of the entry at `at`."""
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and better(scores[child], numbers[child], scores[child + 1], numbers[child + 1]):
            child += 1
        if not better(score, number, scores[child], numbers[child]):
            break
        scores[at], numbers[at] = scores[child], numbers[child]
        at = child
    scores[at], numbers[at] = score, number


@kernel
def sort_best_first(scores: Scores, numbers: Numbers, size: int) -> None:
    """Turn the heap into a list, best first; it is no heap afterwards."""
    for end in range(size - 1, 0, -1):
        score, number = scores[end], numbers[end]
        scores[end], numbers[end] = scores[0], numbers[0]
        _sink(scores, numbers, end, 0, score, number)
