"""The columns of a table of events, read and validated, before any code is asked of a vocabulary."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.errors import EventError
from tidings.model.columns.arrays import MISSING_BOX, EventColumns, Vocabularies, ragged_take
from tidings.model.columns.arrow import Strings, TableReader, Tokens
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.door.event import EventReader
from tidings.model.values.schema import Bool, Category, Date, Number, Place, Schema, Time, Words

pc = lazily("pyarrow.compute")

_EXACT = 2**53
"""Up to this every whole number is a float."""


@dataclass(slots=True)
class ReadEvents:
    """`numbers` has Number, Time, Date and Bool attributes, NaN where there is none; `place` and `words` the schema's first."""

    ids: pa.Array
    time: NDArray[np.int64]
    expires: NDArray[np.int64]
    deleted: NDArray[np.bool_]
    numbers: dict[str, NDArray[np.float64]]
    categories: dict[str, Strings]
    place: tuple[NDArray[np.bool_], NDArray[np.float64]] | None
    words: Tokens | None

    complete: bool = True
    """Whether `values` can be told from these columns alone."""

    def take(self, rows: NDArray[np.int64]) -> ReadEvents:
        words = self.words
        if words is not None:
            start, token = ragged_take(words.start, rows)
            words = Tokens(words.present[rows], start, words.token[token], words.distinct)
        return ReadEvents(
            self.ids.take(pa.array(rows)),
            self.time[rows],
            self.expires[rows],
            self.deleted[rows],
            {name: column[rows] for name, column in self.numbers.items()},
            {name: Strings(strings.index[rows], strings.distinct) for name, strings in self.categories.items()},
            None if self.place is None else (self.place[0][rows], self.place[1][rows]),
            words,
            self.complete,
        )

    def values(self, schema: Schema, row: int) -> dict[str, Any]:
        """One event's normalised values, if the columns are `complete`."""
        values: dict[str, Any] = {}
        for name, column in self.numbers.items():
            number = column.item(row)
            if number == number:
                kind = schema[name]
                values[name] = number if isinstance(kind, Number) else bool(number) if isinstance(kind, Bool) else int(number)
        for name, strings in self.categories.items():
            if strings.index[row] >= 0:
                values[name] = strings.distinct[strings.index[row]]
        if self.place is not None and self.place[0][row]:
            values[schema.place or ""] = tuple(self.place[1][row].tolist())
        if self.words is not None and self.words.present[row]:
            tokens = self.words.token[self.words.start[row] : self.words.start[row + 1]]
            values[schema.words or ""] = frozenset(self.words.distinct[token] for token in tokens.tolist())
        return values

    def enter_strings(self, vocabularies: Vocabularies) -> None:
        """Give codes to all strings."""
        for name, strings in self.categories.items():
            for string in strings.distinct:
                vocabularies.categories[name].add(string)
        for word in () if self.words is None else self.words.distinct:
            vocabularies.words.add(word)

    def encode(self, schema: Schema, vocabularies: Vocabularies) -> EventColumns:
        rows = len(self.ids)
        value = np.full((rows, len(schema.ranges) + 2), np.nan)
        for name, column in self.numbers.items():
            value[:, schema.dimension[name]] = column
        for name, strings in self.categories.items():
            value[:, schema.dimension[name]] = strings.table(vocabularies.categories[name].code, np.float64, np.nan)
        box = np.tile(np.asarray(MISSING_BOX), (rows, 1)) if self.place is None else self.place[1]
        start, word = np.zeros(rows + 1, np.int64), np.empty(0, np.int32)
        if self.place is not None:
            value[self.place[0], -2] = 0.0
        if self.words is not None:
            value[self.words.present, -1] = 0.0
            start, word = self.words.codes(vocabularies.words.codes)
        return EventColumns(value, box, start, word)


def read_columns(schema: Schema, reader: TableReader, key: str | None, again: bool = False) -> ReadEvents:
    id_field = "id" if key is None else EventReader(schema, key).id_field
    envelope = [id_field, "time", "expires", *(["deleted"] if key is not None else [])]
    for name in reader.table.column_names:
        if name not in schema and name not in envelope:
            raise EventError(f"column {name!r} is unknown: this topic's events have {', '.join([*envelope, *schema])}")
    rows = len(reader.table)
    none = np.full(rows, NONE)
    columns = ReadEvents(
        ids=pa.nulls(rows, pa.string()),
        time=reader.times("time") if "time" in reader else none,
        expires=reader.times("expires") if "expires" in reader else none,
        deleted=reader.flags("deleted") if "deleted" in envelope and "deleted" in reader else np.zeros(rows, np.bool_),
        numbers={},
        categories={},
        place=None,
        words=None,
    )
    for name in schema:
        if name in reader:
            _read_attribute(schema, reader, name, columns)
    if id_field in reader:
        columns.ids = reader.ids(id_field, distinct=key is None and not again, required=key is not None)
    elif key is not None:
        raise EventError(f"column {key!r} is missing: it is this topic's key, a column of strings")
    columns.ids = _with_made_ids(columns.ids)
    columns.complete = _is_complete(schema, reader, columns)
    return columns


def _is_complete(schema: Schema, reader: TableReader, columns: ReadEvents) -> bool:
    """Columns are not if there is a second Place or Words attribute, a shape, prose, or a whole number that no float is."""
    for name in (name for name in schema if name in reader):
        if isinstance(schema[name], Place):
            if name != schema.place or pa.types.is_binary(kind := reader.column(name).type) or pa.types.is_large_binary(kind):
                return False
        elif isinstance(words := schema[name], Words):
            if name != schema.words or words.prose:
                return False
        elif isinstance(schema[name], Time | Date) and (np.abs(columns.numbers[name]) >= _EXACT).any():
            return False
    return True


def _read_attribute(schema: Schema, reader: TableReader, name: str, columns: ReadEvents) -> None:
    """Read one column. A second Place or Words attribute is validated only: predicates on it read `values_from_arrow`."""
    attribute = schema[name]
    if isinstance(attribute, Number):
        columns.numbers[name] = reader.numbers(name)
    elif isinstance(attribute, Time | Date):
        instants = reader.times(name) if isinstance(attribute, Time) else reader.dates(name)
        columns.numbers[name] = np.where(instants == NONE, np.nan, instants)
    elif isinstance(attribute, Bool):
        columns.numbers[name] = np.where(reader.present(name), reader.flags(name), np.nan)
    elif isinstance(attribute, Category):
        columns.categories[name] = reader.strings(name)
    elif isinstance(attribute, Place):
        boxes = reader.boxes(name, attribute.plane, attribute.shapes)
        columns.place = boxes if name == schema.place else columns.place
    else:
        words = reader.words(name, attribute)
        columns.words = words if name == schema.words else columns.words


def _with_made_ids(ids: pa.Array) -> pa.Array:
    """Random version-4 UUIDs, as 32 hexadecimal digits, for the nulls."""
    if ids.null_count == 0:
        return ids
    raw = np.frombuffer(os.urandom(16 * ids.null_count), np.uint8).reshape(-1, 16).copy()
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = digits[np.stack([raw >> 4, raw & 0x0F], axis=2)].reshape(-1)
    offsets = np.arange(0, len(text) + 1, 32, dtype=np.int32)
    made = pa.StringArray.from_buffers(ids.null_count, pa.py_buffer(offsets), pa.py_buffer(text))
    return pc.replace_with_mask(ids, ids.is_null(), made)
