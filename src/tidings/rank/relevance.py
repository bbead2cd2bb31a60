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

An event that lacks an attribute it is judged by has no relevance (None) and does not concern the subscription.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from tidings.errors import SubscriptionError
from tidings.model.filter.clause import Values
from tidings.model.filter.operands import compile_number
from tidings.model.values.schema import Number, Schema, Time
from tidings.model.values.window import parse_window

Relevance = Callable[[Values, int], float | None]
"""Of an event's values and the time it is published."""

FIELDS = ("by", "near", "weights", "decay")


def relevance_of(schema: Schema, by: str) -> Relevance:
    """The relevance that `by` means; SubscriptionError if it means none."""
    if not by.lstrip().startswith("{"):
        return _expression(schema, by)
    spec = _read(by)
    if ("near" in spec) == ("by" in spec):
        raise SubscriptionError(f"by is {by!r}: an object has either 'near' or 'by'")
    relevance = _near(schema, spec) if "near" in spec else _expression(schema, spec["by"])
    return relevance if "decay" not in spec else _decayed(relevance, spec["decay"])


def _read(by: str) -> dict[str, Any]:
    try:
        spec = json.loads(by)
    except ValueError as error:
        raise SubscriptionError(f"by is {by!r}: {error}") from None
    for name in spec:
        if name not in FIELDS:
            raise SubscriptionError(f"by has the field {name!r}: {', '.join(FIELDS)} are accepted")
    return dict(spec)


def _expression(schema: Schema, text: object) -> Relevance:
    if not isinstance(text, str):
        raise SubscriptionError(f"by.by is {text!r}: an expression as '-price' is accepted")
    expression = compile_number(schema, text)

    def relevance(values: Values, time: int) -> float | None:
        if not expression.attributes <= values.keys():
            return None
        value = expression.value(values)
        return value if math.isfinite(value) else None

    return relevance


def _near(schema: Schema, spec: Mapping[str, Any]) -> Relevance:
    ideal = _numbers(schema, "near", spec["near"])
    weights = _numbers(schema, "weights", spec.get("weights", {}))
    terms = [(name, value, weights.get(name, 1.0)) for name, value in ideal.items()]
    if not terms or any(weight < 0.0 for _, _, weight in terms) or not weights.keys() <= ideal.keys():
        raise SubscriptionError(
            "by.near needs one attribute at least, and by.weights a number of 0 or more for attributes of by.near"
        )

    def relevance(values: Values, time: int) -> float | None:
        total = 0.0
        for name, value, weight in terms:
            if name not in values:
                return None
            off = values[name] - value
            total += weight * (off * off)
        return -math.sqrt(total)

    return relevance


def _numbers(schema: Schema, field: str, given: object) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise SubscriptionError(f"by.{field} is {given!r}: an object of attributes and numbers is accepted")
    for name, value in given.items():
        if not isinstance(schema.get(name), Number | Time):
            raise SubscriptionError(f"by.{field} names {name!r}: a Number or Time attribute of this topic is accepted")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise SubscriptionError(f"by.{field}.{name} is {value!r}: a finite number is accepted")
    return {name: float(value) for name, value in given.items()}


def _decayed(relevance: Relevance, decay: object) -> Relevance:
    length = parse_window(decay).duration
    if length is None:
        raise SubscriptionError(f"by.decay is {decay!r}: a duration as '1 day' is accepted")

    def decayed(values: Values, time: int) -> float | None:
        value = relevance(values, time)
        return None if value is None else value + time / length

    return decayed
