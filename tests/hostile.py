"""Subscriptions that mean harm: they stand beside ordinary ones in tests of everything, and no ordinary answer changes by them.

All are accepted at the door. Their ids begin with `HOSTILE`, so that a test can leave their own answers out.
"""

from __future__ import annotations

from typing import Any

HOSTILE = "~hostile"
ODD = ("'\"", "é\u202e", "-- ;", "{}", "🦊", "a b", "%s", "points", "\\")
"""Characters that an id may have."""


def hostile(number: str, end: int = 1) -> dict[str, dict[str, Any]]:
    """By id, the arguments of `subscribe`, for a topic with a Number attribute of that name; `end` is a time that has passed."""
    n = number
    window = {"k": 1, "window": "2 s"}
    made: dict[str, dict[str, Any]] = {
        "division": {"by": f"{n} / ({n} - {n})", **window},
        "overflow": {"by": f"{n} * 1e308 * 1e308", **window},
        "remainder": {"filter": f"({n} * 1e200 * 1e200) % 3 = 1"},
        "quotient": {"filter": f"1 / ({n} - {n}) > 0"},
        "score": {"score": f"1e308 + 1e308 * {n}"},
        "ranked score": {"score": f"1e308 + 1e308 * {n}", "k": 2, "window": "3 events"},
        "everything": {},
        "nothing": {"k": 0, "window": "1 day"},
        "greedy": {"k": 100_000, "window": "1 day", "by": n},
        "greedy score": {"k": 2_000_000_000, "score": 2.0},
        "expired": {"expires": end},
        "expired list": {"k": 1, "window": "1 day", "expires": end},
        "weightless": {"by": {"near": {n: 1e308}, "weights": {n: 0}}, **window},
        "far point": {"by": {"near": {n: 1e308}}, **window},
        "deep": {"filter": " AND ".join([f"({n} IS NULL OR {n} IS NOT NULL)"] * 30)},
    }
    made |= {f"odd {characters}": {"filter": f"{n} >= 0"} for characters in ODD}
    return {f"{HOSTILE} {id}": arguments for id, arguments in made.items()}


def ordinary(answers: Any) -> list[Any]:
    """Matches, notifications or their tuples without those of hostile subscriptions."""
    return [answer for answer in answers if not any(isinstance(part, str) and part.startswith(HOSTILE) for part in answer)]
