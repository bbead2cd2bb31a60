"""What a change of a subscription tells: how what it reaches, or its list, differs from what it was.

A subscription without a list hears of the live events that came into reach or went out. A list of the k best is made anew of the
live events (`listed_anew`), and what stood in it or stands in it now is told. In a keyed topic boards do the same (`telling`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from operator import attrgetter

from tidings.match.answers.results import Notification, instant
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.values.calendar import window_end
from tidings.model.values.schema import Schema
from tidings.rank.relevance import relevance_of
from tidings.topic.candidates import candidates_of, first_of_groups
from tidings.topic.live.live_events import LiveEvents
from tidings.topic.telling import differences
from tidings.topic.watching import same_window
from tidings.windows.memory import BEGINNING, NEVER
from tidings.windows.near.ideal_points import IdealPoints
from tidings.windows.windows import Candidate, Windows

_ASKED = attrgetter("clauses", "k", "window", "by", "error", "per", "tz")
_SCORED = attrgetter("score", "terms")


def reach(schema: Schema, events: LiveEvents, subscription: Subscription, now: int) -> dict[str, tuple[Event, float]]:
    """The live events that a subscription matches and can rank, by id, with the score that it would be told."""
    s, found = subscription, dict[str, tuple[Event, float]]()
    judge = None if s.by is None or not s.is_ranked else relevance_of(schema, s.by)
    for event in events.search(s.clauses, now):
        score = s.score_of(event.values) if judge is None else judge(event.values, events.published(event.id)[0])
        if score is not None and math.isfinite(score):
            found[event.id] = event, score
    return found


def reached(schema: Schema, events: LiveEvents, before: Subscription, after: Subscription, now: int) -> list[Notification]:
    """The live events that a changed filter, or place, lets in or out."""
    if not asks_otherwise(before, after) or not len(events) or not after.is_live(now):
        return []
    listed, there = ({id: score for id, (_, score) in reach(schema, events, s, now).items()} for s in (before, after))
    entered = [Notification(after.id, id, score, None, "entered", instant(now)) for id, score in there.items()]
    return differences(after.id, {id: there.get(id, score) for id, score in listed.items()}, entered, instant(now))


def asks_otherwise(before: Subscription, after: Subscription) -> bool:
    """Whether the one may reach other events than the other, or rank them in another way."""
    return _ASKED(before) != _ASKED(after) or (before.by is None and _SCORED(before) != _SCORED(after))


def lists(before: Subscription, after: Subscription) -> bool:
    """Whether both have a list of their k best, which live events can fill; how similar those are nobody keeps."""
    return all(s.listed is not None and s.similarity is None for s in (before, after))


def goes_on(before: Subscription, after: Subscription) -> bool:
    """Whether an update leaves the window as it was, or makes a list of it that tells the difference."""
    return lists(before, after) or same_window(before, after)


def known_of(
    schema: Schema, events: LiveEvents, windows: Windows, near: IdealPoints, subscription: Subscription, now: int
) -> list[Candidate]:
    """The candidates of a subscription's list that are known, best first, with who of them was told."""
    s = subscription
    if s.id not in near:
        return windows.candidates(s.id, now) if s.id in windows else []
    assert s.since is not None
    told = {c.number for c in near.candidates(s.id, now) if c.told}
    live = [event for event, _ in reach(schema, events, s, now).values()]
    found = candidates_of(schema, events, windows.publications, s, live, now)
    return [c._replace(told=c.number in told) for c in found if c.time > s.since]


def listed_anew(
    schema: Schema,
    events: LiveEvents,
    publications: int,
    before: Subscription,
    after: Subscription,
    known: Sequence[Candidate],
    now: int,
) -> tuple[list[Candidate], list[Notification]]:
    """The list of a changed subscription, made of the live events, and how it differs from the one that it had.

    `known` are the candidates of the old list, best first. What came into reach counts, what is younger than the subscription, and
    what counted already and might yet have stood in the list (`lasting`); of the last it is remembered who was told.
    """
    assert before.since is not None
    was = reach(schema, events, before, now)
    kept = {c.number: c.told for c in lasting(before, known)}
    live = [event for event, _ in reach(schema, events, after, now).values()]
    found = [
        c._replace(told=kept.get(c.number, False))
        for c in candidates_of(schema, events, publications, after, live, now)
        if c.time > before.since or c.event not in was or c.number in kept
    ]
    top = first_of_groups(found)[: after.listed]
    numbers = {c.number for c in top}
    heard = {c.event: c.relevance for c in first_of_groups(known)[: before.listed] if c.told}
    entered = [
        Notification(after.id, c.event, c.relevance, rank, "entered", instant(now))
        for rank, c in enumerate(top, 1)
        if c.event not in heard
    ]
    there = {c.event for c in top}
    left = [
        Notification(after.id, event, score, None, "left", instant(now)) for event, score in heard.items() if event not in there
    ]
    return [c._replace(told=c.told or c.number in numbers) for c in found], left + entered


def lasting(subscription: Subscription, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Of a list's candidates, best first, those that may yet stand in it if only time passes: no better one of their group outlives
    them, nor does one of each of k groups. Where publications are counted, only what has no end of its own is sure to outlive."""
    k, window, tz = subscription.listed, subscription.window, subscription.tz
    counts = window is not None and window.count is not None
    ends, of_group, found = list[int](), dict[int, int](), list[Candidate]()
    for c in candidates:
        timed = None if window is None else window_end(window, tz, c.time)
        until = min(NEVER if timed is None else timed, NEVER if c.expires is None else c.expires)
        end = c.number if counts else until
        if of_group.get(c.group, BEGINNING) >= end:
            continue
        if k is None or len(ends) - bisect_left(ends, end) < k:
            found.append(c)
        if not counts or until == NEVER:
            if c.group in of_group:
                ends.remove(of_group[c.group])
            if c.group != 0:
                of_group[c.group] = end
            insort(ends, end)
    return found
