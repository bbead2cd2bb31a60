"""Numbers and tie-breaks of keys that come and go: a key's tie is a float, and ties are ordered as the keys are.

A new key takes the middle between its neighbours' ties; when two neighbours leave no number between them, all ties are spread anew
(`version` counts that), which keeps their order. A number is free again once its key is removed. A new key costs a move in a sorted
list of all keys.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

Key = TypeVar("Key", bound=Any)


class KeyOrder(Generic[Key]):
    def __init__(self) -> None:
        self.number: dict[Key, int] = {}
        self.key = np.full(16, None, object)
        """by number; None where it is free"""
        self.tie = np.zeros(16)
        self.version = 0
        self._sorted: list[Key] = []
        self._free: list[int] = []

    def add(self, key: Key) -> int:
        """The key's number, a new one if it is new."""
        if key in self.number:
            return self.number[key]
        number = self._free.pop() if self._free else len(self.number)
        if number >= len(self.tie):
            self.tie = np.concatenate([self.tie, np.zeros(len(self.tie))])
            self.key = np.concatenate([self.key, np.full(len(self.key), None, object)])
        at = bisect_left(self._sorted, key)
        self._sorted.insert(at, key)
        self.number[key], self.key[number] = number, key
        self._label(at, number)
        return number

    def remove(self, key: Key) -> None:
        number = self.number.pop(key)
        self.key[number] = None
        del self._sorted[bisect_left(self._sorted, key)]
        self._free.append(number)

    def floor(self, key: Key) -> float:
        """The tie of the last key before `key`, -inf if there is none."""
        at = bisect_left(self._sorted, key)
        return self._tie_at(at - 1) if at else -np.inf

    def _label(self, at: int, number: int) -> None:
        before = self._tie_at(at - 1) if at else None
        after = self._tie_at(at + 1) if at + 1 < len(self._sorted) else None
        if before is not None and after is not None:
            tie = (before + after) / 2
        else:
            tie = 0.0 if before is after else (before + 1 if before is not None else (after or 0.0) - 1)
        self.tie[number] = tie
        if (before is not None and tie <= before) or (after is not None and tie >= after):
            for position, key in enumerate(self._sorted):
                self.tie[self.number[key]] = position
            self.version += 1

    def _tie_at(self, position: int) -> float:
        return float(self.tie[self.number[self._sorted[position]]])

    def check(self) -> None:
        assert self._sorted == sorted(self.number)
        ties = [self._tie_at(position) for position in range(len(self._sorted))]
        assert all(a < b for a, b in pairwise(ties))
        assert {number: key for key, number in self.number.items()} == {n: key for n, key in enumerate(self.key) if key is not None}
