"""What a subscription with its own k and window hears, straight from the definition: every list is recomputed at every instant.

The history is a sequence of acts. An act at time t first moves the clock to t, stopping at every instant at which some candidate
leaves; a publication then takes the next number and joins. After each of these steps every subscription's list is looked at, and
whoever stands in it for the first time is notified. A publication that is older than the clock is taken with its own time.

A change of a subscription (`change`) makes its list anew of what is live and says how the two lists differ. What has been told, or
counts though it is older than the subscription, is remembered as long as it may yet stand in the list by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

BEGINNING = -(2**62)

Notice = tuple[str, str, float, int, str, int]
"""(subscription, event, relevance, rank, why, at); rank 0 where there is no k."""


class Published(NamedTuple):
    event: str
    relevance: float
    time: int
    expires: int | None
    number: int
    group: object = None
    """None stands for itself."""


def period_of(instant: int, unit: str, zone: str) -> tuple[int, ...]:
    """The day, week or month of an instant (microseconds), as the calendar of a zone names it; they ascend."""
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)).astimezone(ZoneInfo(zone)).date()
    if unit == "month":
        return local.year, local.month
    return tuple(local.isocalendar())[:2] if unit == "week" else (local.toordinal(),)


@cache
def period_end(instant: int, unit: str, zone: str) -> int:
    """The first instant of a later period, by halving: what a zone's clock shows is all that is asked."""
    here, lo, hi = period_of(instant, unit, zone), instant, instant + 33 * 86_400 * 1_000_000
    while hi - lo > 1:
        middle = (lo + hi) // 2
        if period_of(middle, unit, zone) > here:
            hi = middle
        else:
            lo = middle
    return hi


@dataclass
class Interest:
    k: int | None
    duration: int | None
    count: int | None
    since: int
    expires: int | None = None
    """From then on it hears nothing."""
    longest: int | None = None
    """The length of the probabilistic queue; None keeps every match."""
    matches: list[Published] = field(default_factory=list)
    told: set[int] = field(default_factory=set)
    replayed: set[int] = field(default_factory=set)
    """Publications that count though they came before it."""
    calendar: tuple[str, str] | None = None
    """A period of the calendar, and the zone: what was published in the same one counts."""
    per: bool = False
    """Of one group only the best counts."""

    def is_candidate(self, match: Published, time: int, number: int) -> bool:
        return (
            (match.time > self.since or match.number in self.replayed)
            and (self.duration is None or match.time > time - self.duration)
            and (self.calendar is None or period_of(match.time, *self.calendar) == period_of(time, *self.calendar))
            and (self.count is None or match.number > number - self.count)
            and (match.expires is None or time < match.expires)
        )

    def candidates(self, time: int, number: int) -> list[Published]:
        live = [match for match in self.matches if self.is_candidate(match, time, number)]
        return sorted(live, key=lambda match: (-match.relevance, match.time, match.event, match.number))

    def top(self, time: int, number: int) -> list[Published]:
        if self.expires is not None and self.expires <= time:
            return []
        counting: list[Published] = []
        for match in self.candidates(time, number):
            taken = self.per and match.group is not None and match.group in {other.group for other in counting}
            counting += [] if taken and self.k is not None else [match]
        return counting[: self.k]

    def lasting(self, time: int, number: int) -> list[Published]:
        """The candidates that may yet stand in the list if only time passes: no better one of their group outlives them, nor does
        one of each of k groups. Where publications are counted, only what has no end of its own is sure to outlive another."""
        found: list[Published] = []
        for match in (candidates := self.candidates(time, number)):
            better = [other for other in candidates[: candidates.index(match)] if self._outlives(other, match)]
            grouped = self.per and match.group is not None
            if grouped and any(other.group == match.group for other in better):
                continue
            groups = {other.group if self.per and other.group is not None else other for other in better}
            found += [match] if self.k is None or len(groups) < self.k else []
        return found

    def _outlives(self, other: Published, match: Published) -> bool:
        if self.count is not None:
            return not self.leaves(other) and other.number >= match.number
        return min(self.leaves(other), default=2**62) >= min(self.leaves(match), default=2**62)

    def leaves(self, match: Published) -> list[int]:
        ends = [] if match.expires is None else [match.expires]
        ends += [] if self.calendar is None else [period_end(match.time, *self.calendar)]
        return ends if self.duration is None else [*ends, match.time + self.duration]


class WindowsOracle:
    """`queue_length(k, error, count)` gives the longest probabilistic queue; only subscriptions with an error need it."""

    def __init__(self, queue_length: Callable[[int, float, int | None], int] | None = None) -> None:
        self.clock = BEGINNING
        self.number = 0
        self.interests: dict[str, Interest] = {}
        self._queue_length = queue_length

    def activate(
        self,
        subscription: str,
        k: int | None,
        duration: int | None,
        count: int | None,
        time: int,
        error: float | None = None,
        expires: int | None = None,
        calendar: tuple[str, str] | None = None,
        per: bool = False,
    ) -> None:
        longest = None
        if error is not None and k and self._queue_length is not None:
            longest = self._queue_length(k, error, count)
        self.interests[subscription] = Interest(k, duration, count, time, expires, longest, calendar=calendar, per=per)

    def deactivate(self, subscription: str) -> None:
        del self.interests[subscription]

    def advance(self, time: int) -> list[Notice]:
        ends = {end for i in self.interests.values() for match in i.matches for end in i.leaves(match) if self.clock < end <= time}
        notices = []
        for end in sorted(ends):
            self.clock = end
            notices += self._look(None)
        self.clock = max(self.clock, time)
        return notices

    def publish(
        self,
        event: str,
        time: int,
        expires: int | None,
        concerned: Sequence[tuple[str, float]],
        group: Callable[[str], object] | object = None,
    ) -> list[Notice]:
        """`group` of the event, or by subscription where they ask for different ones."""
        notices = self.advance(time)
        self.number += 1
        for subscription, relevance in concerned:
            of = group(subscription) if callable(group) else group
            self.interests[subscription].matches.append(Published(event, relevance, time, expires, self.number, of))
        return notices + self._look(self.number)

    def replay(self, subscription: str, live: Sequence[Published], time: int) -> list[Notice]:
        """Give a list that has just begun what is live: who of it stands in the list is told as if it had just entered."""
        interest, now = self.interests[subscription], max(time, self.clock)
        interest.replayed |= {match.number for match in live}
        interest.matches += [match for match in live if interest.is_candidate(match, now, self.number)]
        top = interest.top(now, self.number)
        interest.told |= {match.number for match in top}
        ranks = [0] * len(top) if interest.k is None else range(1, len(top) + 1)
        return [(subscription, m.event, m.relevance, rank, "entered", now) for m, rank in zip(top, ranks, strict=True)]

    def change(
        self,
        subscription: str,
        terms: Mapping[str, Any],
        live: Sequence[Published],
        reached: Collection[int],
        time: int,
    ) -> list[tuple[str, str, float, int | None, str, int]]:
        """It has other terms (fields of `Interest`), or asks for something else: `live` is what it then matches, as it then ranks,
        and `reached` are the numbers of the live ones that it matched and ranked before."""
        old, now = self.interests[subscription], max(time, self.clock)
        if old.expires is not None and old.expires <= now:
            return []
        lasting = {match.number for match in old.lasting(now, self.number)}
        listed = [match for match in old.top(now, self.number) if match.number in old.told]
        counting = [m for m in live if m.time > old.since or m.number not in reached or m.number in lasting]
        new = self.interests[subscription] = replace(old, **terms, replayed={m.number for m in counting})
        new.matches = [match for match in counting if new.is_candidate(match, now, self.number)]
        top = new.top(now, self.number)
        new.told = (old.told & lasting) | {match.number for match in top}
        was, there = {match.event: match.relevance for match in listed}, {match.event for match in top}
        left = [(subscription, event, score, None, "left", now) for event, score in was.items() if event not in there]
        ranked = [(subscription, m.event, m.relevance, rank, "entered", now) for rank, m in enumerate(top, 1) if m.event not in was]
        return [*left, *ranked]

    def top(self, subscription: str, time: int) -> list[tuple[str, float]]:
        best = self.interests[subscription].top(max(time, self.clock), self.number)
        return [(match.event, match.relevance) for match in best]

    def _look(self, published: int | None) -> list[Notice]:
        notices: list[Notice] = []
        for subscription, interest in self.interests.items():
            if interest.longest is not None:
                interest.matches = interest.candidates(self.clock, self.number)[: interest.longest]
            for position, match in enumerate(interest.top(self.clock, self.number)):
                if match.number not in interest.told:
                    interest.told.add(match.number)
                    why = "entered" if match.number == published else "promoted"
                    rank = 0 if interest.k is None else position + 1
                    notices.append((subscription, match.event, match.relevance, rank, why, self.clock))
        return notices
