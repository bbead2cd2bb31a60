"""Machine instructions that numba does not offer, as intrinsics for kernels.

| intrinsic                      | answers                                                                        |
|--------------------------------|--------------------------------------------------------------------------------|
| `hit64(lo, hi, at, q)`         | uint64 mask: bit t is set when lo[at + t] <= q <= hi[at + t], t = 0..63         |
| `overlap64(lo, hi, at, a, b)`  | uint64 mask: bit t is set when lo[at + t] <= b and a <= hi[at + t]              |
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
they, `a` and `b` are all of one type, floats or signed integers. Written as vector IR, so every target of LLVM gets its own
vectors (AVX2 on x86-64, NEON on ARM); a plain loop over the same data ran 1.1-1.4 times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsInt

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj
from numpy.typing import NDArray

from tidings._jit import inlined

LANES = 64
_WORD = ir.IntType(64)


def _load(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """LANES elements of `array`, starting at `at`."""
    data = arrayobj.make_array(array_type)(context, builder, value=array).data
    vector = ir.VectorType(context.get_data_type(array_type.dtype), LANES)
    return builder.load(builder.bitcast(builder.gep(data, [at]), vector.as_pointer()), align=array_type.dtype.bitwidth // 8)


def _broadcast(builder: Any, scalar: Any) -> Any:
    undefined = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _at_most(builder: Any, element: Any, left: Any, right: Any) -> Any:
    compare = builder.fcmp_ordered if isinstance(element, types.Float) else builder.icmp_signed
    return compare("<=", left, right)


def _mask(context: Any, builder: Any, signature: Any, arguments: Any, first: Any, last: Any) -> Any:
    """The mask of the intervals that meet [first, last]."""
    element = signature.args[0].dtype
    lo = _load(context, builder, signature.args[0], arguments[0], arguments[2])
    hi = _load(context, builder, signature.args[1], arguments[1], arguments[2])
    starts = _at_most(builder, element, lo, _broadcast(builder, last))
    ends = _at_most(builder, element, _broadcast(builder, first), hi)
    return builder.bitcast(builder.and_(starts, ends), _WORD)


def _hit64(typing_context: Any, lo: Any, hi: Any, at: Any, q: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _mask(context, builder, signature, arguments, arguments[3], arguments[3])

    return types.uint64(lo, hi, types.intp, types.float32), generate


def _overlap64(typing_context: Any, lo: Any, hi: Any, at: Any, first: Any, last: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _mask(context, builder, signature, arguments, arguments[3], arguments[4])

    return types.uint64(lo, hi, types.intp, lo.dtype, lo.dtype), generate


def _disjoint64(typing_context: Any, bits: Any, at: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = _load(context, builder, signature.args[0], arguments[0], arguments[1])
        shared = builder.and_(vector, _broadcast(builder, arguments[2]))
        return builder.bitcast(builder.icmp_signed("==", shared, ir.Constant(shared.type, None)), _WORD)

    return types.uint64(bits, types.intp, bits.dtype), generate


def _and512(typing_context: Any, rows: Any, row: Any, left: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(_WORD, 8)
        data = arrayobj.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        line = builder.gep(data, [builder.mul(arguments[1], ir.Constant(_WORD, 8))])
        kept = arrayobj.make_array(signature.args[2])(context, builder, value=arguments[2]).data
        place = builder.bitcast(kept, vector.as_pointer())
        both = builder.and_(builder.load(builder.bitcast(line, vector.as_pointer()), align=8), builder.load(place, align=8))
        builder.store(both, place, align=8)
        whole = ir.IntType(512)
        return builder.icmp_unsigned("!=", builder.bitcast(both, whole), ir.Constant(whole, 0))

    return types.boolean(rows, types.intp, left), generate


def _trailing_zeros(typing_context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _leading_zeros(typing_context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _popcount(typing_context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _reinterpret(source: Any, target: Any) -> Any:
    """An intrinsic that takes the bits of a `source` for those of a `target`."""

    def typed(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return intrinsic(typed)


def _prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = arrayobj.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        reading, keep, data_cache = (ir.Constant(word, number) for number in (0, 3, 1))
        builder.call(function, [builder.bitcast(builder.gep(data, [arguments[1]]), byte), reading, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _slide(typing_context: Any, array: Any, at: Any, to: Any, n: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        source, target = (builder.gep(data, [arguments[i]]) for i in (1, 2))
        cgutils.raw_memmove(builder, target, source, arguments[3], signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.intp), generate


@inlined
def first_bits(n: int) -> np.uint64:
    return np.uint64(0) if n == 0 else ~np.uint64(0) >> np.uint64(LANES - n)


@inlined
def wide(number: SupportsInt) -> int:
    return np.int64(number)  # type: ignore[return-value]


Array = NDArray[Any]
hit64: Callable[[Array, Array, int, np.float32], np.uint64] = intrinsic(_hit64)
overlap64: Callable[[Array, Array, int, Any, Any], np.uint64] = intrinsic(_overlap64)
disjoint64: Callable[[Array, int, Any], np.uint64] = intrinsic(_disjoint64)
and512: Callable[[Array, int, Array], bool] = intrinsic(_and512)
trailing_zeros: Callable[[np.uint64], int] = intrinsic(_trailing_zeros)
leading_zeros: Callable[[np.uint64], int] = intrinsic(_leading_zeros)
popcount: Callable[[np.uint64], int] = intrinsic(_popcount)
bits_of_single: Callable[[np.float32], np.int32] = _reinterpret(types.float32, types.int32)
single_of_bits: Callable[[np.int32], np.float32] = _reinterpret(types.int32, types.float32)
bits_of_double: Callable[[float], int] = _reinterpret(types.float64, types.int64)
double_of_bits: Callable[[int], float] = _reinterpret(types.int64, types.float64)
prefetch: Callable[[Array, int], None] = intrinsic(_prefetch)
slide: Callable[[Array, int, int, int], None] = intrinsic(_slide)
