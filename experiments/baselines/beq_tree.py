"""BEQ-Tree (Guo, Zhang, Li, Tan, Bao: SIGMOD 2015): a quadtree over the events' places, and in each leaf the events' values by
attribute, sorted, for the counting of predicates.

A subscription visits the leaves that its box touches. In a leaf it finds, on each of its attributes, the run of values in its
interval by halving, counts one for each event of the run, and reports the events that reach its number of predicates and lie
in its box.

Layout: leaf numbers by quadtree code in `leaf_of` (a grid of the finest level). List (leaf, attribute) is a run of slots: value[]
sorted, event[] along with it, start / size / room by leaf * attributes + attribute.

Deviations: leaves are split when the base is built, until they hold at most LEAF events or reach DEPTH; events inserted afterwards
make leaves longer, by a few per cent in the insertions measured. Each attribute's list is one sorted array, so an insertion moves
half of it, as in the original.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel

Dense = NDArray[np.float64]
LEAF, DEPTH = 256, 7
SIDE = 2**DEPTH


class Leaves(NamedTuple):
    leaf_of: NDArray[np.int32]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    room: NDArray[np.int64]
    value: Dense
    event: NDArray[np.int32]


class BEQTree:
    def __init__(self, values: Dense, capacity: int) -> None:
        """`values`: dense events with the place in the last two columns; events 0 .. len - 1. Numbers stay below `capacity`."""
        self.values = np.full((capacity, values.shape[1]), np.nan)
        self.values[: len(values)] = values
        self.counter = np.zeros(capacity, np.int16)
        leaf_of = split(grid_cells(values))
        leaf = leaf_of[grid_cells(values)]
        lists = (values.shape[1] - 2) * (int(leaf_of.max()) + 1)
        held = np.zeros(lists, np.int64)
        count_values(values, leaf, held)
        room = held * 5 // 4 + 16
        start = np.cumsum(room) - room
        total = int(room.sum())
        self.leaves = Leaves(leaf_of, start, np.zeros(lists, np.int64), room, np.zeros(total), np.zeros(total, np.int32))
        fill(self.leaves, values, leaf)

    def insert(self, numbers: NDArray[np.int32], values: Dense) -> None:
        self.values[numbers] = values
        leaf = self.leaves.leaf_of[grid_cells(values)]
        done = 0
        while (done := insert_all(self.leaves, numbers, values, leaf, done)) < len(numbers):
            self.leaves = _roomier(self.leaves)

    def delete(self, numbers: NDArray[np.int32]) -> None:
        values = self.values[numbers]
        delete_all(self.leaves, numbers, values, self.leaves.leaf_of[grid_cells(values)])
        self.values[numbers] = np.nan

    def search(self, lo: Dense, hi: Dense) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(row, event) of every match of the subscriptions lo[row], hi[row], each with a predicate beside its place."""
        return search_all(self.leaves, self.values, self.counter, lo, hi)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.leaves) + self.values.nbytes + self.counter.nbytes


def grid_cells(values: Dense) -> NDArray[np.int64]:
    """The finest quadtree cell of each event: bits of x and y interleaved."""
    place = (values[:, -2:] * SIDE).astype(np.int64).clip(0, SIDE - 1)
    return _interleaved(place[:, 0], place[:, 1])


def _interleaved(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    code = np.zeros_like(x)
    for bit in range(DEPTH):
        code |= ((x >> bit & 1) << 2 * bit) | ((y >> bit & 1) << 2 * bit + 1)
    return code


def split(cell: NDArray[np.int64]) -> NDArray[np.int32]:
    """leaf_of[finest cell]: split a square while it holds more than LEAF events."""
    held = np.bincount(cell, minlength=SIDE * SIDE)
    leaf_of = np.zeros(SIDE * SIDE, np.int32)
    stack, leaves = [(0, SIDE * SIDE)], 0
    while stack:
        begin, width = stack.pop()
        if width > 1 and held[begin : begin + width].sum() > LEAF:
            stack += [(begin + quarter * width // 4, width // 4) for quarter in range(4)]
        else:
            leaf_of[begin : begin + width] = leaves
            leaves += 1
    return leaf_of


def _roomier(leaves: Leaves) -> Leaves:
    room = leaves.size * 3 // 2 + 16
    start = np.cumsum(room) - room
    total = int(room.sum())
    larger = Leaves(leaves.leaf_of, start, leaves.size, room, np.zeros(total), np.zeros(total, np.int32))
    for i, (old, new, size) in enumerate(zip(leaves.start, start, leaves.size, strict=True)):
        assert size <= room[i]
        larger.value[new : new + size] = leaves.value[old : old + size]
        larger.event[new : new + size] = leaves.event[old : old + size]
    return larger


@kernel
def count_values(values: Dense, leaf: NDArray[np.int32], held: NDArray[np.int64]) -> None:
    width = values.shape[1] - 2
    for e in range(values.shape[0]):
        for a in range(width):
            if not np.isnan(values[e, a]):
                held[leaf[e] * width + a] += 1


@kernel
def fill(leaves: Leaves, values: Dense, leaf: NDArray[np.int32]) -> None:
    """All events into their leaves' lists, then each list sorted."""
    width = values.shape[1] - 2
    for e in range(values.shape[0]):
        for a in range(width):
            if not np.isnan(values[e, a]):
                key = leaf[e] * width + a
                at = leaves.start[key] + leaves.size[key]
                leaves.value[at], leaves.event[at] = values[e, a], e
                leaves.size[key] += 1
    for key in range(leaves.size.size):
        begin, end = leaves.start[key], leaves.start[key] + leaves.size[key]
        order = np.argsort(leaves.value[begin:end])
        leaves.event[begin:end] = leaves.event[begin:end][order]
        leaves.value[begin:end] = leaves.value[begin:end][order]


@kernel
def lower(leaves: Leaves, key: int, value: float) -> int:
    """The first place in a list whose value is not less."""
    lo, hi = leaves.start[key], leaves.start[key] + leaves.size[key]
    while lo < hi:
        middle = (lo + hi) >> 1
        if leaves.value[middle] < value:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def insert_all(leaves: Leaves, numbers: NDArray[np.int32], values: Dense, leaf: NDArray[np.int32], begin: int) -> int:
    width = values.shape[1] - 2
    for i in range(begin, numbers.size):
        for a in range(width):
            if leaves.size[leaf[i] * width + a] == leaves.room[leaf[i] * width + a]:
                return i
        for a in range(width):
            if not np.isnan(values[i, a]):
                key = leaf[i] * width + a
                place = lower(leaves, key, values[i, a])
                for at in range(leaves.start[key] + leaves.size[key], place, -1):
                    leaves.value[at], leaves.event[at] = leaves.value[at - 1], leaves.event[at - 1]
                leaves.value[place], leaves.event[place] = values[i, a], numbers[i]
                leaves.size[key] += 1
    return numbers.size


@kernel
def delete_all(leaves: Leaves, numbers: NDArray[np.int32], values: Dense, leaf: NDArray[np.int32]) -> None:
    width = values.shape[1] - 2
    for i in range(numbers.size):
        for a in range(width):
            if not np.isnan(values[i, a]):
                key = leaf[i] * width + a
                place = lower(leaves, key, values[i, a])
                while leaves.event[place] != numbers[i]:
                    place += 1
                leaves.size[key] -= 1
                for at in range(place, leaves.start[key] + leaves.size[key]):
                    leaves.value[at], leaves.event[at] = leaves.value[at + 1], leaves.event[at + 1]


@kernel
def touched(leaves: Leaves, lo: Dense, hi: Dense, stamp: NDArray[np.int32], row: int, found: NDArray[np.int32]) -> int:
    """The leaves whose squares the box touches, each once; how many."""
    first_x, last_x = max(np.int64(lo[-2] * SIDE), 0), min(np.int64(hi[-2] * SIDE), SIDE - 1)
    first_y, last_y = max(np.int64(lo[-1] * SIDE), 0), min(np.int64(hi[-1] * SIDE), SIDE - 1)
    count = 0
    for x in range(min(first_x, SIDE - 1), max(last_x, 0) + 1):
        for y in range(min(first_y, SIDE - 1), max(last_y, 0) + 1):
            code = 0
            for bit in range(DEPTH):
                code |= ((x >> bit & 1) << 2 * bit) | ((y >> bit & 1) << 2 * bit + 1)
            leaf = leaves.leaf_of[code]
            if stamp[leaf] != row:
                stamp[leaf] = row
                found[count] = leaf
                count += 1
    return count


@kernel
def runs_of(leaves: Leaves, leaf: int, lo: Dense, hi: Dense, begin: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """For each predicate the run of its leaf's list that lies in its interval; how many predicates."""
    width = lo.size - 2
    count = 0
    for a in range(width):
        if lo[a] != -np.inf or hi[a] != np.inf:
            begin[count] = lower(leaves, leaf * width + a, lo[a])
            end[count] = lower(leaves, leaf * width + a, np.nextafter(hi[a], np.inf))
            count += 1
    return count


@kernel
def search_all(
    leaves: Leaves, values: Dense, counter: NDArray[np.int16], lo: Dense, hi: Dense
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    rows, events = [np.int32(0) for _ in range(0)], [np.int32(0) for _ in range(0)]
    stamp, leaf = np.full(leaves.leaf_of.size, -1, np.int32), np.empty(leaves.leaf_of.size, np.int32)
    begin, end = np.empty(lo.shape[1], np.int64), np.empty(lo.shape[1], np.int64)
    for r in range(lo.shape[0]):
        for i in range(touched(leaves, lo[r], hi[r], stamp, r, leaf)):
            needed = runs_of(leaves, leaf[i], lo[r], hi[r], begin, end)
            for run in range(needed):
                for event in leaves.event[begin[run] : end[run]]:
                    counter[event] += 1
            for event in leaves.event[begin[0] : end[0]]:
                if counter[event] == needed and inside(values[event], lo[r], hi[r]):
                    rows.append(np.int32(r))
                    events.append(np.int32(event))
            for run in range(needed):
                for event in leaves.event[begin[run] : end[run]]:
                    counter[event] = 0
    return np.array(rows, np.int32), np.array(events, np.int32)


@kernel
def inside(value: Dense, lo: Dense, hi: Dense) -> bool:
    return lo[-2] <= value[-2] and value[-2] <= hi[-2] and lo[-1] <= value[-1] and value[-1] <= hi[-1]
