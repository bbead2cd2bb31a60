"""Which attributes the MO-Trees of a topic are indexed by: for clauses by merit, for events by how many have them."""

from __future__ import annotations

import numpy as np

from tidings.index.mo_axes import choose_axes
from tidings.index.mo_cells import PLACE_X, PLACE_Y, Axis, measured_axis, prefix_axis, uniform_axis
from tidings.model.arrays import ClauseColumns, EventColumns, Vocabularies
from tidings.model.gather import NO_CLAUSES
from tidings.model.schema import Schema

MOST = 6


def clause_axes(schema: Schema, vocabularies: Vocabularies, sample: ClauseColumns = NO_CLAUSES) -> list[Axis]:
    """Axes for clauses like those of `sample`."""
    return choose_axes(schema, vocabularies, sample, MOST) or [indifferent(schema)]


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
        if len(axes) < MOST and present[:, dim].any():
            category = vocabularies.categories.get(schema.ranges[dim])
            value = events.value[present[:, dim], dim]
            axes.append(measured_axis(dim, value) if category is None else prefix_axis(dim, category))
    return axes or [indifferent(schema)]
