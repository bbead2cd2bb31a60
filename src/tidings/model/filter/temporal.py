"""Times in filters. An operand is a span (first, last) of nanoseconds since the epoch: equal ends for an instant, a whole day for a
DATE, -inf or inf for an open end `'..'`. Nanoseconds let a day end just before the next midnight while events are exact to the
microsecond.

The T_ operators are Allen's relations on spans. A DATE is an instant known to the day, so `=` and T_EQUALS with a DATE ask for
that day, `<` for before it, `>` for after it. An interval's end that is a date takes in the whole of that day. A Date attribute is
the span of its day.

What an operator asks of an attribute becomes spans of t, where the attribute's own span is [t, t + extent]: 0 for a Time, LASTING
for a Date.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from tidings.errors import FilterError, shown
from tidings.model.values.times import DAY, day_end, is_date, parse_time

Span = tuple[float, float]
"""Closed; integers, or an infinity for an open end."""
LASTING = DAY * 1000 - 1
"""From a day's first nanosecond to its last."""
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


def day(microseconds: int) -> Span:
    return microseconds * 1000, microseconds * 1000 + LASTING


def span_of(node: Any) -> Span:
    """The span of a constant: a string, `{"timestamp"}`, `{"date"}` or `{"interval"}`."""
    if isinstance(node, dict) and "interval" in node:
        return interval_span(node["interval"])
    text = next(iter(node.values())) if isinstance(node, dict) else node
    if not isinstance(text, str):
        raise FilterError(f"{shown(text)} is not a time: TIMESTAMP('...') or DATE('...') with an ISO 8601 string is accepted")
    first = _microseconds(text)
    return (first * 1000, day_end(first) * 1000 + 999) if is_date(text) else instant(first)


def interval_span(bounds: list[Any]) -> Span:
    if len(bounds) != 2:
        raise FilterError(f"INTERVAL takes two ends, not {len(bounds)}")
    first = -math.inf if bounds[0] == ".." else span_of(bounds[0])[0]
    last = math.inf if bounds[1] == ".." else span_of(bounds[1])[1]
    if first > last:
        raise FilterError(f"INTERVAL({shown(bounds[0])}, {shown(bounds[1])}) ends before it begins")
    return first, last


def compared_spans(op: str, span: Span, extent: int = 0) -> list[Span]:
    """The t, in nanoseconds, for which `[t, t + extent] op span` holds."""
    first, last = span
    return {
        "<": [(-math.inf, first - extent - 1)],
        "<=": [(-math.inf, last)],
        "=": [(first - extent, last)],
        "<>": [(-math.inf, first - extent - 1), (last + 1, math.inf)],
        ">=": [(first - extent, math.inf)],
        ">": [(last + 1, math.inf)],
    }[op]


def related_spans(op: str, span: Span, extent: int = 0) -> list[Span]:
    """The t, in nanoseconds, for which `op([t, t + extent], span)` holds."""
    first, last = span
    if op == "t_disjoint":
        return compared_spans("<>", span, extent)
    start, end = first - extent, last - extent  # t at `start` ends where the span begins, at `end` where it ends
    bounds = {
        "t_before": [_under(start)],
        "t_after": [_over(last)],
        "t_meets": [(start, start)],
        "t_metBy": [(last, last)],
        "t_overlaps": [_under(first), _over(start), _under(end)],
        "t_overlappedBy": [_over(first), _under(last), _over(end)],
        "t_starts": [(first, first), _under(end)],
        "t_startedBy": [(first, first), _over(end)],
        "t_during": [_over(first), _under(end)],
        "t_contains": [_under(first), _over(end)],
        "t_finishes": [_over(first), (end, end)],
        "t_finishedBy": [_under(first), (end, end)],
        "t_equals": [(first, first), (end, end)],
        "t_intersects": [(start, last)],
    }[op]
    return [(max(lo for lo, _ in bounds), min(hi for _, hi in bounds))]


def _under(bound: float) -> Span:
    return -math.inf, bound - 1


def _over(bound: float) -> Span:
    return bound + 1, math.inf


def in_days(spans: list[Span]) -> list[Span]:
    """The first microseconds of days inside nanosecond spans; empty spans vanish."""
    return [(a, b) for a, b in ((_snapped(lo, -1), _snapped(hi, 1)) for lo, hi in in_microseconds(spans)) if a <= b]


def _snapped(microseconds: float, sign: int) -> float:
    """The nearest first microsecond of a day at or before (sign 1), or at or after (sign -1)."""
    return microseconds if math.isinf(microseconds) else sign * (sign * microseconds // DAY) * DAY


def in_microseconds(spans: list[Span]) -> list[Span]:
    """The microseconds inside nanosecond spans; empty spans vanish."""
    rounded = [(_ceiling(first), last if math.isinf(last) else last // 1000) for first, last in spans]
    return [(first, last) for first, last in rounded if first <= last and last != -math.inf and first != math.inf]


def _ceiling(nanoseconds: float) -> float:
    return nanoseconds if math.isinf(nanoseconds) else -(-nanoseconds // 1000)


def _microseconds(text: str) -> int:
    if _FINER.search(text):
        raise FilterError(f"{shown(text)} is finer than a microsecond: at most six decimals of a second are accepted")
    try:
        return parse_time(text)
    except ValueError as error:
        raise FilterError(str(error)) from None
