"""Gates: between what windows and boards tell and what a subscription hears, where it has a pace (`model.values.pace`).

A gate sees its subscription's notifications in order of time. At one instant what time brings comes first: a stay that has lasted
as long as `dwell` counts although it ends at that instant, and a digest is told before what is published at the end of its period.

- `dwell`: an object that has stood in the list for so long, without having left it, is told once more (`dwelt`), without a rank.
- `cooldown` and `budget`: who may not be told now is never told, only counted (`withheld`). A cooldown is of the subscription, or
with
  `per` of each value of it; `dwelt` is asked like any other.
- `digest`: what would be told is collected, and the k best (score desc, time asc, id asc; each event once; with `per` the best of
each value) are told together at the end of the period, as one notification (`digest`) of the best with the list in its body. Of a
keyed topic's objects those count that entered or changed in the period and have not left since, with their last score; of a stream
all that came into reach, also what a move has left behind.

Only subscriptions with a pace have a gate, so others pay for none. State, as JSON by subscription: `spent` and `until` of the
budget, `quiet` (until when, by group), `stays` (since when, and the score, null once it was told), `kept` of the digest (event,
score, since, group) and when it is `due`, and `withheld`.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from operator import attrgetter
from typing import Any

from tidings.match.answers.results import EPOCH, Notification, instant, with_body
from tidings.model.door.subscription import Subscription
from tidings.model.values.pace import budget_ends, budget_of, digest_calendar
from tidings.model.values.window import duration

GATE = "gate\0"
"""What the names of gates' states begin with."""
OVERALL = 0
Group = Callable[[Notification], int]


@dataclass(slots=True)
class State:
    spent: int = 0
    until: int | None = None
    quiet: dict[str, int] = field(default_factory=dict)
    stays: dict[str, list[Any]] = field(default_factory=dict)
    kept: list[list[Any]] = field(default_factory=list)
    due: int | None = None
    withheld: int = 0


class Gate:
    def __init__(self, subscription: Subscription, keyed: bool, state: State | None = None) -> None:
        self.subscription, self.keyed = subscription, keyed
        self.state = State() if state is None else state
        s = subscription
        self._dwell = None if s.dwell is None else duration("dwell", s.dwell)
        self._cooldown = None if s.cooldown is None else duration("cooldown", s.cooldown)
        self._budget = None if s.budget is None else budget_of(s.budget)
        self._calendar = None if s.digest is None else digest_calendar(s.digest, s.tz)

    @property
    def per(self) -> str | None:
        """The attribute whose values are asked for."""
        return self.subscription.per if self._cooldown is not None or self._calendar is not None else None

    def hear(self, note: Notification, at: int, group: int) -> list[Notification]:
        """What the subscription hears of a notification."""
        if self._calendar is not None:
            self._keep(note, at, group)
            return []
        if self._dwell is not None:
            self._stay(note, at)
        return self._let_through(note, at, group)

    def dues(self) -> list[int]:
        """The instants at which time alone does something."""
        due = [] if self.state.due is None else [self.state.due]
        waiting = [since + self._dwell for since, score in self.state.stays.values() if score is not None] if self._dwell else []
        return due + waiting

    def fire(self, at: int, group: Group) -> list[Notification]:
        """What is due at an instant."""
        state, told = self.state, list[Notification]()
        if state.due == at:
            told += self._digest(at)
        if self._dwell is not None:
            for key in sorted(
                key for key, (since, score) in state.stays.items() if score is not None and since + self._dwell == at
            ):
                note = Notification(self.subscription.id, key, state.stays[key][1], None, "dwelt", instant(at))
                state.stays[key][1] = None
                told += self._let_through(note, at, group(note))
        return told

    def _stay(self, note: Notification, at: int) -> None:
        stays = self.state.stays
        if note.why == "left":
            stays.pop(note.event, None)
        elif note.event not in stays:
            stays[note.event] = [at, note.score]
        elif stays[note.event][1] is not None:
            stays[note.event][1] = note.score

    def _let_through(self, note: Notification, at: int, group: int) -> list[Notification]:
        state, s = self.state, self.subscription
        of = str(group if s.per is not None else OVERALL)
        if self._budget is not None and (state.until is None or at >= state.until):
            state.spent, state.until = 0, budget_ends(self._budget[1], s.tz, at)
        quiet = self._cooldown is not None and state.quiet.get(of, at) > at
        if quiet or (self._budget is not None and state.spent >= self._budget[0]):
            state.withheld += 1
            return []
        state.spent += self._budget is not None
        if self._cooldown is not None:
            state.quiet = {known: until for known, until in state.quiet.items() if until > at}
            state.quiet[of] = at + self._cooldown
        return [note]

    def _keep(self, note: Notification, at: int, group: int) -> None:
        state = self.state
        assert self._calendar is not None
        if self.keyed:
            state.kept = [entry for entry in state.kept if entry[0] != note.event]
        if note.why != "left":
            state.kept.append([note.event, note.score, at, group])
            state.due = self._calendar.end(at) if state.due is None else state.due
        if not self.keyed and self.subscription.k is not None and len(state.kept) > 2 * self.subscription.k + 16:
            state.kept = self._best()

    def _best(self) -> list[list[Any]]:
        best, groups, there = list[list[Any]](), {0}, set[str]()
        for entry in sorted(self.state.kept, key=lambda entry: (-entry[1], entry[2], entry[0])):
            alone = self.subscription.per is None or entry[3] == 0 or entry[3] not in groups
            if alone and entry[0] not in there:
                groups.add(entry[3])
                there.add(entry[0])
                best.append(entry)
        return best[: self.subscription.k]

    def _digest(self, at: int) -> list[Notification]:
        best, state = self._best(), self.state
        state.kept, state.due = [], None
        if not best:
            return []
        note = Notification(self.subscription.id, best[0][0], best[0][1], None, "digest", instant(at))
        listed = [{"event": event, "score": score, "at": instant(since).isoformat()} for event, score, since, _ in best]
        return [with_body(note, {"digest": listed})]


class Gates:
    def __init__(self, keyed: bool) -> None:
        self._keyed = keyed
        self._gates: dict[str, Gate] = {}
        self._due: list[tuple[int, str]] = []
        self._changed: set[str] = set()
        self.saved: dict[str, State] = {}
        """of gates that are still to be made"""

    def __bool__(self) -> bool:
        return bool(self._gates)

    def __contains__(self, id: str) -> bool:
        return id in self._gates

    def __deepcopy__(self, memo: object) -> Gates:
        made = Gates(self._keyed)
        made._gates = {id: Gate(g.subscription, g.keyed, state_of(json.dumps(asdict(g.state)))) for id, g in self._gates.items()}
        made._due, made._changed, made.saved = list(self._due), set(self._changed), dict(self.saved)
        return made

    def begin(self, subscription: Subscription) -> None:
        """A gate that knows nothing, if the subscription has a pace."""
        self.drop(subscription.id)
        self.go_on(subscription)

    def go_on(self, subscription: Subscription) -> None:
        """The same with what it knew: its subscription has changed, or was read back."""
        id = subscription.id
        before, saved = self._gates.pop(id, None), self.saved.pop(id, None)
        if subscription.paced:
            self._gates[id] = Gate(subscription, self._keyed, saved if before is None else before.state)
            self._changed.add(id)
            self._await(id)

    def drop(self, id: str) -> None:
        self._gates.pop(id, None)
        self.saved.pop(id, None)

    def withheld(self, id: str) -> int:
        return self._gates[id].state.withheld if id in self._gates else 0

    @property
    def next_instant(self) -> int | None:
        """Nothing is due before it."""
        return self._due[0][0] if self._due else None

    def through(self, notes: Iterable[Notification], until: int | None, group: Group) -> list[Notification]:
        """What is heard of these notifications, which are in order of time, and of what time brings up to and including `until`."""
        heard: list[Notification] = []
        for note in notes:
            gate = self._gates.get(note.subscription)
            if gate is None:
                heard.append(note)
                continue
            at = microseconds(note)
            while (due := min(gate.dues(), default=None)) is not None and due <= at:
                heard += self._fire(gate, due, group)
            if gate.subscription.is_live(at):
                heard += gate.hear(note, at, group(note) if gate.per is not None else OVERALL)
            self._changed.add(note.subscription)
            self._await(note.subscription)
        while until is not None and self._due and self._due[0][0] <= until:
            due, id = heapq.heappop(self._due)
            gate = self._gates.get(id)
            if gate is not None and due in gate.dues():
                heard += self._fire(gate, due, group)
                self._await(id)
        return sorted(heard, key=attrgetter("at"))

    def _fire(self, gate: Gate, due: int, group: Group) -> list[Notification]:
        self._changed.add(gate.subscription.id)
        notes = gate.fire(due, group)
        return notes if gate.subscription.is_live(due) else []

    def _await(self, id: str) -> None:
        due = min(self._gates[id].dues(), default=None)
        if due is not None and (due, id) not in self._due:
            heapq.heappush(self._due, (due, id))

    def per(self, id: str) -> str | None:
        return self._gates[id].per

    def changed(self) -> list[tuple[str, str]]:
        """Names and states, as JSON, of the gates that are not what they were when last asked."""
        names, self._changed = self._changed, set()
        return self.states(names)

    def states(self, ids: Iterable[str]) -> list[tuple[str, str]]:
        """Names and states, as JSON, of those of these that have a gate."""
        return [(GATE + id, json.dumps(asdict(self._gates[id].state))) for id in ids if id in self._gates]

    def restore(self, states: Iterable[tuple[str, str]]) -> None:
        """What `changed` gave, for the gates that are made next."""
        self.saved = {name.removeprefix(GATE): state_of(body) for name, body in states}


def state_json(body: str) -> Any:
    """A state's body; what is no JSON is no state, and whoever asked for it says so."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def state_of(body: str) -> State:
    """One that cannot be read begins anew."""
    saved = state_json(body)
    known = {field.name for field in fields(State)}
    return State(**saved) if isinstance(saved, dict) and saved.keys() <= known else State()


def microseconds(note: Notification) -> int:
    since = note.at - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
