"""The commonest filters in one pass: a conjunction of bounds on numbers, values of categories, required words and one BBOX.

Everything that is written plainly becomes one clause at once; whatever is not, and whatever might be a mistake, is handed back for
the full compiler, so the meaning of a filter and the words of its errors stay in one place. A leaf taken here gives exactly the
predicate that the full compiler gives, only without the objects in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidings.model.filter.clause import Box, Clause, above, below
from tidings.model.filter.elements import read_elements
from tidings.model.filter.spatial import read_box
from tidings.model.filter.syntax import Node
from tidings.model.values.limits import has_surrogate
from tidings.model.values.schema import Category, Number, Place, Schema

NOTHING = frozenset[str]()
INF = math.inf
EXACT = 2**53
Span = tuple[float, float]


def plain_filter(schema: Schema, source: Mapping[str, Any]) -> Clause | None:
    """The clause of a filter in CQL2 JSON that is plain from end to end and can match, without a parser; None for any other."""
    operator = source.get("op")
    if type(operator) is not str or operator != "and" or len(source) != 2 or type(source.get("args")) is not list:
        return None
    leaves = source["args"]
    clauses, others = plain_part(schema, leaves)
    if others or not clauses or not leaves:
        return None
    # Every leaf has the right operands; a member beside them would be a mistake that only the parser knows.
    for leaf in leaves:
        if len(leaf) != 2:
            return None
        for arg in leaf["args"]:
            if type(arg) is dict and len(arg) != 1:
                return None
    return clauses[0]


def plain_part(schema: Schema, leaves: Sequence[Node]) -> tuple[list[Clause], list[Node]]:
    """The clause of the plain leaves of a conjunction, no clause if none can hold together; and the leaves that are not plain."""
    kinds = schema.kinds
    ranges: dict[str, Span] = {}
    within: dict[str, frozenset[str]] = {}
    box: Box | None = None
    words = NOTHING
    others: list[Node] = []
    for leaf in leaves:
        name, op, args = _parts(leaf)
        kind = kinds.get(name)
        if kind is Number and (span := _span(op, args)) is not None:
            if name in ranges:
                span = max(span[0], ranges[name][0]), min(span[1], ranges[name][1])
            ranges[name] = span
        elif kind is Category and op == "=" and len(args) == 2 and type(args[1]) is str and not has_surrogate(args[1]):
            value = frozenset((args[1],))
            within[name] = value & within.get(name, value)
        elif kind is Place and box is None and (found := _box(schema, name, op, args)) is not None:
            box = found
        elif op == "a_contains" and name == schema.words and len(args) == 2 and _strings(args[1]):
            elements = read_elements(schema, op, name, args[1])
            if any(element.dropped or not element.exact for element in elements):
                others.append(leaf)
            else:
                words = words.union(*[element.words for element in elements])
        else:
            others.append(leaf)
    clause = Clause(ranges, within, {}, NOTHING, NOTHING, box, words)
    return ([clause] if clause.satisfiable else []), others


def _parts(leaf: Node) -> tuple[Any, Any, Any]:
    """(attribute, operator, operands) of a predicate that begins with an attribute; no attribute for any other node."""
    args = leaf.get("args") if type(leaf) is dict else None
    if type(args) is list and args and type(args[0]) is dict and type(name := args[0].get("property")) is str:
        return name, op if type(op := leaf.get("op")) is str else None, args
    return None, None, None


def _span(op: str, args: list[Node]) -> Span | None:
    """The closed interval of a comparison with a number, or of BETWEEN."""
    value = _number(args[1]) if len(args) > 1 else None
    if value is None:
        return None
    if len(args) == 2 and op in _SPANS:
        return _SPANS[op](value)
    last = _number(args[2]) if len(args) == 3 and op == "between" else None
    return (value, last) if last is not None and value <= last else None


_SPANS: dict[str, Callable[[float], Span]] = {
    "=": lambda value: (value, value),
    "<": lambda value: (-INF, below(value)),
    "<=": lambda value: (-INF, value),
    ">": lambda value: (above(value), INF),
    ">=": lambda value: (value, INF),
}


def _number(node: Node) -> float | None:
    """A finite number; None for anything else, and for an integer that a float64 may not hold."""
    if type(node) is float:
        return node if -INF < node < INF else None
    return float(node) if type(node) is int and -EXACT <= node <= EXACT else None


def _box(schema: Schema, name: str, op: str, args: list[Node]) -> Box | None:
    """The one box of S_INTERSECTS with a BBOX."""
    if op != "s_intersects" or name != schema.place or len(args) != 2 or type(args[1]) is not dict:
        return None
    if type(args[1].get("bbox")) is not list:
        return None
    place = schema[name]
    assert isinstance(place, Place)
    if place.shapes:
        return None
    boxes = read_box(name, place, args[1]["bbox"])
    return boxes[0] if len(boxes) == 1 else None


def _strings(node: Node) -> bool:
    return type(node) is list and len(node) > 0 and all(type(element) is str and not has_surrogate(element) for element in node)
