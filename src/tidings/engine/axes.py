"""Which attributes an MO-Tree of a topic is indexed by: the place, and the attributes that its clauses test most.

Steps are measured on a sample where there is one (the topic's last packed clauses), so that a city in a world of 360 degrees has
cells of its own; before that a declared domain must do, and an attribute without one is left to verification.
"""

from __future__ import annotations

import math

import numpy as np

from tidings.index.mo_cells import PLACE_X, PLACE_Y, Axis, measured_axis, narrow_levels, prefix_axis, uniform_axis
from tidings.model.arrays import RANGE, ClauseColumns, EventColumns, Vocabularies
from tidings.model.schema import Category, Number, Place, Schema

MOST = 6
SAMPLE = 4096


def axes_of(schema: Schema, vocabularies: Vocabularies, sample: ClauseColumns | None = None) -> list[Axis]:
    axes = _place_axes(schema, sample)
    for name in popular(schema, sample):
        if len(axes) < MOST:
            axis = _axis(schema, vocabularies, name, sample)
            axes += [axis] if axis is not None else []
    # Nothing to index by, as with words alone: one axis on which all are alike.
    return axes or [uniform_axis(len(schema.ranges), 0.0, 1.0)]


def popular(schema: Schema, sample: ClauseColumns | None) -> list[str]:
    """Interval-like attributes, the most often tested first; in the schema's order before anything is known."""
    names = list(schema.ranges)
    if sample is None:
        return names
    count = np.bincount(sample.pred_dim, minlength=len(names) + 2)
    return sorted((name for name in names if count[schema.dimension[name]]), key=lambda name: -count[schema.dimension[name]])


def _place_axes(schema: Schema, sample: ClauseColumns | None) -> list[Axis]:
    attribute = schema[schema.place] if schema.place is not None else None
    if not isinstance(attribute, Place):
        return []
    boxes = sample.box[np.isfinite(sample.box).all(axis=1)] if sample is not None else np.empty((0, 4))
    if len(boxes):
        middle = (boxes[:, :2] + boxes[:, 2:]) / 2
        return [measured_axis(source, middle[:, side], narrow_levels()) for side, source in enumerate((PLACE_X, PLACE_Y))]
    if attribute.plane:
        return []
    return [uniform_axis(PLACE_X, -180.0, 180.0, narrow_levels()), uniform_axis(PLACE_Y, -90.0, 90.0, narrow_levels())]


def _axis(schema: Schema, vocabularies: Vocabularies, name: str, sample: ClauseColumns | None) -> Axis | None:
    attribute, dim = schema[name], schema.dimension[name]
    if isinstance(attribute, Category):
        return prefix_axis(dim, vocabularies.categories[name])
    if isinstance(attribute, Number) and math.isfinite(attribute.lo) and math.isfinite(attribute.hi):
        return uniform_axis(dim, attribute.lo, attribute.hi)
    if sample is None:
        return None
    here = (sample.pred_dim == dim) & (sample.pred_kind == RANGE)
    ends = np.concatenate([sample.pred_lo[here], sample.pred_hi[here]])
    ends = ends[np.isfinite(ends)]
    return measured_axis(dim, ends) if len(ends) else None


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
    return axes or [uniform_axis(len(schema.ranges), 0.0, 1.0)]
