"""Streams: nothing missed, nothing twice, nobody waits for another."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
import time
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.serve.conftest import DEALS, serving
from tests.serve.listening import listen, said, take
from tidings.serve.hearing import listening as tails
from tidings.serve.run.server import listening, server_of
from tidings.serve.service import Service
from tidings.serve.settings import Settings

EVENTS = "/topics/deals/events"


@pytest.fixture
def deals(client):
    client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 500", "owner": "o", "score": 2})
    client.put("/topics/deals/subscriptions/bob", json={"filter": "price < 5"})
    return client


def publish(client, *ids, price=3):
    for id in ids:
        assert client.post(EVENTS, json={"id": id, "price": price, "place": [1, 2], "made": "2026-01-01"}).status_code == 200


def test_a_notification_says_all(deals):
    publish(deals, "e")
    [heard] = take(deals, 1, after=0, subscription="ann")
    note = heard.data
    assert (note["subscription"], note["owner"], note["score"], note["rank"], note["why"]) == ("ann", "o", 2.0, None, "matched")
    assert note["event"] == {"id": "e", "price": 3.0, "place": [1.0, 2.0], "made": "2026-01-01T00:00:00+00:00"}
    assert (heard.id, len(note["id"])) == (str(note["number"]), 32)


def test_what_is_published_while_one_listens(deals):
    with listen(deals, "deals", owner="o") as response:
        stream = said(response)
        assert next(stream).id == "0"
        publish(deals, "a", "b", "c")
        heard = [next(stream) for _ in range(3)]
    assert [each.data["event"]["id"] for each in heard] == ["a", "b", "c"]


def test_only_what_was_asked_for(deals):
    publish(deals, "cheap")
    publish(deals, "dear", price=100)
    assert [h.data["subscription"] for h in take(deals, 3, after=0)] == ["ann", "bob", "ann"]
    assert [h.data["event"]["id"] for h in take(deals, 2, after=0, subscription="ann")] == ["cheap", "dear"]
    assert [h.data["event"]["id"] for h in take(deals, 1, after=0, subscription="bob")] == ["cheap"]
    assert [h.data["subscription"] for h in take(deals, 2, after=0, owner="o")] == ["ann", "ann"]


def test_a_reader_that_breaks_off_at_random_misses_nothing_and_hears_nothing_twice(deals):
    total, draw = 300, random.Random(5)

    def feed() -> None:
        for first in range(0, total, 10):
            deals.post(EVENTS, json=[{"id": f"e{n}", "price": 3} for n in range(first, first + 10)])

    feeding = threading.Thread(target=feed)
    feeding.start()
    heard, last = [], "0"
    while len(heard) < total:
        part = take(deals, min(draw.randint(1, 60), total - len(heard)), last, subscription="ann")
        heard += [each.data["event"]["id"] for each in part]
        last = part[-1].id
    feeding.join()
    assert heard == [f"e{n}" for n in range(total)]


def test_one_that_does_not_keep_up_reads_on_from_the_outbox(deals, monkeypatch):
    monkeypatch.setattr(tails, "BOUND", 5)
    with listen(deals, "deals", subscription="ann") as response:
        stream = said(response)
        next(stream)
        deals.post(EVENTS, json=[{"id": f"e{n}", "price": 3} for n in range(100)])
        heard = list(islice((each for each in stream if each.kind == "notification"), 100))
    assert [each.data["event"]["id"] for each in heard] == [f"e{n}" for n in range(100)]


def test_the_memory_ends_and_the_disk_goes_on(deals, monkeypatch):
    monkeypatch.setattr(tails, "RING", 10)
    with listen(deals, "deals", owner="o") as response:
        stream = said(response)
        next(stream)
        publish(deals, *(f"e{n}" for n in range(30)))
        for _ in range(30):
            next(stream)
        assert [h.data["event"]["id"] for h in take(deals, 30, "0", subscription="ann")] == [f"e{n}" for n in range(30)]
        assert [h.data["event"]["id"] for h in take(deals, 2, "56", subscription="ann")] == ["e28", "e29"]


def test_what_is_gone_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("tidings.serve.hosting.hosted_topic.TRIMMED", 1)
    with serving(Settings(tmp_path / "data", open=True, backlog=5)) as client:
        client.put("/topics/deals", json=DEALS)
        client.put("/topics/deals/subscriptions/ann", json={})
        publish(client, *(f"e{n}" for n in range(20)))
        with listen(client, "deals", "3", subscription="ann") as response:
            gap = next(said(response))
        assert (gap.kind, gap.data) == ("gap", {"after": 3, "gone": 15})
        page = client.get("/topics/deals/notifications", params={"subscription": "ann"}).json()
        assert ([n["event"]["id"] for n in page["notifications"]], page["gone"]) == ([f"e{n}" for n in range(15, 20)], 15)


def test_pages_with_a_cursor(deals):
    deals.post(EVENTS, json=[{"id": f"e{n}", "price": 3 if n % 2 else 100} for n in range(10)])
    found, cursor = [], 0
    for _ in range(4):
        page = deals.get("/topics/deals/notifications", params={"subscription": "bob", "after": cursor, "limit": 2}).json()
        found.append([n["event"]["id"] for n in page["notifications"]])
        cursor = page["cursor"]
    assert found == [["e1", "e3"], ["e5", "e7"], ["e9"], []]


def test_an_empty_page_waits(deals):
    threading.Timer(0.3, lambda: publish(deals, "late")).start()
    page = deals.get("/topics/deals/notifications", params={"subscription": "ann", "wait": 20}).json()
    assert [n["event"]["id"] for n in page["notifications"]] == ["late"]


def test_a_consumer_goes_on_from_what_it_acknowledged(deals):
    at = "/topics/deals/consumers/mail"
    assert deals.put(at, json={"owner": "o"}).status_code == 201
    publish(deals, "a", "b", "c")
    page = deals.get("/topics/deals/notifications?consumer=mail&limit=2").json()
    assert [n["event"]["id"] for n in page["notifications"]] == ["a", "b"]
    assert deals.get("/topics/deals/notifications?consumer=mail&limit=1").json()["notifications"][0]["event"]["id"] == "a"
    deals.post(f"{at}/acknowledge", json={"cursor": page["cursor"]})
    assert [h.data["event"]["id"] for h in take(deals, 1, consumer="mail")] == ["c"]
    assert deals.post("/topics/deals/notifications/acknowledge", json={"cursor": 100}).json()["cursor"] == page["cursor"]
    assert [c["name"] for c in deals.get("/topics/deals/consumers").json()["consumers"]] == ["mail"]
    assert deals.delete(at).status_code == 204
    assert deals.get("/topics/deals/notifications?consumer=mail").status_code == 404


def test_wrong_questions(deals):
    assert deals.get("/topics/deals/notifications", headers={"Last-Event-ID": "x"}).status_code == 422
    assert deals.get("/topics/deals/notifications?limit=0").status_code == 422
    assert deals.post("/topics/deals/consumers/x/acknowledge", json={"cursor": 1}).status_code == 404
    assert deals.put("/topics/deals/consumers/x", json={"after": -1}).status_code == 422


def test_curl_hears(deals):
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl on the path")
    command = [curl, "-sN", "-H", "Accept: text/event-stream", f"{deals.base_url}/topics/deals/notifications?subscription=ann"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout is not None
        assert listening.stdout.readline() == "retry: 1000\n"
        publish(deals, "e")
        lines = [listening.stdout.readline() for _ in range(6)]
        assert any(line.startswith('data: {"id":') and '"subscription":"ann"' in line for line in lines)
        listening.kill()


def test_a_service_that_stops_ends_its_streams(tmp_path):
    with serving(Settings(tmp_path / "data", open=True)) as client:
        client.put("/topics/deals", json=DEALS)
        ended = threading.Event()

        def hear() -> None:
            with httpx.Client(base_url=client.base_url) as own, listen(own, "deals") as response:
                for _ in response.iter_lines():
                    pass
            ended.set()

        hearing = threading.Thread(target=hear)
        hearing.start()
        time.sleep(0.3)
        began = time.monotonic()
    hearing.join(10)
    assert ended.is_set()
    assert time.monotonic() - began < 10


def test_a_stream_waits_for_a_service_that_opens_its_topics(tmp_path, monkeypatch):
    """A browser that is refused a stream gives up for ever; whoever asks for anything else is told to come later."""
    with serving(Settings(tmp_path / "data", open=True)) as client:
        client.put("/topics/deals", json=DEALS)
        client.put("/topics/deals/subscriptions/ann", json={})
        client.post(EVENTS, json={"id": "before"})
    go, plain = threading.Event(), Service._open

    def late(self: Service, *arguments: Any) -> Any:
        go.wait(60)
        return plain(self, *arguments)

    monkeypatch.setattr(Service, "_open", late)
    sock, server = listening("127.0.0.1", 0), server_of(Settings(tmp_path / "data", open=True))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{sock.getsockname()[1]}", timeout=60) as client:
            assert client.get("/topics/deals/notifications").status_code == 503
            threading.Timer(0.3, go.set).start()
            assert [note.data["event"]["id"] for note in take(client, 1, "0")] == ["before"]
    finally:
        go.set()
        server.should_exit = True
        thread.join()
