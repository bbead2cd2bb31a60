"""Machine instructions that numba does not offer, for kernels: what each means, in Python; `simd_code` has what is compiled.

| instruction                    | answers                                                                        |
|--------------------------------|--------------------------------------------------------------------------------|
| `hit64(lo, hi, at, q)`         | uint64 mask: bit t is set when lo[at + t] <= q <= hi[at + t], t = 0..63         |
| `overlap64(lo, hi, at, a, b)`  | uint64 mask: bit t is set when lo[at + t] <= b and a <= hi[at + t]              |
| `within64(lanes, row, a, b)`   | uint64 mask: bit t is set when lanes[row, 0, t] <= b and a <= lanes[row, 1, t]   |
| `disjoint64(bits, at, mask)`   | uint64 mask: bit t is set when bits[at + t] & mask == 0                         |
| `and512(rows, row, left)`      | left &= rows[row] for uint64 rows and left of 8 words; whether a bit is left     |
| `first_bits(n)`                | uint64 mask of the first n bits, 0 to 64                                        |
| `trailing_zeros(mask)`         | int64 position of the lowest set bit; the mask must not be 0                    |
| `leading_zeros(mask)`          | int64 number of zero bits above the highest set bit; the mask must not be 0     |
| `popcount(mask)`               | int64 number of set bits                                                        |
| `bits_of_single(x)` and so on  | the bits of a float as a signed integer of its size, and back                    |
| `wide(x)`                      | the number as int64, by truncation                                              |
| `prefetch(array, at)`          | nothing; asks the memory for element `at`, which need not exist                 |
| `slide(array, at, to, n)`      | nothing; array[to : to + n] = array[at : at + n], which may overlap             |

Arrays are contiguous, with at least at + 64 elements: nothing is checked. `lo` and `hi` are float32 in `hit64`; in `overlap64`
they, `a` and `b` are all of one type, floats or signed integers. `lanes` are int8 rows of 2 x 64, `a` and `b` integers within int8.
"""

from __future__ import annotations

import struct
from typing import Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from tidings._jit import inlined, instruction

LANES = 64
Array = NDArray[Any]
_CODE = "tidings.index.packed.simd_code"


def _mask(holds: Array) -> np.uint64:
    mask: np.uint64 = np.packbits(holds, bitorder="little").view(np.uint64)[0]
    return mask


@instruction(f"{_CODE}:hit64")
def hit64(lo: Array, hi: Array, at: int, q: np.float32) -> np.uint64:
    return _mask((lo[at : at + LANES] <= q) & (q <= hi[at : at + LANES]))


@instruction(f"{_CODE}:overlap64")
def overlap64(lo: Array, hi: Array, at: int, first: Any, last: Any) -> np.uint64:
    return _mask((lo[at : at + LANES] <= last) & (first <= hi[at : at + LANES]))


@instruction(f"{_CODE}:within64")
def within64(lanes: Array, row: int, first: int, last: int) -> np.uint64:
    return _mask((lanes[row, 0] <= last) & (first <= lanes[row, 1]))


@instruction(f"{_CODE}:disjoint64")
def disjoint64(bits: Array, at: int, mask: Any) -> np.uint64:
    return _mask(bits[at : at + LANES] & mask == 0)


@instruction(f"{_CODE}:and512")
def and512(rows: Array, row: int, left: Array) -> bool:
    left &= rows[row]
    return bool(left.any())


@instruction(f"{_CODE}:trailing_zeros")
def trailing_zeros(mask: np.uint64) -> int:
    return (int(mask) & -int(mask)).bit_length() - 1


@instruction(f"{_CODE}:leading_zeros")
def leading_zeros(mask: np.uint64) -> int:
    return LANES - int(mask).bit_length()


@instruction(f"{_CODE}:popcount")
def popcount(mask: np.uint64) -> int:
    return int(mask).bit_count()


@instruction(f"{_CODE}:bits_of_single")
def bits_of_single(value: np.float32) -> np.int32:
    return struct.unpack("=i", struct.pack("=f", value))[0]  # type: ignore[no-any-return]


@instruction(f"{_CODE}:single_of_bits")
def single_of_bits(bits: np.int32) -> np.float32:
    return np.float32(struct.unpack("=f", struct.pack("=i", bits))[0])


@instruction(f"{_CODE}:bits_of_double")
def bits_of_double(value: float) -> int:
    return struct.unpack("=q", struct.pack("=d", value))[0]  # type: ignore[no-any-return]


@instruction(f"{_CODE}:double_of_bits")
def double_of_bits(bits: int) -> float:
    return struct.unpack("=d", struct.pack("=Q", bits & 0xFFFFFFFFFFFFFFFF))[0]  # type: ignore[no-any-return]


@instruction(f"{_CODE}:prefetch")
def prefetch(array: Array, at: int) -> None:
    pass


@instruction(f"{_CODE}:slide")
def slide(array: Array, at: int, to: int, n: int) -> None:
    array[to : to + n] = array[at : at + n].copy()


@inlined
def first_bits(n: int) -> np.uint64:
    return np.uint64(0) if n == 0 else ~np.uint64(0) >> np.uint64(LANES - n)


@inlined
def wide(number: SupportsInt) -> int:
    return np.int64(number)  # type: ignore[return-value]
