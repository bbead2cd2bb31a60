"""TAMA (Zhao, Wu: ICDCS 2011), approximate matching by a table over attributes and discretisation levels.

Level k cuts an attribute's domain into 2^k cells. A predicate is stored in the fewest cells that cover its interval, at most two a
level, down to LEVELS. An event's value lies in one cell a level; its subscriptions count one predicate each, and who reaches its
number of predicates is reported.

Deviations: intervals are rounded outwards to cells of the finest level, so TAMA reports false matches; they are verified here and
dropped, so that its answers can be compared with the others'. `reported` counts what it found before that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.posting_lists import Lists, append, discard, holds, new_lists, with_room
from tidings._jit import kernel

Dense = NDArray[np.float64]
LEVELS = 8
CELLS = 2 ** (LEVELS + 1)
"""Keys of an attribute: 2^k + cell at level k."""


class Tama:
    def __init__(self, attributes: int, capacity: int) -> None:
        self.lists = new_lists(attributes * CELLS)
        self.needed = np.zeros(capacity, np.int16)
        self.counter = np.zeros(capacity, np.int16)
        self.lo, self.hi = np.zeros((capacity, attributes)), np.zeros((capacity, attributes))
        self.reported = 0

    def insert(self, numbers: NDArray[np.int32], lo: Dense, hi: Dense) -> None:
        self.lo[numbers], self.hi[numbers] = lo, hi
        done = 0
        while (done := store_all(self.lists, self.needed, numbers, lo, hi, done, True)) < len(numbers):
            self.lists = with_room(self.lists)

    def delete(self, numbers: NDArray[np.int32]) -> None:
        store_all(self.lists, self.needed, numbers, self.lo[numbers], self.hi[numbers], 0, False)

    def match(self, values: Dense) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        events, found, reported = match_all(self.lists, self.needed, self.counter, self.lo, self.hi, values)
        self.reported += reported
        return events, found

    @property
    def nbytes(self) -> int:
        """Without the rows that verification reads: TAMA as published keeps none."""
        return self.lists.nbytes + self.needed.nbytes + self.counter.nbytes


@kernel
def cell_of(value: float) -> int:
    return min(max(np.int64(np.floor(value * 2**LEVELS)), 0), 2**LEVELS - 1)


@kernel
def has_room(lists: Lists, attribute: int, lo: float, hi: float) -> bool:
    """Whether every list that may take the interval has room."""
    a, b = cell_of(lo) + 2**LEVELS, cell_of(hi) + 2**LEVELS
    while a > 0:
        for key in (a, b, a + 1, max(b - 1, 0)):
            i = attribute * CELLS + min(key, CELLS - 1)
            if lists.size[i] == lists.room[i]:
                return False
        a, b = a >> 1, b >> 1
    return True


@kernel
def store(lists: Lists, attribute: int, number: int, lo: float, hi: float, insert: bool) -> None:
    """Put an interval into, or take it out of, the fewest cells that cover it: the nodes of a segment tree."""
    a, b = cell_of(lo) + 2**LEVELS, cell_of(hi) + 2**LEVELS + 1
    base = attribute * CELLS
    while a < b:
        if a & 1:
            if insert:
                append(lists, base + a, number, 0.0)
            else:
                discard(lists, base + a, number)
            a += 1
        if b & 1:
            b -= 1
            if insert:
                append(lists, base + b, number, 0.0)
            else:
                discard(lists, base + b, number)
        a, b = a >> 1, b >> 1


@kernel
def store_all(
    lists: Lists, needed: NDArray[np.int16], numbers: NDArray[np.int32], lo: Dense, hi: Dense, begin: int, insert: bool
) -> int:
    width = lo.shape[1]
    for i in range(begin, numbers.size):
        if insert:
            for a in range(width):
                if (lo[i, a] != -np.inf or hi[i, a] != np.inf) and not has_room(lists, a, lo[i, a], hi[i, a]):
                    return i
        predicates = 0
        for a in range(width):
            if lo[i, a] != -np.inf or hi[i, a] != np.inf:
                store(lists, a, numbers[i], lo[i, a], hi[i, a], insert)
                predicates += 1
        needed[numbers[i]] = predicates if insert else 0
    return numbers.size


@kernel
def match_all(
    lists: Lists, needed: NDArray[np.int16], counter: NDArray[np.int16], lo: Dense, hi: Dense, values: Dense
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    events, found = [np.int32(0) for _ in range(0)], [np.int32(0) for _ in range(0)]
    reported = 0
    for e in range(values.shape[0]):
        counter[:] = 0
        for a in range(values.shape[1]):
            if not np.isnan(values[e, a]):
                cell = cell_of(values[e, a]) + 2**LEVELS
                while cell > 0:
                    key = a * CELLS + cell
                    for number in lists.number[lists.start[key] : lists.start[key] + lists.size[key]]:
                        counter[number] += 1
                    cell >>= 1
        for s in range(counter.size):
            if counter[s] == needed[s] and needed[s]:
                reported += 1
                if holds(lo[s], hi[s], values[e]):
                    events.append(np.int32(e))
                    found.append(np.int32(s))
    return np.array(events, np.int32), np.array(found, np.int32), reported
