"""Exact codes for strings: an append-only list of distinct strings, each with its position as its code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

UNKNOWN = -1
"""The code of a string that the vocabulary does not hold: present, and equal to nothing."""


class Vocabulary:
    def __init__(self, strings: Iterable[str] = ()) -> None:
        self.strings: list[str] = []
        self._code: dict[str, int] = {}
        for string in strings:
            self.add(string)

    def __len__(self) -> int:
        return len(self.strings)

    def add(self, string: str) -> int:
        """The string's code, a new one if it is new."""
        code = self._code.setdefault(string, len(self.strings))
        if code == len(self.strings):
            self.strings.append(string)
        return code

    def code(self, string: str) -> int:
        return self._code.get(string, UNKNOWN)

    def add_all(self, strings: Iterable[str]) -> list[int]:
        return [*map(self.add, strings)]

    def codes(self, strings: Iterable[str]) -> list[int]:
        return [*map(self._code.get, strings, repeat(UNKNOWN))]

    def add_array(self, strings: pa.Array) -> NDArray[np.int32]:
        """Codes of an Arrow string array, adding what is new; only the distinct strings pass through Python."""
        return self._encode(strings, self.add_all)

    def code_array(self, strings: pa.Array) -> NDArray[np.int32]:
        """Codes of an Arrow string array; UNKNOWN for strings not held. Nulls become UNKNOWN too."""
        return self._encode(strings, self.codes)

    @staticmethod
    def _encode(strings: pa.Array, code: Callable[[Iterable[str]], list[int]]) -> NDArray[np.int32]:
        indices, distinct = distinct_strings(strings)
        table = np.array(code(distinct), np.int32)
        codes: NDArray[np.int32] = np.append(table, np.int32(UNKNOWN))[indices]
        return codes


def distinct_strings(strings: pa.Array) -> tuple[NDArray[np.int64], list[str]]:
    """(index into the distinct strings, -1 for null; the distinct strings) of an Arrow string or dictionary array."""
    index, distinct = distinct_array(strings)
    return index, distinct.to_pylist()


def distinct_array(strings: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The same, with the distinct strings left in Arrow."""
    if pa.types.is_dictionary(strings.type):
        # A dictionary may hold strings that no row uses, and nulls.
        strings = strings.cast(strings.type.value_type)
    encoded = strings.dictionary_encode()
    index: NDArray[np.int64] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return index, encoded.dictionary
