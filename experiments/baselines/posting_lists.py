"""Growable lists of numbers in one pool: what counting-based matchers keep under each key.

List i is number[start[i] : start[i] + size[i]], with room for `room[i]`; `bound` runs along with it. Appending to a full list moves
everything to a pool with half as much room again (`with_room`), which is rare.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel


class Lists(NamedTuple):
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    room: NDArray[np.int64]
    number: NDArray[np.int32]
    bound: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


def new_lists(count: int) -> Lists:
    return _laid_out(np.full(count, 8, np.int64))


def with_room(lists: Lists) -> Lists:
    roomier = _laid_out(lists.size * 3 // 2 + 8)
    copy_lists(lists, roomier)
    return roomier


def _laid_out(room: NDArray[np.int64]) -> Lists:
    start = np.cumsum(room) - room
    total = int(room.sum())
    return Lists(start, np.zeros(len(room), np.int64), room, np.zeros(total, np.int32), np.zeros(total))


@kernel
def copy_lists(old: Lists, new: Lists) -> None:
    for i in range(old.size.size):
        for j in range(old.size[i]):
            new.number[new.start[i] + j] = old.number[old.start[i] + j]
            new.bound[new.start[i] + j] = old.bound[old.start[i] + j]
        new.size[i] = old.size[i]


@kernel
def append(lists: Lists, key: int, number: int, bound: float) -> None:
    at = lists.start[key] + lists.size[key]
    lists.number[at] = number
    lists.bound[at] = bound
    lists.size[key] += 1


@kernel
def discard(lists: Lists, key: int, number: int) -> None:
    """Remove the first entry of a number, found by reading the list; the last entry takes its place."""
    start, size = lists.start[key], lists.size[key]
    for at in range(start, start + size):
        if lists.number[at] == number:
            lists.number[at] = lists.number[start + size - 1]
            lists.bound[at] = lists.bound[start + size - 1]
            lists.size[key] -= 1
            return


@kernel
def holds(lo: NDArray[np.float64], hi: NDArray[np.float64], value: NDArray[np.float64]) -> bool:
    """Definition 4 on dense rows: an attribute without a predicate is (-inf, inf) and may be missing."""
    for a in range(value.size):
        if not (lo[a] <= value[a] and value[a] <= hi[a]) and (lo[a] != -np.inf or hi[a] != np.inf):
            return False
    return True
