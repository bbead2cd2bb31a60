"""Some rows of columns that were read, as the table that tidings writes: without an object a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.event_columns import ReadEvents
from tidings.model.columns.tables import column_of
from tidings.model.values.schema import Bool, Category, Number, Place, Schema, Words

Part = tuple[ReadEvents, NDArray[np.int64]]


def written(schema: Schema, form: pa.Schema, parts: Sequence[Part]) -> pa.Table:
    """These rows by id, of columns that are `complete`; as `events_to_arrow` of the events. `form` is their `arrow_schema`."""
    ids = [id for read, rows in parts for id in read.ids.take(pa.array(rows)).to_pylist()]
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
    kinds = dict(zip(form.names, form.types, strict=True))
    columns = {"id": pa.array([ids[row] for row in order.tolist()], pa.string())}
    for name in schema:
        columns[name] = _attribute(schema, name, kinds[name], parts, order)
    for name in ("time", "expires"):
        instants = _laid([getattr(read, name)[rows] for read, rows in parts])[order]
        columns[name] = _or_null(instants, instants == NONE, kinds[name])
    return pa.Table.from_arrays([columns[name] for name in kinds], schema=form)


def _attribute(schema: Schema, name: str, kind: pa.DataType, parts: Sequence[Part], order: NDArray[np.int64]) -> pa.Array:
    attribute = schema[name]
    if isinstance(attribute, Number):
        missing = (np.full(len(rows), np.nan) if name not in read.numbers else read.numbers[name][rows] for read, rows in parts)
        value = _laid(list(missing))[order]
        return _or_null(value, np.isnan(value), kind)
    if isinstance(attribute, Place) and name == schema.place and all(read.place is not None for read, _ in parts):
        places = [read.place for read, _ in parts if read.place is not None]
        rows = [rows for _, rows in parts]
        there = _laid([present[some] for (present, _), some in zip(places, rows, strict=True)])[order]
        box = _laid([boxes[some] for (_, boxes), some in zip(places, rows, strict=True)])[order]
        corners = [pa.array(box[:, side]) for side in range(4)]
        return pa.StructArray.from_arrays(corners, fields=list(kind), mask=None if there.all() else pa.array(~there))
    values = [value for read, rows in parts for value in _values(schema, read, name, rows)]
    return column_of([values[row] for row in order.tolist()], kind)


def _values(schema: Schema, read: ReadEvents, name: str, rows: NDArray[np.int64]) -> list[Any]:
    """One attribute's values as events have them."""
    attribute = schema[name]
    if isinstance(attribute, Category) and name in read.categories:
        strings = read.categories[name]
        return [None if index < 0 else strings.distinct[index] for index in strings.index[rows].tolist()]
    if name in read.numbers:
        kind = bool if isinstance(attribute, Bool) else int
        return [None if number != number else kind(number) for number in read.numbers[name][rows].tolist()]
    if (isinstance(attribute, Words) and read.words is not None) or (isinstance(attribute, Place) and read.place is not None):
        return [read.values(schema, row).get(name) for row in rows.tolist()]
    return [None] * len(rows)


def _laid(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _or_null(values: NDArray[Any], missing: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    if not missing.any():
        return pa.array(values, kind)
    return pa.nulls(len(values), kind) if missing.all() else pa.array(values, kind, mask=missing)
