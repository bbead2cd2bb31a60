"""Fagin's Threshold Algorithm over d ranked lists, and the intersection of d lists in one order.

Relaxed matching: list j gives the subscriptions whose dimension j holds, by weight there; a subscription's score is a monotone
aggregate of its held weights. The lists are read in turn; whatever appears is looked up in all dimensions at once (random
access); the k best are kept; and reading stops when the k-th is better than the threshold, the most that a subscription not met
yet can score given where the lists stand. Exact matching: every list has the same order, and what stands in all of them is the
answer.

Lists are iterators, so any index will do. `threshold_prefixes` is the compiled form, over the first entries of each list.
[ranked, sections 1 and 4]

Ties. At a threshold equal to the k-th score an unseen subscription may still tie with a smaller number, so reading goes on
until the threshold is below it; the answer is then the k best by (score desc, number asc), exactly.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.rank.aggregates import aggregate_code, start, take_in, threshold
from tidings.rank.bounded_heap import accepts, offer_distinct

Float64 = NDArray[np.float64]


def threshold_topk(
    lists: Sequence[Iterator[int]], held_weights: Callable[[int], Sequence[float]], k: int, aggregate: str = "sum"
) -> tuple[list[tuple[int, float]], int]:
    """([(number, score)] best first, how many entries were read).

    `held_weights(number)` gives the weight of every dimension, NaN where it does not hold. [ranked, section 4]
    """
    code = aggregate_code(aggregate)
    bounds = np.full(max(len(lists), 1), math.inf if lists else -math.inf)
    heap: list[tuple[float, int]] = []
    seen: set[int] = set()
    reads = 0
    open_lists = dict(enumerate(lists)) if k > 0 else {}
    while open_lists:
        for dimension, entries in list(open_lists.items()):
            number = next(entries, None)
            if number is None:
                bounds[dimension] = -math.inf
                del open_lists[dimension]
                continue
            reads += 1
            weights = held_weights(number)
            bounds[dimension] = weights[dimension]
            if number not in seen:
                seen.add(number)
                _keep(heap, k, (_score(code, weights), -number))
        if len(heap) == k and heap[0][0] > threshold(code, bounds):
            break
    return [(-negative, score) for score, negative in sorted(heap, reverse=True)], reads


def _score(aggregate: int, weights: Sequence[float]) -> float:
    score = start(aggregate)
    for weight in weights:
        if not math.isnan(weight):
            score = take_in(aggregate, score, weight)
    return score


def _keep(heap: list[tuple[float, int]], k: int, entry: tuple[float, int]) -> None:
    if len(heap) < k:
        heapq.heappush(heap, entry)
    else:
        heapq.heappushpop(heap, entry)


def intersect(lists: Sequence[Iterator[int]], key: Callable[[int], tuple[float, int]], k: int) -> list[int]:
    """The first k numbers that stand in every list; all lists ascend by `key`, for example (-score, number). [ranked, section 1]"""
    found: list[int] = []
    heads = [next(entries, None) for entries in lists]
    while heads and len(found) < k:
        if any(head is None for head in heads):
            break
        furthest = max(key(head) for head in heads if head is not None)
        behind = [at for at, head in enumerate(heads) if head is not None and key(head) < furthest]
        if not behind and heads[0] is not None:
            found.append(heads[0])
            behind = list(range(len(heads)))
        for at in behind:
            heads[at] = next(lists[at], None)
    return found


@kernel
def threshold_prefixes(
    prefixes: NDArray[np.int64],
    lo: Float64,
    hi: Float64,
    weight: Float64,
    q: Float64,
    aggregate: int,
    scores: Float64,
    numbers: NDArray[np.int64],
) -> tuple[int, int, bool]:
    """The Threshold Algorithm over the first m entries of each list: (how many found, entries read, whether that is the answer).

    `prefixes` is d x m, -1 after the end of a list; `lo`, `hi` and `weight` are d x n by number; `scores` and `numbers` become a
    bounded heap. When a list goes on beyond its prefix and the threshold has not been reached, longer prefixes are needed.
    """
    d, m = prefixes.shape
    bounds = np.full(d, np.inf)
    size, reads = 0, 0
    for depth in range(m):
        for dimension in range(d):
            number = prefixes[dimension, depth]
            if number < 0:
                bounds[dimension] = -np.inf
                continue
            reads += 1
            bounds[dimension] = weight[dimension, number]
            score = start(aggregate)
            for other in range(d):
                if lo[other, number] <= q[other] <= hi[other, number]:
                    score = take_in(aggregate, score, weight[other, number])
            if accepts(scores, numbers, size, score, number):
                size = offer_distinct(scores, numbers, size, score, number)
        limit = threshold(aggregate, bounds)
        if limit == -np.inf or (size == scores.size and (size == 0 or scores[0] > limit)):
            return size, reads, True
    return size, reads, bool(bounds.max() == -np.inf)
