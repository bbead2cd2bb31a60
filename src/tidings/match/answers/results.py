"""What a topic answers with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from struct import Struct
from typing import Any, NamedTuple

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SEPARATOR = "\x1f"
_NUMBER, _BITS = Struct("<d"), Struct("<q")


class Match(NamedTuple):
    """An event, a subscription that it matches, and how well.

    >>> import tidings as td
    >>> event, subscription, score = td.Match("e1", "ann", 2.0)
    >>> subscription, score
    ('ann', 2.0)
    """

    event: str
    subscription: str
    score: float


class Notification(NamedTuple):
    """A match that the subscription's ranking lets through.

    `why` is `matched` (no ranking), `entered` (came into the list when it was published), `promoted` (a better one left), `updated`
    or `left` (keyed topics), `dwelt` (an object has stayed for so long) or `digest` (the best of a period, listed in `digest`).
    `rank` counts from 1 within the subscription's list; None without one, and for what has left.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"price": td.Number()})
    >>> notes = deals.subscribe("ann", k=1, window="1 hour", by="-price", time=0)
    >>> [note] = deals.publish({"id": "e1", "price": 3}, time=60)
    >>> note.subscription, note.event, note.score, note.rank, note.why, note.at.isoformat()
    ('ann', 'e1', -3.0, 1, 'entered', '1970-01-01T00:01:00+00:00')
    """

    subscription: str
    event: str
    score: float
    rank: int | None
    why: str
    at: datetime

    @property
    def id(self) -> str:
        """The same for the same notification, wherever and however often it is made: consumers can drop repeats by it.

        An event that was published twice may come into a list twice at one instant, so score and rank belong to it; an absent rank
        is 0, a score its bits as a whole number.
        """
        told = f"{self.rank or 0}{SEPARATOR}{_BITS.unpack(_NUMBER.pack(self.score + 0.0))[0]}"
        text = SEPARATOR.join((self.subscription, self.event, self.why, self.at.isoformat(), told))
        return blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def body(self) -> Mapping[str, Any] | None:
        """The event, as JSON carries it, if bodies were asked for; None of an object that is gone."""
        return None

    @property
    def digest(self) -> list[Mapping[str, Any]]:
        """Of a digest what it tells together, best first: `event`, `score` and `at` of each; nothing of any other."""
        return [] if self.why != "digest" or self.body is None else list(self.body["digest"])

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can carry it.

        >>> from datetime import UTC, datetime
        >>> Notification("ann", "e1", 2.0, None, "matched", datetime(2026, 1, 31, tzinfo=UTC)).to_dict()["at"]
        '2026-01-31T00:00:00+00:00'
        """
        said = {"id": self.id, **self._asdict(), "at": self.at.isoformat()}
        return said if self.body is None else {**said, "body": dict(self.body)}

    def to_json(self) -> str:
        """The same as text.

        >>> import json
        >>> from datetime import UTC, datetime
        >>> note = Notification("ann", "e1", 2.0, None, "matched", datetime(2026, 1, 31, tzinfo=UTC))
        >>> json.loads(note.to_json()) == note.to_dict()
        True
        """
        return json.dumps(self.to_dict(), ensure_ascii=False)


class _WithBody(Notification):
    """It compares, hashes and unpacks as the same without a body."""

    _body: Mapping[str, Any]

    @property
    def body(self) -> Mapping[str, Any]:
        return self._body


def with_body(note: Notification, body: Mapping[str, Any]) -> Notification:
    made = _WithBody(*note)
    made._body = body
    return made


def instant(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
