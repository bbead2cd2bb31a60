"""The objects of one family by key, with the places at which they stand. Painters have them, and who gives first lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.boards.key_order import KeyOrder
from tidings.index.points.object_arrays import ObjectArrays
from tidings.index.points.object_questions import min_y
from tidings.index.points.objects import ObjectIndex, move_all

Floats = NDArray[np.float64]


class Moves(NamedTuple):
    """Objects whose place is another: their numbers, and where they go; y = inf is gone."""

    numbers: NDArray[np.int64]
    x: Floats
    y: Floats


class FamilyObjects:
    def __init__(self) -> None:
        self.keys: KeyOrder[str] = KeyOrder()
        self.index = ObjectIndex()

    def __len__(self) -> int:
        return len(self.index)

    def moves(self, keys: Sequence[str], x: Floats, y: Floats) -> Moves:
        """What is to be changed, the last of a key counting; new keys have their numbers from here on."""
        last = {key: row for row, key in enumerate(keys)}
        there = [(key, row) for key, row in last.items() if y[row] < np.inf or key in self.keys.number]
        numbers = np.array([self.keys.add(key) for key, _ in there], np.int64)
        rows = np.array([row for _, row in there], np.int64)
        self.index.reserve(len(self.keys.tie))
        self.index.retie(self.keys.tie)
        a = self.index.arrays
        same = (a.block_of[numbers] >= 0) & (a.x[numbers] == x[rows]) & (a.y[numbers] == y[rows])
        return Moves(numbers[~same], x[rows][~same], y[rows][~same])

    def apply(self, moves: Moves) -> None:
        """Without painting."""
        move_all(self.index.arrays, *moves)
        self.forget(moves)

    def forget(self, moves: Moves) -> None:
        """The keys of those that are gone; their numbers are used again."""
        for number in moves.numbers[moves.y == np.inf].tolist():
            self.keys.remove(self.keys.key[number])

    def first_lists(self, points: Floats, k: int) -> tuple[NDArray[np.int32], Floats, NDArray[np.int32]]:
        """The lists of watchers (m x 2): object numbers and y (m x k), and how many there are of each."""
        return first_lists(self.index.arrays, np.ascontiguousarray(points), k)


@kernel
def first_lists(objects: ObjectArrays, points: Floats, k: int) -> tuple[NDArray[np.int32], Floats, NDArray[np.int32]]:
    held, heights = np.zeros((len(points), k), np.int32), np.zeros((len(points), k))
    size = np.zeros(len(points), np.int32)
    for i in range(len(points)):
        height, mark = -np.inf, -np.inf
        while size[i] < k:
            number = min_y(objects, points[i, 0], points[i, 1], height, mark)
            if number < 0:
                break
            height, mark = objects.y[number], objects.tie[number]
            held[i, size[i]], heights[i, size[i]] = number, height
            size[i] += 1
    return held, heights, size
