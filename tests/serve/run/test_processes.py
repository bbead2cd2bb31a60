"""Real processes: one that stops as it should, one writer and many readers, and whoever is killed is started again."""

from __future__ import annotations

import json
import time

import httpx
import psutil
import pytest

import tidings as td
from tests.serve.conftest import DEALS
from tests.serve.listening import listen, said, take
from tests.serve.running import Running

EVENTS = "/topics/deals/events"


def test_it_stops_when_asked_and_what_was_acknowledged_is_there(tmp_path):
    with Running(tmp_path / "data") as service:
        service.client.put("/topics/deals", json=DEALS)
        service.client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 5"})
        service.client.post(EVENTS, json={"id": "e", "price": 3})
        assert service.stop() in (0, -15)
    topic = td.open(tmp_path / "data" / "deals", mode="r")
    assert [note.event for _, note in topic.outbox()] == ["e"]
    topic.close()
    lines = [json.loads(line) for line in (tmp_path / "data.log").read_text().splitlines() if line.startswith("{")]
    posted = [line for line in lines if line.get("path") == EVENTS]
    assert (posted[0]["method"], posted[0]["status"], len(posted[0]["request"])) == ("POST", 200, 32)


def test_it_asks_for_a_key_which_it_shows_once(tmp_path):
    with Running(tmp_path / "data", access=()) as service:
        assert service.key is not None
        assert service.client.get("/topics").status_code == 200
        assert httpx.get(f"{service.url}/topics").status_code == 401
        service.stop()
    with Running(tmp_path / "data", access=(), key=service.key) as again:
        assert again.client.get("/topics").status_code == 200


def test_metrics(client):
    client.put("/topics/deals/subscriptions/ann", json={})
    client.post(EVENTS, json={"id": "e"}, headers={"X-Request-ID": "mine-1"})
    assert client.get("/healthz", headers={"X-Request-ID": "mine-2"}).headers["x-request-id"] == "mine-2"
    text = client.get("/metrics").text
    assert 'tidings_subscriptions{topic="deals"} 1.0' in text
    assert 'tidings_publishes_total{topic="deals"} 1.0' in text
    assert 'tidings_requests_total{route="/topics/{topic}/events",status="200"} 1.0' in text


@pytest.mark.deep
def test_readers_answer_follow_and_hear(tmp_path):
    with Running(tmp_path / "data", "--readers", "2") as service:
        client = service.client
        assert client.put("/topics/deals", json=DEALS).status_code == 201
        assert client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 5"}).status_code == 201
        until(lambda: client.post("/topics/deals/match", json={"price": 3}).json()["matches"])
        assert client.post("/topics/deals/match", json={"price": 9}).json()["matches"] == []
        with listen(client, "deals", subscription="ann") as response:
            stream = said(response)
            next(stream)
            assert client.post(EVENTS, json={"id": "e", "price": 3}).json() == {"events": 1, "told": 1}
            assert next(note for note in stream if note.data).data["event"] == {"id": "e", "price": 3.0}
        until(lambda: [event["id"] for event in client.get(EVENTS).json()["events"]] == ["e"])
        client.delete("/topics/deals/subscriptions/ann")
        until(lambda: not client.post("/topics/deals/match", json={"price": 3}).json()["matches"])
        client.delete("/topics/deals")
        until(lambda: client.post("/topics/deals/match", json={"price": 3}).status_code == 404)
        assert client.put("/topics/deals", json={"schema": {"x": "number"}}).status_code == 201
        until(lambda: client.post("/topics/deals/match", json={"x": 3}).status_code == 200)


@pytest.mark.deep
def test_whoever_is_killed_is_started_again_and_nothing_is_lost(tmp_path):
    with Running(tmp_path / "data", "--readers", "1") as service:
        client = service.client
        client.put("/topics/deals", json=DEALS)
        client.put("/topics/deals/subscriptions/ann", json={})
        assert service.process is not None
        sent = 0
        for turn in range(2):
            for child in psutil.Process(service.process.pid).children():
                if ("null" in child.cmdline()[-1].split('"writer"')[1]) == (turn % 2 == 0):
                    child.kill()
            for _ in range(5):
                publish(client, f"e{sent}")
                sent += 1
        heard = []
        while len(heard) < sent:
            heard = [note.data["event"]["id"] for note in take(client, sent, "0")]
        assert heard == [f"e{n}" for n in range(sent)]


def publish(client: httpx.Client, id: str) -> None:
    """As a client that does not give up: an id is taken once, however often it is sent."""
    while True:
        try:
            if client.post(EVENTS, json={"id": id, "price": 1}).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)


def until(true, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
