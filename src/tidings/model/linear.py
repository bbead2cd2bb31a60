"""Linear scores: `base + sum of coefficient * attribute`, written as arithmetic (`"100 - 0.5 * price + 2 * stars"`).

Python's own parser reads the text; only numbers, attribute names, `+ - * /` and parentheses mean anything, and a product has at
most one side that is not constant. An event that lacks one of the attributes scores -inf: it comes after every event that has them.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidings.errors import SubscriptionError, shown
from tidings.model.clause import Values
from tidings.model.schema import Number, Schema, Time

LENGTH_LIMIT = 2_000
"""Most characters of an expression; it keeps Python's parser well within its stack."""

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_PREFIX = "attribute_"
_Form = tuple[float, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Linear:
    base: float = 0.0
    coefficients: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, values: Values) -> float:
        total = self.base
        for name, coefficient in self.coefficients.items():
            if name not in values:
                return -math.inf
            total += coefficient * values[name]
        return total


def parse_linear(schema: Schema, name: str, text: str) -> Linear:
    """The linear form of `text`, the value of the field `name`; SubscriptionError if it is none."""
    refusal = (
        f"{name} is {shown(text)}: a linear expression of Number and Time attributes is accepted, as '-price' or '10 + 0.5 * stars'"
    )
    if len(text) > LENGTH_LIMIT:
        raise SubscriptionError(f"{name} is an expression of {len(text)} characters: at most {LENGTH_LIMIT} are accepted")
    try:
        base, coefficients = _form(schema, _parse(text))
    except (SyntaxError, ValueError, ArithmeticError, MemoryError, RecursionError) as error:
        reason = "" if isinstance(error, SyntaxError | MemoryError | RecursionError) else f" ({error})"
        raise SubscriptionError(refusal + reason) from None
    coefficients = {attribute: value for attribute, value in coefficients.items() if value != 0.0}
    if not all(map(math.isfinite, [base, *coefficients.values()])):
        raise SubscriptionError(f"{refusal} (its numbers are too large)")
    return Linear(base, coefficients)


def _parse(text: str) -> ast.expr:
    """The syntax tree, every name prefixed so that an attribute may be called `in` or `from`."""
    return ast.parse(_NAME.sub(_PREFIX + r"\g<0>", text.strip()), mode="eval").body


def _form(schema: Schema, node: ast.expr) -> _Form:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value), {}
    if isinstance(node, ast.Name):
        name = node.id.removeprefix(_PREFIX)
        if not isinstance(schema.get(name), Number | Time):
            raise ValueError(f"{name} is not a Number or Time attribute of this topic")
        return 0.0, {name: 1.0}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return _scaled(_form(schema, node.operand), -1.0 if isinstance(node.op, ast.USub) else 1.0)
    if isinstance(node, ast.BinOp):
        return _combined(node.op, _form(schema, node.left), _form(schema, node.right))
    raise ValueError("only numbers, attributes, + - * / and parentheses are")


def _combined(operator: ast.operator, left: _Form, right: _Form) -> _Form:
    if isinstance(operator, ast.Add | ast.Sub):
        base, coefficients = _scaled(right, -1.0 if isinstance(operator, ast.Sub) else 1.0)
        names = left[1] | coefficients
        return left[0] + base, {name: left[1].get(name, 0.0) + coefficients.get(name, 0.0) for name in names}
    if isinstance(operator, ast.Mult) and not (left[1] and right[1]):
        return _scaled(left, right[0]) if not right[1] else _scaled(right, left[0])
    if isinstance(operator, ast.Div) and not right[1]:
        return left[0] / right[0], {name: value / right[0] for name, value in left[1].items()}
    raise ValueError("a product has at most one side with attributes, and a divisor none")


def _scaled(form: _Form, factor: float) -> _Form:
    return form[0] * factor, {name: value * factor for name, value in form[1].items()}
