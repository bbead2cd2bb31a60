"""Tables of any maker, columns with other names, fields that nobody knows: the answers are those of the plain form."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tidings as td
from tidings.errors import BulkError, EventError, SubscriptionError

SCHEMA = {"price": td.Number(), "brand": td.Category(), "made": td.Time()}
ROWS = [
    {"id": "e1", "price": 1.0, "brand": "a", "made": 5},
    {"id": "e2", "price": None, "brand": "b", "made": None},
    {"id": "e3", "price": 3.0, "brand": None, "made": 7},
]


def topic() -> td.Topic:
    made = td.Topic("t", SCHEMA)
    for id, filter in (("cheap", "price < 2"), ("none", "price IS NULL"), ("b", "brand = 'b'"), ("nobody", "brand IS NULL")):
        made.subscribe(id, filter, time=0)
    return made


def frames():
    table = pa.Table.from_pylist(ROWS)
    frame = pd.DataFrame(ROWS)
    assert np.isnan(frame["price"][1])
    yield table
    yield table.to_reader()
    yield frame
    yield frame.set_axis([7, 8, 9])
    yield frame.set_index("id")
    yield duckdb.from_arrow(table)


@pytest.mark.parametrize("number", range(6))
def test_whatever_speaks_arrows_protocol_is_a_table(number):
    expected = topic().match_batch(ROWS, time=0)
    assert expected.num_rows == 4
    frame = [*frames()][number]
    assert topic().match_batch(frame, time=0).equals(expected)
    published = topic()
    published.publish_batch([*frames()][number], time=9)
    assert published.search(time=9).num_rows == 3
    told = published.preview("price < 2", events=[*frames()][number], time=9)
    assert [note.event for note in told.first] == ["e1"]


def test_subscriptions_come_as_a_frame_too():
    made = td.Topic("t", SCHEMA)
    frame = pd.DataFrame({"name": ["s1", "s2"], "filter": ["price < 2", None], "k": [1, 2], "note": ["x", "y"]})
    with pytest.raises(SubscriptionError, match="column 'name' is unknown"):
        made.subscribe_many(frame)
    assert made.subscribe_many(frame, id="name", on_unknown="ignore", time=0) == 2
    assert [(s.id, s.filter, s.k) for s in made] == [("s1", "price < 2", 1), ("s2", None, 2)]
    with pytest.raises(SubscriptionError, match=r"^id is 'sku': the table has the columns name, filter, k, note$"):
        made.subscribe_many(frame, id="sku")


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("as_table", [False, True])
def test_unknown_fields_are_refused_or_ignored(batched, as_table):
    made = topic()
    rows = [{"id": "e1", "price": 1.0, "colour": "red"}]
    asked = pa.Table.from_pylist(rows) if as_table else rows
    for call in (made.match_batch, made.publish_batch) if batched or as_table else (made.match, made.publish):
        given = asked if batched or as_table else rows[0]
        with pytest.raises((EventError, BulkError), match="colour"):
            call(given, time=0)
        with pytest.raises(EventError, match=r"^on_unknown is 'drop': 'raise' or 'ignore' is accepted$"):
            call(given, on_unknown="drop", time=0)
        found = call(given, on_unknown="ignore", time=0)
        names = found["subscription"].to_pylist() if isinstance(found, pa.Table) else [one.subscription for one in found]
        assert sorted(names) == ["cheap", "nobody"]


def test_ignored_fields_of_clouds_and_features():
    made = td.Topic("t", {**SCHEMA, "place": td.Place()})
    made.subscribe("near", "price < 2 AND S_INTERSECTS(place, BBOX(0, 0, 2, 2))", time=0)
    feature = {
        "type": "Feature",
        "id": "f",
        "geometry": {"type": "Point", "coordinates": [1, 1]},
        "properties": {"price": 1, "x": 2},
    }
    cloud = {"specversion": "1.0", "id": "c", "source": "s", "type": "t", "data": {"price": 1, "place": [1, 1], "x": 2, "sku": "k"}}
    assert [m.event for m in made.match(feature, on_unknown="ignore")] == ["f"]
    assert [m.event for m in made.match(cloud, on_unknown="ignore")] == ["c"]
    assert [m.event for m in made.match(cloud, id="sku", on_unknown="ignore")] == ["k"]


@pytest.mark.parametrize("name", ["sku", "brand"])
def test_another_field_is_the_id(name):
    """It may be an attribute as well."""
    made = topic()
    rows = [{name: "b", "price": 1.0}, {name: "c", "price": 5.0}]
    for given in (rows, pa.Table.from_pylist(rows), pd.DataFrame(rows), pa.Table.from_pylist(rows * 1)):
        table = made.match_batch(given, id=name, time=0)
        expected = [("b", "b"), ("b", "cheap")] if name == "brand" else [("b", "cheap"), ("b", "nobody"), ("c", "nobody")]
        pairs = zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)
        assert sorted(pairs) == expected
    assert [m.event for m in made.match(rows[0], id=name)] == ["b"] * 2
    with pytest.raises(EventError, match=r"^id is 'sku': a keyed topic's objects are named by its key 'brand'$"):
        td.Topic("t", SCHEMA, key="brand").publish({"brand": "b"}, id="sku")
    with pytest.raises(EventError, match=r"^id is 3: the name of a field is accepted$"):
        made.match(rows[0], id=3)


def test_what_is_no_table_is_said():
    with pytest.raises(SubscriptionError, match=r"^3: a table is accepted, of pyarrow, pandas, polars"):
        topic().subscribe_many(3)


def test_a_row_of_a_frame_says_missing_by_nan_and_a_dict_does_not():
    frame = pd.DataFrame(
        {"id": ["a", "b"], "price": [3.0, None], "brand": [None, "x"], "made": pd.to_datetime([None, "2026-01-01"], utc=True)}
    )
    topic = td.Topic("t", {"price": td.Number(), "brand": td.Category(), "made": td.Time()})
    topic.subscribe("cheap", "price < 5")
    topic.subscribe("none", "price IS NULL AND brand = 'x'")
    rows = [row for _, row in frame.iterrows()]
    assert [[m.subscription for m in topic.match(row)] for row in rows] == [["cheap"], ["none"]]
    assert topic.match_batch(rows).to_pylist() == topic.match_batch(frame).to_pylist()
    with pytest.raises(td.errors.BulkError, match="row 1: price is nan: a finite number is accepted"):
        topic.match_batch(frame[["id", "price"]].to_dict("records"))
