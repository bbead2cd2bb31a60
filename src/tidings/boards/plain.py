"""One watcher's board kept by hand: all objects that match its filter, sorted. For filters and rankings that are no `ranges`.

`Counts` says what beside the filter decides whether an object counts. An object whose window has ended is no match until its next
update. Of one group only the best counts. What a filter recalls (`PREV(price)`) is known of objects that were updated since the
board began; the board keeps it of its own matches, since nobody else does.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import islice

from tidings.boards.changes import Change
from tidings.model.filter.clause import PREVIOUS, Clause, Values
from tidings.model.values.schema import Schema


@dataclass(frozen=True, slots=True)
class Counts:
    """`ends` says until when an object counts by its last update, `group` of which group it is (0 for itself), and `recalls` are
    the
    names under which the clauses ask for values before the last update."""

    ends: Callable[[str], int] | None = None
    group: Callable[[str, Values], int] | None = None
    recalls: frozenset[str] = frozenset()

    @property
    def hears_everything(self) -> bool:
        """Whether an update that changes no value may change the list."""
        return self.ends is not None or bool(self.recalls)


EVERYTHING = Counts()


def recalled(name: str) -> str:
    """The attribute of which `PREV(name)` is the value before the last update."""
    return name.removeprefix(PREVIOUS).removesuffix(")")


class PlainBoard:
    def __init__(
        self,
        subscription: str,
        clauses: tuple[Clause, ...],
        k: int | None,
        relevance: Callable[[Values], float],
        failures: Counter[str] | None,
        counts: Counts = EVERYTHING,
    ) -> None:
        """`failures` counts, by subscription, relevances that are not finite; None where somebody else does."""
        self.subscription, self.clauses, self.k, self._relevance, self._failures = subscription, clauses, k, relevance, failures
        self.counts = counts
        self.ends: dict[str, int] = {}
        self.past: dict[str, Values] = {}
        """By key, of matches: what `recalls` names, where it is known."""
        self.changed = False
        """Whether `past` is not what it was when last asked."""
        self._groups: dict[str, int] = {}
        self._score: dict[str, float] = {}
        self._sorted: list[tuple[float, str]] = []
        """(-relevance, key) of every match."""

    def __contains__(self, key: str) -> bool:
        return key in self._score

    def __iter__(self) -> Iterator[str]:
        return iter(self._score)

    def matches(self, schema: Schema, values: Values) -> bool:
        return any(clause.holds(schema, values) for clause in self.clauses)

    def top(self, without: Set[str] = frozenset(), time: int | None = None) -> list[tuple[str, float]]:
        """The list, as it would be if the keys `without` were gone, and at `time`."""
        there = (entry for entry in self._sorted if entry[1] not in without) if without else iter(self._sorted)
        if time is not None and self.ends:
            there = (entry for entry in there if self.ends[entry[1]] > time)
        if self._groups:
            there = self._first_of_groups(there)
        return [(key, 0.0 - below) for below, key in islice(there, self.k)]

    def _first_of_groups(self, entries: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
        seen = {0}
        for entry in entries:
            group = self._groups[entry[1]]
            if group == 0 or group not in seen:
                seen.add(group)
                yield entry

    def seen(self, values: Values, old: Values | None) -> Values:
        """The values of an object as this watcher sees them, `old` being those before its last update."""
        if not self.counts.recalls or old is None:
            return values
        known = {name: old[recalled(name)] for name in self.counts.recalls if recalled(name) in old}
        return {**values, **known}

    def put(self, key: str, values: Values | None) -> None:
        """Take an object's new values, as `seen`; None: it does not match, or is gone."""
        if key in self._score:
            del self._sorted[bisect_left(self._sorted, (-self._score.pop(key), key))]
            self.ends.pop(key, None)
            self._groups.pop(key, None)
            self.changed |= self.past.pop(key, None) is not None
        score = self._value(values)
        if math.isfinite(score):
            assert values is not None
            self._score[key] = score
            insort(self._sorted, (-score, key))
            if self.counts.ends is not None:
                self.ends[key] = self.counts.ends(key)
            if self.counts.group is not None:
                self._groups[key] = self.counts.group(key, values)
            known = {name: values[name] for name in self.counts.recalls if name in values}
            if known:
                self.past[key], self.changed = known, True
        elif values is not None and self._failures is not None:
            self._failures[self.subscription] += 1

    def changes(self, before: Mapping[str, float], put: Collection[str]) -> list[Change]:
        """What has become of the list that was `before` these keys were put, what left first."""
        after = self.top()
        members = {key for key, _ in after}
        left = [Change(self.subscription, key, score, None, "left") for key, score in before.items() if key not in members]
        return left + [
            Change(self.subscription, key, score, rank, "updated" if key in before else "entered")
            for rank, (key, score) in enumerate(after, 1)
            if key not in before or key in put
        ]

    def _value(self, values: Values | None) -> float:
        """The relevance; not finite where there is none, which is nobody else's concern."""
        try:
            return math.nan if values is None else self._relevance(values)
        except (KeyError, ArithmeticError, ValueError):
            return math.nan
