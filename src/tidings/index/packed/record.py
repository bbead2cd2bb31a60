"""Does one clause hold for one event? The exact test that every candidate of a clause structure passes last.

Clauses stand packed in a structure's own slot order (`Packed`, n slots):

| array    | shape, dtype           | meaning                                                                                     |
|----------|------------------------|---------------------------------------------------------------------------------------------|
| `row`    | n, int32               | the caller's clause                                                                          |
| `owner`  | n, int32               | the clause's subscription                                                                    |
| `start`  | n + 1 or 0, uint32     | slot s's record is record[start[s]:start[s + 1]]; empty when no clause has a record          |
| `record` | -, uint32              | words, then predicates, each as below                                                        |
| `box`    | 4 x n or 4 x 0, int    | codes of xmin, ymin, xmax, ymax; no column when no clause has a box                          |
| `place`  | 1, int64               | the codec of `box`                                                                           |

A record is first the clause's required words, ascending codes below 2**31, then its predicates. A predicate is a head
`2**31 | kind << 28 | codec << 26 | dimension` and what its kind needs: RANGE lo and hi (one word each, two if DOUBLE), IN and
NOT_IN a count and that many ascending codes, NULL nothing.

Codecs store a float64 without loss in the fewest bits that the column allows:

| codec  | stored                                    | when                                                                  |
|--------|-------------------------------------------|-----------------------------------------------------------------------|
| FIXED  | int32 v, the value is v / 1e7             | every finite value of the column is such a quotient; ends mean -inf, inf |
| SINGLE | the bits of a float32                     | every value of the column is a float32                                 |
| DOUBLE | the bits of a float64                     | otherwise                                                              |

Box codes are integers in the order of the values (the sign-magnitude bits of floats are folded), int64 if DOUBLE. An event's box
becomes four thresholds in the same codes, rounded inwards: the largest code whose value is <= its upper end and the smallest
whose value is >= its lower end. So boxes are compared as integers, 64 at a time, and exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.index.packed.simd import bits_of_double, bits_of_single, double_of_bits, single_of_bits, wide
from tidings.index.packed.types import Float64, Int16, Int32, Int64, Signed, Uint8, Uint32
from tidings.model.columns.arrays import IN, NULL, RANGE

FIXED, SINGLE, DOUBLE = 0, 1, 2
HEAD = 1 << 31
UNIT = 1e7
FIXED_MIN, FIXED_MAX = -(1 << 31), (1 << 31) - 1


class Packed(NamedTuple):
    row: Int32
    owner: Int32
    start: Uint32
    record: Uint32
    box: Signed
    place: Int64


class Events(NamedTuple):
    """`EventColumns` as kernels take them: read-only arrays, so that one compilation serves every caller."""

    value: Float64
    box: Float64
    word_start: Int64
    word: Int32


class Clauses(NamedTuple):
    """`ClauseColumns` as kernels take them: read-only, and without owner and residue."""

    pred_start: Int64
    pred_dim: Int16
    pred_kind: Uint8
    pred_lo: Float64
    pred_hi: Float64
    pool: Int32
    box: Float64
    word_start: Int64
    word: Int32


class Deaths(NamedTuple):
    """By owner the moment of death, or nothing where all live; a reader at `snapshot` sees those who died after it."""

    died: Uint32
    snapshot: int


class Ranking(NamedTuple):
    """By owner: the score, greatest first, and the tie-break, least first."""

    score: Float64
    tie: Int64


@inlined
def dead(clauses: Packed, slot: int, deaths: Deaths) -> bool:
    return bool(deaths.died.size > 0 and deaths.died[clauses.owner[slot]] <= deaths.snapshot)


@inlined
def holds(clauses: Packed, slot: int, events: Events, event: int, thresholds: Signed, row: int) -> bool:
    """Every predicate, the box and the words of the clause; `thresholds[row]` are the event's `box_thresholds`."""
    return box_holds(clauses, slot, thresholds, row) and record_holds(clauses, slot, events, event)


@inlined
def box_holds(clauses: Packed, slot: int, thresholds: Signed, row: int) -> bool:
    if clauses.box.shape[1] == 0:
        return True
    low = clauses.box[0, slot] <= thresholds[row, 0] and clauses.box[1, slot] <= thresholds[row, 1]
    return bool(low and thresholds[row, 2] <= clauses.box[2, slot] and thresholds[row, 3] <= clauses.box[3, slot])


@inlined
def record_holds(clauses: Packed, slot: int, events: Events, event: int) -> bool:
    """The clause's words and predicates, everything but its box."""
    if clauses.start.size == 0:
        return True
    at, end = wide(clauses.start[slot]), wide(clauses.start[slot + 1])
    word, last_word = events.word_start[event], events.word_start[event + 1]
    while at < end:
        head = wide(clauses.record[at])
        at += 1
        if head < HEAD:
            # Words of both ascend, so that one pass over the event's serves them all.
            while word < last_word and events.word[word] < head:
                word += 1
            if word == last_word or events.word[word] != head:
                return False
            continue
        value, kind, codec = events.value[event, head & 0xFFFF], head >> 28 & 3, head >> 26 & 3
        if kind == RANGE:
            width = 2 if codec == DOUBLE else 1
            if not (decode(clauses, at, codec) <= value and value <= decode(clauses, at + width, codec)):
                return False
            at += 2 * width
        elif kind == NULL:
            if value == value:
                return False
        else:
            count = wide(clauses.record[at])
            if value != value or contains(clauses.record[at + 1 : at + 1 + count], value) != (kind == IN):
                return False
            at += 1 + count
    return True


@kernel
def contains(codes: Uint32 | Int32, value: float) -> bool:
    low, high = 0, codes.size
    while low < high:
        middle = (low + high) >> 1
        if np.float64(codes[middle]) < value:
            low = middle + 1
        else:
            high = middle
    return low < codes.size and np.float64(codes[low]) == value


@inlined
def decode(clauses: Packed, at: int, codec: int) -> float:
    """The value that stands in the records at `at`."""
    if codec == DOUBLE:
        return double_of_bits(wide(clauses.record[at]) | wide(clauses.record[at + 1]) << 32)
    if codec == SINGLE:
        return np.float64(single_of_bits(np.int32(clauses.record[at])))
    return fixed_value(wide(np.int32(clauses.record[at])))


@kernel
def encode(record: Uint32, at: int, codec: int, value: float) -> int:
    """Store the value; the position after it."""
    if codec == DOUBLE:
        bits = bits_of_double(value)
        record[at] = np.uint32(bits & 0xFFFFFFFF)
        record[at + 1] = np.uint32(bits >> 32 & 0xFFFFFFFF)
        return at + 2
    record[at] = np.uint32(bits_of_single(np.float32(value)) if codec == SINGLE else fixed_code(value))
    return at + 1


@inlined
def fixed_value(code: int) -> float:
    if code == FIXED_MIN:
        return -np.inf
    return np.inf if code == FIXED_MAX else code / UNIT


@kernel
def fixed_code(value: float) -> int:
    """The code nearest to the value; it means the value only if `fixed_value` gives it back."""
    if not np.abs(value) < FIXED_MAX / UNIT:
        return FIXED_MIN if value < 0 else FIXED_MAX
    return wide(np.rint(value * UNIT))


@kernel
def order_code(value: float, codec: int) -> int:
    """The integer that stands for a box coordinate: integers compare as the values do."""
    if codec == FIXED:
        return fixed_code(value)
    if codec == SINGLE:
        single = wide(bits_of_single(np.float32(value + 0.0)))
        return single if single >= 0 else single ^ 0x7FFFFFFF
    double = bits_of_double(value + 0.0)
    return double if double >= 0 else double ^ 0x7FFFFFFFFFFFFFFF


@kernel
def order_value(code: int, codec: int) -> float:
    """The coordinate that an integer stands for."""
    if codec == FIXED:
        return fixed_value(code)
    if codec == SINGLE:
        return np.float64(single_of_bits(np.int32(code if code >= 0 else code ^ 0x7FFFFFFF)))
    return double_of_bits(code if code >= 0 else code ^ 0x7FFFFFFFFFFFFFFF)


@kernel
def floor_code(value: float, codec: int) -> int:
    """The largest code whose value is at most `value`."""
    code = order_code(value, codec)
    while order_value(code, codec) > value:
        code -= 1
    while codec == FIXED and code < FIXED_MAX and order_value(code + 1, codec) <= value:
        code += 1
    return code


@kernel
def ceil_code(value: float, codec: int) -> int:
    """The smallest code whose value is at least `value`."""
    code = order_code(value, codec)
    while order_value(code, codec) < value:
        code += 1
    while codec == FIXED and code > FIXED_MIN and order_value(code - 1, codec) >= value:
        code -= 1
    return code


@kernel
def box_thresholds(box: Float64, event: int, codec: int, thresholds: Signed, row: int) -> None:
    """A clause box touches the event's if its lower codes are <= the first two and its upper codes >= the last two."""
    thresholds[row, 0] = floor_code(box[event, 2], codec)
    thresholds[row, 1] = floor_code(box[event, 3], codec)
    thresholds[row, 2] = ceil_code(box[event, 0], codec)
    thresholds[row, 3] = ceil_code(box[event, 1], codec)
