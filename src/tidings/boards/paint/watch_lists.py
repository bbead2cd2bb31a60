"""The watcher's side of the protocol: many watchers' top-k lists, kept by messages alone.

| array    | shape, dtype   | meaning                                                        |
|----------|----------------|----------------------------------------------------------------|
| `span`   | m x 2, float64 | the watcher's own l and r                                      |
| `size`   | m, int32       | objects in its list                                            |
| `held`   | m x k, int32   | their numbers, best first                                      |
| `y`      | m x k, float64 | their y, ascending; ties by the objects' `tie`                 |

On a message a watcher updates the moved object if it holds it, then updates the object if it holds it, else puts it in its
place and keeps the best k. An object that is gone, or that has moved out of the watcher's range, leaves the list.

`apply` gives the changes as rows (watcher, object, was in the list, is in the list), in the order in which they happened.

Cost: O(k) a delivery, besides the report of the watchers in each rectangle. Paper: range-topk, section II-A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.boards.paint.tiles import MOVED, MOVED_X, MOVED_Y, NONE, OBJECT, Messages, X, Y
from tidings.index.packed.groups import copy_into
from tidings.index.points.tree_arrays import TreeArrays
from tidings.index.points.tree_questions import report
from tidings.index.points.watchers import WatchIndex


class ListArrays(NamedTuple):
    span: NDArray[np.float64]
    size: NDArray[np.int32]
    held: NDArray[np.int32]
    y: NDArray[np.float64]


class WatchLists:
    """Lists of watchers 0, 1, ... that share one k."""

    def __init__(self, k: int, capacity: int = 16) -> None:
        self.k = k
        self.arrays = _allocate(k, capacity)
        self.deliveries = 0

    def reserve(self, watchers: int) -> None:
        if watchers > len(self.arrays.size):
            wide = _allocate(self.k, max(2 * len(self.arrays.size), watchers))
            copy_into(self.arrays, wide)
            self.arrays = wide

    def reset(self, watcher: int, l: float, r: float, objects: list[int], y: list[float]) -> None:
        """Give a watcher its range and its first list, best first."""
        self.reserve(watcher + 1)
        a = self.arrays
        a.span[watcher] = l, r
        a.size[watcher] = len(objects)
        a.held[watcher, : len(objects)] = objects
        a.y[watcher, : len(objects)] = y

    def top(self, watcher: int) -> list[tuple[int, float]]:
        a = self.arrays
        size = a.size[watcher]
        return [(int(o), float(y)) for o, y in zip(a.held[watcher, :size], a.y[watcher, :size], strict=True)]

    def apply(
        self, messages: Messages, watchers: WatchIndex, tie: NDArray[np.float64], boxes: NDArray[np.float64] | None = None
    ) -> NDArray[np.int32]:
        """Deliver messages in order to all watchers in their rectangles, or in `boxes` of as many dimensions as the watchers."""
        if boxes is None:
            boxes = np.ascontiguousarray(messages[:, :4]).reshape(-1, 2, 2)
        changes, delivered = deliver_all(self.arrays, watchers.arrays, boxes, messages, tie)
        self.deliveries += int(delivered)
        return changes

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def check(self, tie: NDArray[np.float64]) -> None:
        for watcher in range(len(self.arrays.size)):
            held = [(y, tie[o]) for o, y in self.top(watcher)]
            assert held == sorted(set(held))
            assert len(held) <= self.k


def _allocate(k: int, capacity: int) -> ListArrays:
    return ListArrays(
        span=np.zeros((capacity, 2)),
        size=np.zeros(capacity, np.int32),
        held=np.zeros((capacity, k), np.int32),
        y=np.zeros((capacity, k)),
    )


@kernel
def find(size: NDArray[np.int32], held: NDArray[np.int32], watcher: int, number: int) -> int:
    for j in range(size[watcher]):
        if held[watcher, j] == number:
            return j
    return NONE


@kernel
def take_out(size: NDArray[np.int32], held: NDArray[np.int32], heights: NDArray[np.float64], watcher: int, j: int) -> None:
    size[watcher] -= 1
    for q in range(j, size[watcher]):
        held[watcher, q] = held[watcher, q + 1]
        heights[watcher, q] = heights[watcher, q + 1]


@kernel
def put_in(
    size: NDArray[np.int32],
    held: NDArray[np.int32],
    heights: NDArray[np.float64],
    tie: NDArray[np.float64],
    watcher: int,
    number: int,
    y: float,
) -> int:
    """Keep the best k of the list and the object; the number that found no room, NONE if all did."""
    last, k = size[watcher], held.shape[1]
    j = last
    while j > 0 and (heights[watcher, j - 1] > y or (heights[watcher, j - 1] == y and tie[held[watcher, j - 1]] > tie[number])):
        j -= 1
    if j == k:
        return number
    loser = NONE
    if last == k:
        last -= 1
        loser = held[watcher, last]
    for q in range(last, j, -1):
        held[watcher, q] = held[watcher, q - 1]
        heights[watcher, q] = heights[watcher, q - 1]
    held[watcher, j] = number
    heights[watcher, j] = y
    size[watcher] = last + 1
    return loser


@kernel
def note(change: NDArray[np.int32], row: int, watcher: int, number: int, was: bool, present: bool) -> int:
    """Write a row (watcher, object, was, is); how many rows there are."""
    change[row, 0], change[row, 1], change[row, 2], change[row, 3] = watcher, number, was, present
    return row + 1


@kernel
def deliver(
    a: ListArrays, watcher: int, messages: Messages, i: int, tie: NDArray[np.float64], change: NDArray[np.int32], row: int
) -> int:
    """Let one watcher follow message i and write what changed, at most 3 rows; how many rows there are."""
    size, held, heights = a.size, a.held, a.y
    l, r = a.span[watcher, 0], a.span[watcher, 1]
    number, moved = int(messages[i, OBJECT]), int(messages[i, MOVED])
    x, y = messages[i, X], messages[i, Y]
    at = find(size, held, watcher, moved) if moved >= 0 else NONE
    if at >= 0:
        take_out(size, held, heights, watcher, at)
        if messages[i, MOVED_Y] < np.inf and l <= messages[i, MOVED_X] <= r:
            put_in(size, held, heights, tie, watcher, moved, messages[i, MOVED_Y])
    before = find(size, held, watcher, number)
    if before >= 0:
        take_out(size, held, heights, watcher, before)
    loser = NONE
    present = y < np.inf and l <= x <= r
    if present:
        loser = put_in(size, held, heights, tie, watcher, number, y)
        present = loser != number
    if before >= 0 or present:
        row = note(change, row, watcher, number, before >= 0, present)
    if at >= 0:
        row = note(change, row, watcher, moved, True, find(size, held, watcher, moved) >= 0)
    if present and loser >= 0 and loser != moved:
        row = note(change, row, watcher, loser, True, False)
    return row


@kernel
def deliver_all(
    a: ListArrays, watchers: TreeArrays, boxes: NDArray[np.float64], messages: Messages, tie: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int]:
    change = np.empty((64, 4), np.int32)
    rows, delivered = 0, 0
    for i in range(len(messages)):
        hearers = report(watchers, boxes[i])
        delivered += len(hearers)
        if rows + 3 * len(hearers) > len(change):
            wider = np.empty((2 * len(change) + 3 * len(hearers), 4), np.int32)
            wider[:rows] = change[:rows]
            change = wider
        for watcher in hearers:
            rows = deliver(a, watcher, messages, i, tie, change, rows)
    return change[:rows], delivered
