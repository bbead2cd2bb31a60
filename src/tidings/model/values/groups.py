"""Groups: a whole number for each value of an attribute, the same in every process, 0 for none.

Of a number, a time or a truth it is the float's bits, so different values are different groups. Of a text it is eight bytes of its
BLAKE2b: two texts in 2**64 are one group.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from struct import Struct

import numpy as np
from numpy.typing import NDArray

_FLOAT, _BITS = Struct("<d"), Struct("<q")
_NOT_A_NUMBER: int = _BITS.unpack(_FLOAT.pack(float("nan")))[0]


def group_of(value: object) -> int:
    """Of a value as events hold it; None is none."""
    if value is None:
        return 0
    if isinstance(value, str):
        return _of_text(value)
    assert isinstance(value, int | float)
    bits: int = _BITS.unpack(_FLOAT.pack(float(value) + 0.0))[0]
    return bits ^ _NOT_A_NUMBER


def groups_of_numbers(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Of many; NaN is none."""
    bits: NDArray[np.int64] = (numbers + 0.0).view(np.int64) ^ _NOT_A_NUMBER
    return np.where(np.isnan(numbers), 0, bits)


def groups_of_texts(texts: Iterable[str]) -> NDArray[np.int64]:
    return np.array([_of_text(text) for text in texts], np.int64)


@lru_cache(maxsize=1 << 16)
def _of_text(text: str) -> int:
    return int(_BITS.unpack(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())[0]) or 1
