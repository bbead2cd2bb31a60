"""Clauses and events as plain arrays: the only form that structures in `tidings.index` see.

Dimensions. A schema with d interval-like attributes (`Schema.ranges`: Number, Time, Category, in order) has d + 2 dimensions: the
last two are the *presence* of the first Place and of the first Words attribute, whose value is 0 when present. A category's
value is its code in the attribute's vocabulary (`Vocabularies.categories`), so equality is the interval [code, code].

ClauseColumns, n clauses, p predicates:

| array        | shape, dtype     | meaning                                                                                  |
|--------------|------------------|------------------------------------------------------------------------------------------|
| `owner`      | n, int32         | the subscription's ordinal; several clauses may share one                                 |
| `pred_start` | n + 1, int64     | clause c's predicates are [pred_start[c], pred_start[c + 1]), ascending by dimension      |
| `pred_dim`   | p, int16         | the dimension tested                                                                      |
| `pred_kind`  | p, uint8         | RANGE, IN, NOT_IN or NULL                                                                 |
| `pred_lo`    | p, float64       | RANGE: closed lower end (may be -inf). IN, NOT_IN: offset into `pool`                     |
| `pred_hi`    | p, float64       | RANGE: closed upper end (may be +inf). IN, NOT_IN: how many codes                         |
| `pool`       | -, int32         | category codes, ascending within a predicate                                              |
| `box`        | n x 4, float64   | xmin, ymin, xmax, ymax; (-inf, -inf, inf, inf) means no predicate on the place            |
| `word_start` | n + 1, int64     | clause c's required words are word[word_start[c]:word_start[c + 1]], ascending            |
| `word`       | -, int32         | codes in `Vocabularies.words`                                                             |
| `residue`    | n, bool          | more is to be checked, in Python, after everything here holds                             |

EventColumns, m events:

| array        | shape, dtype         | meaning                                                                              |
|--------------|----------------------|--------------------------------------------------------------------------------------|
| `value`      | m x (d + 2), float64 | NaN is a missing attribute; -1 a category that no clause names                        |
| `box`        | m x 4, float64       | a point has equal corners; MISSING_BOX (inf, inf, -inf, -inf) touches only no-predicate |
| `word_start` | m + 1, int64         |                                                                                      |
| `word`       | -, int32             | known words only, ascending and distinct within an event                             |

A predicate of kind RANGE, IN or NOT_IN fails on NaN; NULL holds only on NaN.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.model.columns.vocabulary import UNKNOWN, Vocabulary
from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Category, Schema

RANGE, IN, NOT_IN, NULL = 0, 1, 2, 3
NO_BOX = (-math.inf, -math.inf, math.inf, math.inf)
MISSING_BOX = (math.inf, math.inf, -math.inf, -math.inf)
ROOM = 64
"""Words that an encoder has space for at first."""


class Vocabularies:
    """The codes of one topic: a vocabulary for each Category attribute, and one for the words."""

    def __init__(self, schema: Schema) -> None:
        self.categories = {name: Vocabulary() for name, a in schema.items() if isinstance(a, Category)}
        self.words = Vocabulary()

    @property
    def size(self) -> int:
        """How many strings have codes; in one object it only grows."""
        return len(self.words) + sum(map(len, self.categories.values()))


@dataclass(slots=True)
class ClauseColumns:
    owner: NDArray[np.int32]
    pred_start: NDArray[np.int64]
    pred_dim: NDArray[np.int16]
    pred_kind: NDArray[np.uint8]
    pred_lo: NDArray[np.float64]
    pred_hi: NDArray[np.float64]
    pool: NDArray[np.int32]
    box: NDArray[np.float64]
    word_start: NDArray[np.int64]
    word: NDArray[np.int32]
    residue: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.owner)


@dataclass(slots=True)
class EventColumns:
    value: NDArray[np.float64]
    box: NDArray[np.float64]
    word_start: NDArray[np.int64]
    word: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.value)


def encode_clauses(schema: Schema, vocabularies: Vocabularies, clauses: Sequence[Clause], owner: Sequence[int]) -> ClauseColumns:
    """Arrays of `clauses`; strings that are new to the vocabularies are added."""
    names: list[str] = []
    spans: list[Span] = []
    kinds: dict[int, int] = {}
    pool: list[int] = []
    word: list[int] = []
    preds, words = [0], [0]
    for clause in clauses:
        names += clause.ranges
        spans += clause.ranges.values()
        if clause.within or clause.without or clause.nulls or clause.present:
            for name, kind, span in _others(vocabularies, clause, pool):
                if kind != RANGE:
                    kinds[len(names)] = kind
                names.append(name)
                spans.append(span)
        preds.append(len(names))
        if clause.words:
            word += sorted(map(vocabularies.words.add, clause.words))
        words.append(len(word))
    pred_start = np.array(preds, np.int64)
    pred_dim = np.fromiter(map(dimensions(schema).__getitem__, names), np.int16, len(names))
    pred_kind = np.full(len(names), RANGE, np.uint8)
    if kinds:
        pred_kind[[*kinds]] = [*kinds.values()]
    ends = _flat(spans, 2)
    if len(names) > 1:
        order = _order(pred_start, pred_dim, pred_kind, ends)
        pred_dim, pred_kind, ends = pred_dim[order], pred_kind[order], ends[order]
    return ClauseColumns(
        owner=np.asarray(owner, np.int32),
        pred_start=pred_start,
        pred_dim=pred_dim,
        pred_kind=pred_kind,
        pred_lo=ends[:, 0].copy(),
        pred_hi=ends[:, 1].copy(),
        pool=np.array(pool, np.int32),
        box=_flat([NO_BOX if clause.box is None else clause.box for clause in clauses], 4),
        word_start=np.array(words, np.int64),
        word=np.array(word, np.int32),
        residue=np.array([bool(clause.residue) for clause in clauses], np.bool_),
    )


Span = tuple[float, float]


def _others(vocabularies: Vocabularies, clause: Clause, pool: list[int]) -> Iterable[tuple[str, int, Span]]:
    """(attribute, kind, both ends) of each predicate that is not a range; sets of codes are appended to `pool`."""
    for kind, sets in ((IN, clause.within), (NOT_IN, clause.without)):
        for name, strings in sets.items():
            codes = sorted(map(vocabularies.categories[name].add, strings))
            if kind == IN and len(codes) == 1:
                yield name, RANGE, (codes[0], codes[0])
            else:
                yield name, kind, (len(pool), len(codes))
                pool += codes
    for name in clause.nulls:
        yield name, NULL, (0.0, 0.0)
    for name in clause.present:
        yield name, RANGE, (-math.inf, math.inf)


def _flat(tuples: Sequence[tuple[float, ...]], width: int) -> NDArray[np.float64]:
    """A row a tuple, in a third of the time that `np.array` takes."""
    return np.fromiter(chain.from_iterable(tuples), np.float64, width * len(tuples)).reshape(-1, width)


def _order(
    start: NDArray[np.int64], dim: NDArray[np.int16], kind: NDArray[np.uint8], ends: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The predicates of each clause by dimension; those that share one by kind and ends."""
    clauses = len(start) - 1
    key = dim if clauses == 1 else np.repeat(np.arange(0, clauses << 16, 1 << 16), start[1:] - start[:-1]) + dim
    order = key.argsort(kind="stable")
    ascending = key[order]
    return order if (ascending[1:] > ascending[:-1]).all() else np.lexsort((ends[:, 1], ends[:, 0], kind, key))


def dimensions(schema: Schema) -> dict[str, int]:
    """Dimension of each attribute that can stand in `ranges`, `within`, `without`, `nulls` or `present` of a clause."""
    result = dict(schema.dimension)
    for offset, name in enumerate((schema.place, schema.words)):
        if name is not None:
            result[name] = len(schema.ranges) + offset
    return result


def take_clauses(columns: ClauseColumns, clause: NDArray[np.int64], owner: NDArray[np.int32]) -> ClauseColumns:
    """The clauses numbered `clause`, in that order and as often as named, with these owners. The pool is shared."""
    pred_start, pred = ragged_take(columns.pred_start, clause)
    word_start, word = ragged_take(columns.word_start, clause)
    return ClauseColumns(
        owner=owner,
        pred_start=pred_start,
        pred_dim=columns.pred_dim[pred],
        pred_kind=columns.pred_kind[pred],
        pred_lo=columns.pred_lo[pred],
        pred_hi=columns.pred_hi[pred],
        pool=columns.pool,
        box=columns.box[clause],
        word_start=word_start,
        word=columns.word[word],
        residue=columns.residue[clause],
    )


def ragged_take(start: NDArray[np.int64], row: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(starts, element numbers) of the rows `row` of a ragged array whose row r is elements [start[r], start[r + 1])."""
    count = start[row + 1] - start[row]
    taken = starts(count)
    element = np.arange(taken[-1]) + np.repeat(start[row] - taken[:-1], count)
    return taken, element


def starts(count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row of a ragged array begins, given how many elements each has, and the end of the last."""
    start = np.zeros(len(count) + 1, np.int64)
    np.cumsum(count, out=start[1:])
    return start


def sorted_rows(rows: int, row: NDArray[np.int64], code: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Ragged codes of (row, code) pairs in any order: ascending and distinct within a row, negative codes left out."""
    key = ((row << 32) | code)[code >= 0]
    if not (key[1:] > key[:-1]).all():
        key.sort()
        key = key[np.concatenate(([True], key[1:] > key[:-1]))]
    return starts(np.bincount(key >> 32, minlength=rows)), (key & 0xFFFFFFFF).astype(np.int32)


def rows_of(start: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each element of a ragged array."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def encode_events(schema: Schema, vocabularies: Vocabularies, events: Sequence[Values]) -> EventColumns:
    """Arrays of events given as normalised values. Nothing is added to the vocabularies."""
    encoder = EventEncoder(schema, vocabularies)
    value = np.empty((len(events), encoder.value.shape[1]))
    box = np.empty((len(events), 4))
    words, word_start = list[NDArray[np.int32]](), [0]
    for row, values in enumerate(events):
        one = encoder(values)
        value[row], box[row] = one.value[0], one.box[0]
        words.append(one.word.copy())
        word_start.append(word_start[-1] + len(one.word))
    word = np.concatenate(words) if words else _NO_WORD
    return EventColumns(value, box, np.asarray(word_start, np.int64), word)


class EventEncoder:
    """Encodes one event at a time, into arrays that the next call overwrites. Nothing is added to the vocabularies."""

    def __init__(self, schema: Schema, vocabularies: Vocabularies) -> None:
        self._value = np.empty((1, len(schema.ranges) + 2))
        box, word_start = np.empty((1, 4)), np.zeros(2, np.int64)
        # A memoryview writes a cell at a third of an array's cost. Kernels take arrays that nobody writes to: these views.
        self._cell: Any = self._value.reshape(-1).data
        self._corner: Any = box.reshape(-1).data
        self._words_end: Any = word_start[1:].data
        self.value, self.box, self.word_start = self._value.view(), box.view(), word_start.view()
        for view in (self.value, self.box, self.word_start):
            view.flags.writeable = False
        self._make_room(ROOM)
        self._numbers = {name: dim for name, dim in schema.dimension.items() if name not in vocabularies.categories}
        self._categories = {name: (schema.dimension[name], vocabulary) for name, vocabulary in vocabularies.categories.items()}
        self._words = vocabularies.words
        self._place, self._about = schema.place, schema.words
        self._presence = len(schema.ranges)

    def _make_room(self, words: int) -> None:
        """For so many words of an event: `word` is another array from now on."""
        room = np.zeros(words, np.int32)
        self._room: Any = room.data
        self.word = room.view()
        self.word.flags.writeable = False

    def __call__(self, values: Values) -> EventColumns:
        self.write(values)
        return self.columns

    @property
    def columns(self) -> EventColumns:
        """The event that was written last."""
        return EventColumns(self.value, self.box, self.word_start, self.word[: self._words_end[0]])

    def write(self, values: Values) -> None:
        """An event into `value`, `box`, `word_start` and `word`, which may be longer than its words."""
        self._value.fill(math.nan)
        cell, numbers = self._cell, self._numbers
        box, words = MISSING_BOX, 0
        for name, value in values.items():
            if name in numbers:
                cell[numbers[name]] = value
            elif name in self._categories:
                dim, vocabulary = self._categories[name]
                cell[dim] = vocabulary.code(value)
            elif name == self._place:
                cell[self._presence], box = 0.0, value
            elif name == self._about:
                cell[self._presence + 1] = 0.0
                words = self._write_words(value)
        corner = self._corner
        corner[0], corner[1], corner[2], corner[3] = box
        self._words_end[0] = words

    def _write_words(self, words: Iterable[str]) -> int:
        codes = sorted(self._words.codes(words))
        # UNKNOWN is less than every code.
        known = codes[codes.count(UNKNOWN) :]
        if len(known) > len(self.word):
            self._make_room(2 * len(known))
        self._room[: len(known)] = array("i", known)
        return len(known)


_NO_WORD = np.empty(0, np.int32)
