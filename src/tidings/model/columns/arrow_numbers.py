"""Numbers, instants and corners of one Arrow column as a NumPy array; whether they are sound is `arrow`'s to say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.model.columns.arrays import starts

pc = lazily("pyarrow.compute")

NONE = int(np.iinfo(np.int64).min)
"""In arrays of instants, durations and counts: there is none."""
_DOUBLE = pa.float64()
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def floats(column: pa.Array) -> NDArray[np.float64] | None:
    """NaN for null; None if these are not numbers."""
    kind = column.type
    if kind == _DOUBLE and not column.null_count:
        return column.to_numpy()  # type: ignore[no-any-return]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return pc.cast(column, pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    return None


def int64(column: pa.Array) -> NDArray[np.int64]:
    return pc.cast(column, pa.int64(), safe=False).fill_null(NONE).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def scaled(value: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    """Microseconds of `value` in `unit`; NONE for NONE, and where the product would overflow."""
    if unit == "ns":
        return np.where(value == NONE, NONE, value // 1000)
    factor = _PER_UNIT[unit]
    return np.where(np.abs(value // 2) > 2**61 // factor, NONE, value * factor)


def from_seconds(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    inside = np.abs(seconds) < 1e12
    return np.where(inside, np.rint(np.where(inside, seconds, 0.0) * 1e6).astype(np.int64), NONE)


def corners_of_lists(column: pa.Array, sizes: tuple[int, ...] = (2, 4)) -> list[NDArray[np.float64] | None]:
    """Four corners of lists of 2 or 4 numbers; NaN where a list has another length."""
    flat = floats(column.flatten())
    if flat is None:
        return [None]
    count = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    start = starts(count)[:-1]
    corners = np.full((4, len(count)), np.nan)
    for size in sizes:
        rows = np.flatnonzero(count == size)
        for part in range(4):
            corners[part, rows] = flat[start[rows] + part % size]
    return list(corners)
