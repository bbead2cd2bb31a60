"""Events at the door: every form reads to the same event, and every kind of bad input gets one sentence."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import BulkError, EventError, SchemaError
from tidings.model.door.event import Event, EventReader, read_event, read_events
from tidings.model.door.event_record import event_from_record, event_to_record
from tidings.model.values.limits import TEXT_LIMIT
from tidings.model.values.schema import Category, Number, Place, Schema, Time, Words

SCHEMA = Schema({"price": Number(0, 10_000), "brand": Category(), "place": Place(), "about": Words(), "made": Time()})
PLANE = Schema({"at": Place(plane=True), "tags": Words("as-is")})
DEAL = {"id": "e1", "price": 3200, "brand": "Huawei", "place": (121.44, 36.16), "about": "P30 128GB", "expires": "2026-12-05"}
VALUES = {"price": 3200.0, "brand": "Huawei", "place": (121.44, 36.16, 121.44, 36.16), "about": frozenset({"p30", "128gb"})}
EXPIRES = int(datetime(2026, 12, 5, tzinfo=UTC).timestamp()) * 1_000_000


def test_dict() -> None:
    assert read_event(SCHEMA, DEAL) == Event("e1", VALUES, None, EXPIRES)


@pytest.mark.parametrize("source", [json.dumps(DEAL), json.dumps(DEAL).encode(), b"\xef\xbb\xbf" + json.dumps(DEAL).encode()])
def test_json(source: str | bytes) -> None:
    assert read_event(SCHEMA, source) == Event("e1", VALUES, None, EXPIRES)


def cloud_event(**changes: object) -> dict[str, object]:
    data = {name: DEAL[name] for name in ("price", "brand", "place", "about")}
    envelope = {"specversion": "1.0", "id": "e1", "source": "/shop", "type": "deal", "time": "1970-01-01T00:00:01Z", "data": data}
    return {**envelope, **changes}


def test_cloud_event() -> None:
    assert read_event(SCHEMA, cloud_event()) == Event("e1", VALUES, 1_000_000)
    packed = {**cloud_event(), "data_base64": base64.b64encode(json.dumps(cloud_event()["data"]).encode()).decode()}
    del packed["data"]
    assert read_event(SCHEMA, packed) == Event("e1", VALUES, 1_000_000)
    assert read_event(SCHEMA, cloud_event(data=None)).values == {}
    assert read_event(SCHEMA, cloud_event(data={"sku": "a", "price": 1}), key="sku") == Event("a", {"price": 1.0}, 1_000_000)
    assert read_events(SCHEMA, json.dumps([cloud_event(), cloud_event(id="e2")]))[1].id == "e2"


def feature(**changes: object) -> dict[str, object]:
    properties = {name: DEAL[name] for name in ("price", "brand", "about", "expires")}
    geometry = {"type": "Point", "coordinates": [121.44, 36.16, 7.0]}
    return {"type": "Feature", "id": "e1", "geometry": geometry, "properties": properties, **changes}


def test_feature() -> None:
    assert read_event(SCHEMA, feature()) == Event("e1", VALUES, None, EXPIRES)
    assert read_event(SCHEMA, feature(geometry=None, properties=None)) == Event("e1", {})
    assert read_event(SCHEMA, feature(properties={"sku": "a"}), key="sku").id == "a"
    assert read_event(SCHEMA, feature(properties={}), key="sku").id == "e1"
    assert read_event(SCHEMA, feature(properties={"id": "other"})).id == "e1"
    assert read_event(SCHEMA, feature(id=None, properties={"id": "other"})).id == "other"
    collection = {"type": "FeatureCollection", "features": [feature(), feature(id=7)]}
    assert [event.id for event in read_events(SCHEMA, collection)] == ["e1", "7"]


@pytest.mark.parametrize(
    ("geometry", "box"),
    [
        ({"type": "LineString", "coordinates": [[0, 5], [2, 1]]}, (0.0, 1.0, 2.0, 5.0)),
        (
            {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]], [[1, 1], [2, 1], [2, 2], [1, 1]]]},
            (0.0, 0.0, 4.0, 3.0),
        ),
        (
            {
                "type": "GeometryCollection",
                "geometries": [{"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [0, 3]}],
            },
            (0.0, 2.0, 1.0, 3.0),
        ),
    ],
)
def test_geometry_box(geometry: dict[str, object], box: tuple[float, ...]) -> None:
    assert read_event(SCHEMA, feature(geometry=geometry)).values["place"] == box


@pytest.mark.parametrize(
    ("place", "box"),
    [
        ((1, 2), (1, 2, 1, 2)),
        ([1, 2, 3, 4], (1, 2, 3, 4)),
        ({"x": 1, "y": 2}, (1, 2, 1, 2)),
        ({"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}, (1, 2, 3, 4)),
        (np.array([1.0, 2.0]), (1, 2, 1, 2)),
        ({"type": "Point", "coordinates": [1, 2]}, (1, 2, 1, 2)),
        ((-180, -90, 180, 90), (-180, -90, 180, 90)),
    ],
)
def test_place_forms(place: object, box: tuple[float, ...]) -> None:
    assert read_event(SCHEMA, {"place": place}).values["place"] == box


def test_an_attribute_may_be_named_as_a_form_is() -> None:
    schema = Schema({"type": Category(), "specversion": Number()})
    assert read_event(schema, {"type": "Feature", "specversion": 1}).values == {"type": "Feature", "specversion": 1.0}


def test_words_and_times() -> None:
    assert read_event(SCHEMA, {"about": ["Red shoes", "red"]}).values["about"] == {"red", "shoes"}
    assert read_event(PLANE, {"tags": ["Red shoes", "red"]}).values["tags"] == {"Red shoes", "red"}
    assert read_event(SCHEMA, {"made": 1.5, "time": datetime(1970, 1, 1)}).values["made"] == 1_500_000


def test_null_is_missing_and_an_id_is_made() -> None:
    first, second = (read_event(SCHEMA, {"id": None, "price": None, "time": None}) for _ in range(2))
    assert first.values == {}
    assert len(first.id) == 32 != second.id
    assert first.id != second.id


def test_keyed() -> None:
    assert read_event(SCHEMA, {"sku": "x", "deleted": True}, key="sku") == Event("x", {}, deleted=True)
    assert read_event(SCHEMA, {"brand": "x"}, key="brand") == Event("x", {"brand": "x"})
    with pytest.raises(SchemaError, match="key 'price' is a Number attribute"):
        EventReader(SCHEMA, "price")


def test_plane_has_no_degrees() -> None:
    assert read_event(PLANE, {"at": (1000, -1000)}).values["at"] == (1000.0, -1000.0, 1000.0, -1000.0)


def test_numpy_numbers() -> None:
    assert read_event(SCHEMA, {"price": np.int64(3)}).values == {"price": 3.0}
    assert read_event(SCHEMA, {"price": np.float32(0.5)}).values == {"price": 0.5}


DEEP = {"type": "Polygon", "coordinates": []}
BAD = [
    ({"prize": 3}, "attribute 'prize' (with value 3) is unknown: this topic's events have id, price, brand, place, about, made"),
    ({"deleted": True}, "attribute 'deleted'"),
    ({3: 3}, "attribute 3 (with value 3) is unknown"),
    ({"price": "3"}, "price is '3': a finite number is accepted"),
    ({"price": True}, "price is True: a finite number"),
    ({"price": float("nan")}, "price is nan: a finite number"),
    ({"price": float("-inf")}, "price is -inf: a finite number"),
    ({"price": 10**400}, "a finite number is accepted"),
    ({"brand": 7}, "brand is 7: a string is accepted"),
    ({"brand": "\ud800"}, "half a surrogate pair"),
    ({"brand": "x" * 10_000_000}, f"brand is a string of 10000000 characters: at most {TEXT_LIMIT} are accepted"),
    ({"about": "x" * 10_000_000}, f"about is a string of 10000000 characters: at most {TEXT_LIMIT} are accepted"),
    ({"about": ["x" * 600_000] * 2}, f"about has words of 1200000 characters: at most {TEXT_LIMIT} are accepted"),
    ({"about": 5}, "about is 5: a string or a list of strings is accepted"),
    ({"about": ["a", 5]}, "about is ['a', 5]: a string or a list of strings is accepted"),
    ({"made": "yesterday"}, "made: 'yesterday' is not a time: an ISO 8601"),
    ({"made": True}, "made: True is not a time"),
    ({"time": "x" * 10_000_000}, "time: a string of 10000000 characters"),
    ({"expires": float("nan")}, "expires: nan is not a time"),
    ({"place": (181, 0)}, "place is (181, 0): longitude from -180 to 180 and latitude from -90 to 90"),
    ({"place": (0, 91)}, "longitude from -180 to 180 and latitude from -90 to 90"),
    ({"place": (0, float("nan"))}, "place.y is nan: a finite number"),
    ({"place": (0, 5, 1, 4)}, "place is (0.0, 5.0, 1.0, 4.0): a box has xmin <= xmax and ymin <= ymax"),
    ({"place": (170, 0, -170, 1)}, "across the 180th meridian (xmin > xmax) is not accepted"),
    ({"place": (1, 2, 3)}, "place is (1, 2, 3): (x, y), (xmin, ymin, xmax, ymax)"),
    ({"place": {"x": 1}}, "place is {'x': 1}: (x, y)"),
    ({"place": "POINT(1 2"}, "place is 'POINT(1 2': (x, y)"),
    ({"place": {"type": "Point"}}, "place is {'type': 'Point'}: (x, y)"),
    ({"place": {"type": "Polygon", "coordinates": []}}, "a geometry has a position at least"),
    ({"place": {"type": "Point", "coordinates": [1]}}, "place has the position [1]"),
    ({"place": {"type": "MultiPoint", "coordinates": [[1, 2], 3]}}, "place has the coordinates 3"),
    ({"id": ""}, "id is '': a string that is not empty is accepted"),
    ({"id": ["a"]}, "id is ['a']: a string that is not empty is accepted"),
    ([1, 2], "event [1, 2] (list): an event is an object"),
    (None, "event None (NoneType): an event is an object"),
    (17, "event 17 (int): an event is an object"),
    ("[1]", "event [1] (list): an event is an object"),
    ('{"price": 3,}', "broken JSON at byte 12"),
    ('{"brand": "é", price: 3}', "broken JSON at byte 16"),
    (b'{"brand": "\xff"}', "broken JSON at byte 11: not UTF-8"),
    ('{"price": NaN}', "price is nan"),
    ("[" * 100_000, "nested too deeply"),
    ('{"price": ' + "1" * 5000 + "}", "broken JSON: Exceeds the limit"),
    (cloud_event(specversion="0.3"), "specversion is '0.3': CloudEvents '1.0' is accepted"),
    (cloud_event(data=[1]), "data is [1]: the data of a CloudEvent is an object"),
    ({**cloud_event(), "data_base64": "%%"}, "data_base64 is '%%': base64 of a JSON object"),
    (feature(properties=[1]), "properties is [1]"),
    (feature(properties={"place": [1, 2]}), "place stands in properties and geometry gives it too"),
]


@pytest.mark.parametrize(("source", "sentence"), BAD, ids=range(len(BAD)))
def test_refused(source: object, sentence: str) -> None:
    with pytest.raises(EventError) as error:
        read_event(SCHEMA, source)
    assert sentence in str(error.value)
    assert len(str(error.value)) < 400
    assert "\n" not in str(error.value)


def test_refused_when_keyed() -> None:
    for source, sentence in [
        ({"price": 3}, "sku is missing: it is this topic's key"),
        ({"sku": "a", "id": "b"}, "attribute 'id' (with value 'b') is unknown"),
        ({"sku": "a", "deleted": 1}, "deleted is 1: true or false is accepted"),
    ]:
        with pytest.raises(EventError, match=sentence.replace("(", r"\(").replace(")", r"\)")):
            read_event(SCHEMA, source, key="sku")


def test_no_place_for_a_geometry() -> None:
    with pytest.raises(EventError, match="this topic has no Place attribute"):
        read_event(Schema({"price": Number()}), feature(properties={}))


def test_batch_reports_all_bad_rows_together() -> None:
    rows = [{"id": str(row), "price": "x" if row % 2 else row} for row in range(60)]
    with pytest.raises(BulkError) as error:
        read_events(SCHEMA, rows)
    assert [row for row, _ in error.value.rows] == list(range(1, 60, 2))
    assert "30 events refused" in str(error.value)
    assert "... and 10 more" in str(error.value)
    events, refused = EventReader(SCHEMA).batch(rows)
    assert [event.id for event in events] == [str(row) for row in range(0, 60, 2)]
    assert len(refused) == 30


def test_batch_forms() -> None:
    lines = "\n".join(json.dumps({"id": str(i)}) for i in range(3)) + "\n\n"
    assert [event.id for event in read_events(SCHEMA, lines)] == ["0", "1", "2"]
    assert [event.id for event in read_events(SCHEMA, lines.encode())] == ["0", "1", "2"]
    assert [event.id for event in read_events(SCHEMA, json.dumps(DEAL, indent=1))] == ["e1"]
    assert read_events(SCHEMA, "[]") == []
    with pytest.raises(BulkError, match="row 1: broken JSON at byte 7"):
        read_events(SCHEMA, '{"id": "a"}\n{"id": }')
    with pytest.raises(BulkError, match="row 1: id is 'a', which an earlier row has"):
        read_events(SCHEMA, [{"id": "a"}, {"id": "a"}])
    assert len(read_events(SCHEMA, [{"sku": "a"}, {"sku": "a"}], key="sku")) == 2
    with pytest.raises(EventError, match="a list of events"):
        read_events(SCHEMA, 7)


EIGHTH = st.integers(-80, 80).map(lambda n: n / 8)
EVENTS = st.fixed_dictionaries(
    {"id": st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)},
    optional={
        "price": EIGHTH | st.integers(-(2**53), 2**53),
        "brand": st.text(st.characters(exclude_categories=["Cs"])),
        "place": st.tuples(EIGHTH, EIGHTH).map(list) | st.tuples(EIGHTH, EIGHTH).map(lambda p: [p[0], p[1], p[0] + 1, p[1] + 1]),
        "about": st.text(st.characters(exclude_categories=["Cs"])) | st.lists(st.sampled_from(["red", "Blue", "grün", "a b"])),
        "made": st.datetimes().map(datetime.isoformat),
        "expires": st.none() | st.integers(0, 10**9),
    },
)


@given(EVENTS)
def test_forms_agree(source: dict[str, object]) -> None:
    event = read_event(SCHEMA, source)
    assert read_event(SCHEMA, json.dumps(source)) == event
    envelope = {name: source[name] for name in ("id", "expires") if name in source}
    rest = {name: value for name, value in source.items() if name not in envelope}
    assert read_event(SCHEMA, {"specversion": "1.0", "data": rest, **envelope}) == event
    assert read_event(SCHEMA, {"type": "Feature", "properties": {**source}}) == event
    assert event_from_record(SCHEMA, json.loads(json.dumps(event_to_record(event)))) == event


@pytest.mark.parametrize("shapes", [False, True])
@pytest.mark.parametrize(
    "wkt", ["POINT (1 2)", "LINESTRING (0 0, 1 1, 2 0)", "POLYGON ((0 0, 2 0, 0 2, 0 0))", "MULTIPOINT (1 2, 3 4)"]
)
def test_a_geometry_is_the_same_in_every_form(wkt: str, shapes: bool) -> None:
    schema = Schema({"place": Place(shapes=shapes)})
    geometry = shapely.from_wkt(wkt)
    forms = [wkt, geometry, json.loads(shapely.to_geojson(geometry)), *([shapely.to_wkb(geometry)] if shapes else [])]
    assert len({read_event(schema, {"id": "e", "place": form}).values["place"] for form in forms}) == 1
