"""CQL2 -> clauses. `docs/filters.md` tells the language; this tells how it is compiled.

The tree is put into disjunctive normal form with NOT at the leaves, which is exact in CQL2's three-valued logic. A leaf on one
Number or Time is a list of closed intervals and its negation their complement; on a Category it is a set of values or its
complement; on the first Place a box; on the first Words required words. What has no such form is a residue beside whatever part
of it an index can serve.

A leaf that splits into several clauses (`<>`, IN on numbers, A_OVERLAPS) multiplies the whole. When the limit is passed such leaves
are compiled once more, each into one clause: their hull for the index, themselves as residue. Beyond the limit even so, the
filter is refused.

A filter has a price, about the values that its clauses name and its residues may look at, an event. Beyond PRICE_LIMIT it is
refused at the door: nobody's filter is to slow down the others'.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

from tidings.errors import FilterError, NeverMatchesWarning, UnknownAttributeError, shown
from tidings.model.filter import spatial, temporal
from tidings.model.filter.clause import Clause, Residue, above, below
from tidings.model.filter.conjunction import plain_filter, plain_part
from tidings.model.filter.elements import read_elements, warn_of_dropped
from tidings.model.filter.geodesy import DWITHIN, read_circle, within
from tidings.model.filter.hints import unknown_attribute
from tidings.model.filter.normal_form import EVERYTHING, TooManyClauses, conjoin_all, disjoin_all
from tidings.model.filter.operands import NUMBER, TEXT, TIME, TRUTH, Operand, comparable, operand
from tidings.model.filter.residue import (
    ARRAY_INVERSE,
    arguments,
    attribute_of,
    compared,
    compile_residue,
    is_day,
    plain_numbers,
    predicate,
    property_name,
    read_place,
    residue_of,
)
from tidings.model.filter.syntax import Node, parse_filter
from tidings.model.values.limits import limited
from tidings.model.values.prose import Element
from tidings.model.values.schema import Bool, Date, Place, Schema, Time, Words

__all__ = ["compile_filter", "compile_residue"]

Span = tuple[float, float]
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
CLAUSE_LIMIT = 64
PRICE_LIMIT = 250_000


def compile_filter(schema: Schema, source: str | Mapping[str, Any], limit: int = CLAUSE_LIMIT) -> list[Clause]:
    """The clauses of a filter, any of which an event must satisfy. None at all, and a NeverMatchesWarning, when no event can."""
    if source.__class__ is not str and isinstance(source, Mapping) and (whole := plain_filter(schema, source)) is not None:
        return [whole]
    tree = parse_filter(source)
    if tree.__class__ is dict and tree.get("op") == "and":
        clauses, others = plain_part(schema, tree["args"])
        if clauses and not others and clauses[0].price <= PRICE_LIMIT:
            return clauses
    try:
        return _compiled(schema, source, tree, limit)
    except UnknownAttributeError as error:
        told = unknown_attribute(error.attribute, schema, source if isinstance(source, str) else None)
        raise UnknownAttributeError(f"{error}{told}", error.attribute) from None


def _compiled(schema: Schema, source: str | Mapping[str, Any], tree: Node, limit: int) -> list[Clause]:
    try:
        clauses = _Compiler(schema, limit, split=True).clauses(tree, False)
    except TooManyClauses:
        try:
            clauses = _Compiler(schema, limit, split=False).clauses(tree, False)
        except TooManyClauses:
            raise FilterError(
                f"the filter needs more than {limit} clauses when its ORs are multiplied out: split it into several"
            ) from None
    price = clauses[0].price if len(clauses) == 1 else sum(clause.price for clause in clauses)
    if price > PRICE_LIMIT and limited():
        raise FilterError(f"the filter has a price of {price}: at most {PRICE_LIMIT} is accepted; ask for less in one filter")
    if not clauses:
        warnings.warn(f"the filter {shown(source)} can never match", NeverMatchesWarning, stacklevel=3)
    return clauses


class _Compiler:
    def __init__(self, schema: Schema, limit: int, split: bool) -> None:
        self.schema, self.limit, self.split = schema, limit, split

    @property
    def indexed(self) -> set[str | None]:
        return {*self.schema.ranges, self.schema.place, self.schema.words}

    def clauses(self, node: Node, negated: bool) -> list[Clause]:
        if isinstance(node, bool):
            return [EVERYTHING] if node is not negated else []
        if not isinstance(node, dict) or "op" not in node:
            raise FilterError(f"{_named(node)} is not a predicate: a comparison or an operator is accepted")
        op = node["op"]
        if op == "not":
            return self.clauses(arguments(node, 1)[0], not negated)
        if op in ("and", "or"):
            return self._connected(op, node["args"], negated)
        return self._leaf(op, node, negated)

    def _connected(self, op: str, args: list[Node], negated: bool) -> list[Clause]:
        plain, others = plain_part(self.schema, args) if op == "and" and not negated else ([EVERYTHING], args)
        parts = [self.clauses(arg, negated) for arg in others]
        if (op == "and") is not negated:
            return conjoin_all(self.schema, [plain, *parts], self.limit) if parts else plain
        return disjoin_all(parts, self.limit)

    def _leaf(self, op: str, node: Node, negated: bool) -> list[Clause]:
        if op in _FLIPPED:
            return self._comparison(op, node, negated)
        if op == "in":
            return self._in(node, negated)
        if op == "between":
            return self._between(node, negated)
        if op == "isNull":
            return self._is_null(node, negated)
        if op == "like":
            return self._like(node, negated)
        if op in ARRAY_INVERSE:
            return self._words(op, node, negated)
        if op in spatial.INVERSE:
            return self._place(op, node, negated)
        if op in temporal.INVERSE:
            return self._time(op, node, negated)
        if isinstance(op, str) and op.lower() == DWITHIN:
            return self._circle(node, negated)
        return self._residue(node, negated)

    def _circle(self, node: Node, negated: bool) -> list[Clause]:
        """A box or two, and the exact distance; where no box serves, the distance alone."""
        name, point, metres = read_circle(self.schema, node["args"])
        if name == self.schema.place and not negated:
            return list(within(self.schema, point, metres))
        centre = {"type": "Point", "coordinates": list(point)}
        return self._residue({"op": DWITHIN, "args": [{"property": name}, centre, metres]}, negated)

    def _comparison(self, op: str, node: Node, negated: bool) -> list[Clause]:
        left_node, right_node = arguments(node, 2)
        left, right = comparable(operand(self.schema, left_node, op), operand(self.schema, right_node, op), op)
        if left.constant and right.constant:
            return [EVERYTHING] if compared(op, left, right)[1]({}) is not negated else []
        if left.constant:
            left, right, op = right, left, _FLIPPED[op]
        if left.name is None or not right.constant:
            return self._residue(node, negated)
        if negated:
            op = _NEGATED[op]
        return self._compared(left, op, right.value({}), node, negated)

    def _compared(self, left: Operand, op: str, value: Any, node: Node, negated: bool) -> list[Clause]:
        name = left.name
        assert name is not None
        if left.kind == NUMBER:
            return self._spans(name, _number_spans(op, value), node, negated)
        if left.kind == TIME:
            return self._spans(name, self._instants(name, temporal.compared_spans(op, value, self._extent(name))), node, negated)
        if left.kind == TRUTH and op in ("=", "<>"):
            wanted = float(value is (op == "="))
            return [Clause(ranges={name: (wanted, wanted)})]
        if left.kind == TRUTH:
            return self._residue(node, negated)
        if op == "=":
            return [Clause(within={name: frozenset((value,))})]
        if op == "<>":
            return [Clause(without={name: frozenset((value,))})]
        return self._residue(node, negated)

    def _between(self, node: Node, negated: bool) -> list[Clause]:
        value, low, high = (operand(self.schema, arg, "between") for arg in arguments(node, 3))
        value, low = comparable(value, low, "between")
        value, high = comparable(value, high, "between")
        if value.name is None or not (low.constant and high.constant) or value.kind in (TEXT, TRUTH):
            return self._residue(node, negated)
        first, last = low.value({}), high.value({})
        if value.kind == TIME:
            spans = self._instants(value.name, [(first[0] - self._extent(value.name), last[1])])
        else:
            spans = [(first, last)] if first <= last else []
        return self._spans(value.name, self._complement(value.name, spans) if negated else spans, node, negated)

    def _in(self, node: Node, negated: bool) -> list[Clause]:
        value_node, items = arguments(node, 2)
        value = operand(self.schema, value_node, "in")
        if value.name is None or not isinstance(items, list):
            return self._residue(node, negated)
        constants: list[Any] | None = plain_numbers(value, items) or self._constants(value, items)
        if constants is None:
            return self._residue(node, negated)
        if value.kind == TEXT:
            strings = {value.name: frozenset(constants)}
            return [Clause(without=strings) if negated else Clause(within=strings)] if constants or negated else []
        if value.kind == TIME:
            equal = [span for c in constants for span in temporal.compared_spans("=", c, self._extent(value.name))]
            spans = _united(self._instants(value.name, equal))
        else:
            spans = _united([(float(c), float(c)) for c in constants])
        return self._spans(value.name, self._complement(value.name, spans) if negated else spans, node, negated)

    def _constants(self, value: Operand, items: list[Node]) -> list[Any] | None:
        """What `value` is looked for among; None if not all of it is known."""
        others = [comparable(value, operand(self.schema, item, "in"), "in")[1] for item in items]
        return [other.value({}) for other in others] if all(other.constant for other in others) else None

    def _extent(self, name: str) -> int:
        """How long a value of a Time or Date lasts, in nanoseconds."""
        return temporal.LASTING if isinstance(self.schema[name], Date) else 0

    def _instants(self, name: str, spans: list[Span]) -> list[Span]:
        return temporal.in_days(spans) if isinstance(self.schema[name], Date) else temporal.in_microseconds(spans)

    def _is_null(self, node: Node, negated: bool) -> list[Clause]:
        name = frozenset((property_name(self.schema, node),))
        if not name <= self.indexed:
            return [Clause(residue=(residue_of(self.schema, node, negated),))]
        return [Clause(present=name) if negated else Clause(nulls=name)]

    def _like(self, node: Node, negated: bool) -> list[Clause]:
        value, pattern = arguments(node, 2)
        if isinstance(pattern, str) and not {"\\", "_", "%"} & {*pattern}:
            return self._comparison("=", {"op": "=", "args": [value, pattern]}, negated)
        return self._residue(node, negated)

    def _words(self, op: str, node: Node, negated: bool) -> list[Clause]:
        left, right = arguments(node, 2)
        name, other = attribute_of(self.schema, op, left, Words), right
        if name is None:
            name, other, op = attribute_of(self.schema, op, right, Words), left, ARRAY_INVERSE[op]
        if name is None or isinstance(other, dict):
            return self._residue(node, negated)
        elements = read_elements(self.schema, op, name, other)
        warn_of_dropped(self.schema, name, other)
        if name != self.schema.words or negated:
            return self._residue(node, negated)
        if op == "a_contains":
            residue = () if all(element.exact for element in elements) else (residue_of(self.schema, node, False),)
            tokens = frozenset[str]().union(*(element.words for element in elements))
            return [Clause(words=tokens, residue=residue) if tokens else Clause(present=frozenset((name,)))]
        if op == "a_overlaps" and len(elements) <= (self.limit if self.split else 1):
            texts = other if isinstance(other, list) else [other]
            distinct = {(element.words, element.phrases): (element, text) for element, text in zip(elements, texts, strict=True)}
            return [self._element(name, *pair) for pair in distinct.values()]
        return self._residue(node, negated)

    def _element(self, name: str, element: Element, text: str) -> Clause:
        """One of the texts that A_OVERLAPS names."""
        if element.exact:
            return Clause(words=element.words)
        node = {"op": "a_contains", "args": [{"property": name}, [text]]}
        return Clause(words=element.words, residue=(residue_of(self.schema, node, False),))

    def _place(self, op: str, node: Node, negated: bool) -> list[Clause]:
        left, right = arguments(node, 2)
        name, other = attribute_of(self.schema, op, left, Place), right
        if name is None:
            name, other, op = attribute_of(self.schema, op, right, Place), left, spatial.INVERSE[op]
        if name is None or name != self.schema.place or (isinstance(other, dict) and "property" in other):
            return self._residue(node, negated)
        if negated is not (op == "s_disjoint"):
            return self._residue(node, negated)
        region = read_place(self.schema, name, other)
        place = self.schema[name]
        pure = region.exact and op in ("s_intersects", "s_disjoint") and isinstance(place, Place) and not place.shapes
        if len(region.boxes) > 1 and not self.split:
            return self._residue(node, negated)
        residue = () if pure else (residue_of(self.schema, node, negated),)
        return [Clause(box=box, residue=residue) for box in region.boxes]

    def _time(self, op: str, node: Node, negated: bool) -> list[Clause]:
        left, right = arguments(node, 2)
        name, other = attribute_of(self.schema, op, left, Time, Date), right
        if name is None:
            name, other, op = attribute_of(self.schema, op, right, Time, Date), left, temporal.INVERSE[op]
        if name is None or not _constant_time(other):
            return self._residue(node, negated)
        span = temporal.span_of(other)
        extent = self._extent(name)
        to_the_day = op == "t_equals" and is_day(left, right) and not extent
        spans = self._instants(name, [span] if to_the_day else temporal.related_spans(op, span, extent))
        return self._spans(name, self._complement(name, spans) if negated else spans, node, negated)

    def _spans(self, name: str, spans: list[Span], node: Node, negated: bool) -> list[Clause]:
        """One clause an interval; or, not to split, their hull with the predicate itself as residue."""
        if len(spans) <= (self.limit if self.split else 1):
            return [Clause(ranges={name: span}) for span in spans]
        hull = {name: (spans[0][0], spans[-1][1])}
        return [Clause(ranges=hull, residue=(residue_of(self.schema, node, negated),))]

    def _complement(self, name: str, spans: list[Span]) -> list[Span]:
        """What ascending, disjoint closed intervals leave of the line."""
        if isinstance(self.schema[name], Bool):
            return [(value, value) for value in (0.0, 1.0) if (value, value) not in spans]
        time = isinstance(self.schema[name], Time | Date)
        gaps, start = [], -math.inf
        for lo, hi in spans:
            end = lo - 1 if time else below(lo)
            if start <= end and end != -math.inf:
                gaps.append((start, end))
            start = hi + 1 if time else above(hi)
        return gaps if start == math.inf else [*gaps, (start, math.inf)]

    def _residue(self, node: Node, negated: bool) -> list[Clause]:
        """The predicate as residue; the index still learns which attributes must be there."""
        attributes, truth = predicate(self.schema, node)
        if not attributes:
            return [EVERYTHING] if truth({}) is not negated else []  # a constant without a finite answer was refused before
        residue: Residue = residue_of(self.schema, node, negated)
        return [Clause(present=attributes & self.indexed, residue=(residue,))]


def _number_spans(op: str, value: float) -> list[Span]:
    return {
        "=": [(value, value)],
        "<>": [(-math.inf, below(value)), (above(value), math.inf)],
        "<": [(-math.inf, below(value))],
        "<=": [(-math.inf, value)],
        ">": [(above(value), math.inf)],
        ">=": [(value, math.inf)],
    }[op]


def _united(spans: list[Span]) -> list[Span]:
    """Ascending and disjoint."""
    result: list[Span] = []
    for lo, hi in sorted(spans):
        if result and lo <= result[-1][1]:
            result[-1] = (result[-1][0], max(hi, result[-1][1]))
        else:
            result.append((lo, hi))
    return result


def _constant_time(node: Node) -> bool:
    if isinstance(node, str):
        return True
    if not isinstance(node, dict):
        return False
    bounds = node.get("interval")
    if bounds is not None:
        return not any(isinstance(bound, dict) and "property" in bound for bound in bounds)
    return "timestamp" in node or "date" in node


def _named(node: Node) -> str:
    if isinstance(node, dict) and "property" in node:
        return f"attribute {shown(node['property'])}"
    return shown(node)
