"""The Hilbert curve visits every cell once, a step at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tidings.index.packed.hilbert import BITS, extent_of, hilbert_code, hilbert_codes


def test_neighbours_on_the_curve_are_neighbours_in_the_plane():
    side, shift = 32, BITS - 5
    curve = sorted((hilbert_code(x << shift, y << shift), x, y) for x in range(side) for y in range(side))
    assert len({code for code, _, _ in curve}) == side * side
    for (_, x, y), (_, next_x, next_y) in itertools.pairwise(curve):
        assert abs(x - next_x) + abs(y - next_y) == 1


def test_a_box_without_bounds_lies_in_the_middle():
    box = np.array([[0, 0, 8, 8], [-math.inf, -math.inf, math.inf, math.inf], [4, 4, 4, 4], [0, 0, 0, 0], [8, 8, 8, 8]], np.float64)
    extent = extent_of(box)
    assert extent.tolist() == [0, 0, 8, 8]
    codes = hilbert_codes(box, extent).tolist()
    assert codes[0] == codes[1] == codes[2]
    assert codes[3] == 0
    assert codes[4] != codes[3]


def test_boxes_without_any_finite_end_or_with_one_place_have_a_code():
    nowhere = np.array([[-math.inf, -math.inf, math.inf, math.inf]])
    assert extent_of(nowhere).tolist() == [0, 0, 1, 1]
    one_place = np.array([[3.0, 3.0, 3.0, 3.0]])
    assert hilbert_codes(one_place, extent_of(one_place)).tolist() == [0]
