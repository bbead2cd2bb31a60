"""Tables of events: Arrow to the arrays that indexes see, and back. No Python per row but for rows that are refused, which those
of any table are alike (`read_rows`).

A table of events has a column for each attribute it carries (null is missing), and may have `id`, `time`, `expires`; in a keyed
topic the key stands for `id` and `deleted` marks tombstones. `arrow_schema` is the form that tidings writes; what else is read:

| type       | written                          | also read                                                       |
|------------|----------------------------------|-----------------------------------------------------------------|
| `Number`   | float64                          | any integer, float or decimal                                   |
| `Category` | string                           | large_string, string_view                                       |
| `Bool`     | bool                             |                                                                 |
| `Time`     | timestamp[us, UTC]               | any timestamp (UTC if it has no zone), date, ISO 8601, seconds   |
| `Date`     | date32                           | date64, 'YYYY-MM-DD'                                            |
| `Place`    | struct<xmin, ymin, xmax, ymax>   | struct<x, y>, lists of 2 or 4 numbers                           |
| with shapes | binary, WKB                     | large_binary, the same                                          |
| `Words`    | list<string>, in a language texts | string, tokenised                                              |

A dictionary of any of these is read as what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from tidings.errors import BulkError, EventError, TidingsError, shown
from tidings.model.columns.arrays import (
    EventColumns,
    Vocabularies,
)
from tidings.model.columns.arrow import TableReader
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.event_columns import ReadEvents, read_columns
from tidings.model.columns.incoming import table_of
from tidings.model.door.event import Event, EventReader
from tidings.model.values.groups import groups_of_numbers, groups_of_texts
from tidings.model.values.outline import geometry_of
from tidings.model.values.prose import texts_of
from tidings.model.values.schema import Attribute, Bool, Category, Date, Number, Place, Schema, Time, Words
from tidings.model.values.times import DAY

Read = TypeVar("Read")

_BLOCK = 256
_TIMESTAMP = pa.timestamp("us", "UTC")
_BOX = pa.struct([(corner, pa.float64()) for corner in ("xmin", "ymin", "xmax", "ymax")])
_ARROW = {
    Number: pa.float64(),
    Category: pa.string(),
    Bool: pa.bool_(),
    Time: _TIMESTAMP,
    Date: pa.date32(),
    Place: _BOX,
    Words: pa.list_(pa.string()),
}

_NO_EVENTS = EventColumns(np.empty((0, 0)), np.empty((0, 4)), np.zeros(1, np.int64), np.empty(0, np.int32))
_NO_CODES = -1
_NO_ROWS = np.empty(0, np.int64)


@dataclass(slots=True)
class EventBatch:
    """m events. `time` and `expires` in microseconds since 1970-01-01 UTC, NONE for none; `deleted` marks tombstones.

    `table` has the rows that were taken, `rows` are their numbers in the table given; `refused` is (row, sentence) of the others.
    """

    schema: Schema
    key: str | None
    table: pa.Table

    ids: pa.Array
    columns: EventColumns
    time: NDArray[np.int64]
    expires: NDArray[np.int64]
    deleted: NDArray[np.bool_]
    rows: NDArray[np.int64]
    refused: list[tuple[int, str]]
    _read: ReadEvents = field(repr=False)
    _known: tuple[Vocabularies, int]
    _blocks: dict[int, list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    objects: list[Event] | None = field(default=None, repr=False)
    """the events themselves, if that is what the columns were made of"""

    def __len__(self) -> int:
        return len(self.ids)

    def encoded(self, vocabularies: Vocabularies) -> EventColumns:
        """`columns` in the codes that `vocabularies` has now: made anew if strings came since."""
        if self._known != (vocabularies, vocabularies.size):
            self._known = vocabularies, vocabularies.size
            self.columns = self._read.encode(self.schema, vocabularies)
        return self.columns

    def values(self, row: int) -> dict[str, Any]:
        """One event's normalised values, for predicates that no index serves; read in blocks, and kept."""
        block, place = divmod(row, _BLOCK)
        if block not in self._blocks:
            rows = np.arange(block * _BLOCK, min((block + 1) * _BLOCK, len(self)))
            self._blocks[block] = values_from_arrow(self.schema, self.table, rows)
        return self._blocks[block][place]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A Number, Time or Date attribute, NaN where it is missing."""
        return self._read.numbers[name] if name in self._read.numbers else np.full(len(self), np.nan)

    def groups(self, name: str) -> NDArray[np.int64]:
        """The group (`values.groups`) of each by its value of an attribute, or by its id."""
        read = self._read
        if name == "id":
            return groups_of_texts(self.ids.to_pylist())
        if name in read.categories:
            return np.append(groups_of_texts(read.categories[name].distinct), 0)[read.categories[name].index]
        return groups_of_numbers(self.numbers(name))

    def ending(self, expires: NDArray[np.int64]) -> EventBatch:
        """The same events with other ends."""
        ends, objects = (None if end == NONE else end for end in expires.tolist()), self.objects
        if objects is not None:
            objects = [replace(event, expires=end) for event, end in zip(objects, ends, strict=True)]
        return replace(self, expires=expires, _read=replace(self._read, expires=expires), objects=objects)

    def own_table(self) -> pa.Table:
        """All of it in a form that is read as these events."""
        name = "id" if self.key is None else self.key
        table = self.table.select([column for column in self.table.column_names if column not in (name, "expires")])
        table = table.append_column(name, self.ids)
        return table if (self.expires == NONE).all() else table.append_column("expires", _instants(self.expires))

    def without_codes(self) -> EventBatch:
        """The same for whoever keeps it: without what can be made again."""
        known, read = (self._known[0], _NO_CODES), self._read
        read = replace(read, time=short_column(read.time), expires=short_column(read.expires), deleted=short_column(read.deleted))
        fields = {name: getattr(read, name) for name in ("time", "expires", "deleted")}
        return replace(self, columns=_NO_EVENTS, rows=_NO_ROWS, _read=read, _known=known, _blocks={}, objects=None, **fields)

    def take(self, rows: NDArray[np.int64]) -> EventBatch:
        """Some of the events, without codes."""
        read, table = self._read.take(rows), self.table.take(rows)
        fields = {name: getattr(read, name) for name in ("ids", "time", "expires", "deleted")}
        return replace(self.without_codes(), table=table, _read=read, **fields)

    def encoded_anew(self, vocabularies: Vocabularies, rows: NDArray[np.int64]) -> EventColumns:
        """Some of the events in other codes, which are made for all their strings."""
        read = self._read if len(rows) == len(self) else self._read.take(rows)
        read.enter_strings(vocabularies)
        return read.encode(self.schema, vocabularies)

    @property
    def read(self) -> ReadEvents | None:
        """The columns that tell the events' values, if they alone do."""
        return self._read if self._read.complete else None

    def some_events(self, rows: NDArray[np.int64]) -> list[Event]:
        """Some of the events as objects, of which nothing is kept."""
        if self._read.complete:
            made = [self._read.values(self.schema, row) for row in rows.tolist()]
        else:
            made = values_from_arrow(self.schema, self.table, rows)
        return list(map(self._event, rows.tolist(), made))

    def _event(self, row: int, values: dict[str, Any]) -> Event:
        """Without arrays in between: a search finds few events, each in a batch of its own."""
        at, until = self.time.item(row), self.expires.item(row)
        return Event(
            self.ids[row].as_py(), values, None if at == NONE else at, None if until == NONE else until, self.deleted.item(row)
        )

    def events(self) -> list[Event]:
        """The events as objects."""
        times, expiries = ([None if t == NONE else t for t in column.tolist()] for column in (self.time, self.expires))
        rows = zip(self.ids.to_pylist(), map(self.values, range(len(self))), times, expiries, self.deleted.tolist(), strict=True)
        return [Event(*row) for row in rows]


def short_column(column: NDArray[Any]) -> NDArray[Any]:
    """A column of one value all through takes no room."""
    return np.broadcast_to(column[:1].copy(), column.shape) if len(column) and (column == column[0]).all() else column


def events_from_arrow(
    schema: Schema,
    vocabularies: Vocabularies,
    table: pa.Table | pa.RecordBatch,
    key: str | None = None,
    on_error: str = "raise",
    *,
    again: bool = False,
) -> EventBatch:
    """The table's events; nothing is added to the vocabularies. Bad rows raise one BulkError or are left out (`skip`). With `again`
    they were read before, and nobody asks whether an id stands twice."""
    columns, taken, rows, refused = read_rows(
        table, EventError, "events", lambda reader: read_columns(schema, reader, key, again), on_error
    )
    known = vocabularies, vocabularies.size
    return EventBatch(
        schema=schema,
        key=key,
        table=taken,
        ids=columns.ids,
        columns=columns.encode(schema, vocabularies),
        time=columns.time,
        expires=columns.expires,
        deleted=columns.deleted,
        rows=rows,
        refused=refused,
        _read=columns,
        _known=known,
    )


def read_rows(
    table: pa.Table | pa.RecordBatch, error: type[TidingsError], what: str, read: Callable[[TableReader], Read], on_error: str
) -> tuple[Read, pa.Table, NDArray[np.int64], list[tuple[int, str]]]:
    """What `read` makes of the good rows, these rows, their numbers, and the refused ones. To skip is to read once more."""
    if on_error not in ("raise", "skip"):
        raise error(f"on_error is {on_error!r}: 'raise' or 'skip' is accepted")
    table = plain_table(table, error)
    rows = np.arange(len(table))
    reader = TableReader(table, error)
    result = read(reader)
    refused = reader.refused
    if refused and on_error == "raise":
        raise BulkError(what, refused)
    if refused:
        rows = np.flatnonzero(~reader.bad)
        table = table.take(rows)
        result = read(TableReader(table, error))
    return result, table, rows, refused


def plain_table(table: object, error: type[TidingsError]) -> pa.Table:
    """The table with every dictionary column as what it holds; each name stands once."""
    given, table = table, table_of(table)
    if table is None:
        raise error(f"{shown(given)}: a table is accepted, of pyarrow, pandas, polars or whatever speaks Arrow's stream protocol")
    if len(set(table.column_names)) < len(table.column_names):
        twice = next(name for name in table.column_names if table.column_names.count(name) > 1)
        raise error(f"column {twice!r} stands twice in the table: once is accepted")
    plain: pa.Table = table
    for place, kind in enumerate(plain.schema.types):
        if pa.types.is_dictionary(kind):
            plain = plain.set_column(place, plain.column_names[place], plain.column(place).cast(kind.value_type))
    return plain


def arrow_schema(schema: Schema, key: str | None = None) -> pa.Schema:
    """The columns of a topic's events as tidings writes them."""
    return _form(tuple(schema.items()), key)


@lru_cache(maxsize=64)
def _form(attributes: tuple[tuple[str, Attribute], ...], key: str | None) -> pa.Schema:
    fields = {"id" if key is None else key: pa.string()}
    fields |= {name: _arrow_type(attribute) for name, attribute in attributes}
    fields |= {"time": _TIMESTAMP, "expires": _TIMESTAMP}
    return pa.schema(list((fields if key is None else fields | {"deleted": pa.bool_()}).items()))


def _arrow_type(attribute: Attribute) -> pa.DataType:
    return pa.binary() if isinstance(attribute, Place) and attribute.shapes else _ARROW[type(attribute)]


def events_to_arrow(schema: Schema, events: Sequence[Event], key: str | None = None) -> pa.Table:
    """A table of `arrow_schema`, which reads back as these events."""
    form, names = arrow_schema(schema, key), ("id" if key is None else key, *(name for name in schema if name != key))
    columns: list[list[Any]] = [[event.id for event in events]]
    columns += [[event.values.get(name) for event in events] for name in names[1:]]
    columns += [[event.time for event in events], [event.expires for event in events]]
    if key is not None:
        columns.append([event.deleted for event in events])
    made = dict(zip((*names, "time", "expires", "deleted"), columns, strict=False))
    arrays = [column_of(made[name], kind) for name, kind in zip(form.names, form.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=form)


def batch_of(schema: Schema, vocabularies: Vocabularies, events: Sequence[Event], key: str | None = None) -> EventBatch:
    """The batch of events held as objects. Times that none of them has are no columns: reading one costs as much as an event."""
    table = events_to_arrow(schema, events, key)
    absent = [name for name in ("time", "expires") if table[name].null_count == len(table)]
    return replace(events_from_arrow(schema, vocabularies, table.drop_columns(absent), key), objects=list(events))


def values_from_arrow(schema: Schema, table: pa.Table, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
    """The normalised values of a few rows of a table that `events_from_arrow` accepts, for predicates that no index serves."""
    names = [name for name in schema if name in table.column_names]
    if not names:
        return [{} for _ in rows]
    taken = table.select(names).take(rows)
    reader = EventReader(schema)
    for place, name in enumerate(names):
        if isinstance(schema[name], Time):
            taken = taken.set_column(place, name, _instants(TableReader(taken, EventError).times(name)))
    return [reader(values).values for values in taken.to_pylist()]


def _instants(microseconds: NDArray[np.int64]) -> pa.Array:
    return pa.array(microseconds, mask=microseconds == NONE).cast(_TIMESTAMP)


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values as events have them, of one attribute."""
    if values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    if pa.types.is_date(kind):
        days = [None if value is None else value // DAY for value in values]
        return pa.array(days, pa.int32()).cast(kind)
    if pa.types.is_binary(kind):
        values = [None if value is None else shapely.to_wkb(geometry_of(value)) for value in values]
    elif pa.types.is_list(kind):
        values = [None if value is None else texts_of(value) for value in values]
    return pa.array(values, kind)
