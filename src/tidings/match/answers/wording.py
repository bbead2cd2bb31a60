"""How an explanation says a range and a value: as a person would have written them, not as the clause keeps them.

A clause's intervals are closed; `price < 500` is kept as "at most the number before 500" and said as "below 500".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tidings.match.answers.results import instant
from tidings.model.door.subscription import Subscription
from tidings.model.values.prose import texts_of
from tidings.model.values.schema import Date, Place, Schema, Time
from tidings.model.values.vague import Between

SECOND = 1_000_000


def range_in_words(schema: Schema, name: str, lo: float, hi: float) -> str:
    """What a closed interval asks for: 'from 3 to 5', 'below 500', '7'."""
    if lo == hi:
        return value_in_words(schema, name, lo)
    least, most = _open_end(schema, name, lo, -math.inf), _open_end(schema, name, hi, math.inf)
    above = f"from {value_in_words(schema, name, lo)}" if least is None else f"above {value_in_words(schema, name, least)}"
    below = f"to {value_in_words(schema, name, hi)}" if most is None else f"below {value_in_words(schema, name, most)}"
    if lo == -math.inf:
        return below.replace("to ", "at most ", 1) if most is None else below
    if hi == math.inf:
        return above.replace("from ", "at least ", 1) if least is None else above
    return f"{above} {below}" if least is None and most is None else f"{above} and {below}"


def ranking_in_words(subscription: Subscription) -> str:
    """What beside its filter decides what a subscription hears: 'the best 2 of the day in Europe/Berlin, one per sku'; "" for
    nothing."""
    s = subscription
    parts = [] if s.k is None or s.digest is not None else [f"its best {s.k}"]
    if s.window is not None:
        where = f" in {s.tz or 'UTC'}" if s.window.calendar is not None else ""
        parts.append(f"of the {'last ' if s.window.calendar is None else ''}{s.window}{where}")
    if s.per is not None:
        parts.append(f"one per {s.per}")
    parts += [f"at most {s.budget}"] if s.budget is not None else []
    parts += [f"nothing for {s.cooldown} after one"] if s.cooldown is not None else []
    parts += [f"again after a stay of {s.dwell}"] if s.dwell is not None else []
    if s.digest is not None:
        parts.append(f"{'all' if s.k is None else f'the best {s.k}'} together, {s.digest} in {s.tz or 'UTC'}")
    return ", ".join(parts)


def value_in_words(schema: Schema, name: str, value: Any) -> str:
    if isinstance(value, frozenset):
        return str(texts_of(value))
    if isinstance(schema.get(name), Place):
        return place_in_words(value)
    if isinstance(value, Between):
        return f"from {value_in_words(schema, name, value.lo)} to {value_in_words(schema, name, value.hi)}"
    if isinstance(schema.get(name), Time | Date) and math.isfinite(value):
        return instant(int(value)).isoformat()
    return number_in_words(value) if isinstance(value, float) else str(value)


def place_in_words(box: Sequence[float]) -> str:
    """A point by its two numbers, anything else by its box."""
    ends = [number_in_words(end) for end in box]
    return f"({', '.join(ends[:2] if ends[:2] == ends[2:] else ends)})"


def number_in_words(value: float) -> str:
    return f"{value:.17g}" if value.is_integer() else str(value)


def _open_end(schema: Schema, name: str, bound: float, outward: float) -> float | None:
    """The bound that was given as `<` or `>`: the number or instant next to this one, if it is the rounder of the two."""
    if not math.isfinite(bound):
        return None
    if isinstance(schema.get(name), Time | Date):
        neighbour = bound + math.copysign(1, outward)
        return neighbour if neighbour % SECOND == 0 else None
    neighbour = math.nextafter(bound, outward)
    return neighbour if len(repr(neighbour)) + 3 < len(repr(float(bound))) else None
