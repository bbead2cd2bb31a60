"""What of the live events concerns a subscription that was just made, or has changed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidings.match.answers.results import Notification, instant
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.values.calendar import window_end
from tidings.model.values.schema import Schema
from tidings.rank.relevance import relevance_of
from tidings.topic.live_events import LiveEvents
from tidings.topic.publications import event_group
from tidings.topic.telling import differences
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
        if (ends is None or ends > now) and number > first:
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


def reached(events: LiveEvents, before: Subscription, after: Subscription, now: int) -> list[Notification]:
    """The live events that a changed filter, or place, lets in or out."""
    if before.clauses == after.clauses or not len(events) or not after.is_live(now):
        return []
    listed, there = (
        {e.id: score for e in events.search(s.clauses, now) if math.isfinite(score := s.score_of(e.values))}
        for s in (before, after)
    )
    entered = [Notification(after.id, id, score, None, "entered", instant(now)) for id, score in there.items()]
    return differences(after.id, {id: there.get(id, score) for id, score in listed.items()}, entered, instant(now))
