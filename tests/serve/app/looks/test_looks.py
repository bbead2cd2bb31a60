"""What people look at: checks while one types, the flow of events, painted messages, the engine; subscriptions by their text."""

from __future__ import annotations

import json
import math

import httpx
import pytest

from tests.serve.conftest import serving
from tidings.serve.settings import Settings

CHECK = "/topics/deals/check"


def test_a_check_says_what_a_filter_asks_and_where(client):
    filter = "price < 5 AND (S_INTERSECTS(place, BBOX(1, 2, 3, 4)) OR S_WITHIN(place, POLYGON((0 0, 4 0, 4 4, 0 0))))"
    said = client.post(CHECK, json={"filter": filter}).json()
    assert said["accepted"]
    assert said["clauses"] == 2
    assert set(said["attributes"]) == {"place", "price"}
    assert [shape.get("bbox") or shape["type"] for shape in said["shapes"]] == [[1.0, 2.0, 3.0, 4.0], "Polygon"]
    assert client.post(CHECK, json={"filter": "price BETWEEN 3 AND 5"}).json()["ranges"] == {"price": [3.0, 5.0]}
    assert client.post(CHECK, json={"filter": "price <= 5"}).json()["ranges"]["price"] == [None, 5.0]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"filter": "price <"}, "filter"),
        ({"filter": "prize < 3"}, "prize"),
        ({"window": "soon"}, "window"),
        ({"by": "-brand"}, "brand"),
    ],
)
def test_a_check_refuses_in_the_engines_words(client, fields, word):
    answer = client.post(CHECK, json=fields)
    assert answer.status_code == 200
    said = answer.json()
    assert not said["accepted"]
    assert word in said["detail"]


def test_a_check_warns_of_what_can_never_match(client):
    assert client.post(CHECK, json={"filter": "price < 3 AND price > 5"}).json()["warnings"]


def looks(client: httpx.Client, path: str, enough):
    """Looks of a stream, until `enough` of them says so; what is published waits for the first."""
    found = []
    with client.stream("GET", path, headers={"Accept": "text/event-stream"}, timeout=600) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if enough(found):
                    return found
    raise AssertionError("the stream ended")


def test_the_flow_counts_all_and_shows_a_sample(client):
    client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 100", "score": 2})
    lines = "\n".join(json.dumps({"id": f"e{n}", "price": n}) for n in range(2000))

    def enough(found):
        if len(found) == 1:
            assert client.post("/topics/deals/events", content=lines, headers={"Content-Type": "application/x-ndjson"}).is_success
        return sum(look["events"] for look in found) == 2000

    found = looks(client, "/topics/deals/flow", enough)
    [look] = [look for look in found if look["events"]]
    assert look["told"] == 100
    told = [one["event"]["price"] for one in look["sample"] if one["told"]]
    others = [one["event"]["price"] for one in look["sample"] if not one["told"]]
    assert len(told) == len(others) == 60
    assert max(told) < 100 <= min(others)
    newest = look["newest"][0]
    assert (newest["subscription"], newest["score"], newest["why"]) == ("ann", 2.0, "matched")
    assert newest["body"]["id"] == newest["event"]
    assert look["waits"][0] <= look["waits"][1]


def test_who_does_not_stream_gets_one_look(client):
    look = client.get("/topics/deals/flow").json()
    assert (look["events"], look["told"], look["sample"], look["newest"]) == (0, 0, [], [])


def test_changes_of_a_keyed_topic_are_painted_for_those_they_concern(client):
    client.put("/topics/stock", json={"schema": {"size": "number", "price": "number"}, "key": "sku"})
    client.post("/topics/stock/events", json=[{"sku": f"s{n}", "size": n, "price": 10 * n} for n in range(1, 6)])

    def enough(found):
        if len(found) == 1:
            assert client.post("/topics/stock/events", json={"sku": "s3", "size": 3, "price": 15}).is_success
        return any(look["changes"] for look in found)

    found = looks(client, "/topics/stock/painted?attribute=size&by=-price&k=1", enough)
    [change] = [change for look in found for change in look["changes"]]
    assert (change["object"], change["x"], change["y"]) == ("s3", 3.0, -15.0)
    # Of one best by -price: s3 is the cheapest wherever neither s1 (10) nor nothing cheaper is in range, so l > 1 and r >= 3.
    assert covers(change["rectangles"], 2.5, 5.0)
    assert covers(change["rectangles"], 1.5, 3.5)
    assert not covers(change["rectangles"], 0.5, 5.0)
    assert not covers(change["rectangles"], 3.5, 5.0)


def covers(rectangles, l, r):
    def bound(end, open_end):
        return open_end if end is None else end

    return any(
        bound(l0, -math.inf) <= l <= bound(l1, math.inf) and bound(r0, -math.inf) <= r <= bound(r1, math.inf)
        for l0, r0, l1, r1 in rectangles
    )


def test_painting_needs_a_key_and_a_number(client):
    assert "no key" in client.get("/topics/deals/painted?attribute=price&by=-price").json()["detail"]
    client.put("/topics/stock", json={"schema": {"size": "number", "name": "category"}, "key": "sku"})
    assert "number" in client.get("/topics/stock/painted?attribute=name&by=-size").json()["detail"]
    assert client.get("/topics/stock/painted?attribute=size").status_code == 422


def test_the_engine_tells_of_itself_and_of_its_slowest_filters(client):
    client.put("/topics/deals/subscriptions/near", json={"filter": "S_WITHIN(place, POLYGON((0 0, 4 0, 4 4, 0 0)))"})
    client.put("/topics/deals/subscriptions/cheap", json={"filter": "price < 3"})
    client.post("/topics/deals/events", json={"id": "e", "price": 1, "place": [3, 1]})
    said = client.get("/engine").json()
    assert said["key"]["scopes"] == ["admin"]
    assert said["topics"]["deals"]["publishes"] == 1
    found = client.get("/topics/deals/slowest").json()
    assert {row["subscription"] for row in found["slowest"]} == {"near", "cheap"}
    assert (found["looked_at"], found["events"]) == (2, 1)
    assert client.get("/topics/deals/stats").json()["merges"] == 0


def test_subscriptions_are_found_by_a_text_of_their_id_or_filter(client):
    for name, filter in {"ann": "price < 3", "bob": "brand = 'Alba'", "alba-fan": "price < 9"}.items():
        client.put(f"/topics/deals/subscriptions/{name}", json={"filter": filter})
    found = client.get("/topics/deals/subscriptions?text=ALBA").json()
    assert [one["id"] for one in found["subscriptions"]] == ["alba-fan", "bob"]
    assert found["cursor"] is None
    first = client.get("/topics/deals/subscriptions?text=alba&limit=1").json()
    assert [one["id"] for one in first["subscriptions"]] == ["alba-fan"]
    then = client.get("/topics/deals/subscriptions", params={"text": "alba", "limit": 1, "cursor": first["cursor"]}).json()
    assert [one["id"] for one in then["subscriptions"]] == ["bob"]


def test_an_owner_may_check_but_not_look_at_all_that_flows(tmp_path):
    with serving(Settings(tmp_path / "data", open=True)) as client:
        client.put("/topics/deals", json={"schema": {"price": "number"}})
        key = client.post("/keys", json={"scopes": ["owner"], "owner": "ann"}).json()["key"]
        mine = {"Authorization": f"Bearer {key}"}
        assert client.post(CHECK, json={"filter": "price < 3"}, headers=mine).json()["accepted"]
        assert client.get("/topics/deals/flow", headers=mine).status_code == 403
        assert client.get("/engine", headers=mine).json()["key"]["owner"] == "ann"
