"""Subscriptions over HTTP."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tidings.serve.app.answers import ARROW, NDJSON, stream_bytes

AT = "/topics/deals/subscriptions"


def test_put_read_change_move_remove(client):
    place = "S_INTERSECTS(place, BBOX(0, 0, 2, 2))"
    assert client.put(f"{AT}/ann", json={"filter": place, "score": 2, "tags": ["b", "a"], "owner": "o"}).status_code == 201
    assert client.put(f"{AT}/ann", json={"filter": place, "score": 3, "tags": ["b", "a"], "owner": "o"}).status_code == 200
    assert client.get(f"{AT}/ann").json() == {"id": "ann", "filter": place, "score": 3.0, "owner": "o", "tags": ["a", "b"]}
    assert client.patch(f"{AT}/ann", json={"score": 4, "tags": ["c"]}).status_code == 200
    assert client.post(f"{AT}/ann/move", json={"point": [10, 10]}).status_code == 200
    matches = client.post("/topics/deals/match", json={"id": "e", "place": [10, 10]}).json()["matches"]
    assert matches == [{"event": "e", "subscription": "ann", "score": 4.0}]
    assert client.get(f"{AT}/ann").json()["tags"] == ["c"]
    assert client.delete(f"{AT}/ann").status_code == 204
    assert client.get(f"{AT}/ann").status_code == 404
    assert client.delete(f"{AT}/ann").status_code == 404


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"filter": "price <"}, "price <"),
        ({"filter": "colour = 1"}, "attribute 'colour' is not in the schema"),
        ({"colour": 1}, "field 'colour'"),
        ({"k": -1}, "k is -1"),
        ({"tags": "x"}, "tags is 'x'"),
        ({"id": "bob"}, "the address says 'ann'"),
        ({"clauses": []}, "field 'clauses'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(client, content, said):
    answer = client.put(f"{AT}/ann", json=content)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert client.get(f"{AT}/ann").status_code == 404


def test_a_filter_that_never_matches_is_taken_and_said(client):
    assert client.put(f"{AT}/ann", json={"filter": "price < 1 AND price > 2"}).json()["warnings"] == ["its filter can never match"]


def test_replay_tells_of_live_events(client):
    client.post("/topics/deals/events", json={"id": "e", "price": 3})
    notes = client.put(f"{AT}/ann?replay=true", json={"filter": "price < 5"}).json()["notifications"]
    assert [(note["event"], note["why"]) for note in notes] == [("e", "matched")]


def test_a_list_and_its_top(client):
    client.put(f"{AT}/bob", json={"filter": "price < 500", "k": 2, "window": "1 day", "by": "-price"})
    for number in range(4):
        client.post("/topics/deals/events", json={"id": f"e{number}", "price": 100 - number})
    assert [row["event"] for row in client.get(f"{AT}/bob/top").json()["top"]] == ["e3", "e2"]


def test_lists_by_owner_and_tag_in_pages(client):
    for number in range(7):
        client.put(f"{AT}/s{number}", json={"owner": "even" if number % 2 == 0 else "odd", "tags": ["low"] if number < 4 else None})
    client.post(AT, content=b'{"id": "t0", "owner": "even"}\n', headers={"content-type": NDJSON})

    def pages(query: str) -> list[list[str]]:
        found, cursor = [], ""
        while cursor is not None:
            page = client.get(f"{AT}?{query}&limit=2&cursor={cursor}").json()
            found.append([row["id"] for row in page["subscriptions"]])
            cursor = page["cursor"]
        return found

    assert pages("owner=even") == [["s0", "s2"], ["s4", "s6"], ["t0"]]
    assert pages("tag=low") == [["s0", "s1"], ["s2", "s3"]]
    assert pages("tag=low&owner=odd") == [["s1", "s3"]]
    assert pages("") == [["s0", "s1"], ["s2", "s3"], ["s4", "s5"], ["s6", "t0"]]


def test_bulk_in_lines_and_columns(client):
    lines = [{"id": "a", "filter": "price < 5", "score": 2}, {"id": "b", "weights": {"price": 2.0}, "score": "3 + 2 * price"}]
    body = "\n".join(map(json.dumps, lines))
    assert client.post(AT, content=body, headers={"content-type": NDJSON}).json() == {"taken": 2}
    table = pa.table({"id": ["c", "d"], "price.lo": [1.0, 2.0], "owner": ["o", None]})
    assert client.post(AT, content=stream_bytes(table), headers={"content-type": ARROW}).json() == {"taken": 2}
    matches = client.post("/topics/deals/match", json={"id": "e", "price": 3}).json()["matches"]
    assert [(row["subscription"], row["score"]) for row in matches] == [("a", 2.0), ("b", 9.0), ("c", 1.0), ("d", 1.0)]
    assert client.post("/topics/deals/unsubscribe", json={"ids": ["a", "c", "nobody"]}).json() == {"removed": 2}


def test_a_bad_row_refuses_all_or_is_left_out(client):
    body = b'{"id": "a", "filter": "price < 5"}\n{"id": "b", "filter": "oops ="}\n'
    answer = client.post(AT, content=body, headers={"content-type": NDJSON})
    assert answer.status_code == 422
    assert [row["row"] for row in answer.json()["rows"]] == [1]
    assert client.get(f"{AT}/a").status_code == 404
    answer = client.post(f"{AT}?on_error=skip", content=body, headers={"content-type": NDJSON}).json()
    assert (answer["taken"], answer["refused"], answer["rows"][0]["row"]) == (1, 1, 1)
