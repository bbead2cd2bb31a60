"""Paces: how often a subscription may be told something, how long a stay is, and when what was collected is told together.

| field      | text                              | means                                                                       |
|------------|-----------------------------------|-----------------------------------------------------------------------------|
| `budget`   | `10 per day`                      | so many notifications an hour, or a day, week or month of the calendar       |
| `cooldown` | `1 hour`, any duration            | nothing for so long after a notification                                    |
| `dwell`    | `10 minutes`, any duration        | an object that has stayed so long is told once                              |
| `digest`   | `day`, `week`, `month`, `at 08:00` | the best of a period of the calendar at its end, as one notification         |

Each is kept as the one text that `read_*` gives.
"""

from __future__ import annotations

import re
from datetime import time

from tidings.errors import SubscriptionError, shown
from tidings.model.values.calendar import Calendar
from tidings.model.values.window import CALENDAR, Window, duration

PACES = ("budget", "cooldown", "dwell", "digest")
APART = ("window", "error", "budget", "cooldown", "dwell")
"""What a digest does not stand beside."""
HOUR = 3_600_000_000
_BUDGET = re.compile(r"\s*(\d{1,9})\s+(?:per|a|an)\s+(hour|day|week|month)\s*", re.IGNORECASE)
_AT = re.compile(r"\s*at\s+(\d{1,2}):(\d{2})\s*", re.IGNORECASE)


def read_budget(value: object) -> str:
    form = _BUDGET.fullmatch(value) if isinstance(value, str) else None
    if form is None:
        raise SubscriptionError(f"budget is {shown(value)}: so many as '10 per day' (or hour, week, month) is accepted")
    return f"{int(form[1])} per {form[2].lower()}"


def read_length(name: str, value: object) -> str:
    """A cooldown or a dwell."""
    return str(Window(duration=duration(name, value)))


def read_digest(value: object) -> str:
    text = value.strip().lower() if isinstance(value, str) else ""
    if text in CALENDAR:
        return text
    form = _AT.fullmatch(text)
    if form is None or int(form[1]) > 23 or int(form[2]) > 59:
        raise SubscriptionError(f"digest is {shown(value)}: 'day', 'week', 'month' or a time of day as 'at 08:00' is accepted")
    return f"at {int(form[1]):02d}:{form[2]}"


def budget_of(text: str) -> tuple[int, str]:
    """How many, and the period."""
    many, _, unit = text.split()
    return int(many), unit


def budget_ends(unit: str, tz: str | None, instant: int) -> int:
    """When the period of an instant ends."""
    return (instant // HOUR + 1) * HOUR if unit == "hour" else Calendar(unit, tz or "UTC").end(instant)


def digest_calendar(text: str, tz: str | None) -> Calendar:
    if text in CALENDAR:
        return Calendar(text, tz or "UTC")
    hour, minute = map(int, text.removeprefix("at ").split(":"))
    return Calendar("day", tz or "UTC", time(hour, minute))
