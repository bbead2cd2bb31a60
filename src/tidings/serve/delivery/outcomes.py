"""What became of an attempt, and when to try again.

| outcome   | meaning                                                                                     |
|-----------|---------------------------------------------------------------------------------------------|
| `TAKEN`   | the receiver has it                                                                         |
| `LATER`   | not now: try again, after `wait` seconds if the receiver said so                             |
| `REFUSED` | the receiver will never take this one: it becomes a dead letter, the next goes on            |
| `CLOSED`  | the receiver wants nothing any more (410): the sink is switched off                          |
"""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime
from typing import NamedTuple

TAKEN, LATER, REFUSED, CLOSED = "taken", "later", "refused", "closed"
NEVER_TAKEN = frozenset({400, 405, 406, 411, 413, 414, 415, 422, 431})
"""Answers that concern what was sent, not when."""
FIRST, LONGEST = 1.0, 3600.0
DAY = 86_400.0


class Outcome(NamedTuple):
    kind: str
    reason: str = ""
    wait: float | None = None


def of_status(status: int, retry_after: str | None = None) -> Outcome:
    """What an HTTP answer means."""
    if 200 <= status < 300:
        return Outcome(TAKEN)
    if status == 410:
        return Outcome(CLOSED, "the receiver answered 410")
    if status in NEVER_TAKEN:
        return Outcome(REFUSED, f"the receiver answered {status}")
    if 300 <= status < 400:
        return Outcome(LATER, f"the receiver answered {status}: redirects are not followed")
    return Outcome(LATER, f"the receiver answered {status}", None if retry_after is None else seconds_of(retry_after))


def seconds_of(retry_after: str) -> float | None:
    """What `Retry-After` asks for, a number or a date; at most a day."""
    text = retry_after.strip()
    try:
        wait = float(text) if text.isdigit() else parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), DAY)


def delay_of(attempt: int, draw: random.Random) -> float:
    """Seconds before attempt number `attempt` + 1: twice as long each time up to an hour, half of it by chance."""
    most = min(FIRST * 2.0 ** min(attempt - 1, 30), LONGEST)
    return most / 2 + draw.random() * most / 2
