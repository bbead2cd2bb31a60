"""Instants as integers: microseconds since 1970-01-01 UTC, exact as a float64 from 1684 to 2255 (2**53 microseconds either way)."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY_MICROSECONDS = 86_400_000_000
_LO = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
_HI = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
ACCEPTED = "an ISO 8601 date or date-time of the years 1 to 9999, a datetime, a date or seconds since 1970-01-01 UTC is accepted"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_time(value: Any) -> int:
    """Microseconds since the epoch. A datetime or string without an offset is UTC; a date is its first instant.

    Raises ValueError, without naming the field, on anything else.
    """
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, datetime):
        return _from_datetime(value)
    if isinstance(value, date):
        return _from_datetime(datetime(value.year, value.month, value.day))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_seconds(value)
    raise _refusal(value)


def is_date(text: str) -> bool:
    """Whether a string names a whole day rather than an instant."""
    return _DATE.fullmatch(text) is not None


def day_end(start: int) -> int:
    """The last microsecond of the day that begins at `start`."""
    return start + _DAY_MICROSECONDS - 1


@lru_cache(maxsize=4096)
def _from_text(text: str) -> int:
    if len(text) > 64:
        raise ValueError(f"a string of {len(text)} characters is not a time: {ACCEPTED}")
    try:
        return _from_datetime(datetime.fromisoformat(text))
    except ValueError:
        raise _refusal(text) from None


def _from_datetime(value: datetime) -> int:
    return ((value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - EPOCH) // _MICROSECOND


def _from_seconds(value: int | float) -> int:
    if isinstance(value, int):
        microseconds = value * 1_000_000
    elif math.isfinite(value):
        microseconds = round(value * 1e6)
    else:
        raise _refusal(value)
    if not _LO <= microseconds <= _HI:
        raise _refusal(value)
    return microseconds


def _refusal(value: Any) -> ValueError:
    return ValueError(f"{value!r} is not a time: {ACCEPTED}")
