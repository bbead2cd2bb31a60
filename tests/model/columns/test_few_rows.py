"""A table of a few events read row by row means what its columns mean."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidings as td
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.few_rows import FewRows
from tidings.model.columns.tables import events_from_arrow
from tidings.model.door.event import EventReader

SCHEMA = td.Schema(
    {
        "price": td.Number(),
        "brand": td.Category(),
        "new": td.Bool(),
        "made": td.Time(),
        "place": td.Place(plane=True),
        "about": td.Words(),
    }
)
INSTANT = pa.timestamp("us", "UTC")
ROWS = pa.table(
    {
        "id": ["a", "b"],
        "price": [1.5, None],
        "brand": ["x", None],
        "new": [True, None],
        "made": pa.array([1_600_000_000_000_001, None], INSTANT),
        "place": [{"x": 1.0, "y": -2.0}, None],
        "about": ["Red, bike", None],
        "time": pa.array([7, None], INSTANT),
        "expires": pa.array([8, None], INSTANT),
    }
)


@pytest.mark.parametrize("table", [ROWS, ROWS.select(["id"]), ROWS.set_column(1, "price", pa.array([2**53 + 1, -3]))])
def test_rows_mean_what_columns_mean(table):
    assert FewRows(EventReader(SCHEMA))(table) == events_from_arrow(SCHEMA, Vocabularies(SCHEMA), table).events()


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"price": pa.array([1], pa.int8())}),
        pa.table({"price": [float("nan")]}),
        pa.table({"unknown": [1.0]}),
        pa.table([[1.0], [2.0]], names=["price", "price"]),
        pa.table({"made": pa.array([2**62], INSTANT)}),
        pa.table({"id": ["a", "a"]}),
        pa.table({"place": pa.array([{"x": 1.0, "y": None}], pa.struct([("x", pa.float64()), ("y", pa.float64())]))}),
    ],
)
def test_what_is_not_plain_or_not_well_is_left_to_columns(table):
    assert FewRows(EventReader(SCHEMA))(table) == []


def test_keyed_events_and_geometries_are_left_to_columns():
    assert FewRows(EventReader(SCHEMA, "sku"))(pa.table({"sku": ["a"]})) == []
    schema = td.Schema({"type": td.Category(), "geometry": td.Place(plane=True)})
    point = pa.array([{"x": 1.0, "y": 2.0}], pa.struct([("x", pa.float64()), ("y", pa.float64())]))
    assert FewRows(EventReader(schema))(pa.table({"type": ["Feature"], "geometry": point})) == []


def test_one_reader_takes_tables_of_changing_columns():
    read = FewRows(EventReader(SCHEMA))
    for table in (
        ROWS,
        ROWS.select(["id"]),
        pa.table({"price": pa.array([1], pa.int8())}),
        ROWS,
        pa.table({"unknown": [1.0]}),
        ROWS,
    ):
        assert read(table) == FewRows(EventReader(SCHEMA))(table)
