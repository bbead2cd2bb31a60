"""Windows: how far back a subscription's top list looks: a duration, a number of the topic's publications, or a calendar's period.

Durations are texts as "90 s", or ISO 8601's as "P1D" and "PT1H30M"; a month or a year of those has no length, so neither is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from tidings.errors import SubscriptionError, shown

LARGEST = 2**53
"""Neither microseconds nor publications go beyond it, so that both stay exact in a float64."""

_UNITS = {
    "us": (1, "us microsecond microseconds"),
    "ms": (1_000, "ms millisecond milliseconds"),
    "s": (1_000_000, "s sec secs second seconds"),
    "min": (60_000_000, "m min mins minute minutes"),
    "h": (3_600_000_000, "h hour hours"),
    "d": (86_400_000_000, "d day days"),
    "w": (604_800_000_000, "w week weeks"),
}
_MICROSECONDS = {spelling: factor for factor, spellings in _UNITS.values() for spelling in spellings.split()}
_EVENTS = frozenset({"event", "events", "publication", "publications"})
_FORM = re.compile(r"\s*(\d{1,16})(?:\.(\d{1,6}))?\s*([a-z]+)\s*", re.IGNORECASE)
_PART = r"(?:(\d{{1,16}}(?:[.,]\d{{1,6}})?){})?"
_ISO = re.compile("P" + _PART.format("W") + _PART.format("D") + "(?:T" + "".join(map(_PART.format, "HMS")) + ")?")
_ISO_UNITS = [_MICROSECONDS[unit] for unit in ("w", "d", "h", "min", "s")]
CALENDAR = ("day", "week", "month")
"""Periods of a calendar; a week begins on Monday."""


@dataclass(frozen=True, slots=True)
class Window:
    """Exactly one is given: `duration` in microseconds, `count` of publications, or the period of a `calendar`."""

    duration: int | None = None
    count: int | None = None
    calendar: str | None = None

    def __post_init__(self) -> None:
        if self.calendar in CALENDAR and self.duration is None and self.count is None:
            return
        length = self.duration if self.duration is not None else self.count
        if (self.duration is None) == (self.count is None) or length is None or not 0 < length <= LARGEST:
            raise SubscriptionError(
                f"window has duration {self.duration} and count {self.count}: one of them, from 1 to 2**53, is accepted"
            )

    def __str__(self) -> str:
        """The shortest text that reads back as this window."""
        if self.calendar is not None:
            return self.calendar
        if self.duration is None:
            return f"{self.count} events"
        unit, factor = next((u, f) for u, (f, _) in reversed(_UNITS.items()) if self.duration % f == 0)
        return f"{self.duration // factor} {unit}"


def parse_window(value: object) -> Window:
    """`"1 day"`, `"90 s"`, `"1.5 h"`, `"PT90S"`, `"1000 events"`, `"day"`, a timedelta, or a number of publications."""
    if isinstance(value, Window):
        return value
    window = None
    if isinstance(value, timedelta):
        window = _window(value // timedelta(microseconds=1), None)
    elif isinstance(value, int) and not isinstance(value, bool):
        window = _window(None, value)
    elif isinstance(value, str):
        window = _from_text(value)
    if window is None:
        raise SubscriptionError(
            f"window is {shown(value)}: a duration above 0 as '1 day', '90 s', '5 minutes', 'P1D', a count as '1000 events', "
            "a period of the calendar ('day', 'week' or 'month'), a timedelta or a whole number of events is accepted"
        )
    return window


def duration(field: str, value: object) -> int:
    """Microseconds of a length of time."""
    window = _from_text(value) if isinstance(value, str) else parse_window(value) if isinstance(value, timedelta) else None
    if window is not None and window.duration is not None:
        return window.duration
    raise SubscriptionError(f"{field} is {shown(value)}: a duration above 0 as '1 day', '90 s' or a timedelta is accepted")


def _from_text(text: str) -> Window | None:
    plain = text.strip()
    if plain.lower() in CALENDAR:
        return Window(calendar=plain.lower())
    if plain[:1] in ("P", "p"):
        return _from_iso(plain.upper())
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    whole, fraction, unit = form[1], form[2] or "", form[3].lower()
    if unit in _EVENTS:
        return _window(None, int(whole)) if not fraction else None
    if unit not in _MICROSECONDS:
        return None
    return _window(int(whole + fraction) * _MICROSECONDS[unit] // 10 ** len(fraction), None)


def _from_iso(text: str) -> Window | None:
    form = _ISO.fullmatch(text)
    if form is None or text[-1] in "PT":
        return None
    parts = [Fraction((part or "0").replace(",", ".")) * unit for part, unit in zip(form.groups(), _ISO_UNITS, strict=True)]
    return _window(int(sum(parts)), None)


def _window(duration: int | None, count: int | None) -> Window | None:
    length = duration if duration is not None else count
    return Window(duration, count) if length is not None and 0 < length <= LARGEST else None
