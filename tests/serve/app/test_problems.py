"""When it cannot be done: a full disk, a body that is too long, an address that is none."""

from __future__ import annotations

import errno
import sqlite3

import pytest
from cloudevents.core.bindings.http import to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from tests.serve.conftest import DEALS, hosted, serving
from tests.serve.listening import take
from tidings.errors import StorageError
from tidings.serve.app.problems import refusal_of
from tidings.serve.settings import Settings

EVENTS = "/topics/deals/events"


def test_a_full_disk_is_507_and_reading_goes_on(tmp_path):
    """SQLite itself says that it is full: the registry may not grow beyond what it has."""
    with hosted(Settings(tmp_path / "data", open=True)) as (client, service):
        client.put("/topics/deals", json=DEALS)
        client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 5"})
        client.post(EVENTS, json={"id": "before", "price": 1})
        registry = service.topics["deals"].topic.registry
        [(pages,)] = registry.read("PRAGMA page_count")
        registry.read(f"PRAGMA max_page_count = {pages}")
        long = [{"id": f"e{n}", "price": 1, "about": " ".join(f"w{i}" for i in range(2000))} for n in range(20)]
        answer = client.post(EVENTS, json=long)
        assert (answer.status_code, answer.json()["detail"]) == (
            507,
            "the disk is full: nothing was applied; questions are still answered",
        )
        assert client.post("/topics/deals/match", json={"price": 1}).json()["matches"] != []
        assert [event["id"] for event in client.get(EVENTS).json()["events"]] == ["before"]
        assert [note.data["event"]["id"] for note in take(client, 1, "0")] == ["before"]
        registry.read("PRAGMA max_page_count = 1000000000")
        assert client.post(EVENTS, json=long).json() == {"events": 20, "told": 20}


def test_no_room_is_known_by_its_cause():
    full = OSError(errno.ENOSPC, "No space left on device")
    error = StorageError("cannot write")
    error.__cause__ = full
    assert refusal_of(error).status == 507
    assert refusal_of(StorageError("damaged")) is None
    assert refusal_of(sqlite3.OperationalError("locked")) is None


def test_a_body_that_is_too_long(tmp_path):
    with serving(Settings(tmp_path / "data", open=True, body=1000)) as client:
        client.put("/topics/deals", json=DEALS)
        for content in (b"x" * 2000, iter([b"x" * 600, b"y" * 600])):
            answer = client.post(EVENTS, content=content, headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["limit"]) == (413, 1000)
        assert client.post(EVENTS, json={"price": 1}).status_code == 200


def test_addresses_and_methods_that_are_none(client):
    for method, address, status in [("GET", "/nothing", 404), ("PATCH", "/topics", 405), ("GET", "/topics/none/events", 404)]:
        answer = client.request(method, address)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert answer.json()["status"] == status
        assert answer.json()["instance"].endswith(answer.headers["x-request-id"])


@pytest.mark.parametrize("write", [to_binary, to_structured])
def test_the_cloudevents_sdk_as_a_client(client, write):
    client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 5"})
    attributes = {"id": "e1", "source": "/shop", "type": "offer", "specversion": "1.0", "datacontenttype": "application/json"}
    message = write(CloudEvent(attributes, {"price": 3}), JSONFormat())
    answer = client.post(EVENTS, content=message.body, headers=dict(message.headers))
    assert answer.json() == {"events": 1, "told": 1}
    [event] = client.get(EVENTS).json()["events"]
    assert (event["id"], event["price"]) == ("e1", 3.0)
