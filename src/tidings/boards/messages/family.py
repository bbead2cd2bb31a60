"""A painted family: all watchers of a range of one attribute that rank by one expression, with lists no longer than k.

`price:-rating:20` is the family of "the 20 best rated, or fewer, of a range of prices". An object's place in it is (x, y): x is its
value of the attribute, y ascends as relevance descends; an object without a finite x or y is in no list and has y = inf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidings.errors import SchemaError, SubscriptionError, shown
from tidings.model.filter.clause import Clause, Values
from tidings.model.filter.operands import compile_number
from tidings.model.values.schema import Number, Schema

Stands = Callable[[Values | None], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Family:
    attribute: str
    by: str
    k: int
    epsilon: float | None = None

    @property
    def name(self) -> str:
        return f"{self.attribute}:{self.by}:{self.k}"

    def stands(self, schema: Schema) -> Stands:
        """What gives an object's (x, y), of None too."""
        by = compile_number(schema, self.by)

        def place(values: Values | None) -> tuple[float, float]:
            if values is None or self.attribute not in values:
                return 0.0, math.inf
            x, y = float(values[self.attribute]), 0.0 - by.value(values)
            return (x, y) if math.isfinite(x) and math.isfinite(y) else (0.0, math.inf)

        return place

    def range_of(self, schema: Schema, clauses: Sequence[Clause], by: str | None, k: int | None) -> tuple[float, float] | None:
        """The watcher's [l, r] if it belongs to this family, else None."""
        if by is None or k is None or not 1 <= k <= self.k or not self._ranks_by(schema, by):
            return None
        if len(clauses) != 1 or clauses[0] != Clause(ranges=clauses[0].ranges) or clauses[0].ranges.keys() != {self.attribute}:
            return None
        l, r = clauses[0].ranges[self.attribute]
        return float(l), float(r)

    def _ranks_by(self, schema: Schema, by: str) -> bool:
        mine, other = compile_number(schema, self.by).linear, compile_number(schema, by).linear
        return by.strip() == self.by.strip() or (mine is not None and mine == other)


def read_family(schema: Schema, attribute: str, by: str, k: int, epsilon: float | None = None) -> Family:
    if not isinstance(schema.get(attribute), Number):
        raise SchemaError(f"attribute is {shown(attribute)}: the name of a number is accepted")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= 1000:
        raise SubscriptionError(f"k is {shown(k)}: a whole number from 1 to 1000 is accepted")
    if epsilon is not None and not (isinstance(epsilon, int | float) and 0 < epsilon <= 1):
        raise SubscriptionError(f"epsilon is {shown(epsilon)}: a number above 0 and up to 1 is accepted")
    compile_number(schema, by)
    return Family(attribute, by, k, epsilon)


def parse_family(schema: Schema, text: str) -> Family:
    """`attribute:by:k`, as `Family.name` writes it."""
    attribute, _, rest = text.partition(":")
    by, _, k = rest.rpartition(":")
    if not attribute or not by or not k.isdigit():
        raise SubscriptionError(f"family is {shown(text)}: attribute:by:k is accepted, as price:-rating:20")
    return read_family(schema, attribute, by, int(k))
