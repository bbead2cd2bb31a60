"""Instants as integers: microseconds since 1970-01-01 UTC, exact as a float64 from 1684 to 2255 (2**53 microseconds either way).

A calendar day is its first instant. Texts are ISO 8601, in RFC 3339's spellings too: `t` and `z` may be lower case, and the minutes
of an offset stay below 60.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

from tidings.errors import EventError, shown

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY = 86_400_000_000
"""Microseconds of a day."""
AHEAD = DAY
"""How far ahead of the clock an event may be dated: time never goes back, so one event dated 9999 would end every window."""
_LO = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
_HI = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
_FAR = 1e12
"""Seconds that are no time, NaN and the infinities among them."""
ACCEPTED = "an ISO 8601 date or date-time of the years 1 to 9999, a datetime, a date or seconds since 1970-01-01 UTC is accepted"
DAYS = "a day as '2026-01-31', or a date, of the years 1 to 9999 is accepted"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BAD_OFFSET = re.compile(r":.*[-+]\d{2}:?[6-9]\d")


def parse_time(value: Any) -> int:
    """Microseconds since the epoch. A datetime or string without an offset is UTC; a date is its first instant.

    Raises ValueError, without naming the field, on anything else.
    """
    if value.__class__ is int:
        return _from_seconds(value)
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, datetime):
        return _from_datetime(value)
    if isinstance(value, date):
        return _from_datetime(datetime(value.year, value.month, value.day))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_seconds(value)
    raise _refusal(value)


def parse_date(value: Any) -> int:
    """The first microsecond of a calendar day; ValueError on anything that is not a whole day."""
    if isinstance(value, str) and is_date(value):
        return _from_text(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return _from_datetime(datetime(value.year, value.month, value.day))
    raise ValueError(f"{shown(value)} is not a day: {DAYS}")


def check_ahead(time: int, now: int, ahead: int = AHEAD) -> None:
    """EventError when an event's own time lies too far ahead of the clock."""
    if time > now + ahead:
        when = (EPOCH + time * _MICROSECOND).isoformat()
        raise EventError(
            f"time is {when}, more than {ahead / DAY:g} days ahead of the clock: give the call time= if the clock is yours"
        )


def is_date(text: str) -> bool:
    """Whether a string names a whole day rather than an instant."""
    return _DATE.fullmatch(text) is not None


def day_end(start: int) -> int:
    """The last microsecond of the day that begins at `start`."""
    return start + DAY - 1


@lru_cache(maxsize=4096)
def _from_text(text: str) -> int:
    if len(text) > 64:
        raise ValueError(f"a string of {len(text)} characters is not a time: {ACCEPTED}")
    try:
        if _BAD_OFFSET.search(text):
            raise ValueError
        return _from_datetime(datetime.fromisoformat(text.upper()))
    except ValueError:
        raise _refusal(text) from None


def _from_datetime(value: datetime) -> int:
    try:
        microseconds = ((value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - EPOCH) // _MICROSECOND
        inside = bool(_LO <= microseconds <= _HI)
    except (TypeError, OverflowError):  # pandas' NaT is a datetime and has no number
        inside = False
    if not inside:
        raise _refusal(value)
    return microseconds


def _from_seconds(value: int | float) -> int:
    if isinstance(value, int):
        microseconds = value * 1_000_000
    elif abs(value) < _FAR:
        microseconds = round(value * 1e6)
    else:
        raise _refusal(value)
    if not _LO <= microseconds <= _HI:
        raise _refusal(value)
    return microseconds


def _refusal(value: Any) -> ValueError:
    return ValueError(f"{shown(value)} is not a time: {ACCEPTED}")
