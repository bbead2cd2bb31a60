"""Relevance: how well an event serves a subscription, as a number. Higher is better.

A subscription's `by` says how, in one of three forms:

| `by`                                          | relevance                                                                       |
|-----------------------------------------------|---------------------------------------------------------------------------------|
| nothing                                       | the score of the match (static, linear, or the similarity)                      |
| an expression, `"-price"`, `"2 * stars - price"` | its value, CQL2 arithmetic over Number and Time attributes                    |
| an object                                     | below                                                                           |

    {"near": {"price": 500, "size": 70}, "weights": {"price": 0.01}, "decay": "1 day"}
    {"by": "-price", "decay": "12 h"}

`near` is an ideal point: relevance is minus the weighted Euclidean distance to it, weights being 1 where not given. `decay`
lets what is older count less: relevance falls by 1 for each such stretch of age, which is exponential decay of exp(relevance).
All relevances of a subscription fall alike, so their order never changes: instead of lowering the old ones, an event published
at t is raised by t / decay. The number reported is the raised one.

An event that lacks an attribute it is judged by has no relevance (None) and does not concern the subscription. Nor does one whose
relevance is not a finite number (a division by zero, an overflow): that is NaN, so that whoever asks can count it. Nothing here
raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tidings.model.door.by import By, read_by
from tidings.model.filter.clause import Values
from tidings.model.filter.operands import NumberExpression
from tidings.model.values.schema import Schema

Relevance = Callable[[Values, int], float | None]
"""Of an event's values and the time it is published; NaN where there is no finite answer."""


def relevance_of(schema: Schema, by: str) -> Relevance:
    """The relevance that `by` means; SubscriptionError if it means none."""
    meaning = read_by(schema, by)
    relevance = _near(meaning) if meaning.expression is None else _computed(meaning.expression)
    return relevance if meaning.decay is None else _decayed(relevance, meaning.decay)


def _computed(expression: NumberExpression) -> Relevance:
    return lambda values, time: expression.value(values) if expression.attributes <= values.keys() else None


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
