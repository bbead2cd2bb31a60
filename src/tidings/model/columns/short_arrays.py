"""Arrow arrays of a few rows, made of their buffers: what `pa.array` asks about its argument costs more than such an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_LAST_OFFSET = 2**31 - 1


def fixed_array(values: NDArray[Any], kind: pa.DataType, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Values that lie in memory as `kind` has them."""
    there = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [there, pa.py_buffer(np.ascontiguousarray(values))])


def same_text(text: str, count: int) -> pa.StringArray | pa.ChunkedArray:
    """One text, which is not empty, so many times."""
    letters = text.encode()
    if len(letters) * count > _LAST_OFFSET:
        return pa.array([text] * count, pa.string())
    ends = np.arange(0, len(letters) * count + 1, len(letters), dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(letters * count))
