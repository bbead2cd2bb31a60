"""Short arrays are those that `pa.array` makes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidings.model.columns.short_arrays import fixed_array, same_text


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 40])
@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.timestamp("us", "UTC")])
def test_fixed_arrays(size, kind):
    values = np.arange(2 * size, dtype=np.float64 if kind == pa.float64() else np.int64)[::2]
    missing = values % 3 == 0
    for mask in (None, missing):
        made = fixed_array(values, kind, mask)
        made.validate(full=True)
        assert made.equals(pa.array(values, kind, mask=mask))


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("text", ["e1", "ü", "\U0001f600x"])
def test_the_same_text(count, text):
    made = same_text(text, count)
    made.validate(full=True)
    assert made.equals(pa.array([text] * count, pa.string()))
