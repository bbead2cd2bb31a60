"""A clause: what a filter compiles to. A filter is a disjunction of clauses, a clause a conjunction of predicates.

`holds` is the definition of matching, in plain Python; every index is judged against it. Every predicate on an attribute that
the event lacks fails, except membership in `nulls`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.model.values.schema import Schema
from tidings.model.values.vague import meets, without_ranges

Box = tuple[float, float, float, float]
Values = Mapping[str, Any]
PointTest = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]
"""An event's attributes in the forms that `schema` lists; a missing attribute has no key."""
PREVIOUS = "PREV("
"""`PREV(price)` is the key of an object's price before its last update."""


class Unanswered(str):
    """The source of a predicate that failed because it has no finite answer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Residue:
    """A predicate that no index serves. `source` is its CQL2 JSON, `test` its compiled form, `attributes` what it reads.

    `test` never raises: None, which is as good as False, says that the predicate has no finite answer, so that whoever asks can
    count it. `price` is what a test may cost, about the values that it looks at. `points` is the same test of many events at once
    whose place, the schema's first, is a point; None if the predicate asks for anything else.
    """

    source: str
    attributes: frozenset[str]
    test: Callable[[Values], bool | None] = field(compare=False, repr=False)
    price: int = field(default=1, compare=False, repr=False)
    points: PointTest | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """Predicates by attribute. Intervals are closed; `box` and `words` are on the schema's first Place and Words attribute."""

    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)
    without: Mapping[str, frozenset[str]] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()
    box: Box | None = None
    words: frozenset[str] = frozenset()
    residue: tuple[Residue, ...] = ()

    def placed(self, box: Box) -> Clause:
        """The same with this box."""
        return Clause(self.ranges, self.within, self.without, self.nulls, self.present, box, self.words, self.residue)

    def others(self) -> Clause:
        """The predicates that similarity does not weigh: all but the box and the words."""
        return Clause(self.ranges, self.within, self.without, self.nulls, self.present, None, frozenset(), self.residue)

    def holds(self, schema: Schema, values: Values) -> bool:
        return self.first_failure(schema, values) is None

    def first_failure(self, schema: Schema, values: Values) -> str | None:
        """The attribute (or residue source) of the first predicate that fails; None when all hold."""
        for name, (lo, hi) in self.ranges.items():
            if not (name in values and meets(lo, hi, values[name])):
                return name
        for name, allowed in self.within.items():
            if not (name in values and values[name] in allowed):
                return name
        for name, refused in self.without.items():
            if not (name in values and values[name] not in refused):
                return name
        for name in self.nulls:
            if name in values:
                return name
        for name in self.present:
            if name not in values:
                return name
        if self.box is not None and not (
            schema.place is not None and schema.place in values and touches(self.box, values[schema.place])
        ):
            return schema.place
        if self.words and not (schema.words is not None and schema.words in values and self.words <= values[schema.words]):
            return schema.words
        known = without_ranges(values) if self.residue else values
        for residue in self.residue:
            verdict = residue.test(known)
            if not verdict:
                return residue.source if verdict is False else Unanswered(residue.source)
        return None

    def by_attribute(self, schema: Schema) -> dict[str, Clause]:
        """The clause cut into its dimensions, one an attribute; a residue on several attributes is a dimension of its own."""
        parts: dict[str, Clause] = {}

        def add(name: str | None, **predicate: Any) -> None:
            assert name is not None
            parts[name] = replace(parts.get(name, Clause()), **predicate)

        for name, interval in self.ranges.items():
            add(name, ranges={name: interval})
        for name, strings in self.within.items():
            add(name, within={name: strings})
        for name, strings in self.without.items():
            add(name, without={name: strings})
        for name in self.nulls:
            add(name, nulls=frozenset({name}))
        for name in self.present:
            add(name, present=frozenset({name}))
        if self.box is not None:
            add(schema.place, box=self.box)
        if self.words:
            add(schema.words, words=self.words)
        for residue in self.residue:
            name = "+".join(sorted(residue.attributes))
            add(name, residue=(*parts.get(name, Clause()).residue, residue))
        return parts

    @property
    def price(self) -> int:
        """What the clause may cost to keep and to check, about the values that it names."""
        if not (self.within or self.without or self.residue):
            return 1 + len(self.ranges) + len(self.words)
        sets = (self.within, self.without)
        named = sum(len(strings) for given in sets for strings in given.values())
        return 1 + len(self.ranges) + named + len(self.words) + sum(residue.price for residue in self.residue)

    @property
    def satisfiable(self) -> bool:
        for lo, hi in self.ranges.values():
            if lo > hi:
                return False
        return (
            all(self.within.values())
            and not (self.nulls and self.nulls & {*self.ranges, *self.within, *self.without, *self.present})
            and (self.box is None or (self.box[0] <= self.box[2] and self.box[1] <= self.box[3]))
        )


def touches(a: Box, b: Box) -> bool:
    """Whether two closed boxes share a point."""
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def above(bound: float) -> float:
    """The closed lower end of `> bound`."""
    return math.nextafter(bound, math.inf)


def below(bound: float) -> float:
    """The closed upper end of `< bound`."""
    return math.nextafter(bound, -math.inf)
