"""Events over HTTP, in every form."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tidings.serve.app.answers import ARROW, NDJSON, stream_bytes

AT = "/topics/deals/events"


@pytest.fixture
def deals(client):
    client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 500 AND S_INTERSECTS(place, BBOX(0, 0, 9, 9))"})
    return client


ATTRIBUTES = {"price": 3, "place": [1, 2], "about": "P30 128GB"}
FEATURE = {"type": "Feature", "id": "e", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"price": 3}}
CLOUD = {"specversion": "1.0", "id": "e", "source": "/shop", "type": "offer", "data": ATTRIBUTES}


@pytest.mark.parametrize(
    ("form", "content", "headers"),
    [
        ("application/json", {"id": "e", **ATTRIBUTES}, {}),
        ("application/json", [{"id": "e", **ATTRIBUTES}], {}),
        ("application/cloudevents+json", CLOUD, {}),
        ("application/cloudevents-batch+json", [CLOUD], {}),
        ("application/json", ATTRIBUTES, {"ce-id": "e", "ce-specversion": "1.0", "ce-source": "/shop", "ce-type": "offer"}),
        ("application/geo+json", FEATURE, {}),
        ("application/geo+json", {"type": "FeatureCollection", "features": [FEATURE]}, {}),
        (NDJSON, {"id": "e", **ATTRIBUTES}, {}),
    ],
)
def test_every_form_is_one_event(deals, form, content, headers):
    answer = deals.post(AT, content=json.dumps(content), headers={"content-type": form, **headers})
    assert answer.json() == {"events": 1, "told": 1}
    [found] = deals.get(AT).json()["events"]
    assert (found["id"], found["price"], found["place"]) == ("e", 3.0, [1.0, 2.0])


def test_columns(deals):
    table = pa.table({"id": ["a", "b"], "price": [1.0, 900.0], "place": [{"x": 1.0, "y": 1.0}] * 2})
    assert deals.post(AT, content=stream_bytes(table), headers={"content-type": ARROW}).json() == {"events": 2, "told": 1}
    assert deals.post(AT, content=stream_bytes(table), headers={"content-type": ARROW}).json() == {
        "events": 0,
        "told": 0,
        "repeated": ["a", "b"],
    }
    found = deals.get(AT, params={"filter": "price > 100"}, headers={"accept": ARROW})
    assert pa.ipc.open_stream(found.content).read_all()["id"].to_pylist() == ["b"]


@pytest.mark.parametrize("kind", [pa.map_(pa.string(), pa.int8()), pa.list_(pa.map_(pa.string(), pa.int8()))])
def test_a_map_is_refused_before_it_is_read(deals, kind):
    answer = deals.post(AT, content=stream_bytes(pa.table({"price": pa.nulls(1, kind)})), headers={"content-type": ARROW})
    assert answer.status_code == 400
    assert "no column of tidings is a map" in answer.json()["detail"]


def test_an_event_is_taken_once(deals):
    event = {"id": "e", **ATTRIBUTES}
    assert deals.post(AT, json=event).json() == {"events": 1, "told": 1}
    assert deals.post(AT, json=event).json() == {"events": 0, "told": 0, "repeated": ["e"]}
    assert deals.post(f"{AT}?notifications=true", json=event).json()["repeated"] == ["e"]
    assert deals.post(f"{AT}?again=true", json=event).json() == {"events": 1, "told": 1}
    lines = "\n".join(json.dumps({"id": id, **ATTRIBUTES}) for id in ("e", "f", "g"))
    assert deals.post(AT, content=lines, headers={"content-type": NDJSON}).json() == {"events": 2, "told": 2, "repeated": ["e"]}


def test_a_keyed_topic_takes_a_key_again(client):
    client.put("/topics/stock", json={"schema": {"price": "number"}, "key": "sku"})
    client.put("/topics/stock/subscriptions/ann", json={"filter": "price < 5", "k": 3, "by": "-price"})
    for price, told in ((3, ["entered"]), (2, ["updated"]), (9, ["left"])):
        notes = client.post("/topics/stock/events?notifications=true", json={"sku": "a", "price": price}).json()["notifications"]
        assert [note["why"] for note in notes] == told
    assert client.post("/topics/stock/events", json={"sku": "a", "deleted": True}).json() == {"events": 1, "told": 0}


def test_notifications_are_given_if_asked(deals):
    answer = deals.post(f"{AT}?notifications=true&time=2030-01-01", json={"id": "e", **ATTRIBUTES}).json()
    [note] = answer["notifications"]
    assert (note["subscription"], note["event"], note["why"], note["at"]) == ("ann", "e", "matched", "2030-01-01T00:00:00+00:00")


@pytest.mark.parametrize(
    ("content", "form", "status", "said"),
    [
        (b'{"price": "dear"}', "application/json", 422, "price is 'dear'"),
        (b'{"colour": 1}', "application/json", 422, "attribute 'colour'"),
        (b"{", "application/json", 422, "broken JSON"),
        (b"[]", "text/csv", 415, "the body is 'text/csv'"),
        (b"nothing", ARROW, 400, "no Arrow stream"),
        (b'{"id": "a"}\n{"id": "a"}\n{"price": "x"}', NDJSON, 422, "2 rows were refused"),
    ],
)
def test_what_cannot_be_read_is_said(deals, content, form, status, said):
    answer = deals.post(AT, content=content, headers={"content-type": form})
    assert (answer.status_code, said in answer.json()["detail"]) == (status, True)
    assert deals.get(AT).json() == {"events": []}


def test_questions(deals):
    deals.put("/topics/deals/subscriptions/bob", json={"filter": "price < 2", "score": 5})
    event = {"id": "e", **ATTRIBUTES}
    assert deals.post("/topics/deals/match?k=1", json=event).json()["matches"][0]["subscription"] == "ann"
    assert len(deals.post("/topics/deals/match?relaxed=true", json=event).json()["matches"]) == 1
    lines = "\n".join(json.dumps({"id": id, **ATTRIBUTES}) for id in "abcdef")
    answer = deals.post("/topics/deals/match", content=lines, headers={"content-type": NDJSON, "accept": ARROW})
    assert pa.ipc.open_stream(answer.content).read_all()["event"].to_pylist() == list("abcdef")
    why = deals.post("/topics/deals/explain?subscription=bob", json=event).json()
    assert (why["matched"], why["text"]) == (False, "'bob' does not match event 'e': price is 3, wanted below 2")
    assert deals.post("/topics/deals/explain?subscription=nobody", json=event).status_code == 404
    assert "steps" in deals.post("/topics/deals/explain", json=event).json()
    assert deals.post("/topics/deals/match?k=-1", json=event).status_code == 422


def test_time_passes_when_it_is_said(client):
    client.put("/topics/slow", json={"schema": {"price": "number"}, "clock": "given"})
    client.put("/topics/slow/subscriptions/bob?time=0", json={"k": 1, "window": "10 s", "by": "price"})
    client.post("/topics/slow/events?time=1", json={"id": "dear", "price": 9})
    client.post("/topics/slow/events?time=2", json={"id": "cheap", "price": 1})
    notes = client.post("/topics/slow/advance?time=11.5").json()["notifications"]
    assert [(note["event"], note["why"]) for note in notes] == [("cheap", "promoted")]


def test_what_a_subscription_would_have_told(deals):
    deals.post(AT, json=[{"id": f"e{n}", "price": n} for n in range(10)])
    found = deals.post("/topics/deals/preview", json={"filter": "price < 4", "first": 2}).json()
    assert (found["events"], found["told"], [note["event"] for note in found["first"]]) == (10, 4, ["e0", "e1"])
    assert deals.post("/topics/deals/preview", json={"filter": "oops"}).status_code == 422
    assert deals.post("/topics/deals/preview", json={"colour": 1}).status_code == 422
