"""A kernel's own source in plain Python answers as the compiled kernel does: the arithmetic in which NumPy and numba differ.

That whole structures answer alike is judged by their state machines, which `make plain` runs with `TIDINGS_KERNELS=plain`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tidings._jit import inlined, kernel
from tidings.compiling.dispatching import TWINS
from tidings.index.packed.simd import (
    and512,
    bits_of_double,
    disjoint64,
    double_of_bits,
    first_bits,
    popcount,
    slide,
    trailing_zeros,
)

ITEM = np.dtype([("at", "i4"), ("kind", "u1"), ("value", "f8")], align=True)


class Arrays(NamedTuple):
    small: np.ndarray
    items: np.ndarray


@kernel
def narrow_integers(arrays, n):
    total = 0
    for i in range(n):
        total += arrays.small[i] << 28 | arrays.small[i] - 200
    return total


@kernel
def records(arrays, n):
    for i in range(n):
        item = arrays.items[i]
        item.at += item.kind * 1000
        arrays.items[i].value = item.at / 7
    arrays.items[0] = arrays.items[n - 1]
    return arrays.items[0].value


@kernel
def casts(arrays, n):
    bits = np.uint32(0)
    for i in range(n):
        bits |= np.uint32(1) << np.uint32(arrays.small[i] & 31)
    made = np.full(3, -1, np.int32)
    return ~bits, np.int32(np.uint32(-5)), np.uint64(made[0]) >> np.uint64(60), made


@inlined
def mixed(seed):
    return np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(7)


@kernel
def wrapping(arrays, n):
    return mixed(arrays.small[0] + n), first_bits(n)


@kernel
def division(arrays, n):
    zero = arrays.items[0].value - arrays.items[0].value
    return 1.0 / zero, zero / zero == zero / zero, np.sqrt(-1.0 - zero) > 0.0


@kernel
def instructions(arrays, n):
    rows, left = np.full((2, 8), 3, np.uint64), np.full(8, 6, np.uint64)
    some = and512(rows, 1, left)
    bits = np.zeros(64, np.uint32)
    bits[n] = 5
    apart = disjoint64(bits, 0, np.uint32(4))
    line = np.arange(6)
    slide(line, 0, 2, 4)
    return some, left, popcount(apart), trailing_zeros(~apart), line, double_of_bits(bits_of_double(-2.5))


@pytest.mark.parametrize("asked", [narrow_integers, records, casts, wrapping, division, instructions])
def test_a_kernel_answers_alike_in_both_ways(asked):
    ways = (asked, TWINS.entry(asked.function))
    answers, arrays = [], []
    for way in ways:
        items = np.zeros(4, ITEM)
        items["at"], items["kind"], items["value"] = [1, -2, 3, 2**31 - 2**18], [255, 3, 1, 2], 1.5
        given = Arrays(np.array([250, 7, 128, 1], np.uint8), items)
        answers.append(way(given, 4))
        arrays.append(given)
    assert str(answers[0]) == str(answers[1])
    assert type(answers[0]) is type(answers[1])
    assert (arrays[0].items == arrays[1].items).all()
