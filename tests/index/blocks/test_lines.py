"""Cells of a block's key at the edges of arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from tidings._jit import kernel
from tidings.index.blocks.lines import CELLS, local_cell


@kernel
def cell(value: np.float32, lo: np.float32, scale: np.float32) -> int:
    return local_cell(value, lo, scale)


@pytest.mark.parametrize(
    ("value", "lo", "scale", "want"),
    [
        (np.nan, 0, 1, 0),
        (np.inf, 0, 0, 1),
        (-np.inf, -np.inf, 1, 1),
        (-np.inf, 0, 1, 1),
        (np.inf, 0, 1, CELLS),
        (3.5, 0, 1, 4),
    ],
)
def test_every_value_has_a_cell(value, lo, scale, want):
    assert cell(np.float32(value), np.float32(lo), np.float32(scale)) == want
