"""Times in filters. An operand is a span (first, last) of nanoseconds since the epoch: equal ends for an instant, a whole day for a
DATE, -inf or inf for an open end `'..'`. Nanoseconds let a day end just before the next midnight while events are exact to the
microsecond.

The T_ operators are Allen's relations on spans. A DATE is an instant known to the day, so `=` and T_EQUALS with a DATE ask for
that day, `<` for before it, `>` for after it. An interval's end that is a date takes in the whole of that day.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from tidings.errors import FilterError
from tidings.model.values.times import day_end, is_date, parse_time

Span = tuple[float, float]
"""Closed; integers, or an infinity for an open end."""
_FINER = re.compile(r"[.,]\d{6}\d*[1-9]")

INVERSE = {
    "t_before": "t_after",
    "t_meets": "t_metBy",
    "t_overlaps": "t_overlappedBy",
    "t_starts": "t_startedBy",
    "t_during": "t_contains",
    "t_finishes": "t_finishedBy",
    "t_equals": "t_equals",
    "t_disjoint": "t_disjoint",
    "t_intersects": "t_intersects",
}
INVERSE |= {inverse: op for op, inverse in INVERSE.items()}

_RELATION: dict[str, Callable[[Span, Span], bool]] = {
    "t_before": lambda a, b: a[1] < b[0],
    "t_meets": lambda a, b: a[1] == b[0],
    "t_overlaps": lambda a, b: a[0] < b[0] < a[1] < b[1],
    "t_starts": lambda a, b: a[0] == b[0] and a[1] < b[1],
    "t_during": lambda a, b: a[0] > b[0] and a[1] < b[1],
    "t_finishes": lambda a, b: a[0] > b[0] and a[1] == b[1],
    "t_equals": lambda a, b: a == b,
    "t_disjoint": lambda a, b: a[1] < b[0] or b[1] < a[0],
    "t_intersects": lambda a, b: a[0] <= b[1] and b[0] <= a[1],
}

COMPARE: dict[str, Callable[[Span, Span], bool]] = {
    "<": lambda a, b: a[1] < b[0],
    "<=": lambda a, b: a[0] <= b[1],
    "=": lambda a, b: a[0] <= b[1] and b[0] <= a[1],
    "<>": lambda a, b: a[1] < b[0] or b[1] < a[0],
    ">=": lambda a, b: a[1] >= b[0],
    ">": lambda a, b: a[0] > b[1],
}


def relation(op: str) -> Callable[[Span, Span], bool]:
    if op in _RELATION:
        return _RELATION[op]
    forward = _RELATION[INVERSE[op]]
    return lambda a, b: forward(b, a)


def instant(microseconds: int) -> Span:
    return microseconds * 1000, microseconds * 1000


def span_of(node: Any) -> Span:
    """The span of a constant: a string, `{"timestamp"}`, `{"date"}` or `{"interval"}`."""
    if isinstance(node, dict) and "interval" in node:
        return interval_span(node["interval"])
    text = next(iter(node.values())) if isinstance(node, dict) else node
    if not isinstance(text, str):
        raise FilterError(f"{text!r} is not a time: TIMESTAMP('...') or DATE('...') with an ISO 8601 string is accepted")
    first = _microseconds(text)
    return (first * 1000, day_end(first) * 1000 + 999) if is_date(text) else instant(first)


def interval_span(bounds: list[Any]) -> Span:
    if len(bounds) != 2:
        raise FilterError(f"INTERVAL takes two ends, not {len(bounds)}")
    first = -math.inf if bounds[0] == ".." else span_of(bounds[0])[0]
    last = math.inf if bounds[1] == ".." else span_of(bounds[1])[1]
    if first > last:
        raise FilterError(f"INTERVAL({bounds[0]!r}, {bounds[1]!r}) ends before it begins")
    return first, last


def compared_spans(op: str, span: Span) -> list[Span]:
    """The instants t, in nanoseconds, for which `t op span` holds."""
    first, last = span
    return {
        "<": [(-math.inf, first - 1)],
        "<=": [(-math.inf, last)],
        "=": [(first, last)],
        "<>": [(-math.inf, first - 1), (last + 1, math.inf)],
        ">=": [(first, math.inf)],
        ">": [(last + 1, math.inf)],
    }[op]


def related_spans(op: str, span: Span) -> list[Span]:
    """The instants t, in nanoseconds, for which `op(t, span)` holds. What asks an instant to contain a span never holds."""
    first, last = span
    extended = first < last
    return {
        "t_before": [(-math.inf, first - 1)],
        "t_after": [(last + 1, math.inf)],
        "t_meets": [(first, first)],
        "t_metBy": [(last, last)],
        "t_starts": [(first, first)] if extended else [],
        "t_finishes": [(last, last)] if extended else [],
        "t_during": [(first + 1, last - 1)],
        "t_equals": [] if extended else [(first, last)],
        "t_disjoint": [(-math.inf, first - 1), (last + 1, math.inf)],
        "t_intersects": [(first, last)],
    }.get(op, [])


def in_microseconds(spans: list[Span]) -> list[Span]:
    """The microseconds inside nanosecond spans; empty spans vanish."""
    rounded = [(_ceiling(first), last if math.isinf(last) else last // 1000) for first, last in spans]
    return [(first, last) for first, last in rounded if first <= last and last != -math.inf and first != math.inf]


def _ceiling(nanoseconds: float) -> float:
    return nanoseconds if math.isinf(nanoseconds) else -(-nanoseconds // 1000)


def _microseconds(text: str) -> int:
    if _FINER.search(text):
        raise FilterError(f"{text!r} is finer than a microsecond: at most six decimals of a second are accepted")
    try:
        return parse_time(text)
    except ValueError as error:
        raise FilterError(str(error)) from None
