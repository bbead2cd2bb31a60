"""Arrow columns to NumPy arrays, validated in bulk: no Python per row, only per distinct string and per refused row.

`TableReader` reads the columns of one table. A column of the wrong type raises at once; a bad value marks its row, and the row's
sentence is the one that the reader of single values (`event`, `subscription`) gives for it. Each row keeps its first sentence.

Ragged results are (start int64[n + 1], element): row r has element[start[r]:start[r + 1]].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.errors import TidingsError, shown
from tidings.model.columns.arrays import MISSING_BOX, ragged_take, rows_of, sorted_rows, starts
from tidings.model.columns.arrow_numbers import NONE, corners_of_lists, floats, from_seconds, int64, is_text, scaled
from tidings.model.columns.tokens import Index, tokenize_array
from tidings.model.columns.vocabulary import distinct_array, distinct_strings
from tidings.model.door.single_values import (
    PLACE_FORMS,
    read_date,
    read_id,
    read_name,
    read_number,
    read_place,
    read_text,
    read_time,
    read_words,
)
from tidings.model.values.limits import TEXT_LIMIT, limited
from tidings.model.values.schema import Words
from tidings.model.values.times import parse_time

pc = lazily("pyarrow.compute")

_CONTROL = r"[\x00-\x1f\x{7f}-\x{9f}]"
"""`limits.CONTROL` as Arrow writes it."""
_FIRST, _LAST = parse_time(datetime.min), parse_time(datetime.max)
_POINT, _BOX = {"x", "y"}, {"xmin", "ymin", "xmax", "ymax"}


@dataclass(slots=True)
class Strings:
    """One string a row: `index` into `distinct`, -1 for none."""

    index: NDArray[np.int64]
    distinct: list[str]

    def table(self, code: Callable[[str], Any], dtype: Any, none: Any) -> NDArray[Any]:
        """`code` of each row's string, `none` where there is none."""
        codes: NDArray[Any] = np.array([*map(code, self.distinct), none], dtype)[self.index]
        return codes


@dataclass(slots=True)
class Tokens:
    """A set of tokens a row, ragged: `token` indexes `distinct` and may repeat in a row. `present` is False where there is none."""

    present: NDArray[np.bool_]
    start: NDArray[np.int64]
    token: NDArray[np.int64]
    distinct: list[str]

    def codes(self, code: Callable[[Sequence[str]], list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Ragged codes, ascending and distinct within a row; tokens whose code is negative are left out."""
        table = np.array(code(self.distinct), np.int64)
        return sorted_rows(len(self.present), rows_of(self.start), table[self.token])


def tokens_of(present: NDArray[np.bool_], count: Index, index: Index, tokenized: tuple[Index, Index, list[str]]) -> Tokens:
    """The tokens of rows of `count` texts, whose numbers are `index`, given those of the texts."""
    token_start, token, distinct = tokenized
    texts = len(token_start) - 1
    if len(token) == texts and (token_start[1:] == np.arange(1, texts + 1)).all():
        return Tokens(present, starts(count), token[index], distinct)
    element_start, element = ragged_take(token_start, index)
    return Tokens(present, element_start[starts(count)], token[element], distinct)


class TableReader:
    """The columns of `table` as arrays. `refused` is (row, sentence) of the rows that cannot be read."""

    def __init__(self, table: pa.Table, error: type[TidingsError]) -> None:
        self.table = table
        self.error = error
        self.bad = np.zeros(len(table), np.bool_)
        self._sentence: dict[int, str] = {}

    @property
    def refused(self) -> list[tuple[int, str]]:
        return sorted(self._sentence.items())

    def __contains__(self, name: str) -> bool:
        return name in self.table.column_names

    def column(self, name: str) -> pa.Array:
        column = self.table.column(name)
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

    def refuse(self, bad: NDArray[np.bool_], sentence: Callable[[int], str]) -> None:
        for row in np.flatnonzero(bad & ~self.bad).tolist():
            self._sentence[row] = sentence(row)
        self.bad |= bad

    def refuse_values(self, name: str, bad: NDArray[np.bool_], read: Callable[[str, Any], object]) -> None:
        """Mark rows whose value `read`, the reader of single values, refuses."""
        if bad.any():
            column = self.column(name)
            self.refuse(bad, lambda row: self._reason(read, name, column[row].as_py()))

    def _reason(self, read: Callable[[str, Any], object], name: str, value: object) -> str:
        try:
            read(name, value)
        except TidingsError as error:
            return str(error)
        raise AssertionError(f"{name} is {shown(value)}: refused in bulk and accepted alone")

    def wrong_type(self, name: str, accepted: str) -> TidingsError:
        return self.error(f"column {name!r} is {self.table.schema.field(name).type}: {accepted} is accepted")

    def present(self, name: str) -> NDArray[np.bool_]:
        return self.column(name).is_valid().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """NaN is none."""
        column = self.column(name)
        value = floats(column)
        if value is None:
            raise self.wrong_type(name, "a column of numbers")
        self.refuse_values(name, self.present(name) & ~np.isfinite(value), read_number)
        return value

    def integers(self, name: str) -> NDArray[np.int64]:
        """NONE is none, and any number beyond int64."""
        column = self.column(name)
        if not pa.types.is_integer(column.type) and not pa.types.is_null(column.type):
            raise self.wrong_type(name, "a column of whole numbers")
        return int64(column)

    def strings(self, name: str) -> Strings:
        strings = Strings(*distinct_strings(self._texts(name)))
        if limited():
            too_long = strings.table(lambda string: len(string) > TEXT_LIMIT, np.bool_, False)
            self.refuse_values(name, too_long, read_text)
        return strings

    def names(self, name: str) -> pa.Array:
        """A column of strings without control characters, as one Arrow array."""
        column = self._texts(name).cast(pa.string())
        self._refuse_unfit(name, column, read_name)
        return column

    def _texts(self, name: str) -> pa.Array:
        column = self.column(name)
        if pa.types.is_null(column.type):
            return column.cast(pa.string())
        if not is_text(column.type):
            raise self.wrong_type(name, "a column of strings")
        return column

    def _refuse_unfit(self, name: str, column: pa.Array, read: Callable[[str, Any], object]) -> None:
        """Mark names that are too long or have control characters."""
        self._refuse_long(name, column, read)
        if limited() and _may_have_controls(column):
            unfit = pc.match_substring_regex(column, _CONTROL).fill_null(False).to_numpy(zero_copy_only=False)
            self.refuse_values(name, unfit, read)

    def _refuse_long(self, name: str, column: pa.Array, read: Callable[[str, Any], object]) -> None:
        if limited() and (pc.max(pc.binary_length(column)).as_py() or 0) > TEXT_LIMIT:
            self.refuse_values(name, pc.utf8_length(column).fill_null(0).to_numpy(zero_copy_only=False) > TEXT_LIMIT, read)

    def durations(self, name: str) -> NDArray[np.int64]:
        """Microseconds; NONE is none."""
        column = self.column(name)
        return scaled(int64(column), column.type.unit)

    def pairs(self, name: str, fields: tuple[str, str]) -> NDArray[np.float64]:
        """n x 2 numbers from a struct of these fields or from lists of two; NaN where there is no number."""
        column = self.column(name)
        if pa.types.is_fixed_size_list(column.type):
            column = column.cast(pa.list_(column.type.value_type))
        if pa.types.is_struct(column.type) and {part.name for part in column.type} == set(fields):
            parts = [floats(column.field(part)) for part in fields]
        elif pa.types.is_list(column.type):
            parts = corners_of_lists(column, (2,))[:2]
        else:
            parts = [None]
        if any(part is None for part in parts):
            raise self.wrong_type(name, f"a column of struct<{', '.join(fields)}> or of lists of two numbers")
        return np.column_stack(parts)  # type: ignore[arg-type]

    def flags(self, name: str) -> NDArray[np.bool_]:
        column = self.column(name)
        if not pa.types.is_boolean(column.type) and not pa.types.is_null(column.type):
            raise self.wrong_type(name, "a column of true and false")
        return column.cast(pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def ids(self, name: str, distinct: bool, required: bool) -> pa.Array:
        """Strings, null where there is none; `required` and `distinct` say what else is refused."""
        column = self.column(name)
        column = (column if pa.types.is_integer(column.type) else self._texts(name)).cast(pa.string())
        self.refuse_values(name, pc.equal(column, "").fill_null(False).to_numpy(zero_copy_only=False), read_id)
        if required:
            self.refuse_values(name, ~self.present(name), read_id)
        self._refuse_unfit(name, column, read_id)
        if distinct:
            self._refuse_repeated(name, column)
        return column

    def _refuse_repeated(self, name: str, ids: pa.Array) -> None:
        """Mark every good row whose id an earlier good row has."""
        if len(ids.drop_null().unique()) == len(ids) - ids.null_count:
            return
        index, _ = distinct_strings(ids)
        good = np.flatnonzero((index >= 0) & ~self.bad)
        repeated = np.zeros(len(ids), np.bool_)
        repeated[good] = True
        repeated[good[np.unique(index[good], return_index=True)[1]]] = False
        self.refuse(
            repeated, lambda row: f"{name} is {shown(ids[row].as_py())}, which an earlier row has: an id stands once in a batch"
        )

    def times(self, name: str) -> NDArray[np.int64]:
        """Microseconds since 1970-01-01 UTC from timestamps, dates, numbers (seconds) or strings; NONE is none."""
        column = self.column(name)
        if is_text(column.type):
            return self._times_of_text(name)
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        if pa.types.is_timestamp(column.type):
            value = scaled(int64(column), column.type.unit)
        elif pa.types.is_integer(column.type):
            value = scaled(int64(column), "s")
        else:
            seconds = floats(column)
            if seconds is None:
                raise self.wrong_type(name, "a column of timestamps, dates, ISO 8601 strings or seconds since 1970-01-01 UTC")
            value = from_seconds(seconds)
        bad = self.present(name) & ((value < _FIRST) | (value > _LAST))
        self.refuse(bad, lambda row: f"{name} is {_raw(column, row)}: a time of the years 1 to 9999 is accepted")
        return value

    def _times_of_text(self, name: str, read: Callable[[str, Any], int | None] = read_time) -> NDArray[np.int64]:
        strings = self.strings(name)
        value: NDArray[np.int64] = strings.table(lambda text: _time_or_none(read, text), np.int64, NONE)
        self.refuse_values(name, (strings.index >= 0) & (value == NONE), read)
        return value

    def dates(self, name: str) -> NDArray[np.int64]:
        """First microseconds of days from dates or texts of dates; NONE is none."""
        kind = self.column(name).type
        if is_text(kind):
            return self._times_of_text(name, read_date)
        if not pa.types.is_date(kind) and not pa.types.is_null(kind):
            raise self.wrong_type(name, "a column of dates, or of strings as '2026-01-31',")
        return self.times(name)

    def boxes(self, name: str, plane: bool, shapes: bool = False) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """(present, n x 4 corners; MISSING_BOX where there is none)."""
        column = self.column(name)
        present = self.present(name)
        if shapes and (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
            return present, self._outlines(name, column, plane)
        corners = self._corners(name, column)
        x, y = (corners[:, 0], corners[:, 2]), (corners[:, 1], corners[:, 3])
        with np.errstate(invalid="ignore"):
            good = np.isfinite(corners).all(axis=1) & (x[0] <= x[1]) & (y[0] <= y[1])
            if not plane:
                good &= (x[0] >= -180.0) & (x[1] <= 180.0) & (y[0] >= -90.0) & (y[1] <= 90.0)
        self.refuse_values(name, present & ~good, lambda name, value: read_place(name, value, plane))
        return present, np.where(present[:, None], corners, MISSING_BOX)

    def _outlines(self, name: str, column: pa.Array, plane: bool) -> NDArray[np.float64]:
        """The boxes of geometries in WKB, each read alone as it must be valid."""
        corners = np.tile(np.asarray(MISSING_BOX), (len(column), 1))
        bad = np.zeros(len(column), np.bool_)
        for row, value in enumerate(column.to_pylist()):
            if value is not None:
                try:
                    corners[row] = read_place(name, value, plane, shapes=True)
                except TidingsError:
                    bad[row] = True
        self.refuse_values(name, bad, lambda name, value: read_place(name, value, plane, shapes=True))
        return corners

    def _corners(self, name: str, column: pa.Array) -> NDArray[np.float64]:
        kind = column.type
        if pa.types.is_null(kind):
            return np.full((len(column), 4), np.nan)
        if pa.types.is_struct(kind) and {field.name for field in kind} in (_POINT, _BOX):
            names = ("x", "y", "x", "y") if len(kind) == 2 else ("xmin", "ymin", "xmax", "ymax")
            sides = {part: floats(column.field(part)) for part in dict.fromkeys(names)}
            parts = [sides[part] for part in names]
        elif pa.types.is_fixed_size_list(kind) and kind.list_size in (2, 4):
            flat = floats(column.values.slice(column.offset * kind.list_size, len(column) * kind.list_size))
            parts = [None if flat is None else flat[part % kind.list_size :: kind.list_size] for part in range(4)]
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            parts = corners_of_lists(column)
        else:
            parts = [None]
        if any(part is None for part in parts):
            raise self.wrong_type(
                name, f"a place as struct<x, y>, struct<xmin, ymin, xmax, ymax> or a list of 2 or 4 numbers ({PLACE_FORMS})"
            )
        return np.column_stack(parts)  # type: ignore[arg-type]

    def words(self, name: str, kind: Words) -> Tokens:
        """The tokens of a column of strings or of lists of strings."""
        present, count, index, texts = self.texts(name)
        return tokens_of(present, count, index, tokenize_array(texts, kind))

    def texts(self, name: str) -> tuple[NDArray[np.bool_], Index, Index, pa.Array]:
        """(present, texts a row, number of each text, the distinct texts) of a column of strings or of lists of strings."""
        column = self.column(name)
        present = self.present(name)
        if not is_text(column.type):
            return present, *self._lists(name, "a column of strings or lists of strings")
        self._refuse_long(name, column.cast(pa.string()), read_text)
        index, texts = distinct_array(column)
        return present, present.astype(np.int64), index[present], texts

    def lists(self, name: str) -> Tokens:
        """A column of lists of strings, taken as they are."""
        count, index, distinct = self._lists(name, "a column of lists of strings")
        return Tokens(self.present(name), starts(count), index, distinct.to_pylist())

    def _lists(self, name: str, accepted: str) -> tuple[NDArray[np.int64], NDArray[np.int64], pa.Array]:
        """(elements a row, index of each element into the distinct strings, the distinct strings); a null element is refused."""
        column = self.column(name)
        if pa.types.is_null(column.type):
            column = column.cast(pa.list_(pa.string()))
        kind = column.type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise self.wrong_type(name, accepted)
        if not is_text(kind.value_type) and not pa.types.is_null(kind.value_type):
            raise self.wrong_type(name, accepted)
        count = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = column.flatten()
        index, distinct = distinct_array(flat.cast(pa.string()) if pa.types.is_null(flat.type) else flat)
        size = pc.utf8_length(distinct).to_numpy(zero_copy_only=False)
        if flat.null_count or (int(size.max(initial=0)) * int(count.max(initial=0)) > TEXT_LIMIT and limited()):
            count, index = self._checked_lists(name, count, index, np.append(size, 0)[index])
        return count, index, distinct

    def _checked_lists(
        self, name: str, count: NDArray[np.int64], index: NDArray[np.int64], size: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Refuse rows with a null or too much text; (elements a row, index) of the strings that are there."""
        row = np.repeat(np.arange(len(count)), count)
        bad = (np.bincount(row, weights=size, minlength=len(count)) > TEXT_LIMIT) & limited()
        known = index >= 0
        bad[row[~known]] = True
        self.refuse_values(name, bad, lambda name, value: read_words(name, value, "as-is"))
        return np.bincount(row[known], minlength=len(count)), index[known]


def _may_have_controls(column: pa.StringArray) -> bool:
    """A pass over the bytes, fifty times as fast as the expression: those below a space, DEL, and the lead of U+0080 to U+009F."""
    data = column.buffers()[2]
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return bool(((text < 0x20) | (text == 0x7F) | (text == 0xC2)).any())


def _time_or_none(read: Callable[[str, Any], int | None], text: str) -> int:
    try:
        value = read("", text)
    except TidingsError:
        return NONE
    return NONE if value is None else value


def _raw(column: pa.Array, row: int) -> str:
    """A value of a column of instants or numbers, as its number."""
    return str(column.view(pa.int64())[row].as_py() if pa.types.is_timestamp(column.type) else column[row].as_py())
