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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.model.clause import Box, Clause, Values
from tidings.model.schema import Category, Schema
from tidings.model.vocabulary import Vocabulary

RANGE, IN, NOT_IN, NULL = 0, 1, 2, 3
NO_BOX = (-math.inf, -math.inf, math.inf, math.inf)
MISSING_BOX = (math.inf, math.inf, -math.inf, -math.inf)


class Vocabularies:
    """The codes of one topic: a vocabulary for each Category attribute, and one for the words."""

    def __init__(self, schema: Schema) -> None:
        self.categories = {name: Vocabulary() for name, a in schema.items() if isinstance(a, Category)}
        self.words = Vocabulary()


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
    preds: list[tuple[int, int, float, float]] = []
    pred_start, pool, words, word_start = [0], list[int](), list[int](), [0]
    for clause in clauses:
        preds += sorted(_predicates(schema, vocabularies, clause, pool))
        pred_start.append(len(preds))
        words += sorted(vocabularies.words.add(word) for word in clause.words)
        word_start.append(len(words))
    dim, kind, lo, hi = zip(*preds, strict=True) if preds else ((), (), (), ())
    return ClauseColumns(
        owner=np.asarray(owner, np.int32),
        pred_start=np.asarray(pred_start, np.int64),
        pred_dim=np.asarray(dim, np.int16),
        pred_kind=np.asarray(kind, np.uint8),
        pred_lo=np.asarray(lo, np.float64),
        pred_hi=np.asarray(hi, np.float64),
        pool=np.asarray(pool, np.int32),
        box=np.asarray([NO_BOX if c.box is None else c.box for c in clauses], np.float64).reshape(-1, 4),
        word_start=np.asarray(word_start, np.int64),
        word=np.asarray(words, np.int32),
        residue=np.asarray([bool(c.residue) for c in clauses], np.bool_),
    )


def _predicates(
    schema: Schema, vocabularies: Vocabularies, clause: Clause, pool: list[int]
) -> Iterable[tuple[int, int, float, float]]:
    """(dimension, kind, lo, hi) of each predicate that is not a box, word or residue; sets of codes are appended to `pool`."""
    dimension = dimensions(schema)
    for name, (lo, hi) in clause.ranges.items():
        yield dimension[name], RANGE, lo, hi
    for kind, sets in ((IN, clause.within), (NOT_IN, clause.without)):
        for name, strings in sets.items():
            codes = sorted(vocabularies.categories[name].add(string) for string in strings)
            if kind == IN and len(codes) == 1:
                yield dimension[name], RANGE, codes[0], codes[0]
            else:
                yield dimension[name], kind, len(pool), len(codes)
                pool += codes
    for name in clause.nulls:
        yield dimension[name], NULL, 0.0, 0.0
    for name in clause.present:
        yield dimension[name], RANGE, -math.inf, math.inf


def dimensions(schema: Schema) -> dict[str, int]:
    """Dimension of each attribute that can stand in `ranges`, `within`, `without`, `nulls` or `present` of a clause."""
    result = dict(schema.dimension)
    for offset, name in enumerate((schema.place, schema.words)):
        if name is not None:
            result[name] = len(schema.ranges) + offset
    return result


def encode_events(schema: Schema, vocabularies: Vocabularies, events: Sequence[Values]) -> EventColumns:
    """Arrays of events given as normalised values. Nothing is added to the vocabularies."""
    width = len(schema.ranges) + 2
    value = np.full((len(events), width), np.nan)
    box = np.full((len(events), 4), MISSING_BOX)
    words, word_start = list[int](), [0]
    for row, values in enumerate(events):
        value[row], box[row], codes = encode_event(schema, vocabularies, values)
        words += codes
        word_start.append(len(words))
    return EventColumns(value, box, np.asarray(word_start, np.int64), np.asarray(words, np.int32))


def encode_event(schema: Schema, vocabularies: Vocabularies, values: Values) -> tuple[list[float], Box, list[int]]:
    """One event's row: values by dimension, box, ascending codes of its known words."""
    row = [math.nan] * (len(schema.ranges) + 2)
    for name, dim in schema.dimension.items():
        if name in values:
            category = vocabularies.categories.get(name)
            row[dim] = values[name] if category is None else category.code(values[name])
    box: Box = MISSING_BOX
    codes: list[int] = []
    if schema.place is not None and schema.place in values:
        row[-2], box = 0.0, values[schema.place]
    if schema.words is not None and schema.words in values:
        row[-1] = 0.0
        codes = sorted(code for code in vocabularies.words.codes(values[schema.words]) if code >= 0)
    return row, box, codes
