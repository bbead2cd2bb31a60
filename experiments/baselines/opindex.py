"""OpIndex (Zhang, Chan, Tan: VLDB 2014), a counting-based matcher: two levels, pivot attribute and operator.

A subscription belongs to its pivot, its least popular attribute. Under a pivot there is a list for each (attribute, operator): the
low ends of `>=` and the high ends of `<=` with their subscriptions. An event reads, under every pivot that it has, the
lists of its attributes, counts the predicates that hold, and reports who reaches its number of predicates.

Deviations: an interval is two predicates, `>=` and `<=`, as MO-Tree's authors must have split it; lists are unordered, so that
insertion appends (their Fig. 10 has it as fast as MO-Tree's) and deletion reads the lists.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.posting_lists import Lists, append, discard, new_lists, with_room
from tidings._jit import kernel

Dense = NDArray[np.float64]


class OpIndex:
    def __init__(self, popularity: NDArray[np.int64], capacity: int) -> None:
        """`popularity[attribute]`: how many subscriptions name it; `capacity`: subscription numbers are below it."""
        self.rank = np.argsort(np.argsort(popularity, kind="stable")).astype(np.int64)
        width = len(popularity)
        self.lists = new_lists(width * width * 2)
        self.needed = np.zeros(capacity, np.int16)
        self.counter = np.zeros(capacity, np.int16)

    def insert(self, numbers: NDArray[np.int32], lo: Dense, hi: Dense) -> None:
        done = 0
        while (done := insert_all(self.lists, self.rank, self.needed, numbers, lo, hi, done)) < len(numbers):
            self.lists = with_room(self.lists)

    def delete(self, numbers: NDArray[np.int32], lo: Dense, hi: Dense) -> None:
        delete_all(self.lists, self.rank, self.needed, numbers, lo, hi)

    def match(self, values: Dense) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return match_all(self.lists, self.needed, self.counter, values)

    @property
    def nbytes(self) -> int:
        return self.lists.nbytes + self.needed.nbytes + self.counter.nbytes


@kernel
def pivot_of(rank: NDArray[np.int64], lo: Dense, hi: Dense) -> int:
    """The least popular attribute that has a predicate; -1 without any."""
    best = -1
    for a in range(lo.size):
        if (lo[a] != -np.inf or hi[a] != np.inf) and (best < 0 or rank[a] < rank[best]):
            best = a
    return best


@kernel
def insert_all(
    lists: Lists, rank: NDArray[np.int64], needed: NDArray[np.int16], numbers: NDArray[np.int32], lo: Dense, hi: Dense, begin: int
) -> int:
    width = lo.shape[1]
    for i in range(begin, numbers.size):
        pivot = pivot_of(rank, lo[i], hi[i])
        for a in range(width):
            key = (pivot * width + a) * 2
            if lists.size[key] == lists.room[key] or lists.size[key + 1] == lists.room[key + 1]:
                return i
        predicates = 0
        for a in range(width):
            if lo[i, a] != -np.inf or hi[i, a] != np.inf:
                key = (pivot * width + a) * 2
                append(lists, key, numbers[i], lo[i, a])
                append(lists, key + 1, numbers[i], hi[i, a])
                predicates += 2
        needed[numbers[i]] = predicates
    return numbers.size


@kernel
def delete_all(
    lists: Lists, rank: NDArray[np.int64], needed: NDArray[np.int16], numbers: NDArray[np.int32], lo: Dense, hi: Dense
) -> None:
    width = lo.shape[1]
    for i in range(numbers.size):
        pivot = pivot_of(rank, lo[i], hi[i])
        for a in range(width):
            if lo[i, a] != -np.inf or hi[i, a] != np.inf:
                discard(lists, (pivot * width + a) * 2, numbers[i])
                discard(lists, (pivot * width + a) * 2 + 1, numbers[i])
        needed[numbers[i]] = 0


@kernel
def match_all(
    lists: Lists, needed: NDArray[np.int16], counter: NDArray[np.int16], values: Dense
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    width = values.shape[1]
    events, found = [np.int32(0) for _ in range(0)], [np.int32(0) for _ in range(0)]
    for e in range(values.shape[0]):
        counter[:] = 0
        for pivot in range(width):
            if np.isnan(values[e, pivot]):
                continue
            for a in range(width):
                value = values[e, a]
                if not np.isnan(value):
                    key = (pivot * width + a) * 2
                    for at in range(lists.start[key], lists.start[key] + lists.size[key]):
                        counter[lists.number[at]] += lists.bound[at] <= value
                    for at in range(lists.start[key + 1], lists.start[key + 1] + lists.size[key + 1]):
                        counter[lists.number[at]] += value <= lists.bound[at]
        for s in range(counter.size):
            if counter[s] == needed[s] and needed[s]:
                events.append(np.int32(e))
                found.append(np.int32(s))
    return np.array(events, np.int32), np.array(found, np.int32)
