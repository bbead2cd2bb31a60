"""A whole topic from the definitions in DESIGN 'Meaning' 1-7: plain loops over plain objects, no kernel, no index.

It takes the same calls as `tidings.Topic`, so every conformance test runs over it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tests.oracle.similarity import score
from tidings.model.columns.arrays import MISSING_BOX, NO_BOX
from tidings.model.door.event import Event, read_event
from tidings.model.door.subscription import Subscription, make_subscription
from tidings.model.filter.clause import Clause, Values
from tidings.model.filter.compile import compile_filter
from tidings.model.values.schema import Schema
from tidings.model.values.vague import Uncertain


class OracleMatch(NamedTuple):
    event: str
    subscription: str
    score: float


class TopicOracle:
    """Meanings 1-4 and 7; windows and boards have oracles of their own (`windows`, `boards`)."""

    def __init__(self, schema: Schema, key: str | None = None) -> None:
        self.schema = schema
        self.key = key
        self.subscriptions: dict[str, Subscription] = {}
        self.events: dict[str, Event] = {}
        self.weight: Callable[[str], float] | None = None
        """What a word weighs, if a topic's generation says; else it is counted over the similarity clauses of now."""

    def subscribe(self, id: str, filter: Any = None, **ranking: Any) -> None:
        self.subscriptions[id] = make_subscription(self.schema, id, filter, **ranking)

    def unsubscribe(self, id: str) -> None:
        del self.subscriptions[id]

    def update(self, id: str, **changes: Any) -> None:
        self.subscriptions[id] = replace(self.subscriptions[id], **changes)

    def match(self, event: Any, k: int | None = None, *, time: int = 0) -> list[OracleMatch]:
        read = read_event(self.schema, event, self.key)
        return expected(read.id, [(p, self._match(Event(read.id, v), time)) for p, v in possible(read.values)], k)

    def _match(self, read: Event, time: int) -> list[OracleMatch]:
        matches = []
        for s in self.subscriptions.values():
            live = s.expires is None or time < s.expires
            if live and s.similarity is not None:
                value = self.similarity(s, read.values)
                matches += [] if value is None else [OracleMatch(read.id, s.id, value)]
            elif live and any(clause.holds(self.schema, read.values) for clause in s.clauses):
                value = s.score_of(read.values)
                matches += [OracleMatch(read.id, s.id, value)] if math.isfinite(value) else []
        return matches

    def similarity(self, s: Subscription, values: Values) -> float | None:
        """The best similarity of a clause whose other predicates hold, if it reaches theta; None if not."""
        assert s.similarity is not None
        alpha, theta = s.similarity
        similar = [clause for other in self.subscriptions.values() if other.similarity is not None for clause in other.clauses]
        count: dict[str, int] = {}
        for clause in similar:
            for word in clause.words:
                count[word] = count.get(word, 0) + 1
        weight = {w: math.log(1.0 + len(similar) / n) if self.weight is None else self.weight(w) for w, n in count.items()}
        message = values.get(self.schema.place or "", MISSING_BOX)
        words = values.get(self.schema.words or "", frozenset())
        scores = []
        for clause in s.clauses:
            if replace(clause, box=None, words=frozenset()).holds(self.schema, values):
                numbers = {word: i for i, word in enumerate(sorted(weight))}
                box = NO_BOX if clause.box is None else clause.box
                wanted, has = (frozenset(numbers[w] for w in some if w in numbers) for some in (clause.words, words))
                scores.append(score(box, wanted, alpha, message, has, [weight[w] for w in sorted(weight)]))
        return max((value for value in scores if value >= theta), default=None)

    def match_relaxed(self, event: Any, k: int | None = None, aggregate: str = "sum", *, time: int = 0) -> list[OracleMatch]:
        read = read_event(self.schema, event, self.key)
        return expected(read.id, [(p, self._relaxed(Event(read.id, v), aggregate, time)) for p, v in possible(read.values)], k)

    def _relaxed(self, read: Event, aggregate: str, time: int) -> list[OracleMatch]:
        matches = []
        for s in self.subscriptions.values():
            live = s.expires is None or time < s.expires
            scores = [relaxed_score(self.schema, clause, s.weights, read.values, aggregate) for clause in s.clauses]
            known = [score for score in scores if score is not None]
            if live and known:
                matches.append(OracleMatch(read.id, s.id, max(known)))
        return matches

    def publish(self, event: Any, time: int) -> Event:
        read = read_event(self.schema, event, self.key)
        if read.deleted:
            self.events.pop(read.id, None)
        else:
            self.events[read.id] = read
        return read

    def search(self, filter: Any, *, time: int = 0) -> list[str]:
        clauses = compile_filter(self.schema, filter)
        return sorted(
            e.id
            for e in self.events.values()
            if (e.expires is None or time < e.expires) and any(clause.holds(self.schema, e.values) for clause in clauses)
        )


def possible(values: Values) -> list[tuple[float, dict[str, Any]]]:
    """What an event with uncertain values may be, and with which chance."""
    ways: list[tuple[float, dict[str, Any]]] = [(1.0, {})]
    for name, value in values.items():
        choices = list(value.weights.items()) if isinstance(value, Uncertain) else [(value, 1.0)]
        total = math.fsum(weight for _, weight in choices)
        ways = [(p * (weight / total), {**given, name: choice}) for p, given in ways for choice, weight in choices]
    return ways


def expected(event: str, ways: list[tuple[float, list[OracleMatch]]], k: int | None) -> list[OracleMatch]:
    """Who matches in some way, with the expectation of the score: nothing where it does not match."""
    total: dict[str, float] = {}
    for chance, matches in ways:
        for match in matches:
            total[match.subscription] = total.get(match.subscription, 0.0) + chance * match.score
    return ordered([OracleMatch(event, id, value) for id, value in total.items()], k)


def ordered(matches: list[OracleMatch], k: int | None) -> list[OracleMatch]:
    if k is None:
        return sorted(matches, key=lambda match: match.subscription)
    return sorted(matches, key=lambda match: (-match.score, match.subscription))[:k]


def relaxed_score(schema: Schema, clause: Clause, weights: Mapping[str, float], values: Values, aggregate: str) -> float | None:
    """The aggregate of the weights of the dimensions that hold; None when none does. A dimension is an attribute."""
    held = [weights.get(name, 1.0) for name, part in sorted(clause.by_attribute(schema).items()) if part.holds(schema, values)]
    if not held:
        return None
    if aggregate == "sum":
        total = 0.0
        for weight in held:
            total += weight
        return total
    chosen: Callable[..., float] = {"max": max, "min": min}[aggregate]
    return chosen(held)
