"""Packing clauses into a structure's slot order, and back: see `record` for the layout."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.packed.record import (
    DOUBLE,
    FIXED,
    FIXED_MAX,
    FIXED_MIN,
    HEAD,
    SINGLE,
    UNIT,
    Clauses,
    Events,
    Packed,
    decode,
    encode,
    fixed_code,
    fixed_value,
    order_code,
    order_value,
)
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Bool, Float64, Int16, Int32, Int64, Signed, Uint8, Uint32
from tidings.model.columns.arrays import IN, NO_BOX, NOT_IN, NULL, RANGE, ClauseColumns, EventColumns, starts
from tidings.model.columns.gather import Parts
from tidings.model.filter.clause import Box


def readonly(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of the plain array, whatever memory is under it; itself if it is one."""
    if type(array) is np.ndarray and not array.flags.writeable and array.flags.c_contiguous:
        return array
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def as_events(columns: EventColumns) -> Events:
    return Events(readonly(columns.value), readonly(columns.box), readonly(columns.word_start), readonly(columns.word))


def as_clauses(columns: ClauseColumns) -> Clauses:
    return Clauses._make(readonly(getattr(columns, name)) for name in Clauses._fields)


def pack(columns: ClauseColumns, rows: Int32, order: Int64, posted: Int32) -> Packed:
    """Slot s holds clause `order[s]`, called `rows[order[s]]`; its record leaves out the word `posted[s]` (NONE: none)."""
    clauses = as_clauses(columns)
    codecs = _dimension_codecs(clauses)
    sizes = _record_sizes(clauses, codecs, order)
    sizes -= posted != NONE
    start = np.zeros(0, np.uint32)
    record = np.empty(int(sizes.sum()), np.uint32)
    if len(record) > np.iinfo(np.uint32).max:
        raise ValueError(f"{len(order)} clauses need {len(record)} record words: a structure holds fewer than 2**32, use several")
    if len(record):
        start = starts(sizes).astype(np.uint32)
        _write_records(clauses, codecs, order, posted, start, record)
    box, place = _pack_boxes(clauses.box, order)
    arrays = (rows[order].astype(np.int32), columns.owner[order], start, record, box, place)
    return Packed(*map(readonly, arrays))


def unpack(packed: Packed, posted: Int32, residue: Uint8) -> tuple[Int32, ClauseColumns]:
    """(rows, clauses), ascending by row: what was packed. `residue` are packed bits by slot, or empty."""
    n = len(packed.row)
    slots = np.argsort(packed.row, kind="stable")
    counts = np.zeros((n, 3), np.int64)
    _count_parts(packed, slots, counts)
    counts[:, 0] += posted[slots] != NONE
    word_start, pred_start, pool_start = (starts(column) for column in counts.T)
    preds = int(pred_start[-1])
    predicates = (pred_start, np.empty(preds, np.int16), np.empty(preds, np.uint8), np.zeros(preds), np.zeros(preds))
    pool, word = np.empty(int(pool_start[-1]), np.int32), np.empty(int(word_start[-1]), np.int32)
    clauses = Clauses(*predicates, pool, _unpack_boxes(packed, slots), word_start, word)
    _read_records(packed, slots, posted, pool_start, clauses)
    bits = np.unpackbits(residue, count=n, bitorder="little").astype(np.bool_) if len(residue) else np.zeros(n, np.bool_)
    return packed.row[slots], ClauseColumns(owner=packed.owner[slots], residue=bits[slots], **clauses._asdict())


def unpack_one(packed: Packed, slot: int, posted: int) -> Parts:
    """The clause of one slot, its residue left out, in plain Python: for one clause that is a tenth of what `unpack` costs."""
    dims: list[int] = []
    spans: list[tuple[float, float]] = []
    sets: list[tuple[int, int, list[int]]] = []
    words = [] if posted == NONE else [posted]
    start, at = packed.start, 0
    lies = packed.record[start.item(slot) : start.item(slot + 1)] if len(start) else packed.record[:0]
    record = lies.tolist()
    while at < len(record):
        head = record[at]
        kind = head >> 28 & 3
        if head < HEAD:
            words.append(head)
            at += 1
        elif kind == RANGE:
            width, ends = _RANGES[head >> 26 & 3]
            # The RANGEs that follow with the same codec stand at equal distances, and are read at once.
            heads = record[at::width]
            if max(heads) >> 16 != min(heads) >> 16:
                heads = heads[: [other >> 16 == head >> 16 for other in heads].index(False)]
            dims += [head & 0xFFFF for head in heads]
            spans += ends(lies[at : at + width * len(heads)].tobytes())
            at += width * len(heads)
        else:
            count = record[at + 1] if kind != NULL else -1
            sets.append((head & 0xFFFF, kind, record[at + 2 : at + 2 + count]))
            at += 2 + count
    return Parts(dims, spans, sets, corners(packed.box, packed.place.item(), slot), words)


def only_range(packed: Packed) -> int | None:
    """The dimension of which every slot has one RANGE and nothing else; None if there is none."""
    size = np.diff(packed.start)
    # Sizes first: a slot without a record has no head to look at.
    if packed.box.shape[1] or not len(size) or not size[0] or (size != size[0]).any():
        return None
    head = packed.record[packed.start[:-1]].astype(np.int64)
    first = int(head[0])
    alike = first >= HEAD and first >> 28 & 3 == RANGE and bool((head == first).all())
    return first & 0xFFFF if alike and size[0] == _RANGES[first >> 26 & 3][0] else None


def _fixed_spans(raw: bytes) -> list[tuple[float, float]]:
    return [(_fixed(low), _fixed(high)) for low, high in struct.iter_unpack("<4x2i", raw)]


_RANGES: dict[int, tuple[int, Callable[[bytes], Iterable[tuple[float, float]]]]] = {
    FIXED: (3, _fixed_spans),
    SINGLE: (3, struct.Struct("<4x2f").iter_unpack),
    DOUBLE: (5, struct.Struct("<4x2d").iter_unpack),
}
"""By codec: how many words of a record a RANGE takes, and what reads the ends of several."""


def _fixed(code: int) -> float:
    return -math.inf if code == FIXED_MIN else math.inf if code == FIXED_MAX else code / UNIT


def corners(box: Signed, codec: int, at: int) -> Box:
    """What `record.order_value` makes of the four codes of a box."""
    if not box.shape[1]:
        return NO_BOX
    codes = box[:, at].tolist()
    if codec == FIXED:
        west, south, east, north = [_fixed(code) if abs(code) >= FIXED_MAX else code / UNIT for code in codes]
    elif codec == SINGLE:
        bits = [code if code >= 0 else code ^ 0x7FFFFFFF for code in codes]
        west, south, east, north = struct.unpack("<4f", struct.pack("<4i", *bits))
    else:
        bits = [code if code >= 0 else code ^ 0x7FFFFFFFFFFFFFFF for code in codes]
        west, south, east, north = struct.unpack("<4d", struct.pack("<4q", *bits))
    return west, south, east, north


def pack_bits(flags: Bool) -> Uint8:
    """Eight a byte, lowest first; no byte at all when none is set."""
    return readonly(np.packbits(flags, bitorder="little") if flags.any() else np.zeros(0, np.uint8))


def _pack_boxes(box: Float64, order: Int64) -> tuple[Signed, Int64]:
    if not np.isfinite(box).any():
        return np.empty((4, 0), np.int32), np.array([FIXED])
    values = np.ascontiguousarray(box)
    codec = _codec_of(values)
    codes = np.empty((4, len(box)), np.int64 if codec == DOUBLE else np.int32)
    _write_boxes(values, order, codec, codes)
    return codes, np.array([codec])


def _unpack_boxes(packed: Packed, slots: Int64) -> Float64:
    box = np.empty((len(slots), 4))
    if packed.box.shape[1]:
        _read_boxes(packed.box, slots, int(packed.place[0]), box)
    else:
        box[:] = (-np.inf, -np.inf, np.inf, np.inf)
    return box


def _codec_of(values: Float64) -> int:
    loss = np.zeros((1, 2), np.bool_)
    _mark_loss(values.ravel(), np.zeros(values.size, np.int16), np.full(values.size, RANGE, np.uint8), loss)
    return int(_choose(loss)[0])


def _dimension_codecs(clauses: Clauses) -> Uint8:
    """The codec of each dimension up to the highest that a predicate names."""
    width = int(clauses.pred_dim.max(initial=-1)) + 1
    loss = np.zeros((width, 2), np.bool_)
    _mark_loss(clauses.pred_lo, clauses.pred_dim, clauses.pred_kind, loss)
    _mark_loss(clauses.pred_hi, clauses.pred_dim, clauses.pred_kind, loss)
    return _choose(loss)


def _choose(loss: Bool) -> Uint8:
    return np.where(~loss[:, 0], FIXED, np.where(~loss[:, 1], SINGLE, DOUBLE)).astype(np.uint8)


@kernel
def _mark_loss(value: Float64, dim: Int16, kind: Uint8, loss: Bool) -> None:
    """loss[d, FIXED] and loss[d, SINGLE]: some RANGE end of dimension d would not come back."""
    for i in range(value.size):
        if kind[i] == RANGE:
            if fixed_value(fixed_code(value[i])) != value[i]:
                loss[dim[i], FIXED] = True
            if np.float64(np.float32(value[i])) != value[i]:
                loss[dim[i], SINGLE] = True


@kernel
def _record_sizes(clauses: Clauses, codecs: Uint8, order: Int64) -> Int64:
    sizes = np.empty(order.size, np.int64)
    for slot in range(order.size):
        clause = order[slot]
        size = clauses.word_start[clause + 1] - clauses.word_start[clause]
        for p in range(clauses.pred_start[clause], clauses.pred_start[clause + 1]):
            size += 1
            if clauses.pred_kind[p] == RANGE:
                size += 4 if codecs[clauses.pred_dim[p]] == DOUBLE else 2
            elif clauses.pred_kind[p] != NULL:
                size += 1 + wide(clauses.pred_hi[p])
        sizes[slot] = size
    return sizes


@kernel
def _write_records(clauses: Clauses, codecs: Uint8, order: Int64, posted: Int32, start: Uint32, record: Uint32) -> None:
    pred_dim, pred_kind, pred_lo, pred_hi = clauses.pred_dim, clauses.pred_kind, clauses.pred_lo, clauses.pred_hi
    word, pool = clauses.word, clauses.pool
    for slot in range(order.size):
        clause = order[slot]
        at = wide(start[slot])
        for w in range(clauses.word_start[clause], clauses.word_start[clause + 1]):
            if word[w] != posted[slot]:
                record[at] = word[w]
                at += 1
        for p in range(clauses.pred_start[clause], clauses.pred_start[clause + 1]):
            kind, codec = wide(pred_kind[p]), wide(codecs[pred_dim[p]])
            record[at] = np.uint32(HEAD | kind << 28 | codec << 26 | wide(pred_dim[p]))
            at += 1
            if kind == RANGE:
                at = encode(record, at, codec, pred_lo[p])
                at = encode(record, at, codec, pred_hi[p])
            elif kind != NULL:
                first, count = wide(pred_lo[p]), wide(pred_hi[p])
                record[at] = count
                record[at + 1 : at + 1 + count] = pool[first : first + count].astype(np.uint32)
                at += 1 + count


@kernel
def _count_parts(packed: Packed, slots: Int64, counts: Int64) -> None:
    """counts[i]: words, predicates and pooled codes in the record of slots[i]."""
    record = packed.record
    for i in range(slots.size if packed.start.size else 0):
        at, end = wide(packed.start[slots[i]]), wide(packed.start[slots[i] + 1])
        while at < end:
            head = wide(record[at])
            at += 1
            if head < HEAD:
                counts[i, 0] += 1
                continue
            kind = head >> 28 & 3
            counts[i, 1] += 1
            if kind == RANGE:
                at += 4 if (head >> 26 & 3) == DOUBLE else 2
            elif kind != NULL:
                counts[i, 2] += wide(record[at])
                at += 1 + wide(record[at])


@kernel
def _read_records(packed: Packed, slots: Int64, posted: Int32, pool_start: Int64, clauses: Clauses) -> None:
    """Write what the records say into `clauses`, whose starts are set; clause i is that of slots[i]."""
    record, word, pool = packed.record, clauses.word, clauses.pool
    dim, kind, lo, hi = clauses.pred_dim, clauses.pred_kind, clauses.pred_lo, clauses.pred_hi
    for i in range(slots.size):
        slot, w, p, c = slots[i], clauses.word_start[i], clauses.pred_start[i], pool_start[i]
        at = end = wide(0)
        if packed.start.size:
            at, end = wide(packed.start[slot]), wide(packed.start[slot + 1])
        while at < end:
            head = wide(record[at])
            at += 1
            if head < HEAD:
                word[w] = head
                w += 1
                continue
            dim[p], kind[p], codec = head & 0xFFFF, head >> 28 & 3, head >> 26 & 3
            if kind[p] == RANGE:
                width = 2 if codec == DOUBLE else 1
                lo[p], hi[p] = decode(packed, at, codec), decode(packed, at + width, codec)
                at += 2 * width
            elif kind[p] == IN or kind[p] == NOT_IN:
                count = wide(record[at])
                lo[p], hi[p] = c, count
                for j in range(count):
                    pool[c + j] = record[at + 1 + j]
                c += count
                at += 1 + count
            p += 1
        if posted[slot] != NONE:
            # The word left out belongs among the others, which ascend.
            word[w] = posted[slot]
            word[clauses.word_start[i] : w + 1].sort()


@kernel
def _write_boxes(box: Float64, order: Int64, codec: int, codes: Signed) -> None:
    for slot in range(order.size):
        for side in range(4):
            codes[side, slot] = order_code(box[order[slot], side], codec)


@kernel
def _read_boxes(codes: Signed, slots: Int64, codec: int, box: Float64) -> None:
    for i in range(slots.size):
        for side in range(4):
            box[i, side] = order_value(wide(codes[side, slots[i]]), codec)
