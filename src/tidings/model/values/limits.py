"""Limits on what users say are asked at the door and nowhere else: what was accepted once is read back whatever its size.

A reader asks `limited()` only when something is beyond its limit, so what is within costs nothing. Recovery reads inside
`recovering()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TEXT_LIMIT = 1_000_000
"""Most characters of a string of an event, and of a filter."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""What no id and no owner has: names are joined by such characters in keys and files."""

_recovering: ContextVar[bool] = ContextVar("recovering", default=False)


def limited() -> bool:
    return not _recovering.get()


@contextmanager
def recovering() -> Iterator[None]:
    """Inside, nothing is refused for its size, its price or its characters."""
    token = _recovering.set(True)
    try:
        yield
    finally:
        _recovering.reset(token)


def has_surrogate(text: str) -> bool:
    """Whether a string holds half a surrogate pair, which no encoding writes."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
