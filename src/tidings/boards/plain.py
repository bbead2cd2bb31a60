"""One watcher's board kept by hand: all objects that match its filter, sorted. For filters and rankings that are no `ranges`."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from itertools import islice

from tidings.boards.changes import Change
from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Schema


class PlainBoard:
    def __init__(
        self,
        subscription: str,
        clauses: tuple[Clause, ...],
        k: int | None,
        relevance: Callable[[Values], float],
        failures: Counter[str] | None,
    ) -> None:
        """`failures` counts, by subscription, relevances that are not finite; None where somebody else does."""
        self.subscription, self.clauses, self.k, self._relevance, self._failures = subscription, clauses, k, relevance, failures
        self._score: dict[str, float] = {}
        self._sorted: list[tuple[float, str]] = []
        """(-relevance, key) of every match."""

    def __contains__(self, key: str) -> bool:
        return key in self._score

    def __iter__(self) -> Iterator[str]:
        return iter(self._score)

    def matches(self, schema: Schema, values: Values) -> bool:
        return any(clause.holds(schema, values) for clause in self.clauses)

    def top(self, without: Set[str] = frozenset()) -> list[tuple[str, float]]:
        """The list, as it would be if the keys `without` were gone."""
        there = (entry for entry in self._sorted if entry[1] not in without) if without else self._sorted
        return [(key, 0.0 - below) for below, key in islice(there, self.k)]

    def put(self, key: str, values: Values | None) -> None:
        """Take an object's new values; None: it does not match, or is gone."""
        if key in self._score:
            del self._sorted[bisect_left(self._sorted, (-self._score.pop(key), key))]
        score = self._value(values)
        if math.isfinite(score):
            self._score[key] = score
            insort(self._sorted, (-score, key))
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
