"""Periods of a calendar in a time zone: when the day, the week (from Monday) or the month of an instant begins and ends.

A period begins at the first instant of its first local day, or at an hour of it, so a day may have 23 or 25 hours, and one that
would begin while the clock leaps begins at the leap.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tidings.errors import SubscriptionError, shown
from tidings.model.values.times import DAY, EPOCH
from tidings.model.values.window import CALENDAR, Window

_MICROSECOND = timedelta(microseconds=1)
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
"""No period begins after it."""
_FIRST = (datetime(1, 2, 15, tzinfo=UTC) - EPOCH) // _MICROSECOND


@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise SubscriptionError(f"tz is {shown(name)}: a time zone as 'Europe/Berlin' or 'UTC' is accepted") from None


def read_zone(value: object) -> str:
    """The name of a time zone."""
    if not isinstance(value, str):
        raise SubscriptionError(f"tz is {shown(value)}: the name of a time zone as 'Europe/Berlin' is accepted")
    return zone_of(value).key


@dataclass(frozen=True, slots=True)
class Calendar:
    """`unit` is one of CALENDAR, `zone` the name of a time zone, and `at` the local time of day at which a period begins."""

    unit: str
    zone: str = "UTC"
    at: time = time()

    def __post_init__(self) -> None:
        assert self.unit in CALENDAR

    def end(self, instant: int) -> int:
        """The first instant after the period of `instant`, which is when the next begins."""
        return self.starts(instant, instant)[1]

    def starts(self, first: int, last: int) -> list[int]:
        """When the periods begin from that of instant `first` to the one after that of `last`, ascending."""
        zone = zone_of(self.zone)
        day = self._begin(_local_day(first, zone))
        found = [self._instant(day, zone)]
        while found[0] > max(first, _FIRST):
            day = self._begin(day - timedelta(days=1))
            found.insert(0, self._instant(day, zone))
        later = self._next(day)
        while found[-1] <= last and found[-1] < LAST:
            start = LAST if later is None else self._instant(later, zone)
            found += [start] if start > found[-1] else []
            later = None if later is None else self._next(later)
        return found

    def _begin(self, day: date) -> date:
        if self.unit == "month":
            return day.replace(day=1)
        return day - timedelta(days=day.weekday()) if self.unit == "week" else day

    def _next(self, day: date) -> date | None:
        try:
            if self.unit == "month":
                return date(day.year + day.month // 12, day.month % 12 + 1, 1)
            return day + timedelta(days=7 if self.unit == "week" else 1)
        except (ValueError, OverflowError):
            return None

    def _instant(self, day: date, zone: ZoneInfo) -> int:
        """In a gap `fold=0` is the instant of the leap."""
        return (datetime.combine(day, self.at, zone) - EPOCH) // _MICROSECOND


def window_end(window: Window, tz: str | None, time: int) -> int | None:
    """When an event of that time leaves a window; None if at no instant."""
    if window.calendar is not None:
        return Calendar(window.calendar, tz or "UTC").end(time)
    return None if window.duration is None else time + window.duration


def _local_day(instant: int, zone: ZoneInfo) -> date:
    """Of an instant, or of one that is a few days off where no zone has a calendar any more."""
    return (EPOCH + min(max(instant, _FIRST), LAST - 2 * DAY) * _MICROSECOND).astimezone(zone).date()
