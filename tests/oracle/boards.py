"""Range top-k by the definition: every list is sorted anew, every change is the difference of two lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Schema

OracleChange = tuple[str, str, float, int | None, str]
"""(subscription, key, score, rank, why), equal to the engine's Change."""


class Watcher(NamedTuple):
    clauses: tuple[Clause, ...]
    k: int | None
    relevance: Callable[[Values], float]
    ends: Callable[[int], int] | None
    """Until when an object counts that was last updated at an instant."""
    per: str | None
    """Of the objects with one value of it only the best counts."""
    before: dict[str, Values]
    """By key, the values before the last update, of objects that were updated since the watcher began."""


class BoardsOracle:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.objects: dict[str, Values] = {}
        self.updated: dict[str, int] = {}
        self.watchers: dict[str, Watcher] = {}
        self.clock = 0

    def watch(
        self,
        subscription: str,
        clauses: Sequence[Clause],
        k: int | None,
        relevance: Callable[[Values], float],
        ends: Callable[[int], int] | None = None,
        per: str | None = None,
    ) -> list[OracleChange]:
        """`relevance` raises KeyError or ArithmeticError for an object that has none, or gives what is not finite."""
        self.watchers[subscription] = Watcher(tuple(clauses), k, relevance, ends, per, {})
        return [(subscription, key, score, rank, "entered") for rank, (key, score) in enumerate(self.top(subscription), 1)]

    def change(self, subscription: str, **parts: Any) -> list[OracleChange]:
        """A watcher asks for something else: what its list has lost and gained, and what has another score. Of what was updated
        before it asks for other clauses it knows no value before."""
        before = dict(self.top(subscription))
        if parts.get("clauses") != self.watchers[subscription].clauses:
            parts["before"] = {}
        self.watchers[subscription] = self.watchers[subscription]._replace(**parts)
        after = self.top(subscription)
        told: list[OracleChange] = [
            (subscription, key, score, None, "left") for key, score in before.items() if key not in dict(after)
        ]
        for rank, (key, score) in enumerate(after, 1):
            if before.get(key) != score:
                told.append((subscription, key, score, rank, "updated" if key in before else "entered"))
        return told

    def unwatch(self, subscription: str) -> None:
        del self.watchers[subscription]

    def next_leaving(self) -> int | None:
        """The first instant after the clock at which an object's window ends."""
        ends = [watcher.ends for watcher in self.watchers.values() if watcher.ends is not None]
        return min((instant for end in ends for at in self.updated.values() if (instant := end(at)) > self.clock), default=None)

    def advance(self, time: int) -> list[tuple[OracleChange, int]]:
        """Time passes, and nothing else: objects leave whose last update lies too far back, each at its instant."""
        told: list[tuple[OracleChange, int]] = []
        while (instant := self.next_leaving()) is not None and instant <= time:
            before = {id: self.top(id) for id in self.watchers}
            self.clock = instant
            told += [(change, instant) for id in self.watchers for change in self._difference(id, before[id], set())]
        self.clock = max(self.clock, time)
        return told

    def publish_batch(self, changes: Iterable[tuple[str, Values | None]]) -> set[OracleChange]:
        return set(self.published(changes))

    def published(self, changes: Iterable[tuple[str, Values | None]]) -> list[OracleChange]:
        """At the clock's time; of each watcher in order."""
        before = {id: self.top(id) for id in self.watchers}
        old = dict(self.objects)
        for key, values in changes:
            for watcher in self.watchers.values():
                watcher.before.pop(key, None)
                if key in old and values is not None:
                    watcher.before[key] = old[key]
            if values is None:
                self.objects.pop(key, None)
                self.updated.pop(key, None)
            else:
                self.objects[key] = values
                self.updated[key] = self.clock
        moved = {key for key in {*old, *self.objects} if old.get(key) != self.objects.get(key)}
        return [change for id in self.watchers for change in self._difference(id, before[id], moved)]

    def top(self, subscription: str, time: int | None = None) -> list[tuple[str, float]]:
        """At the clock, or at a time to come."""
        watcher, now = self.watchers[subscription], self.clock if time is None else time
        ranked = []
        for key, own in self.objects.items():
            if watcher.ends is not None and watcher.ends(self.updated[key]) <= now:
                continue
            values = {**own, **{f"PREV({name})": value for name, value in watcher.before.get(key, {}).items()}}
            if any(clause.holds(self.schema, values) for clause in watcher.clauses):
                try:
                    score = watcher.relevance(values)
                except (KeyError, ArithmeticError, ValueError):
                    continue
                if math.isfinite(score):
                    ranked.append((-score, key))
        counting: list[tuple[str, float]] = []
        groups = set()
        for below, key in sorted(ranked):
            group = None if watcher.per is None else key if watcher.per == "id" else self.objects[key].get(watcher.per)
            if group is None or group not in groups:
                counting.append((key, 0.0 - below))
                groups.add(group)
        return counting[: watcher.k]

    def _difference(self, id: str, before: list[tuple[str, float]], moved: set[str]) -> Iterable[OracleChange]:
        after = self.top(id)
        was, present = dict(before), dict(after)
        for key, score in before:
            if key not in present:
                yield id, key, score, None, "left"
        for rank, (key, score) in enumerate(after, 1):
            if key not in was:
                yield id, key, score, rank, "entered"
            elif key in moved:
                yield id, key, score, rank, "updated"
