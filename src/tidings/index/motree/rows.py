"""Rows of an updatable index: clauses or events that come and go, each kept whole for exact verification.

A row belongs to a slot (`directory`). What has a fixed size lies in `row[slot]`; predicates, codes and words, whose number
varies, are appended to pools. A row that is replaced keeps its place when the new one is no longer; otherwise, and on removal, its
old place becomes waste, and a pool that is full is copied without the waste, to one larger by half if need be. So a change costs
O(its own length) amortised, and a pool is at most about twice its content.

| array   | element                                         | meaning                                                            |
|---------|-------------------------------------------------|--------------------------------------------------------------------|
| `row`   | box f64 x 4, at i64, codes_at i64, counts i32 x 3 | clause: `preds` predicates from pred[at]; from code[codes_at] on   |
|         |                                                 | the `codes` codes of its sets, then its `words` words               |
| `row`   | box f64 x 4, codes_at i64, words i32             | event: its words from code[codes_at]                               |
| `pred`  | lo, hi f64, dim i16, kind u8                     | as in `ClauseColumns`; the offset of a set counts from codes_at     |
| `value` | slots x dimensions f64                          | event: as in `EventColumns`                                        |
| `used`  | i64 x 4                                         | predicates in use, of which waste; codes in use, of which waste    |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel
from tidings.index.motree.cells import ABSENT, GRAIN, NO_AXIS, PLACE_X, PLACE_Y, Cells, code_step, narrowed, range_steps, step
from tidings.index.motree.directory import longer
from tidings.index.packed.record import Clauses, Events, contains
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.model.columns.arrays import IN, NOT_IN, NULL, RANGE

_BOX = [("xmin", "f8"), ("ymin", "f8"), ("xmax", "f8"), ("ymax", "f8")]
CLAUSE_ROW = np.dtype([*_BOX, ("at", "i8"), ("codes_at", "i8"), ("preds", "i4"), ("codes", "i4"), ("words", "i4")], align=True)
EVENT_ROW = np.dtype([*_BOX, ("codes_at", "i8"), ("words", "i4")], align=True)
PREDICATE = np.dtype([("lo", "f8"), ("hi", "f8"), ("dim", "i2"), ("kind", "u1")], align=True)
PREDS, WASTED_PREDS, CODES, WASTED_CODES = 0, 1, 2, 3


class ClauseRows(NamedTuple):
    row: NDArray[Any]
    pred: NDArray[Any]
    code: Int32
    used: Int64


class EventRows(NamedTuple):
    row: NDArray[Any]
    value: Float64
    code: Int32
    used: Int64


def new_clause_rows() -> ClauseRows:
    return ClauseRows(np.zeros(64, CLAUSE_ROW), np.zeros(256, PREDICATE), np.zeros(64, np.int32), np.zeros(4, np.int64))


def new_event_rows(dimensions: int) -> EventRows:
    return EventRows(np.zeros(64, EVENT_ROW), np.zeros((64, dimensions)), np.zeros(64, np.int32), np.zeros(4, np.int64))


def room_for_clauses(rows: ClauseRows, slots: int, preds: int, codes: int) -> ClauseRows:
    """Rows with at least `slots` slots and room for so many more predicates and codes."""
    rows = rows._replace(row=longer(rows.row, slots))
    used = rows.used
    if used[PREDS] + preds <= len(rows.pred) and used[CODES] + codes <= len(rows.code):
        return rows
    packed = rows._replace(
        pred=np.zeros(_capacity(len(rows.pred), used[PREDS] - used[WASTED_PREDS] + preds), PREDICATE),
        code=np.zeros(_capacity(len(rows.code), used[CODES] - used[WASTED_CODES] + codes), np.int32),
        used=np.zeros(4, np.int64),
    )
    pack_clauses(rows, packed)
    return packed


def room_for_events(rows: EventRows, slots: int, codes: int) -> EventRows:
    """Rows with at least `slots` slots and room for so many more words."""
    rows = rows._replace(row=longer(rows.row, slots), value=longer(rows.value, slots))
    used = rows.used
    if used[CODES] + codes <= len(rows.code):
        return rows
    packed = rows._replace(
        code=np.zeros(_capacity(len(rows.code), used[CODES] - used[WASTED_CODES] + codes), np.int32), used=np.zeros(4, np.int64)
    )
    pack_events(rows, packed)
    return packed


def _capacity(now: int, wanted: int) -> int:
    """The present capacity while what is wanted fills at most three quarters of it, else half as much again as is wanted."""
    return now if 4 * wanted <= 3 * now else 3 * int(wanted) // 2


@borrowing_kernel
def code_total(clauses: Clauses) -> int:
    """Codes of all sets and words of a batch; sets may share places in the pool."""
    total = clauses.word.size
    for p in range(clauses.pred_kind.size):
        if clauses.pred_kind[p] == IN or clauses.pred_kind[p] == NOT_IN:
            total += wide(clauses.pred_hi[p])
    return total


@borrowing_kernel
def pack_clauses(old: ClauseRows, new: ClauseRows) -> None:
    """Copy all predicates and codes, without the waste; `row` is shared and gets the new places."""
    for slot in range(new.row.size):
        row = new.row[slot]
        at, codes_at = row.at, row.codes_at
        row.at, row.codes_at = new.used[PREDS], new.used[CODES]
        for i in range(row.preds):
            new.pred[row.at + i] = old.pred[at + i]
        for i in range(row.codes + row.words):
            new.code[row.codes_at + i] = old.code[codes_at + i]
        new.used[PREDS] += row.preds
        new.used[CODES] += row.codes + row.words


@borrowing_kernel
def pack_events(old: EventRows, new: EventRows) -> None:
    for slot in range(new.row.size):
        row = new.row[slot]
        codes_at = row.codes_at
        row.codes_at = new.used[CODES]
        for i in range(row.words):
            new.code[row.codes_at + i] = old.code[codes_at + i]
        new.used[CODES] += row.words


@borrowing_kernel
def erase_clause(rows: ClauseRows, slot: int) -> None:
    row = rows.row[slot]
    rows.used[WASTED_PREDS] += row.preds
    rows.used[WASTED_CODES] += row.codes + row.words
    row.preds = row.codes = row.words = 0


@borrowing_kernel
def erase_event(rows: EventRows, slot: int) -> None:
    rows.used[WASTED_CODES] += rows.row[slot].words
    rows.row[slot].words = 0


@borrowing_kernel
def write_clause(rows: ClauseRows, slot: int, clauses: Clauses, c: int) -> None:
    """Store clause c of a batch as the row of `slot`, over the old row where it fits."""
    row = rows.row[slot]
    preds = clauses.pred_start[c + 1] - clauses.pred_start[c]
    words = clauses.word_start[c + 1] - clauses.word_start[c]
    codes = 0
    for p in range(clauses.pred_start[c], clauses.pred_start[c + 1]):
        if clauses.pred_kind[p] == IN or clauses.pred_kind[p] == NOT_IN:
            codes += wide(clauses.pred_hi[p])
    if preds > row.preds:
        rows.used[WASTED_PREDS] += row.preds
        row.at = rows.used[PREDS]
        rows.used[PREDS] += preds
    else:
        rows.used[WASTED_PREDS] += row.preds - preds
    if codes + words > row.codes + row.words:
        rows.used[WASTED_CODES] += row.codes + row.words
        row.codes_at = rows.used[CODES]
        rows.used[CODES] += codes + words
    else:
        rows.used[WASTED_CODES] += row.codes + row.words - codes - words
    row.preds, row.codes, row.words = preds, codes, words
    row.xmin, row.ymin, row.xmax, row.ymax = clauses.box[c, 0], clauses.box[c, 1], clauses.box[c, 2], clauses.box[c, 3]
    copy_predicates(rows, slot, clauses, c)


@borrowing_kernel
def copy_predicates(rows: ClauseRows, slot: int, clauses: Clauses, c: int) -> None:
    row = rows.row[slot]
    begin = clauses.pred_start[c]
    end = row.codes_at
    for i in range(row.preds):
        pred = rows.pred[row.at + i]
        p = begin + i
        pred.dim, pred.kind, pred.lo, pred.hi = clauses.pred_dim[p], clauses.pred_kind[p], clauses.pred_lo[p], clauses.pred_hi[p]
        if pred.kind == IN or pred.kind == NOT_IN:
            pred.lo = end - row.codes_at
            for j in range(wide(pred.hi)):
                rows.code[end] = clauses.pool[wide(clauses.pred_lo[p]) + j]
                end += 1
    for j in range(row.words):
        rows.code[end + j] = clauses.word[clauses.word_start[c] + j]


@borrowing_kernel
def write_event(rows: EventRows, slot: int, events: Events, e: int) -> None:
    row = rows.row[slot]
    words = events.word_start[e + 1] - events.word_start[e]
    if words > row.words:
        rows.used[WASTED_CODES] += row.words
        row.codes_at = rows.used[CODES]
        rows.used[CODES] += words
    else:
        rows.used[WASTED_CODES] += row.words - words
    row.words = words
    row.xmin, row.ymin, row.xmax, row.ymax = events.box[e, 0], events.box[e, 1], events.box[e, 2], events.box[e, 3]
    for dimension in range(rows.value.shape[1]):
        rows.value[slot, dimension] = events.value[e, dimension]
    for j in range(words):
        rows.code[row.codes_at + j] = events.word[events.word_start[e] + j]


@borrowing_kernel
def clause_steps(cells: Cells, rows: ClauseRows, slot: int) -> tuple[np.uint64, np.uint64]:
    """The steps of a stored clause on every axis, as words near and far."""
    row = rows.row[slot]
    anywhere = row.xmin == -np.inf and row.ymin == -np.inf and row.xmax == np.inf and row.ymax == np.inf
    near = np.uint64(0)
    far = np.uint64(0)
    for p in range(row.at, row.at + row.preds):
        axis = cells.axis_of[rows.pred[p].dim] if rows.pred[p].dim < cells.axis_of.size else NO_AXIS
        if axis != NO_AXIS:
            lower, upper = predicate_steps(cells, axis, rows, row.codes_at, p)
            near, far = narrowed(near, far, axis, lower, upper)
    for axis in range(0 if anywhere else cells.source.size):
        if cells.source[axis] == PLACE_X:
            near, far = narrowed(near, far, axis, step(cells, axis, row.xmin), step(cells, axis, row.xmax))
        elif cells.source[axis] == PLACE_Y:
            near, far = narrowed(near, far, axis, step(cells, axis, row.ymin), step(cells, axis, row.ymax))
    return near, far


@borrowing_kernel
def predicate_steps(cells: Cells, axis: int, rows: ClauseRows, codes_at: int, p: int) -> tuple[int, int]:
    pred = rows.pred[p]
    if pred.kind == RANGE:
        return range_steps(cells, axis, pred.lo, pred.hi)
    if pred.kind == NULL:
        return ABSENT, ABSENT
    if pred.kind == NOT_IN or pred.hi == 0:
        return 0, GRAIN - 1
    a, b = GRAIN - 1, 0
    begin = codes_at + wide(pred.lo)
    for i in range(begin, begin + wide(pred.hi)):
        at = code_step(cells, axis, np.float64(rows.code[i]))
        a, b = min(a, at), max(b, at)
    return a, b


@borrowing_kernel
def holds(rows: ClauseRows, slot: int, value: Float64, xmin: float, ymin: float, xmax: float, ymax: float, word: Int32) -> bool:
    """Whether a stored clause holds on an event given by its values, box and ascending words. Exact. [motree, Definition 4]"""
    row = rows.row[slot]
    if not (row.xmin <= xmax and xmin <= row.xmax and row.ymin <= ymax and ymin <= row.ymax):
        return False
    for p in range(row.at, row.at + row.preds):
        pred = rows.pred[p]
        v = value[pred.dim]
        if pred.kind == RANGE:
            if not (pred.lo <= v and v <= pred.hi):
                return False
        elif pred.kind == NULL:
            if not np.isnan(v):
                return False
        else:
            begin = row.codes_at + wide(pred.lo)
            if np.isnan(v) or contains(rows.code[begin : begin + wide(pred.hi)], v) != (pred.kind == IN):
                return False
    at = 0
    for i in range(row.codes_at + row.codes, row.codes_at + row.codes + row.words):
        while at < word.size and word[at] < rows.code[i]:
            at += 1
        if at == word.size or word[at] != rows.code[i]:
            return False
    return True
