"""What of the live events concerns a subscription, best first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidings.match.store.hits import LONG_AGO
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.values.calendar import window_end
from tidings.model.values.schema import Schema
from tidings.rank.relevance import relevance_of
from tidings.topic.live.live_events import LiveEvents
from tidings.topic.publications import event_group
from tidings.windows.memory import BEGINNING
from tidings.windows.windows import Candidate


def candidates_of(
    schema: Schema, events: LiveEvents, publications: int, subscription: Subscription, live: Sequence[Event], now: int
) -> list[Candidate]:
    """Of these live matches those within the window, best first; so much was published."""
    s, window = subscription, subscription.window
    first = BEGINNING if window is None or window.count is None else publications - window.count
    judge, found = None if s.by is None else relevance_of(schema, s.by), []
    for event in live:
        at, number = events.published(event.id)
        ends = None if window is None else window_end(window, s.tz, at)
        if (ends is None or ends > now) and number > max(first, LONG_AGO):
            relevance = s.score_of(event.values) if judge is None else judge(event.values, at)
            if relevance is not None and math.isfinite(relevance):
                group = 0 if s.per is None else event_group(event, s.per)
                found.append(Candidate(event.id, relevance, at, event.expires, number, False, group))
    return sorted(found, key=lambda c: (-c.relevance, c.time, c.event, c.number))


def first_of_groups(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Without those of whose group a better one stands before."""
    groups, first = set[int](), []
    for c in candidates:
        if c.group == 0 or c.group not in groups:
            groups.add(c.group)
            first.append(c)
    return first
