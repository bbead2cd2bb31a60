"""The subscriber's k: each subscription hears of the k most relevant publications of any last w, each once.

`Windows` knows no filters. Its owner tells it of every publication, with the subscriptions that it matched and its relevance to
each; what comes back is who is to be notified. The candidates of a subscription at time t are its matches published in
(max(activation, t - duration), t], or after the activation and among the topic's last `count` publications, that have not
expired (an event lives while t < expires). The k best by (relevance desc, time asc, id asc) are its list. A candidate is
notified the first time it stands in the list: `entered` at its publishing, `promoted` when a better one has left.

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
relevance, time, expires or null, number, told], best first. `restore` takes back whatever it can read: what it cannot is
dropped, and said. [topkw, Sections 2 and 3]
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from tidings.errors import SubscriptionError
from tidings.model.values.window import Window
from tidings.windows.entries import Entries
from tidings.windows.invariants import check_lists
from tidings.windows.memory import ALL, CLOCK, NEVER, NUMBER, empty_memory
from tidings.windows.slots import Saved, SlotWindows, Terms, concerned_of, terms_of


class Activation(NamedTuple):
    k: int | None
    window: Window | None
    since: int
    error: float | None

    def terms(self) -> Terms:
        duration, count = (None, None) if self.window is None else (self.window.duration, self.window.count)
        return terms_of(self.k, duration, count, self.since, self.error)


def terms_of_many(activations: Sequence[Activation]) -> Terms:
    windows = [activation.window for activation in activations]
    span = np.array(
        [
            [ALL if activation.k is None else activation.k for activation in activations],
            [NEVER if window is None else window.duration or NEVER for window in windows],
            [NEVER if window is None else window.count or NEVER for window in windows],
            [activation.since for activation in activations],
        ],
        np.int64,
    )
    return Terms(span[0], span[1], span[2], span[3], np.array([activation.error or 0.0 for activation in activations]))


class Candidate(NamedTuple):
    event: str
    relevance: float
    time: int
    expires: int | None
    number: int
    told: bool


UNREADABLE = (KeyError, TypeError, ValueError, OverflowError, AttributeError, SubscriptionError)
"""What reading a state that nobody wrote may raise."""


class Windows(SlotWindows):
    def __init__(self) -> None:
        super().__init__()
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._activations: dict[str, Activation] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._slots

    def slot(self, subscription: str) -> int:
        """The number by which batches name a subscription, valid until it is deactivated."""
        if subscription not in self._slots:
            raise SubscriptionError(f"subscription {subscription!r} has no window here; activate it first")
        return self._slots[subscription]

    def activate(self, subscription: str, k: int | None, window: Window | None, time: int, error: float | None = None) -> None:
        """From `time` on, excluded, the subscription hears its k best of any window; no window means since then."""
        activation = Activation(k, window, time, error)
        terms = activation.terms()
        self.begin(self._take_slot(subscription, activation), terms)

    def activate_many(
        self, subscriptions: Sequence[str], terms: Sequence[tuple[int | None, Window | None, int, float | None]]
    ) -> None:
        """The same of many at once; `terms` are k, window, time and error of each."""
        made = list(map(Activation._make, terms))
        slots = [self._take_slot(subscription, own) for subscription, own in zip(subscriptions, made, strict=True)]
        self.begin(np.concatenate(slots), terms_of_many(made))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = copy.copy(self)
        for name, part in vars(self).items():
            setattr(made, name, part.copy() if isinstance(part, dict | list) else copy.deepcopy(part, memo))
        return made

    def fill(self, subscription: str, candidates: Sequence[Candidate]) -> None:
        """Give a list that has just begun candidates that were published before it.

        Events lie in order of their publication, so all lists are laid out anew: costs what all of them hold.
        """
        slot, slots = self.slot(subscription), np.array([*self._slots.values()], np.int32)
        saved, others = self.save(slots), slots != slot
        own = saved.lists[~others]
        own["size"], own["changed"] = len(candidates), 1
        events, places = np.zeros(len(candidates), saved.events.dtype), np.zeros(len(candidates), saved.places.dtype)
        events["time"], events["number"] = [c.time for c in candidates], [c.number for c in candidates]
        events["expires"] = [NEVER if c.expires is None else c.expires for c in candidates]
        places["event"], places["told"] = np.arange(len(candidates)), [c.told for c in candidates]
        places["relevance"] = [c.relevance for c in candidates]
        filled = Saved(own, places, pa.array([c.event for c in candidates], pa.string()), events)
        clock, publications = self.clock, self.publications
        self.memory = empty_memory()
        self.set_clock(clock, publications)
        had = saved.lists
        self.begin(slots, Terms(had["k"], had["duration"], had["counted"], had["since"], np.where(had["bounded"] > 0, 0.5, 0.0)))
        self.load([slots[others], slots[~others]], [saved._replace(lists=saved.lists[others]), filled])

    def deactivate(self, subscription: str) -> None:
        slot = self.slot(subscription)
        self.end(np.array([slot], np.int32))
        del self._slots[subscription], self._activations[subscription]
        self._free.append(slot)

    def publish(self, event: str, time: int, expires: int | None, concerned: Sequence[tuple[str, float]]) -> Entries:
        """A batch of one."""
        slots = [self.slot(subscription) for subscription, _ in concerned]
        relevances = [relevance for _, relevance in concerned]
        concerned_rows = concerned_of([0, len(slots)], slots, relevances)
        return self._publish(self._store_one(event, time, NEVER if expires is None else expires), concerned_rows)

    def top(self, subscription: str, time: int) -> list[tuple[str, float]]:
        """The list as it stands at `time` (or at the clock, if that is later): best first."""
        slot = self.slot(subscription)
        k = self.memory.lists["k"][self._row(slot)]
        if k == ALL:
            raise SubscriptionError(f"subscription {subscription!r} has no k: it hears every match and keeps no list")
        now = max(time, int(self.memory.meter[CLOCK]))
        return [(c.event, c.relevance) for c in self._candidates(slot, now)[:k]]

    def changed(self) -> set[str]:
        """The subscriptions whose state is not what it was when last asked. The clock and the count change with every act."""
        lists = self.memory.lists
        names = {self.names[slot] for slot in self._slots_at(np.flatnonzero(lists["changed"])).tolist()}
        lists["changed"][:] = 0
        return names

    def state_of(self, subscription: str) -> dict[str, Any]:
        """All that one subscription needs to go on after a restart, as JSON."""
        k, window, since, error = self._activations[subscription]
        candidates = [list(c) for c in self._candidates(self.slot(subscription), int(self.memory.meter[CLOCK]))]
        span = {} if window is None else {"duration": window.duration, "count": window.count}
        return {"k": k, **span, "since": since, "error": error, "candidates": candidates}

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
                windows.activate(subscription, saved["k"], window_of(saved), saved["since"], saved["error"])
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
        self._put_back(rows, sizes, -np.array([c.relevance for c in found], np.float64), mark)

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

    def _candidates(self, slot: int, now: int) -> list[Candidate]:
        """The slot's candidates that live at `now`, best first."""
        row = self._row(slot)
        own = self.memory.lists[row]
        cost, mark = self._candidates_of(np.array([row]))
        event = mark >> 1
        time, expires, number = (self.memory.events[name][event] for name in ("time", "expires", "number"))
        live = expires > now
        if own["duration"] != NEVER:
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
            strict=True,
        )
        return sorted((Candidate(*row) for row in rows), key=lambda c: (-c.relevance, c.time, c.event, c.number))

    def _take_slot(self, subscription: str, activation: Activation) -> Any:
        k, _, _, error = activation
        if subscription in self._slots:
            raise SubscriptionError(f"subscription {subscription!r} is active already; deactivate it first")
        if k is not None and k < 0:
            raise SubscriptionError(f"k is {k}: 0 (nothing), a positive number, or None (everything) is accepted")
        if error is not None and not 0.0 < error < 1.0:
            raise SubscriptionError(f"error is {error}: a probability between 0 and 1, both excluded, is accepted")
        if self._free:
            slot = self._free.pop()
            self.names[slot] = subscription
        else:
            slot = len(self.names)
            self.names.append(subscription)
        self._slots[subscription], self._activations[subscription] = slot, activation
        return np.array([slot], np.int32)


def window_of(saved: Mapping[str, Any]) -> Window | None:
    """The window of a saved subscription."""
    duration, count = saved.get("duration"), saved.get("count")
    return None if duration is None and count is None else Window(duration=duration, count=count)


def read_candidate(event: str, relevance: float, time: int, expires: int | None, number: int, told: bool) -> Candidate:
    """Of a state that anybody may have written."""
    if np.isnan(relevance):
        raise ValueError("relevance is NaN")
    until = None if expires is None else int(np.int64(expires))
    return Candidate(str(event), float(relevance), int(np.int64(time)), until, int(np.int64(number)), bool(told))
