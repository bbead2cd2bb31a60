"""The intrinsics that numba compiles in place of the functions of `simd`, by the same names: vector IR of LLVM.

Written as vectors, so every target of LLVM gets its own (AVX2 on x86-64, NEON on ARM); a plain loop over the same data ran 1.1-1.4
times slower.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

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


def _within64(typing_context: Any, lanes: Any, row: Any, first: Any, last: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = builder.mul(arguments[1], ir.Constant(_WORD, 2 * LANES))
        lo = _load(context, builder, signature.args[0], arguments[0], at)
        hi = _load(context, builder, signature.args[0], arguments[0], builder.add(at, ir.Constant(_WORD, LANES)))
        first, last = (_broadcast(builder, builder.trunc(end, ir.IntType(8))) for end in arguments[2:])
        both = builder.and_(builder.icmp_signed("<=", lo, last), builder.icmp_signed("<=", first, hi))
        return builder.bitcast(both, _WORD)

    return types.uint64(lanes, types.intp, types.int64, types.int64), generate


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


hit64 = intrinsic(_hit64)
overlap64 = intrinsic(_overlap64)
within64 = intrinsic(_within64)
disjoint64 = intrinsic(_disjoint64)
and512 = intrinsic(_and512)
trailing_zeros = intrinsic(_trailing_zeros)
leading_zeros = intrinsic(_leading_zeros)
popcount = intrinsic(_popcount)
bits_of_single = _reinterpret(types.float32, types.int32)
single_of_bits = _reinterpret(types.int32, types.float32)
bits_of_double = _reinterpret(types.float64, types.int64)
double_of_bits = _reinterpret(types.int64, types.float64)
prefetch = intrinsic(_prefetch)
slide = intrinsic(_slide)
