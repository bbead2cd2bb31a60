"""A whole topic from the definitions in DESIGN 'Meaning' 1-7: plain loops over plain objects, no kernel, no index.

It takes the same calls as `tidings.Topic`, so every conformance test runs over it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tidings.model.clause import Clause, Values
from tidings.model.event import Event, read_event
from tidings.model.filter import compile_filter
from tidings.model.schema import Schema
from tidings.model.subscription import Subscription, make_subscription


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

    def subscribe(self, id: str, filter: Any = None, **ranking: Any) -> None:
        self.subscriptions[id] = make_subscription(self.schema, id, filter, **ranking)

    def unsubscribe(self, id: str) -> None:
        del self.subscriptions[id]

    def update(self, id: str, **changes: Any) -> None:
        self.subscriptions[id] = replace(self.subscriptions[id], **changes)

    def match(self, event: Any, k: int | None = None, *, time: int = 0) -> list[OracleMatch]:
        read = read_event(self.schema, event, self.key)
        matches = []
        for s in self.subscriptions.values():
            live = s.expires is None or time < s.expires
            if live and any(clause.holds(self.schema, read.values) for clause in s.clauses):
                matches.append(OracleMatch(read.id, s.id, s.score_of(read.values)))
        return ordered(matches, k)

    def match_relaxed(self, event: Any, k: int | None = None, aggregate: str = "sum", *, time: int = 0) -> list[OracleMatch]:
        read = read_event(self.schema, event, self.key)
        matches = []
        for s in self.subscriptions.values():
            live = s.expires is None or time < s.expires
            scores = [relaxed_score(self.schema, clause, s.weights, read.values, aggregate) for clause in s.clauses]
            known = [score for score in scores if score is not None]
            if live and known:
                matches.append(OracleMatch(read.id, s.id, max(known)))
        return ordered(matches, k)

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


def ordered(matches: list[OracleMatch], k: int | None) -> list[OracleMatch]:
    if k is None:
        return sorted(matches, key=lambda match: match.subscription)
    return sorted(matches, key=lambda match: (-match.score, match.subscription))[:k]


def relaxed_score(schema: Schema, clause: Clause, weights: Mapping[str, float], values: Values, aggregate: str) -> float | None:
    """The aggregate of the weights of the dimensions that hold; None when none does. A dimension is an attribute."""
    held = [
        weights.get(name, 1.0) for name, part in sorted(parts_by_attribute(schema, clause).items()) if part.holds(schema, values)
    ]
    if not held:
        return None
    if aggregate == "sum":
        total = 0.0
        for weight in held:
            total += weight
        return total
    chosen: Callable[..., float] = {"max": max, "min": min}[aggregate]
    return chosen(held)


def parts_by_attribute(schema: Schema, clause: Clause) -> dict[str, Clause]:
    """The clause cut into one clause an attribute. A residue on several attributes is a dimension of its own."""
    parts: dict[str, Clause] = {}

    def part(name: str) -> Clause:
        return parts.get(name, Clause())

    for name, interval in clause.ranges.items():
        parts[name] = replace(part(name), ranges={name: interval})
    for name, strings in clause.within.items():
        parts[name] = replace(part(name), within={name: strings})
    for name, strings in clause.without.items():
        parts[name] = replace(part(name), without={name: strings})
    for name in clause.nulls:
        parts[name] = replace(part(name), nulls=frozenset({name}))
    for name in clause.present:
        parts[name] = replace(part(name), present=frozenset({name}))
    if clause.box is not None and schema.place is not None:
        parts[schema.place] = replace(part(schema.place), box=clause.box)
    if clause.words and schema.words is not None:
        parts[schema.words] = replace(part(schema.words), words=clause.words)
    for residue in clause.residue:
        name = "+".join(sorted(residue.attributes))
        parts[name] = replace(part(name), residue=(*part(name).residue, residue))
    return parts
