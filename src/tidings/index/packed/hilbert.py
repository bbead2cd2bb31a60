"""Hilbert codes of boxes: an order of the plane in which near in code means near in place.

The extent is cut into 2^16 x 2^16 cells; a box has the code of the cell that holds its centre. Ends outside the extent (infinite
ones among them) are taken at its rim, so a box without a bound has the code of the extent's middle.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.types import Float64, Uint32

BITS = 16


def extent_of(box: Float64) -> Float64:
    """(xmin, ymin, xmax, ymax) of all finite ends of boxes (n x 4); the unit square when there is none."""
    extent = np.array([0.0, 0.0, 1.0, 1.0])
    for axis in (0, 1):
        ends = box[:, axis::2]
        finite = ends[np.isfinite(ends)]
        if len(finite):
            extent[axis], extent[axis + 2] = finite.min(), finite.max()
    return extent


def hilbert_codes(box: Float64, extent: Float64) -> Uint32:
    """The Hilbert code of each box's centre within the extent."""
    return _codes(box, extent)


@kernel
def _codes(box: Float64, extent: Float64) -> Uint32:
    codes = np.empty(len(box), np.uint32)
    for i in range(len(box)):
        x = _cell(box[i, 0], box[i, 2], extent[0], extent[2])
        y = _cell(box[i, 1], box[i, 3], extent[1], extent[3])
        codes[i] = hilbert_code(x, y)
    return codes


@kernel
def _cell(lo: float, hi: float, first: float, last: float) -> int:
    """The cell of the middle of [lo, hi], both ends taken into [first, last]."""
    if not last > first:
        return 0
    middle = 0.5 * (min(max(lo, first), last) - first) + 0.5 * (min(max(hi, first), last) - first)
    return min(int(middle / (last - first) * (1 << BITS)), (1 << BITS) - 1)


@kernel
def hilbert_code(x: int, y: int) -> int:
    """The position of cell (x, y) on the Hilbert curve."""
    code = 0
    side = 1 << (BITS - 1)
    while side > 0:
        right = 1 if x & side else 0
        up = 1 if y & side else 0
        code += side * side * ((3 * right) ^ up)
        x &= side - 1
        y &= side - 1
        if up == 0:
            if right == 1:
                x = side - 1 - x
                y = side - 1 - y
            x, y = y, x
        side >>= 1
    return code
