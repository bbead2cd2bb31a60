"""The two sides of a comparison: numbers with arithmetic, texts, times. Each becomes a function of an event's values.

| kind     | value                                                                                     |
|----------|-------------------------------------------------------------------------------------------|
| `number` | float                                                                                     |
| `text`   | str                                                                                       |
| `truth`  | bool                                                                                      |
| `time`   | (first, last) nanosecond since the epoch: equal for an instant, a whole day for a DATE    |

Arithmetic without a finite answer at any step (a division by zero, an overflow) raises ArithmeticError and nothing else. It goes no
further than `residue.residue_of`, where the predicate then does not hold, nor does its negation, and `compile_number`, which gives
NaN.
"""

from __future__ import annotations

import math
import operator
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.errors import FilterError, UnknownAttributeError, shown
from tidings.model.filter.clause import PREVIOUS, Values
from tidings.model.filter.syntax import Node, parse_text
from tidings.model.filter.temporal import day, instant, span_of
from tidings.model.values.schema import Bool, Category, Date, Number, Schema, Time

NUMBER, TEXT, TRUTH, TIME = "number", "text", "truth", "time"
_KIND = {Number: NUMBER, Category: TEXT, Bool: TRUTH, Time: TIME, Date: TIME}
_TAKES = {NUMBER: "a number", TEXT: "a string", TRUTH: "TRUE or FALSE", TIME: "a TIMESTAMP, a DATE or an ISO 8601 string"}
NOTHING: frozenset[str] = frozenset()
Column = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Operand:
    kind: str
    attributes: frozenset[str]
    value: Callable[[Values], Any]
    name: str | None = None
    """The attribute, when the operand is that attribute and nothing else."""

    @property
    def constant(self) -> bool:
        return not self.attributes


@dataclass(frozen=True, slots=True)
class NumberExpression:
    """A number computed from an event. `linear` is (base, {attribute: coefficient}) when the expression is linear, else None;
    it equals `value` up to rounding. A Time or Date counts as its microseconds. `value` is NaN when an attribute is missing or the
    answer is not finite."""

    attributes: frozenset[str]
    value: Callable[[Values], float]
    linear: tuple[float, dict[str, float]] | None
    column: Column | None = None
    """The same of arrays, to the last bit, NaN where an attribute is missing; None where that has no such form."""


def compile_number(schema: Schema, source: str) -> NumberExpression:
    """CQL2 arithmetic, as in `by="-price"` or `"2 * price + stars"`."""
    tree = parse_text(f"({source.strip()}) = 0")
    if not (isinstance(tree, dict) and tree.get("op") == "=" and tree["args"][1] == 0.0):
        raise FilterError(f"{shown(source)} is not arithmetic: attributes, numbers and + - * / % ^ div are accepted")
    node = tree["args"][0]
    compiled = _number(schema, node, source, times=True)
    return NumberExpression(compiled.attributes, _total(compiled.attributes, compiled.value), _linear(node), compiled.column)


def operand(schema: Schema, node: Node, op: str) -> Operand:
    if node is None:
        raise FilterError(f"operator {op!r} cannot compare with NULL: write IS NULL to ask for a missing value")
    if isinstance(node, bool):
        return Operand(TRUTH, NOTHING, lambda values: node)
    if isinstance(node, int | float):
        number = finite(node)
        return Operand(NUMBER, NOTHING, lambda values: number)
    if isinstance(node, str):
        return Operand(TEXT, NOTHING, lambda values: node)
    if isinstance(node, dict):
        if "property" in node:
            return _attribute(schema, node["property"], op)
        if "date" in node or "timestamp" in node:
            span = span_of(node)
            return Operand(TIME, NOTHING, lambda values: span)
        inner: Any = node.get("op")
        if inner in _ARITHMETIC:
            compiled = _number(schema, node, op)
            return Operand(NUMBER, compiled.attributes, compiled.value)
        if inner in _FOLDS:
            return _folded(schema, node, inner)
        if inner in _PREV:
            name = _recalled(node)
            now, before = _attribute(schema, name, op), f"{PREVIOUS}{name})"
            return Operand(now.kind, frozenset((before,)), lambda values: now.value({name: values[before]}))
        if inner is not None:
            raise FilterError(f"operator {inner!r} cannot stand beside {op!r}: arithmetic, CASEI, ACCENTI and PREV can")
    raise FilterError(f"operator {op!r} takes attributes, numbers, strings and times, not {shown(node)}")


def comparable(left: Operand, right: Operand, op: str) -> tuple[Operand, Operand]:
    """Both operands in one kind; a constant string beside a time is read as a time."""
    if left.kind == right.kind:
        return left, right
    if left.kind == TIME and right.kind == TEXT and right.constant:
        return left, _as_time(left, right)
    if right.kind == TIME and left.kind == TEXT and left.constant:
        return _as_time(right, left), right
    if left.constant and not right.constant:
        left, right = right, left
    what = f"attribute {left.name!r} takes" if left.name else f"{op!r} takes here"
    other = shown(right.value({})) if right.constant and right.kind != TIME else f"a {right.kind}"
    raise FilterError(f"{what} {_TAKES[left.kind]}, not {other}")


def attribute_type(schema: Schema, name: str) -> Any:
    if name not in schema:
        raise UnknownAttributeError(
            f"attribute {shown(name)} is not in the schema: it has {', '.join(schema) or 'none'}", str(name)
        )
    return schema[name]


def finite(number: float) -> float:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise FilterError(f"the number {value}: a finite number is accepted")
    return value


def _attribute(schema: Schema, name: str, op: str) -> Operand:
    kind = _KIND.get(type(attribute_type(schema, name)))
    if kind is None:
        family = "S_" if type(schema[name]).__name__ == "Place" else "A_"
        raise FilterError(f"operator {op!r} does not apply to {name!r}, a {type(schema[name]).__name__}: operators {family}... do")
    if kind == TIME:
        span = day if isinstance(schema[name], Date) else instant
        return Operand(TIME, frozenset((name,)), lambda values: span(values[name]), name)
    return Operand(kind, frozenset((name,)), operator.itemgetter(name), name)


def _as_time(time: Operand, text: Operand) -> Operand:
    value = text.value({})
    try:
        span = span_of(value)
    except FilterError as error:
        raise FilterError(f"attribute {time.name!r}: {error}" if time.name else str(error)) from None
    return Operand(TIME, NOTHING, lambda values: span)


def _fold_case(text: str) -> str:
    return text.casefold()


def _fold_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


_FOLDS: dict[Any, Callable[[str], str]] = {"casei": _fold_case, "accenti": _fold_accents}


def _folded(schema: Schema, node: Node, name: str) -> Operand:
    if len(node["args"]) != 1:
        raise FilterError(f"operator {name!r} takes one operand, not {len(node['args'])}")
    inner = operand(schema, node["args"][0], name)
    if inner.kind != TEXT:
        raise FilterError(f"operator {name!r} takes a Category or a string, not {shown(node['args'][0])}")
    fold, value = _FOLDS[name], inner.value
    return Operand(TEXT, inner.attributes, lambda values: fold(value(values)))


def _recalled(node: Node) -> str:
    """The attribute that PREV asks about."""
    args = node["args"]
    if len(args) != 1 or not isinstance(args[0], dict) or "property" not in args[0]:
        raise FilterError(f"PREV takes one attribute, as PREV(price), not {shown(args)}")
    name: str = args[0]["property"]
    return name


_PREV = ("PREV", "prev", "Prev")


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except ValueError as error:
        raise ArithmeticError(str(error)) from None


def _remainder(left: float, right: float) -> float:
    if right == 0.0:
        raise ZeroDivisionError
    return math.fmod(left, right)


def _whole_quotient(left: float, right: float) -> float:
    quotient = left / right
    if not math.isfinite(quotient):
        raise ArithmeticError
    return float(math.trunc(quotient))


_ARITHMETIC: dict[Any, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": _remainder,
    "^": _power,
    "div": _whole_quotient,
}
_CLOSED = (operator.add, operator.sub, operator.mul)


@dataclass(frozen=True, slots=True)
class _Number:
    """`column` takes arrays instead; `whole` if the value is an int of any size, as no array holds it."""

    attributes: frozenset[str]
    value: Callable[[Values], float]
    column: Column | None
    whole: bool = False


def _number(schema: Schema, node: Node, where: str, times: bool = False) -> _Number:
    """A numeric subtree; `times` lets a Time or Date stand as its microseconds."""
    if isinstance(node, int | float) and not isinstance(node, bool):
        return _just(finite(node))
    if isinstance(node, dict) and ("property" in node or node.get("op") in _PREV):
        name = node["property"] if "property" in node else _recalled(node)
        kind = attribute_type(schema, name)
        if not isinstance(kind, Number | Time | Date if times else Number):
            raise FilterError(f"attribute {name!r} is a {type(kind).__name__} and cannot stand in arithmetic ({where})")
        known = name if "property" in node else f"{PREVIOUS}{name})"
        get = operator.itemgetter(known)
        return _Number(frozenset((known,)), get, get, whole=not isinstance(kind, Number))
    if isinstance(node, dict) and node.get("op") in _ARITHMETIC:
        args = node["args"]
        if len(args) < 2:
            raise FilterError(f"operator {node['op']!r} takes two operands, not {len(args)}")
        result = _number(schema, args[0], where, times)
        for arg in args[1:]:
            result = _applied(_ARITHMETIC[node["op"]], result, _number(schema, arg, where, times))
        return result
    raise FilterError(f"arithmetic takes attributes and numbers, not {shown(node)} ({where})")


def _applied(apply: Callable[[float, float], float], left: _Number, right: _Number) -> _Number:
    if not left.attributes and not right.attributes:
        return _constant(apply, left, right)
    first, second = left.value, right.value
    column = _column(apply, left, right)
    return _Number(left.attributes | right.attributes, _finite(lambda values: apply(first(values), second(values))), column)


def _column(apply: Callable[[Any, Any], Any], left: _Number, right: _Number) -> Column | None:
    """Only of steps that never lead back from an infinity to a number: nobody looks at the steps of arrays."""
    divides = apply is operator.truediv and not right.attributes and right.value({}) != 0.0
    first, second = left.column, right.column
    if first is None or second is None or (left.whole and right.whole) or not (divides or apply in _CLOSED):
        return None
    return lambda columns: apply(first(columns), second(columns))


def _just(number: float) -> _Number:
    return _Number(NOTHING, lambda values: number, lambda columns: number)


def _constant(apply: Callable[[float, float], float], left: _Number, right: _Number) -> _Number:
    try:
        number = finite(apply(left.value({}), right.value({})))
    except ArithmeticError:
        raise FilterError("a constant divides by zero or overflows: a finite number is accepted") from None
    return _just(number)


def _finite(value: Callable[[Values], float]) -> Callable[[Values], float]:
    """The same, or ArithmeticError, so that no step is asked of an infinity or of NaN."""

    def checked(values: Values) -> float:
        number = float(value(values))
        if not math.isfinite(number):
            raise ArithmeticError("the result is not finite")
        return number

    return checked


def _total(attributes: frozenset[str], value: Callable[[Values], float]) -> Callable[[Values], float]:
    def total(values: Values) -> float:
        if not attributes <= values.keys():
            return math.nan
        try:
            return value(values)
        except ArithmeticError:
            return math.nan

    return total


def _linear(node: Node) -> tuple[float, dict[str, float]] | None:
    if isinstance(node, int | float):
        return float(node), {}
    if "property" in node:
        return 0.0, {node["property"]: 1.0}
    if node["op"] in _PREV:
        return None
    parts = [_linear(arg) for arg in node["args"]]
    result = parts[0]
    for part in parts[1:]:
        if result is None or part is None:
            return None
        result = _linear_step(node["op"], result, part)
    return result


def _linear_step(
    op: str, left: tuple[float, dict[str, float]], right: tuple[float, dict[str, float]]
) -> tuple[float, dict[str, float]] | None:
    if op in ("+", "-"):
        sign = 1.0 if op == "+" else -1.0
        names = {**left[1], **right[1]}
        return left[0] + sign * right[0], {n: left[1].get(n, 0.0) + sign * right[1].get(n, 0.0) for n in names}
    if not left[1] and not right[1]:
        return _ARITHMETIC[op](left[0], right[0]), {}
    if op == "*" and not (left[1] and right[1]):
        factor, (base, terms) = (left[0], right) if not left[1] else (right[0], left)
        return factor * base + 0.0, {n: factor * c for n, c in terms.items()}
    if op == "/" and not right[1] and right[0] != 0.0:
        return left[0] / right[0], {n: c / right[0] for n, c in left[1].items()}
    return None
