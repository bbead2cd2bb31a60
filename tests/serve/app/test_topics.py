"""Topics over HTTP."""

from __future__ import annotations

from tests.serve.conftest import DEALS


def test_a_topic_is_made_once_and_described(client):
    made = client.get("/topics/deals").json()
    assert made["schema"]["price"] == {"type": "number", "lo": 0, "hi": 10000}
    assert client.put("/topics/deals", json=DEALS).status_code == 200
    assert [topic["name"] for topic in client.get("/topics").json()["topics"]] == ["deals"]


def test_another_schema_under_the_same_name_is_a_conflict(client):
    answer = client.put("/topics/deals", json={"schema": {"x": "number"}})
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert "another schema" in answer.json()["detail"]


def test_settings_may_change(client):
    assert client.put("/topics/deals", json=DEALS | {"retention": "7 days"}).json()["retention"] == "7 days"
    assert client.get("/topics/deals").json()["retention"] == "7 days"


def test_what_cannot_be_a_topic_is_refused_in_one_sentence(client):
    for name, content, said in [
        ("..%2Fup", DEALS, None),
        (".hidden", DEALS, "cannot be named"),
        ("x", {}, "schema is missing"),
        ("x", {"schema": {"p": "nothing"}}, "a type is one of"),
        ("x", {"schema": {"p": {"type": "words", "tokenizer": "os:system"}}}, "'plain' or 'as-is' is accepted here"),
        ("x", {"schema": {"p": {"type": "words", "language": "klingon"}}}, "a language is one of"),
        ("x", DEALS | {"retention": "5 events"}, "retention is '5 events'"),
        ("x", DEALS | {"clock": "mine"}, "clock is 'mine'"),
        ("x", DEALS | {"colour": 1}, "field 'colour' is unknown"),
        ("x", DEALS | {"key": 7}, "key is 7"),
    ]:
        answer = client.put(f"/topics/{name}", json=content)
        assert answer.status_code in (404, 405, 422)
        if said is not None:
            assert said in answer.json()["detail"]


def test_words_in_a_language_and_what_they_drop(client):
    news = {"schema": {"about": {"type": "words", "language": "english"}}}
    assert client.put("/topics/news", json=news).status_code == 201
    assert client.get("/topics/news").json()["schema"]["about"] == {"type": "words", "language": "english"}
    told = client.put("/topics/news/subscriptions/ann", json={"filter": "A_CONTAINS(about, ('new york!'))"}).json()
    assert told["warnings"] == ["about: 'new york!' asks for new york; the tokenizer drops '!'"]
    found = client.post("/topics/news/match", json={"id": "e", "about": "In New York"}).json()
    assert [match["subscription"] for match in found["matches"]] == ["ann"]


def test_a_dropped_topic_is_gone_and_may_be_made_anew(client):
    client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 5", "tags": ["x"]})
    assert client.delete("/topics/deals").status_code == 204
    assert client.get("/topics/deals").status_code == 404
    assert client.put("/topics/deals", json={"schema": {"x": "number"}}).status_code == 201
    assert client.get("/topics/deals/subscriptions?tag=x").json()["subscriptions"] == []


def test_events_end_by_the_topics_retention(client):
    client.put("/topics/deals", json=DEALS | {"retention": "1 day"})
    client.post("/topics/deals/events", json={"id": "e", "price": 1})
    assert "expires" in client.get("/topics/deals/events").json()["events"][0]


def test_stats(client):
    assert client.get("/topics/deals/stats").json()["subscriptions"] == 0
