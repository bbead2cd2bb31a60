"""Some rows of columns that were read, as the table that tidings writes: without an object a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.event_columns import ReadEvents
from tidings.model.columns.short_arrays import fixed_array
from tidings.model.columns.tables import arrow_schema, column_of
from tidings.model.values.schema import Attribute, Bool, Category, Number, Place, Schema, Words

_ROW, _CORNER = pa.int64(), pa.float64()
Part = tuple[ReadEvents, NDArray[np.int64]]


class Writer:
    """Writes events of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema, self._form = schema, arrow_schema(schema)
        kinds = dict(zip(self._form.names, self._form.types, strict=True))
        self._attributes = [(name, attribute, kinds[name]) for name, attribute in schema.items()]
        self._instants = [(name, kinds[name]) for name in ("time", "expires")]

    def __call__(self, parts: Sequence[Part]) -> pa.Table:
        """These rows by id, of columns that are `complete`; as `events_to_arrow` of the events."""
        taken = [read.ids.take(fixed_array(rows, _ROW)) for read, rows in parts]
        ids = taken[0] if len(taken) == 1 else pa.concat_arrays(taken)
        names, order = ids.to_pylist(), None
        if sorted(names) != names:
            order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
            ids = ids.take(fixed_array(order, _ROW))
        laid = _Laid(self._schema, parts, order)
        columns = [ids]
        columns += [laid.attribute(name, attribute, kind) for name, attribute, kind in self._attributes]
        columns += [laid.instants(name, kind) for name, kind in self._instants]
        return pa.Table.from_arrays(columns, schema=self._form)


class _Laid(NamedTuple):
    """The rows of the parts end to end and then, unless they stand so, in `order`."""

    schema: Schema
    parts: Sequence[Part]
    order: NDArray[np.int64] | None

    def column(self, taken: list[NDArray[Any]]) -> NDArray[Any]:
        laid = taken[0] if len(taken) == 1 else np.concatenate(taken)
        return laid if self.order is None else laid[self.order]

    def instants(self, name: str, kind: pa.DataType) -> pa.Array:
        instants = self.column([getattr(read, name)[rows] for read, rows in self.parts])
        return _or_null(instants, instants == NONE, kind)

    def attribute(self, name: str, attribute: Attribute, kind: pa.DataType) -> pa.Array:
        parts = self.parts
        if isinstance(attribute, Number):
            given = [read.numbers[name][rows] if name in read.numbers else _none(rows) for read, rows in parts]
            value = self.column(given)
            return _or_null(value, np.isnan(value), kind)
        if isinstance(attribute, Place) and name == self.schema.place and all(read.place is not None for read, _ in parts):
            return self.boxes(kind)
        values = [value for read, rows in parts for value in _values(self.schema, read, name, rows)]
        return column_of(values if self.order is None else [values[row] for row in self.order.tolist()], kind)

    def boxes(self, kind: pa.DataType) -> pa.Array:
        places = [(read.place, rows) for read, rows in self.parts if read.place is not None]
        there = self.column([present[rows] for (present, _), rows in places])
        sides = self.column([box[rows] for (_, box), rows in places]).T.copy()
        mask = None if np.count_nonzero(there) == len(there) else pa.py_buffer(np.packbits(there, bitorder="little"))
        return pa.Array.from_buffers(kind, len(there), [mask], children=[fixed_array(side, _CORNER) for side in sides])


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


def _or_null(values: NDArray[Any], missing: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    gaps = np.count_nonzero(missing)
    if not gaps:
        return fixed_array(values, kind)
    return pa.nulls(len(values), kind) if gaps == len(values) else fixed_array(values, kind, missing)


def _none(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.full(len(rows), np.nan)
