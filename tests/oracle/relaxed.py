"""Relaxed matching by definition: every clause of every subscription, attribute by attribute.

A dimension is an attribute that a clause speaks of; it holds when all the clause's predicates on it hold. Its weight is the
subscription's weight for that attribute. Held weights are taken in by ascending dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidings.model.columns.arrays import dimensions
from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Schema

Weights = Mapping[str, float]


def relaxed_topk(
    schema: Schema,
    clauses: Sequence[Clause],
    owner: Sequence[int],
    weights: Sequence[Weights],
    values: Values,
    k: int,
    aggregate: str = "sum",
) -> list[tuple[int, float]]:
    """[(owner, score)] by (score desc, owner asc); `weights` is by clause."""
    best: dict[int, float] = {}
    for clause, number, weight in zip(clauses, owner, weights, strict=True):
        held = [weight[name] for name in _spoken_of(schema, clause) if _about(clause, schema, name).holds(schema, values)]
        if held:
            score = _aggregate(held, aggregate)
            best[number] = max(best.get(number, score), score)
    return sorted(best.items(), key=lambda entry: (-entry[1], entry[0]))[: max(k, 0)]


def expected_topk(
    clauses: Sequence[Clause],
    owner: Sequence[int],
    weights: Sequence[Weights],
    alternatives: Mapping[str, Sequence[tuple[float, float, float]]],
    k: int,
) -> list[tuple[int, float]]:
    """The same by expected sum: clauses of ranges, events of (lo, hi, chance) alternatives by attribute in dimension order."""
    best: dict[int, float] = {}
    for clause, number, weight in zip(clauses, owner, weights, strict=True):
        score, matched = 0.0, False
        for name, ranges in alternatives.items():
            chance = 0.0
            for lo, hi, share in ranges:
                if name in clause.ranges and clause.ranges[name][0] <= hi and lo <= clause.ranges[name][1]:
                    chance += share
            if chance > 0:
                score, matched = score + weight[name] * chance, True
        if matched:
            best[number] = max(best.get(number, score), score)
    return sorted(best.items(), key=lambda entry: (-entry[1], entry[0]))[: max(k, 0)]


def _spoken_of(schema: Schema, clause: Clause) -> list[str]:
    names = {*clause.ranges, *clause.within, *clause.without, *clause.nulls, *clause.present}
    if clause.box is not None and schema.place is not None:
        names.add(schema.place)
    if clause.words and schema.words is not None:
        names.add(schema.words)
    return sorted(names, key=dimensions(schema).__getitem__)


def _about(clause: Clause, schema: Schema, name: str) -> Clause:
    """What of the clause speaks of one attribute."""
    return Clause(
        ranges={name: clause.ranges[name]} if name in clause.ranges else {},
        within={name: clause.within[name]} if name in clause.within else {},
        without={name: clause.without[name]} if name in clause.without else {},
        nulls=clause.nulls & {name},
        present=clause.present & {name},
        box=clause.box if name == schema.place else None,
        words=clause.words if name == schema.words else frozenset(),
    )


def _aggregate(weights: Sequence[float], aggregate: str) -> float:
    if aggregate != "sum":
        return max(weights) if aggregate == "max" else min(weights)
    total = 0.0
    for weight in weights:
        total += weight
    return total
