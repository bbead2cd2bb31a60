"""What a topic answers with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SEPARATOR = "\x1f"


class Match(NamedTuple):
    event: str
    subscription: str
    score: float


class Notification(NamedTuple):
    """A match that the subscription's ranking lets through.

    `why` is `matched` (no ranking), `entered` (came into the list when it was published), `promoted` (a better one left), `updated`
    or `left` (keyed topics). `rank` counts from 1 within the subscription's list; None without one, and for what has left.
    """

    subscription: str
    event: str
    score: float
    rank: int | None
    why: str
    at: datetime

    @property
    def id(self) -> str:
        """The same for the same notification, wherever and however often it is made: consumers can drop repeats by it."""
        text = SEPARATOR.join((self.subscription, self.event, self.why, self.at.isoformat()))
        return blake2b(text.encode(), digest_size=16).hexdigest()


def instant(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
