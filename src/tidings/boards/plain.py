"""One watcher's board kept by hand: all objects that match its filter, sorted. For filters and rankings that are not painted."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping

from tidings.boards.changes import Change
from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Schema


class PlainBoard:
    def __init__(self, subscription: str, clauses: tuple[Clause, ...], k: int | None, relevance: Callable[[Values], float]) -> None:
        self.subscription, self.clauses, self.k, self._relevance = subscription, clauses, k, relevance
        self._score: dict[str, float] = {}
        self._sorted: list[tuple[float, str]] = []
        """(-relevance, key) of every match."""

    def __contains__(self, key: str) -> bool:
        return key in self._score

    def matches(self, schema: Schema, values: Values) -> bool:
        return any(clause.holds(schema, values) for clause in self.clauses)

    def top(self) -> list[tuple[str, float]]:
        return [(key, 0.0 - below) for below, key in self._sorted[: self.k]]

    def put(self, key: str, values: Values | None) -> None:
        """Take an object's new values; None: it does not match, or is gone."""
        if key in self._score:
            del self._sorted[bisect_left(self._sorted, (-self._score.pop(key), key))]
        score = self._value(values)
        if score > -math.inf:
            self._score[key] = score
            insort(self._sorted, (-score, key))

    def put_many(self, puts: Mapping[str, Values | None]) -> list[Change]:
        """Take many and give the net changes of the list, what left first."""
        before = dict(self.top())
        for key, values in puts.items():
            self.put(key, values)
        after = self.top()
        members = {key for key, _ in after}
        left = [Change(self.subscription, key, score, None, "left") for key, score in before.items() if key not in members]
        return left + [
            Change(self.subscription, key, score, rank, "updated" if key in before else "entered")
            for rank, (key, score) in enumerate(after, 1)
            if key not in before or key in puts
        ]

    def _value(self, values: Values | None) -> float:
        """The relevance, -inf where it has no value."""
        try:
            return -math.inf if values is None else self._relevance(values)
        except (KeyError, ArithmeticError):
            return -math.inf
