"""Which attributes should an MO-Tree index? The guidelines of section 4.2, measured on a sample of clauses.

| guideline   | measured as                                                                                          |
|-------------|------------------------------------------------------------------------------------------------------|
| popularity  | the share of clauses that have a predicate on the attribute which rules something out                 |
| selectivity | 1 - the mean share of the domain that such a predicate covers                                          |
| uniformity  | the entropy of the predicates' centres over ten disjoint cells, as a share of the greatest possible    |

An attribute's merit is the product: the share of work that it can be expected to save. Place counts as two attributes.
Numbers whose domain is declared are cut evenly, others where the sample's ends lie, so that cells are evenly filled. A category is
cut by the first letters of its strings.

Deviations: the paper names the guidelines and weighs them by hand.
"""

from __future__ import annotations

import math

import numpy as np

from tidings.index.motree.cells import (
    GRAIN,
    MAX_AXES,
    PLACE_X,
    PLACE_Y,
    Axis,
    measured_axis,
    narrow_levels,
    prefix_axis,
    prefix_number,
    uniform_axis,
)
from tidings.index.packed.types import Float64
from tidings.model.columns.arrays import IN, RANGE, ClauseColumns, Vocabularies
from tidings.model.values.schema import Category, Number, Place, Schema

ENOUGH = 200
"""Fewer predicates than this do not place edges."""


def choose_axes(schema: Schema, vocabularies: Vocabularies, clauses: ClauseColumns, most: int = MAX_AXES) -> list[Axis]:
    """The attributes with the greatest merit on a sample of clauses, the best first; without any merit, in the schema's order."""
    ranked = sorted(candidates(schema, vocabularies, clauses), key=lambda pair: -pair[0])
    return [axis for _, axis in ranked[:most]]


def candidates(schema: Schema, vocabularies: Vocabularies, clauses: ClauseColumns) -> list[tuple[float, Axis]]:
    """(merit, axis) of every attribute that can be indexed: the place first, then in the schema's order. [motree, 4.2]"""
    found = []
    if schema.place is not None:
        place = schema[schema.place]
        plane = isinstance(place, Place) and place.plane
        for source, side, domain in ((PLACE_X, 0, (-180.0, 180.0)), (PLACE_Y, 1, (-90.0, 90.0))):
            lo, hi = clauses.box[:, side], clauses.box[:, side + 2]
            axis = _axis(source, lo, hi, (-math.inf, math.inf) if plane else domain, narrow=True)
            found.append((merit(axis, lo, hi, len(clauses)), axis))
    for name, dimension in schema.dimension.items():
        lo, hi = predicates_on(clauses, dimension)
        attribute = schema[name]
        if isinstance(attribute, Category):
            axis = prefix_axis(dimension, vocabularies.categories[name])
            numbers = np.array([prefix_number(s, axis.letters) for s in vocabularies.categories[name].strings] or [0.0])
            lo = hi = numbers[lo[np.isfinite(lo)].astype(np.int64)]  # presence is a predicate without ends
        else:
            domain = (attribute.lo, attribute.hi) if isinstance(attribute, Number) else (-math.inf, math.inf)
            axis = _axis(dimension, lo, hi, domain, narrow=False)
        found.append((merit(axis, lo, hi, len(clauses)), axis))
    return found


def merit(axis: Axis, lo: Float64, hi: Float64, clauses: int) -> float:
    """Popularity x selectivity x uniformity of intervals on an axis, of which whole lines rule nothing out. [motree, 4.2]"""
    bounded = np.isfinite(lo) | np.isfinite(hi)
    if not bounded.any():
        return 0.0
    first, last = (np.searchsorted(axis.edges, ends[bounded], side="right") for ends in (lo, hi))
    popularity = bounded.sum() / clauses
    selectivity = 1 - (last - first).mean() / GRAIN
    share = np.bincount(((first + last) * 5) // GRAIN, minlength=10) / len(first)
    share = share[share > 0]
    uniformity = -(share * np.log(share)).sum() / math.log(10)
    return float(popularity * selectivity * max(uniformity, 1 / GRAIN))


def predicates_on(clauses: ClauseColumns, dimension: int) -> tuple[Float64, Float64]:
    """Ends of the intervals on a dimension; of a set of codes, the first code alone."""
    on = clauses.pred_dim == dimension
    ranges, sets = on & (clauses.pred_kind == RANGE), on & (clauses.pred_kind == IN) & (clauses.pred_hi > 0)
    codes = clauses.pool[clauses.pred_lo[sets].astype(np.int64)].astype(np.float64)
    return np.concatenate([clauses.pred_lo[ranges], codes]), np.concatenate([clauses.pred_hi[ranges], codes])


def _axis(source: int, lo: Float64, hi: Float64, domain: tuple[float, float], *, narrow: bool) -> Axis:
    """By the sample's ends where there are enough of them and the domain is open or a place's; else by the domain."""
    levels = narrow_levels() if narrow else None
    ends = np.concatenate([lo, hi])
    ends = ends[np.isfinite(ends)]
    declared = all(map(math.isfinite, domain))
    if len(ends) >= ENOUGH and (narrow or not declared):
        return measured_axis(source, ends, levels)
    return uniform_axis(source, *domain, levels) if declared else measured_axis(source, _magnitudes(), levels)


def _magnitudes() -> Float64:
    """A sample for numbers of which nothing is known: every order of magnitude from 1e-6 to 1e15, on both sides of 0."""
    positive = np.geomspace(1e-6, 1e15, 200)
    return np.concatenate([-positive[::-1], [0.0], positive])
