"""Linear scores: `base + sum of coefficient * attribute`, written as CQL2 arithmetic (`"100 - 0.5 * price + 2 * stars"`).

A product has at most one side that is not constant. An event that lacks one of the attributes, or whose sum is not finite, has no
score: NaN, and whoever asked gives no match.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidings.errors import FilterError, SubscriptionError, shown
from tidings.model.filter.clause import Values
from tidings.model.filter.operands import compile_number
from tidings.model.values.limits import limited
from tidings.model.values.schema import Schema
from tidings.model.values.vague import middle

LENGTH_LIMIT = 2_000
"""Most characters of an expression."""


@dataclass(frozen=True, slots=True)
class Linear:
    base: float = 0.0
    coefficients: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, values: Values) -> float:
        total = self.base
        for name, coefficient in self.coefficients.items():
            if name not in values:
                return math.nan
            total += coefficient * middle(values[name])
        return total if -math.inf < total < math.inf else math.nan


def parse_linear(schema: Schema, name: str, text: str) -> Linear:
    """The linear form of `text`, the value of the field `name`; SubscriptionError if it is none."""
    refusal = (
        f"{name} is {shown(text)}: a linear expression of Number and Time attributes is accepted, as '-price' or '10 + 0.5 * stars'"
    )
    if len(text) > LENGTH_LIMIT and limited():
        raise SubscriptionError(f"{name} is an expression of {len(text)} characters: at most {LENGTH_LIMIT} are accepted")
    try:
        form = compile_number(schema, text).linear
    except FilterError as error:
        raise SubscriptionError(f"{refusal} ({error})") from None
    if form is None:
        raise SubscriptionError(f"{refusal} (a product has at most one side with attributes, and a divisor none)")
    base, coefficients = form
    if not all(map(math.isfinite, [base, *coefficients.values()])):
        raise SubscriptionError(f"{refusal} (its numbers are too large)")
    return Linear(base, {attribute: value for attribute, value in coefficients.items() if value != 0.0})
