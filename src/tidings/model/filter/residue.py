"""Predicates as functions of an event's values: the meaning of every operator, and what checks those that no index serves.

A predicate is written down as CQL2 JSON (`Residue.source`) and rebuilt from it by `compile_residue`. It fails, negated or not, when
an attribute it reads is missing (`IS NULL` excepted) or its arithmetic has no finite answer. Every operand is evaluated, so neither
depends on the order in which they are written.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.errors import FilterError, shown
from tidings.model.filter import spatial, temporal
from tidings.model.filter.clause import PointTest, Residue, Values
from tidings.model.filter.elements import asked_words, read_elements, test_of, words_alone
from tidings.model.filter.geodesy import DWITHIN, circle_of, circle_residue, distance_of, read_circle
from tidings.model.filter.like import like_matcher, like_price
from tidings.model.filter.operands import NUMBER, TEXT, TIME, TRUTH, Operand, attribute_type, comparable, operand
from tidings.model.filter.syntax import Node
from tidings.model.values.schema import Date, Place, Schema, Time, Words

Truth = Callable[[Values], bool]
Predicate = tuple[frozenset[str], Truth]
"""What a predicate reads, and whether it holds of values that have all of it."""
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARRAY_INVERSE = {"a_contains": "a_containedBy", "a_containedBy": "a_contains", "a_equals": "a_equals", "a_overlaps": "a_overlaps"}


def compile_residue(schema: Schema, source: str) -> Residue:
    """The residue that `source` (a Residue's own source) describes."""
    circle = circle_of(source)
    if circle is not None:
        return circle_residue(schema, *circle)
    node, negated = json.loads(source), False
    while node.get("op") == "not":
        node, negated = node["args"][0], not negated
    return residue_of(schema, node, negated)


def residue_of(schema: Schema, node: Node, negated: bool) -> Residue:
    source = json.dumps({"op": "not", "args": [node]} if negated else node, ensure_ascii=False)
    price = 1 + source.count(",") + (like_price(node["args"]) if node["op"] == "like" else 0)
    if node["op"] == "isNull":
        name = property_name(schema, node)
        return Residue(source, frozenset((name,)), lambda values: (name in values) is negated, price)
    attributes, truth = predicate(schema, node)

    def test(values: Values) -> bool | None:
        for name in attributes:
            if name not in values:
                return False
        try:
            return truth(values) is not negated
        except ArithmeticError:
            return None

    return Residue(source, attributes, test, price, _point_test(schema, node, negated))


def _point_test(schema: Schema, node: Node, negated: bool) -> PointTest | None:
    """The test of many points at once, of a predicate on the schema's first Place and a constant; it is made when it is needed."""
    if node["op"] not in spatial.INVERSE:
        return None
    (left, right), op = node["args"], node["op"]
    if isinstance(right, dict) and "property" in right:
        left, right, op = right, left, spatial.INVERSE[op]
    if left != {"property": schema.place} or "property" in right:
        return None
    made: list[PointTest] = []

    def points(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        if not made:
            made.append(read_place(schema, schema.place or "", right).related_points(op))
        held = made[0](x, y)
        return ~held if negated else held

    return points


def predicate(schema: Schema, node: Node) -> Predicate:
    """Any predicate but IS NULL; FilterError naming the operator when it has no meaning here."""
    op = node["op"]
    if op in _COMPARE:
        return _comparison(schema, op, *arguments(node, 2))
    if op in ARRAY_INVERSE:
        return _words(schema, op, *arguments(node, 2))
    if op in spatial.INVERSE:
        return _places(schema, op, *arguments(node, 2))
    if op in temporal.INVERSE:
        return _times(schema, op, *arguments(node, 2))
    if op in _OTHER:
        return _OTHER[op](schema, node)
    if op == DWITHIN:
        name, point, metres = read_circle(schema, node["args"])
        far = distance_of(schema, name, point)
        return frozenset((name,)), lambda values: far(values) <= metres
    raise FilterError(f"operator {op!r} is not known")


def arguments(node: Node, count: int) -> list[Node]:
    args: list[Node] = node["args"]
    if len(args) != count:
        raise FilterError(f"operator {node['op']!r} takes {count} operands, not {len(args)}")
    return args


def property_name(schema: Schema, node: Node) -> str:
    """The attribute that IS NULL asks about."""
    (arg,) = arguments(node, 1)
    if not isinstance(arg, dict) or "property" not in arg:
        raise FilterError(f"operator 'isNull' takes an attribute, not {shown(arg)}")
    attribute_type(schema, arg["property"])
    name: str = arg["property"]
    return name


def _comparison(schema: Schema, op: str, left_node: Node, right_node: Node) -> Predicate:
    left, right = comparable(operand(schema, left_node, op), operand(schema, right_node, op), op)
    return compared(op, left, right)


def compared(op: str, left: Operand, right: Operand) -> Predicate:
    if left.kind == TRUTH and op not in ("=", "<>"):
        raise FilterError(f"operator {op!r} does not apply to TRUE and FALSE: = and <> do")
    test: Callable[[Any, Any], bool] = (temporal.COMPARE if left.kind == TIME else _COMPARE)[op]
    first, second = left.value, right.value
    return left.attributes | right.attributes, lambda values: test(first(values), second(values))


def _between(schema: Schema, node: Node) -> Predicate:
    value, low, high = arguments(node, 3)
    above, below = _comparison(schema, ">=", value, low), _comparison(schema, "<=", value, high)
    return above[0] | below[0], lambda values: above[1](values) & below[1](values)


def _in(schema: Schema, node: Node) -> Predicate:
    value, items = arguments(node, 2)
    if not isinstance(items, list):
        raise FilterError(f"operator 'in' takes a list, not {shown(items)}")
    wanted = operand(schema, value, "in")
    if (numbers := plain_numbers(wanted, items)) is not None:
        among, get = frozenset(numbers), wanted.value
        return wanted.attributes, lambda values: get(values) in among
    others = [comparable(wanted, operand(schema, item, "in"), "in") for item in items]
    if wanted.kind != TIME and all(other.constant for _, other in others):
        constants, of = frozenset(other.value({}) for _, other in others), wanted.value
        return wanted.attributes, lambda values: of(values) in constants
    equalities = [compared("=", left, right) for left, right in others]
    attributes = wanted.attributes.union(*(read for read, _ in equalities))
    return attributes, lambda values: True in [truth(values) for _, truth in equalities]


def plain_numbers(wanted: Operand, items: list[Node]) -> list[float] | None:
    """The numbers that a number is looked for among, if nothing else is; None if not. A list may be long: no object an item."""
    plain = wanted.kind == NUMBER and all(type(item) in (float, int) and abs(item) < 1e308 for item in items)
    return items if plain else None


def _like(schema: Schema, node: Node) -> Predicate:
    value, pattern = (operand(schema, arg, "like") for arg in arguments(node, 2))
    if value.kind != TEXT or pattern.kind != TEXT or not pattern.constant:
        raise FilterError("operator 'like' takes a Category and a constant pattern")
    matches, text = like_matcher(pattern.value({})), value.value
    return value.attributes, lambda values: matches(text(values))


_OTHER: dict[str, Callable[[Schema, Node], Predicate]] = {"between": _between, "in": _in, "like": _like}


def attribute_of(schema: Schema, op: str, node: Node, kind: type, other: type | None = None) -> str | None:
    """The attribute a node names, which must be of the kind, or the other; None when the node is a literal."""
    if not isinstance(node, dict) or "property" not in node:
        return None
    name: str = node["property"]
    found = attribute_type(schema, name)
    if not isinstance(found, kind if other is None else (kind, other)):
        accepted = kind.__name__ if other is None else f"{kind.__name__} or {other.__name__}"
        raise FilterError(f"operator {op!r} takes a {accepted}, and attribute {name!r} is a {type(found).__name__}")
    return name


def _words(schema: Schema, op: str, left: Node, right: Node) -> Predicate:
    first, second = attribute_of(schema, op, left, Words), attribute_of(schema, op, right, Words)
    if first is not None and second is not None:
        return _two_words(schema, op, first, second)
    if first is None:
        if second is None:
            raise FilterError(f"operator {op!r} needs a Words attribute on one side")
        first, right, op = second, left, ARRAY_INVERSE[op]
    kind, name = schema[first], first
    assert isinstance(kind, Words)
    elements = read_elements(schema, op, name, right)
    tests = [test_of(kind, element) for element in elements]
    if op == "a_overlaps":
        return frozenset((name,)), lambda values: any(test(values[name]) for test in tests)
    if op == "a_contains":
        return frozenset((name,)), lambda values: all(test(values[name]) for test in tests)
    tokens, judge = asked_words(op, kind, elements), _SETS[op]
    return frozenset((name,)), lambda values: judge(words_alone(kind, values[name]), tokens)


def _two_words(schema: Schema, op: str, first: str, second: str) -> Predicate:
    one, other = schema[first], schema[second]
    assert isinstance(one, Words)
    assert isinstance(other, Words)
    between = _SETS[op]
    return frozenset((first, second)), lambda values: between(words_alone(one, values[first]), words_alone(other, values[second]))


_SETS: dict[str, Callable[[frozenset[str], frozenset[str]], bool]] = {
    "a_contains": frozenset.issuperset,
    "a_containedBy": frozenset.issubset,
    "a_equals": operator.eq,
    "a_overlaps": lambda a, b: not a.isdisjoint(b),
}


def _places(schema: Schema, op: str, left: Node, right: Node) -> Predicate:
    first, second = attribute_of(schema, op, left, Place), attribute_of(schema, op, right, Place)
    if first is not None and second is not None:
        between = spatial.relation(op)
        return frozenset((first, second)), lambda values: between(values[first], values[second])
    if first is None:
        if second is None:
            raise FilterError(f"operator {op!r} needs a Place attribute on one side")
        first, right, op = second, left, spatial.INVERSE[op]
    judge = read_place(schema, first, right).related(op)
    return frozenset((first,)), lambda values: judge(values[first])


def read_place(schema: Schema, name: str, node: Node) -> spatial.Region:
    kind = schema[name]
    assert isinstance(kind, Place)
    if isinstance(node, dict) and "op" in node:
        raise FilterError(f"operator {node['op']!r} is not known")
    return spatial.read_region(name, kind, node)


def _times(schema: Schema, op: str, left: Node, right: Node) -> Predicate:
    (first, a), (second, b) = _time_side(schema, op, left), _time_side(schema, op, right)
    days = any(isinstance(schema[name], Date) for name in first | second)
    between = temporal.COMPARE["="] if op == "t_equals" and is_day(left, right) and not days else temporal.relation(op)
    return first | second, lambda values: between(a(values), b(values))


def is_day(left: Node, right: Node) -> bool:
    """Whether an instant is compared with a DATE, to the day."""
    return any(isinstance(n, dict) and "date" in n for n in (left, right)) and not any(
        isinstance(n, dict) and "interval" in n for n in (left, right)
    )


def _time_side(schema: Schema, op: str, node: Node) -> tuple[frozenset[str], Callable[[Values], temporal.Span]]:
    name = attribute_of(schema, op, node, Time, Date)
    if name is not None:
        span_of = temporal.day if isinstance(schema[name], Date) else temporal.instant
        return frozenset((name,)), lambda values: span_of(values[name])
    if isinstance(node, dict) and "op" in node:
        raise FilterError(f"operator {node['op']!r} is not known")
    if isinstance(node, dict) and "interval" in node:
        names = [attribute_of(schema, op, bound, Time, Date) for bound in node["interval"]]
        if any(names):
            return _interval_of_attributes(schema, node["interval"], names)
    span = temporal.span_of(node)
    return frozenset(), lambda values: span


def _interval_of_attributes(
    schema: Schema, bounds: list[Node], names: list[str | None]
) -> tuple[frozenset[str], Callable[[Values], temporal.Span]]:
    if len(bounds) != 2:
        raise FilterError(f"INTERVAL takes two ends, not {len(bounds)}")
    open_ended = [".." if name else bound for name, bound in zip(names, bounds, strict=True)]
    constant = temporal.interval_span(open_ended)
    lasting = temporal.LASTING if isinstance(schema.get(names[1] or ""), Date) else 0

    def span(values: Values) -> temporal.Span:
        first = constant[0] if names[0] is None else values[names[0]] * 1000
        return first, constant[1] if names[1] is None else values[names[1]] * 1000 + lasting

    return frozenset(name for name in names if name), span
