"""Publishes that wait together are one commit, and nobody fails by another's event."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.serve.conftest import DEALS, hosted
from tidings.serve.settings import Settings

EVENTS = "/topics/deals/events"


@pytest.fixture
def held(tmp_path):
    """A client, the hosted topic, and how to make requests that all wait for the writer and are then let go together."""
    with hosted(Settings(tmp_path / "data", open=True)) as (client, service):
        client.put("/topics/deals", json=DEALS)
        client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 5"})
        topic = service.topics["deals"]

        def together(bodies: list[object]) -> list[httpx.Response]:
            go, began = threading.Event(), threading.Event()

            def wait() -> None:
                began.set()
                go.wait(60)

            async def hold() -> None:
                await topic.change(wait)

            loop = service.tails["deals"]._loop
            loop.call_soon_threadsafe(lambda: loop.create_task(hold()))
            assert began.wait(30)
            with ThreadPoolExecutor(len(bodies)) as pool:
                answers = [pool.submit(client.post, EVENTS, json=body) for body in bodies]
                deadline = time.monotonic() + 30
                while topic.writer.depth < len(bodies) and time.monotonic() < deadline:
                    time.sleep(0.01)
                go.set()
                return [answer.result() for answer in answers]

        yield client, topic, together


def test_publishes_that_wait_are_one_commit(held):
    client, topic, together = held
    before = topic.writing.groups, topic.writing.grouped
    answers = together([{"id": f"e{n}", "price": n} for n in range(10)])
    assert [answer.json() for answer in answers] == [{"events": 1, "told": int(n < 5)} for n in range(10)]
    assert (topic.writing.groups, topic.writing.grouped) == (before[0] + 1, before[1] + 10)
    assert len(client.get(EVENTS).json()["events"]) == 10


def test_an_id_that_two_send_at_once_is_taken_once(held):
    client, _, together = held
    answers = [answer.json() for answer in together([{"id": "e", "price": 1}, {"id": "e", "price": 1}, {"id": "f", "price": 1}])]
    assert sorted(answer["told"] for answer in answers) == [0, 1, 1]
    assert [answer["repeated"] for answer in answers if "repeated" in answer] == [["e"]]
    notes = client.get("/topics/deals/notifications").json()["notifications"]
    assert sorted(note["event"]["id"] for note in notes) == ["e", "f"]


def test_a_request_that_is_refused_is_refused_alone(held):
    client, _, together = held
    far = {"id": "far", "price": 1, "time": "2999-01-01"}
    answers = together([{"id": "a", "price": 1}, far, {"id": "b", "price": 1}])
    assert [answer.status_code for answer in answers] == [200, 422, 200]
    assert "2999" in answers[1].json()["detail"]
    assert [event["id"] for event in client.get(EVENTS).json()["events"]] == ["a", "b"]
