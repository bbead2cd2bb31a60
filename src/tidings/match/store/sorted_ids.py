"""A segment's subscription ids: distinct strings in ascending order, searched by halving, without a Python object per id.

The strings lie in an Arrow `string` array, so they can be a memory map: `start` (n + 1, int32) and `text` (uint8) are
views of its buffers. The bytes of UTF-8 sort as the code points do, so the order is that of Python's strings.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.packed.sentinels import NONE

ABSENT = NONE
FEW = 16
"""Names up to which they are read one by one: the first operation on an array costs as much."""


class Names:
    def __init__(self, strings: pa.StringArray) -> None:
        self.strings = strings
        self._start, self._text = buffers(strings)
        self._cells = self._start.data
        self._least, self._greatest = (self[0], self[len(strings) - 1]) if len(strings) else ("", "")

    def __len__(self) -> int:
        return len(self.strings)

    def __getitem__(self, ordinal: int) -> str:
        return self._text[self._start[ordinal] : self._start[ordinal + 1]].tobytes().decode()

    def take(self, ordinals: NDArray[np.integer]) -> list[str]:
        """Of few or many, without Arrow: to begin a `take` costs as much as fifty names."""
        letters = self._letters
        if letters is not None and len(ordinals) <= FEW:
            start = self._cells
            return [letters[start[ordinal] : start[ordinal + 1]] for ordinal in ordinals.tolist()]
        ends = zip(self._start[ordinals].tolist(), self._start[ordinals + 1].tolist(), strict=True)
        if letters is not None:
            return [letters[first:end] for first, end in ends]
        return [self._text[first:end].tobytes().decode() for first, end in ends]

    @cached_property
    def _letters(self) -> str | None:
        """All text as one string, if a byte is a letter."""
        text = self._text[: self._start[-1]].tobytes()
        return text.decode("ascii") if text.isascii() else None

    def find(self, name: str) -> int:
        """The ordinal of `name`, or ABSENT."""
        if not self._least <= name <= self._greatest:
            return ABSENT
        return find(self._start, self._text, name.encode())

    def find_many(self, names: pa.StringArray) -> NDArray[np.int64]:
        start, text = buffers(names)
        return np.asarray(find_many(self._start, self._text, start, text))

    @property
    def nbytes(self) -> int:
        return self._start.nbytes + self._text.nbytes


def buffers(strings: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Offsets and bytes of an Arrow string array, without copying."""
    _, start, text = strings.buffers()
    offsets = np.frombuffer(start, np.int32)[strings.offset : strings.offset + len(strings) + 1] if start else np.zeros(1, np.int32)
    return offsets, np.frombuffer(text, np.uint8) if text is not None else np.zeros(0, np.uint8)


@kernel
def compare(text: NDArray[np.uint8], a: int, a_end: int, key: NDArray[np.uint8] | bytes, b: int, b_end: int) -> int:
    """Sign of text[a:a_end] - key[b:b_end], as bytes."""
    while a < a_end and b < b_end:
        if text[a] != key[b]:
            return 1 if text[a] > key[b] else -1
        a += 1
        b += 1
    return (1 if a < a_end else 0) - (1 if b < b_end else 0)


@kernel
def search(start: NDArray[np.int32], text: NDArray[np.uint8], key: NDArray[np.uint8] | bytes, b: int, b_end: int) -> int:
    low, high = 0, len(start) - 1
    while low < high:
        middle = (low + high) // 2
        sign = compare(text, start[middle], start[middle + 1], key, b, b_end)
        if sign == 0:
            return middle
        if sign < 0:
            low = middle + 1
        else:
            high = middle
    return -1


@kernel
def find(start: NDArray[np.int32], text: NDArray[np.uint8], key: bytes) -> int:
    return search(start, text, key, 0, len(key))


@kernel
def find_many(
    start: NDArray[np.int32], text: NDArray[np.uint8], key_start: NDArray[np.int32], key_text: NDArray[np.uint8]
) -> NDArray[np.int64]:
    found = np.empty(len(key_start) - 1, np.int64)
    for i in range(len(found)):
        found[i] = search(start, text, key_text, key_start[i], key_start[i + 1])
    return found
