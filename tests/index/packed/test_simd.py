"""The instructions against the same question asked of Python integers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings._jit import kernel
from tidings.index.packed.simd import and512, disjoint64, hit64, leading_zeros, overlap64, popcount, trailing_zeros

eighths = st.integers(-8, 8).map(lambda i: i / 8)


@kernel
def masks(lo, hi, at, first, last):
    return hit64(lo, hi, at, first), overlap64(lo, hi, at, first, last)


@kernel
def counts(mask):
    return trailing_zeros(mask), leading_zeros(mask), popcount(mask)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 36), eighths, eighths)
def test_masks(seed, at, first, last):
    rng = np.random.default_rng(seed)
    lo, hi = (rng.integers(-8, 9, (2, 100)) / 8).astype(np.float32)
    stabbed, met = masks(lo, hi, at, np.float32(first), np.float32(last))
    assert stabbed == sum(1 << t for t in range(64) if lo[at + t] <= first <= hi[at + t])
    assert met == sum(1 << t for t in range(64) if lo[at + t] <= last and first <= hi[at + t])


@settings(deadline=None)
@given(st.integers(1, 2**64 - 1))
def test_counts(mask):
    low, high, ones = counts(np.uint64(mask))
    assert (low, high, ones) == ((mask & -mask).bit_length() - 1, 64 - mask.bit_length(), mask.bit_count())


@kernel
def integer_masks(lo, hi, bits, at, first, last, mask):
    return overlap64(lo, hi, at, first, last), disjoint64(bits, at, mask)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 36), st.integers(-8, 8), st.integers(-8, 8), st.integers(0, 15))
def test_integer_masks(seed, at, first, last, mask):
    rng = np.random.default_rng(seed)
    lo, hi = rng.integers(-8, 9, (2, 100), np.int32)
    bits = rng.integers(0, 16, 100, np.uint32)
    met, apart = integer_masks(lo, hi, bits, at, np.int32(first), np.int32(last), np.uint32(mask))
    assert met == sum(1 << t for t in range(64) if lo[at + t] <= last and first <= hi[at + t])
    assert apart == sum(1 << t for t in range(64) if bits[at + t] & mask == 0)


@kernel
def anded(rows, row, left):
    return and512(rows, row, left)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2))
def test_and512(seed, row):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2**64, (3, 8), np.uint64) & rng.integers(0, 2, (3, 8), np.uint64)
    left = rng.integers(0, 4, 8, np.uint64)
    expected = left & rows[row]
    assert anded(rows, row, left) == expected.any()
    assert (left == expected).all()
