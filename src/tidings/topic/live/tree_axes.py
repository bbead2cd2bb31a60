"""Which attributes the MO-Tree of live events is indexed by: the place, and those that most events have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.index.motree.cells import PLACE_X, PLACE_Y, Axis, measured_axis, prefix_axis, uniform_axis
from tidings.model.columns.arrays import RANGE, ClauseColumns, EventColumns, Vocabularies
from tidings.model.values.schema import Schema

MOST_OF_EVENTS = 8
USUAL_WIDTH, USUAL_SIDE = 1 / 3, 1 / 40
"""The share of the events that a search's range and the side of its place let through, before any was seen."""


def indifferent(schema: Schema) -> Axis:
    """An axis on which all are alike, where there is nothing to index by, as with words alone."""
    return uniform_axis(len(schema.ranges), 0.0, 1.0)


def event_axes(schema: Schema, vocabularies: Vocabularies, events: EventColumns) -> list[Axis]:
    """Axes for a tree of events like these: the place, then the attributes that most of them have, each measured."""
    axes: list[Axis] = []
    placed = events.box[np.isfinite(events.box).all(axis=1)]
    if len(placed):
        axes += [measured_axis(source, placed[:, side]) for side, source in enumerate((PLACE_X, PLACE_Y))]
    present = np.isfinite(events.value[:, : len(schema.ranges)])
    for dim in np.argsort(-present.sum(axis=0), kind="stable").tolist():
        if len(axes) < MOST_OF_EVENTS and present[:, dim].any():
            category = vocabularies.categories.get(schema.ranges[dim])
            value = events.value[present[:, dim], dim]
            axes.append(measured_axis(dim, value) if category is None else prefix_axis(dim, category))
    return axes or [indifferent(schema)]


def searched_widths(axes: Sequence[Axis], events: EventColumns, searches: Sequence[ClauseColumns]) -> list[float]:
    """For each axis the share of `events` that the predicates of `searches` let through there, on average."""
    return [_width(axis.source, events, searches) for axis in axes]


def _width(source: int, events: EventColumns, searches: Sequence[ClauseColumns]) -> float:
    if not searches:
        return USUAL_SIDE if source in (PLACE_X, PLACE_Y) else USUAL_WIDTH
    shares = []
    for clauses in searches:
        lo, hi = -np.inf, np.inf
        if source in (PLACE_X, PLACE_Y):
            side = (PLACE_X, PLACE_Y).index(source)
            lo, hi, value = clauses.box[0, side], clauses.box[0, side + 2], events.box[:, side]
        else:
            here = np.flatnonzero((clauses.pred_dim == source) & (clauses.pred_kind == RANGE))
            lo, hi = clauses.pred_lo[here].max(initial=lo), clauses.pred_hi[here].min(initial=hi)
            value = events.value[:, source]
        shares.append(float(((lo <= value) & (value <= hi)).mean()))
    return float(np.mean(shares))
