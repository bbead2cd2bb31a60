"""Disjunctions and conjunctions of clauses.

A clause that leaves here has at most one predicate an attribute in `ranges`, `within`, `without`, `nulls` and `present` together,
and `present` names only what nothing else demands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.model.filter.clause import Box, Clause, Residue
from tidings.model.filter.residue import residue_of
from tidings.model.values.schema import Schema

EVERYTHING = Clause()


class TooManyClauses(Exception):
    pass


def conjoin_all(schema: Schema, parts: list[list[Clause]], limit: int) -> list[Clause]:
    """The product of disjunctions, without what no event can satisfy."""
    result = [EVERYTHING]
    for part in sorted(parts, key=len):
        product = []
        for left in result:
            for right in part:
                both = right if left is EVERYTHING else conjoin(schema, left, right)
                if both is not None:
                    product.append(both)
            if len(product) > limit:
                raise TooManyClauses
        result = product
    return result


def disjoin_all(parts: list[list[Clause]], limit: int) -> list[Clause]:
    """The union of disjunctions; sets of one category's values become one set."""
    result: list[Clause] = []
    position: dict[str, int] = {}
    for clause in (clause for part in parts for clause in part):
        if clause == EVERYTHING:
            return [EVERYTHING]
        name = _only_within(clause)
        if name is None:
            result.append(clause)
        elif name in position:
            earlier = result[position[name]]
            result[position[name]] = Clause(within={name: earlier.within[name] | clause.within[name]})
        else:
            position[name] = len(result)
            result.append(clause)
        if len(result) > limit:
            raise TooManyClauses
    return result


def _only_within(clause: Clause) -> str | None:
    """The attribute of a clause that is one set of category values and nothing else."""
    if len(clause.within) != 1:
        return None
    name, values = next(iter(clause.within.items()))
    return name if clause == Clause(within={name: values}) else None


def conjoin(schema: Schema, a: Clause, b: Clause) -> Clause | None:
    """Both clauses in one; None when no event can satisfy it."""
    ranges = _intersected_ranges(a.ranges, b.ranges) if a.ranges and b.ranges else a.ranges or b.ranges
    within, without = _merged_sets(a, b)
    box, extra = _merged_box(schema, a.box, b.box)
    residue = a.residue + tuple(r for r in (*b.residue, *extra) if r not in a.residue)
    words = a.words | b.words
    demanded = {*ranges, *within, *without}
    if box is not None and schema.place is not None:
        demanded.add(schema.place)
    if words and schema.words is not None:
        demanded.add(schema.words)
    clause = Clause(ranges, within, without, a.nulls | b.nulls, (a.present | b.present) - demanded, box, words, residue)
    # A residue that asks IS NULL reads only what no index serves, and that is never in `nulls`.
    if not clause.satisfiable or clause.nulls & demanded.union(*(r.attributes for r in residue)):
        return None
    return clause


def _intersected_ranges(
    a: Mapping[str, tuple[float, float]], b: Mapping[str, tuple[float, float]]
) -> Mapping[str, tuple[float, float]]:
    result = dict(a)
    for name, (lo, hi) in b.items():
        if name in result:
            lo, hi = max(lo, result[name][0]), min(hi, result[name][1])
        result[name] = lo, hi
    return result


def _merged_sets(a: Clause, b: Clause) -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    """`within` intersected, `without` united; what is left of both on one attribute is a `within`."""
    if not (a.without or b.without) and not (a.within and b.within):
        return a.within or b.within, {}
    within, without = dict(a.within), dict(a.without)
    for name, values in b.within.items():
        within[name] = within[name] & values if name in within else values
    for name, values in b.without.items():
        without[name] = without.get(name, frozenset()) | values
    for name in within.keys() & without.keys():
        within[name] -= without.pop(name)
    return within, without


def _merged_box(schema: Schema, a: Box | None, b: Box | None) -> tuple[Box | None, tuple[Residue, ...]]:
    """An event's box may touch two boxes and not their common part, so the smaller stays a box and the other becomes a residue."""
    if a is None or b is None or a == b:
        return (b if a is None else a), ()
    small, large = (a, b) if _area(a) <= _area(b) else (b, a)
    return small, (box_residue(schema, large),)


def box_residue(schema: Schema, box: Box) -> Residue:
    node: dict[str, Any] = {"op": "s_intersects", "args": [{"property": schema.place}, {"bbox": list(box)}]}
    return residue_of(schema, node, False)


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])
