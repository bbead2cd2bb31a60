"""Relevance: how well an event serves a subscription, as a number. Higher is better.

A subscription's `by` says how, in one of three forms:

| `by`                                          | relevance                                                                       |
|-----------------------------------------------|---------------------------------------------------------------------------------|
| nothing                                       | the score of the match (static, linear, or the similarity)                      |
| an expression, `"-price"`, `"2 * stars - price"` | its value, CQL2 arithmetic over Number and Time attributes                    |
| an object                                     | below                                                                           |

    {"near": {"price": 500, "size": 70}, "weights": {"price": 0.01}, "decay": "1 day"}
    {"by": "-price", "decay": "12 h"}

`near` is an ideal point: relevance is minus the weighted Euclidean distance to it, weights being 1 where not given. Of a place,
{"near": {"place": [x, y]}}, it is minus the distance to the point, in metres or the plane's own unit. `decay`
lets what is older count less: relevance falls by 1 for each such stretch of age, which is exponential decay of exp(relevance).
All relevances of a subscription fall alike, so their order never changes: instead of lowering the old ones, an event published
at t is raised by t / decay. The number reported is the raised one.

An event that lacks an attribute it is judged by has no relevance (None) and does not concern the subscription. Nor does one whose
relevance is not a finite number (a division by zero, an overflow): that is NaN, so that whoever asks can count it. Nothing here
raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.model.door.by import By, read_by
from tidings.model.filter.clause import Values
from tidings.model.filter.geodesy import distance_of
from tidings.model.filter.operands import NumberExpression
from tidings.model.values.schema import Schema

Relevance = Callable[[Values, int], float | None]
"""Of an event's values and the time it is published; NaN where there is no finite answer."""


def relevance_of(schema: Schema, by: str) -> Relevance:
    """The relevance that `by` means; SubscriptionError if it means none."""
    meaning = read_by(schema, by)
    if meaning.place is not None:
        relevance = _away(schema, *meaning.place)
    else:
        relevance = _near(meaning) if meaning.expression is None else _computed(meaning.expression)
    return relevance if meaning.decay is None else _decayed(relevance, meaning.decay)


def _computed(expression: NumberExpression) -> Relevance:
    return lambda values, time: expression.value(values) if expression.attributes <= values.keys() else None


def _away(schema: Schema, name: str, point: tuple[float, float]) -> Relevance:
    far = distance_of(schema, name, point)
    return lambda values, time: 0.0 - far(values) if name in values else None


def _near(by: By) -> Relevance:
    names = [name for name, _, _ in by.near]
    terms = [term for term in by.near if term[2] > 0.0]

    def relevance(values: Values, time: int) -> float | None:
        for name in names:
            if name not in values:
                return None
        total = 0.0
        for name, value, weight in terms:
            off = values[name] - value
            total += weight * (off * off)
        return -math.sqrt(total) if total < math.inf else math.nan

    return relevance


def _decayed(relevance: Relevance, length: int) -> Relevance:
    def decayed(values: Values, time: int) -> float | None:
        value = relevance(values, time)
        return None if value is None else value + time / length

    return decayed


@dataclass(frozen=True, slots=True)
class ColumnRelevance:
    """The same of a batch of events, in columns: NaN where an attribute is missing or the answer is not finite."""

    attributes: tuple[str, ...]
    value: Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64] | float]
    decay: int | None

    def __call__(self, columns: Mapping[str, NDArray[np.float64]], time: NDArray[np.int64]) -> NDArray[np.float64]:
        """`columns` are NaN where an attribute is missing; `time` is when each event is published."""
        with np.errstate(all="ignore"):
            value = np.full(len(time), self.value(columns))
            if self.decay is not None:
                # Python divides whole numbers of any size to the nearest float.
                value += np.array([instant / self.decay for instant in time.tolist()])
        for name in self.attributes:
            value[np.isnan(columns[name])] = np.nan
        value[~np.isfinite(value)] = np.nan
        return value


def column_relevance(schema: Schema, by: str) -> ColumnRelevance | None:
    """The relevance that `by` means, for columns; None if it has to be asked of one event after the other."""
    meaning = read_by(schema, by)
    if meaning.place is not None:
        return None
    if meaning.expression is None:
        return ColumnRelevance(tuple(name for name, _, _ in meaning.near), _near_column(meaning), meaning.decay)
    column = meaning.expression.column
    return None if column is None else ColumnRelevance(tuple(meaning.expression.attributes), column, meaning.decay)


def _near_column(by: By) -> Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64] | float]:
    terms = [term for term in by.near if term[2] > 0.0]

    def relevance(columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64] | float:
        total: NDArray[np.float64] | float = 0.0
        for name, value, weight in terms:
            off = columns[name] - value
            total = total + weight * (off * off)
        return -np.sqrt(total)

    return relevance
