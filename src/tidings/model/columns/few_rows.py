"""A table of a few events, read row by row: to read the first column costs more than all of such a table.

Only columns of the plainest types are read so, whose rows mean the same one by one (`tables` has all that is accepted). Everything
else, and whatever is refused, is left to columns, whose sentence it is that the user should hear.
"""

from __future__ import annotations

import pyarrow as pa

from tidings.model.door.event import Event, EventReader
from tidings.model.values.schema import Bool, Category, Number, Place, Schema, Time, Words

_INSTANT = pa.timestamp("us", "UTC")
_POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])
_PLAIN = {
    Number: {pa.float64(), pa.int64()},
    Category: {pa.string()},
    Bool: {pa.bool_()},
    Time: {_INSTANT},
    Place: {_POINT},
    Words: {pa.string(), pa.list_(pa.string())},
}
_ENVELOPE = {"id": {pa.string()}, "time": {_INSTANT}, "expires": {_INSTANT}}
_NONE = frozenset[pa.DataType]()


class FewRows:
    """Reads tables of a few events; of which columns it last said that they are plain, it keeps in mind."""

    def __init__(self, read: EventReader) -> None:
        self._read = read
        self._plain: pa.Schema | None = None

    def __call__(self, table: pa.Table | pa.RecordBatch) -> list[Event]:
        """The events of a table, none if they are to be read as columns."""
        if self._read.key is not None or not self._is_plain(table.schema):
            return []
        try:
            events, refused = self._read.batch(table.to_pylist())
        except (ValueError, OverflowError):
            # An instant that is no date of Python's.
            return []
        return [] if refused else events

    def _is_plain(self, columns: pa.Schema) -> bool:
        if self._plain is not None and self._plain.equals(columns):
            return True
        plain = _is_plain(self._read.schema, columns)
        if plain:
            self._plain = columns
        return plain


def _is_plain(schema: Schema, columns: pa.Schema) -> bool:
    names = columns.names
    # An object with a geometry may be a GeoJSON Feature.
    if len(set(names)) < len(names) or "geometry" in names:
        return False
    for name, kind in zip(names, columns.types, strict=True):
        if kind not in (_PLAIN.get(type(schema[name]), _NONE) if name in schema else _ENVELOPE.get(name, _NONE)):
            return False
    return True
