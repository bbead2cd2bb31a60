"""Range top-k by the definition: every list is sorted anew, every change is the difference of two lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Schema

OracleChange = tuple[str, str, float, int | None, str]
"""(subscription, key, score, rank, why), equal to the engine's Change."""


class BoardsOracle:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.objects: dict[str, Values] = {}
        self.watchers: dict[str, tuple[tuple[Clause, ...], int | None, Callable[[Values], float]]] = {}

    def watch(
        self, subscription: str, clauses: Sequence[Clause], k: int | None, relevance: Callable[[Values], float]
    ) -> list[OracleChange]:
        """`relevance` raises KeyError or ArithmeticError for an object that has none, or gives what is not finite."""
        self.watchers[subscription] = tuple(clauses), k, relevance
        return [(subscription, key, score, rank, "entered") for rank, (key, score) in enumerate(self.top(subscription), 1)]

    def unwatch(self, subscription: str) -> None:
        del self.watchers[subscription]

    def publish_batch(self, changes: Iterable[tuple[str, Values | None]]) -> set[OracleChange]:
        before = {id: self.top(id) for id in self.watchers}
        old = dict(self.objects)
        for key, values in changes:
            if values is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = values
        moved = {key for key in {*old, *self.objects} if old.get(key) != self.objects.get(key)}
        return {change for id in self.watchers for change in self._difference(id, before[id], moved)}

    def top(self, subscription: str) -> list[tuple[str, float]]:
        clauses, k, relevance = self.watchers[subscription]
        ranked = []
        for key, values in self.objects.items():
            if any(clause.holds(self.schema, values) for clause in clauses):
                try:
                    score = relevance(values)
                except (KeyError, ArithmeticError, ValueError):
                    continue
                if math.isfinite(score):
                    ranked.append((-score, key))
        return [(key, 0.0 - below) for below, key in sorted(ranked)[:k]]

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
