"""The subscriber's k: each subscription hears of the k most relevant publications of any last w, each once.

`Windows` knows no filters. Its owner tells it of every publication, with the subscriptions that it matched and its relevance to
each; what comes back is who is to be notified. The candidates of a subscription at time t are its matches published in
(max(activation, t - duration), t], or after the activation and among the topic's last `count` publications, that have not
expired (an event lives while t < expires). The k best by (relevance desc, time asc, id asc) are its list. A candidate is
notified the first time it stands in the list: `entered` at its publishing, `promoted` when a better one has left.

A window of the calendar holds what was published in the period (day, week, month) of t. Where `per` groups are asked for, of the
candidates of one group only the best counts, and when it has left the next of them stands in.

The order of things. An act at time t moves the clock to t, stopping at every instant up to and including t at which a candidate
leaves a list; then the publication joins, and in count windows pushes out what it pushes out in the same step. Acts at one
instant happen one after the other.

Only what is published after the activation counts, whatever its time.

Late events. One that is older than the clock is taken with its own time: it competes as long as that lies in the window, ranks
by it among equals, and is notified at the clock's time. In a count window it is simply the newest publication.

Special cases, recognised at activation: k = 0 hears nothing and k = None everything, both without any memory (what is
notified has rank 0, and there is no `top`). Without a window (w -> infinity) pruning leaves the k best and those that outlive
one of them. A window that holds no more than k publications (w -> 0, low intensity) never prunes or refills: each match is
told at once.

`error=sigma` keeps the paper's bounded queue of `queue_length(k, sigma, m)` instead of the exact k-skyband; m is the count of a
count window, else the paper's worst case of 10^9.

State, as JSON: the clock, the count of publications, and for each subscription its terms and its candidates as [event,
relevance, time, expires or null, number, told], with `per` the group after that, best first. `restore` takes back whatever it
can read: what it cannot is dropped, and said. [topkw, Sections 2 and 3]
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tidings.errors import SubscriptionError
from tidings.model.values.calendar import Calendar
from tidings.model.values.window import Window
from tidings.windows.calendars import period_ends
from tidings.windows.entries import Entries
from tidings.windows.invariants import check_lists
from tidings.windows.memory import ALL, CLOCK, NEVER, NONE, NUMBER, STORED, padded, with_events_between
from tidings.windows.publishing import concerned_of
from tidings.windows.slots import SlotWindows, Terms


class Activation(NamedTuple):
    k: int | None
    window: Window | None
    since: int
    error: float | None
    per: str | None = None
    """what one a group counts of; the owner knows what it means"""
    tz: str | None = None
    """of a window of the calendar, None for UTC"""


class Candidate(NamedTuple):
    event: str
    relevance: float
    time: int
    expires: int | None
    number: int
    told: bool
    group: int = 0


UNREADABLE = (KeyError, TypeError, ValueError, OverflowError, AttributeError, SubscriptionError)
"""What reading a state that nobody wrote may raise."""


class Windows(SlotWindows):
    def __init__(self) -> None:
        super().__init__()
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._activations: dict[str, Activation] = {}
        self.grouped: list[str] = []
        """what lists ask groups of: the `per` of any, each once"""
        self._per = np.zeros(64, np.int32)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._slots

    def slot(self, subscription: str) -> int:
        """The number by which batches name a subscription, valid until it is deactivated."""
        if subscription not in self._slots:
            raise SubscriptionError(f"subscription {subscription!r} has no window here; activate it first")
        return self._slots[subscription]

    def activate(
        self,
        subscription: str,
        k: int | None,
        window: Window | None,
        time: int,
        error: float | None = None,
        per: str | None = None,
        tz: str | None = None,
    ) -> None:
        """From `time` on, excluded, the subscription hears its k best of any window; no window means since then."""
        self.activate_many([subscription], [Activation(k, window, time, error, per, tz)])

    def activate_many(self, subscriptions: Sequence[str], activations: Sequence[Activation]) -> None:
        """The same of many at once."""
        slots = [self._take_slot(subscription, own) for subscription, own in zip(subscriptions, activations, strict=True)]
        self.begin(np.concatenate(slots), self.terms(activations))

    def terms(self, activations: Sequence[Activation]) -> Terms:
        windows = [activation.window for activation in activations]
        span = np.array(
            [
                [ALL if activation.k is None else activation.k for activation in activations],
                [NEVER if a.window is None else self._duration(a.window, a.tz) for a in activations],
                [NEVER if window is None else window.count or NEVER for window in windows],
                [activation.since for activation in activations],
            ],
            np.int64,
        )
        error = np.array([activation.error or 0.0 for activation in activations])
        return Terms(span[0], span[1], span[2], span[3], error, np.array([a.per is not None for a in activations]))

    def per(self, slots: NDArray[np.integer]) -> NDArray[np.int32]:
        """Of what each asks groups: a place in `grouped`, -1 for nothing."""
        place: NDArray[np.int32] = self._per[slots] - np.int32(1)
        return place

    def _duration(self, window: Window, tz: str | None) -> int:
        if window.calendar is not None:
            return self.calendar(Calendar(window.calendar, tz or "UTC"))
        return window.duration or NEVER

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = copy.copy(self)
        for name, part in vars(self).items():
            setattr(made, name, part.copy() if isinstance(part, dict | list) else copy.deepcopy(part, memo))
        return made

    def fill(self, subscription: str, candidates: Sequence[Candidate]) -> None:
        """Give a list these candidates instead of those that it has; they may have been published before it.

        Events lie in order of their publication, so those that are not stored yet are put between others: that costs what all lists
        hold, else only this one's candidates are looked at.
        """
        row = self._row(self.slot(subscription))
        stored = self.memory.events["number"][: self.memory.meter[STORED]]
        missing = sorted({c.number: c for c in candidates}.values(), key=attrgetter("number"))
        missing = [c for c in missing if not in_sorted(stored, c.number)]
        if missing:
            self._store_between(missing)
        own = self.memory.lists[row]
        for name in ("viewed", "room", "spare", "spare_room"):
            own[name] = 0
        own["edge"], own["changed"] = NONE, 1
        kept = candidates[: int(own["limit"])] if own["bounded"] else candidates
        numbers = self.memory.events["number"][: self.memory.meter[STORED]]
        self._put_candidates({subscription: kept}, {c.number: int(np.searchsorted(numbers, c.number)) for c in kept})

    def _store_between(self, missing: Sequence[Candidate]) -> None:
        """Store events, ascending by number, where their numbers belong."""
        times = np.array([c.time for c in missing], np.int64)
        self.memory = self._calendars.covering(self.memory, times) if self._calendars else self.memory
        added = np.zeros(len(missing), self.memory.events.dtype)
        added["time"], added["number"] = times, [c.number for c in missing]
        added["expires"] = [NEVER if c.expires is None else c.expires for c in missing]
        self.memory = with_events_between(self.memory, added, [c.event.encode() for c in missing])

    def deactivate(self, subscription: str) -> None:
        slot = self.slot(subscription)
        self.end(np.array([slot], np.int32))
        del self._slots[subscription], self._activations[subscription]
        self._free.append(slot)

    def publish(
        self, event: str, time: int, expires: int | None, concerned: Sequence[tuple[str, float]], group: int = 0
    ) -> Entries:
        """A batch of one."""
        slots = [self.slot(subscription) for subscription, _ in concerned]
        relevances = [relevance for _, relevance in concerned]
        concerned_rows = concerned_of([0, len(slots)], slots, relevances, [group] * len(slots))
        return self._publish(self._store_one(event, time, NEVER if expires is None else expires), concerned_rows)

    def top(self, subscription: str, time: int) -> list[tuple[str, float]]:
        """The list as it stands at `time` (or at the clock, if that is later): best first."""
        slot = self.slot(subscription)
        k = self.memory.lists["k"][self._row(slot)]
        if k == ALL:
            raise SubscriptionError(f"subscription {subscription!r} has no k: it hears every match and keeps no list")
        now = max(time, int(self.memory.meter[CLOCK]))
        counting, groups = [], set[int]()
        for c in self._candidates(slot, now):
            if c.group == 0 or c.group not in groups:
                groups.add(c.group)
                counting.append((c.event, c.relevance))
        return counting[:k]

    def changed(self) -> set[str]:
        """The subscriptions whose state is not what it was when last asked. The clock and the count change with every act."""
        lists = self.memory.lists
        names = {self.names[slot] for slot in self._slots_at(np.flatnonzero(lists["changed"])).tolist()}
        lists["changed"][:] = 0
        return names

    def state_of(self, subscription: str) -> dict[str, Any]:
        """All that one subscription needs to go on after a restart, as JSON."""
        k, window, since, error, per, tz = self._activations[subscription]
        fields = len(Candidate._fields) - (per is None)
        candidates = [list(c)[:fields] for c in self._candidates(self.slot(subscription), int(self.memory.meter[CLOCK]))]
        span: dict[str, Any] = {} if window is None else {"duration": window.duration, "count": window.count}
        if window is not None and window.calendar is not None:
            span |= {"calendar": window.calendar, "tz": tz}
        return {"k": k, **span, "since": since, "error": error, **({} if per is None else {"per": per}), "candidates": candidates}

    def state(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "publications": self.publications,
            "subscriptions": {subscription: self.state_of(subscription) for subscription in self._slots},
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> tuple[Windows, list[str]]:
        """Go on from what `state` gave; and a sentence for each subscription whose state cannot be read."""
        windows, problems = cls(), []
        windows.set_clock(state["clock"], state["publications"])
        taken: dict[str, list[Candidate]] = {}
        for subscription, saved in state["subscriptions"].items():
            try:
                candidates = [read_candidate(*candidate) for candidate in saved["candidates"]]
                ranking = saved["k"], window_of(saved), saved["since"], saved["error"]
                windows.activate(subscription, *ranking, saved.get("per"), saved.get("tz"))
                taken[subscription] = candidates
            except UNREADABLE as problem:
                problems.append(f"the window of {subscription!r} begins anew: its state cannot be read ({problem!r})")
        windows._take_back(taken)
        windows.changed()
        return windows, problems

    def _take_back(self, taken: Mapping[str, Sequence[Candidate]]) -> None:
        events = {c.number: c for candidates in taken.values() for c in candidates}
        stored = [events[number] for number in sorted(events)]
        expires = [NEVER if c.expires is None else c.expires for c in stored]
        self._store_numbered([c.event for c in stored], [c.time for c in stored], expires, [c.number for c in stored])
        self._put_candidates(taken, {c.number: handle for handle, c in enumerate(stored)})

    def _put_candidates(self, taken: Mapping[str, Sequence[Candidate]], handles: Mapping[int, int]) -> None:
        rows = self._rows(np.array([self._slots[subscription] for subscription in taken], np.int64))
        found = [c for candidates in taken.values() for c in candidates]
        sizes = np.array([len(candidates) for candidates in taken.values()], np.int64)
        mark = np.array([2 * handles[c.number] + bool(c.told) for c in found], np.int64)
        group = np.array([c.group for c in found], np.int64)
        self._put_back(rows, sizes, -np.array([c.relevance for c in found], np.float64), mark, group)

    @property
    def stats(self) -> dict[str, int]:
        return {"subscriptions": len(self), **super().stats}

    def check(self) -> None:
        """Walk every invariant of `memory`."""
        assert set(self._slots.values()).isdisjoint(self._free)
        check_lists(self.memory, self.near, {self._row(slot) for slot in self._slots.values()})

    def _row(self, slot: int) -> int:
        return int(self._rows(np.array([slot]))[0])

    def _slots_at(self, rows: Any) -> Any:
        return rows

    def candidates(self, subscription: str, time: int) -> list[Candidate]:
        """What a list holds and has not forgotten that lives at `time` (or at the clock, if that is later), best first."""
        return self._candidates(self.slot(subscription), max(time, int(self.memory.meter[CLOCK])))

    def _candidates(self, slot: int, now: int) -> list[Candidate]:
        """The slot's candidates that live at `now`, best first."""
        row = self._row(slot)
        own = self.memory.lists[row]
        cost, mark, group = self._candidates_of(np.array([row]))
        event = mark >> 1
        time, expires, number = (self.memory.events[name][event] for name in ("time", "expires", "number"))
        live = expires > now
        if own["duration"] < 0:
            live &= period_ends(self.memory, -1 - int(own["duration"]), time) > now
        elif own["duration"] != NEVER:
            live &= time > max(now, -(2**61)) - own["duration"]
        if own["counted"] != NEVER:
            live &= number > self.memory.meter[NUMBER] - own["counted"]
        rows = zip(
            self._ids(event[live]).texts(),
            (-cost[live]).tolist(),
            time[live].tolist(),
            [None if e == NEVER else e for e in expires[live].tolist()],
            number[live].tolist(),
            (mark[live] & 1).astype(bool).tolist(),
            group[live].tolist(),
            strict=True,
        )
        return sorted((Candidate(*row) for row in rows), key=lambda c: (-c.relevance, c.time, c.event, c.number))

    def _take_slot(self, subscription: str, activation: Activation) -> Any:
        k, error = activation.k, activation.error
        if subscription in self._slots:
            raise SubscriptionError(f"subscription {subscription!r} is active already; deactivate it first")
        if k is not None and k < 0:
            raise SubscriptionError(f"k is {k}: 0 (nothing), a positive number, or None (everything) is accepted")
        if error is not None and not 0.0 < error < 1.0:
            raise SubscriptionError(f"error is {error}: a probability between 0 and 1, both excluded, is accepted")
        if error is not None and activation.per is not None:
            raise SubscriptionError("a list that counts one a group has no error: it is exact")
        if self._free:
            slot = self._free.pop()
            self.names[slot] = subscription
        else:
            slot = len(self.names)
            self.names.append(subscription)
        if slot >= len(self._per):
            self._per = padded(self._per, 2 * slot)
        if activation.per is not None and activation.per not in self.grouped:
            self.grouped.append(activation.per)
        self._per[slot] = 0 if activation.per is None else 1 + self.grouped.index(activation.per)
        self._slots[subscription], self._activations[subscription] = slot, activation
        return np.array([slot], np.int32)


def in_sorted(ascending: NDArray[np.int64], number: int) -> bool:
    at = int(np.searchsorted(ascending, number))
    return at < len(ascending) and int(ascending[at]) == number


def window_of(saved: Mapping[str, Any]) -> Window | None:
    """The window of a saved subscription."""
    span = saved.get("duration"), saved.get("count"), saved.get("calendar")
    return None if span == (None, None, None) else Window(*span)


def read_candidate(
    event: str, relevance: float, time: int, expires: int | None, number: int, told: bool, group: int = 0
) -> Candidate:
    """Of a state that anybody may have written."""
    if np.isnan(relevance):
        raise ValueError("relevance is NaN")
    until = None if expires is None else int(np.int64(expires))
    of_group = int(np.int64(group))
    return Candidate(str(event), float(relevance), int(np.int64(time)), until, int(np.int64(number)), bool(told), of_group)
