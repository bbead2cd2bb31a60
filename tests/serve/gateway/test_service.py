"""The service as the painter: its writer's changes reach gateways, webhooks are called, and other subscriptions go by their ids."""

from __future__ import annotations

import json
import signal
import time

import httpx
import pytest

from tests.serve.conftest import hosted
from tests.serve.gateway.world import Process, wait_until
from tests.serve.listening import said
from tests.serve.receiving import receiving
from tests.spark.connectors.jars import NoMaven, fetch
from tests.spark.kafka.broker import broker
from tidings.kafka.painter import Painter
from tidings.kafka.replica import values_in
from tidings.kafka.writer import read_plan
from tidings.serve.gateway.painting import REST
from tidings.serve.settings import Settings

pytestmark = pytest.mark.kafka
FLATS = {"schema": {"price": "number", "stars": "number"}, "key": "flat"}


def test_the_writer_paints_webhooks_are_called_and_others_go_by_id(tmp_path):
    try:
        fetch("broker")
    except NoMaven as error:
        pytest.skip(str(error))
    with broker(tmp_path) as address, receiving() as receiver:
        paint = {"brokers": address, "paint": ("flats=price:stars:4",), "zones": 3, "sparse": True}
        with hosted(Settings(tmp_path / "data", open=True, **paint)) as (client, _):
            assert client.put("/topics/flats", json=FLATS).status_code == 201
            client.post("/topics/flats/events", json=[{"flat": f"f{i}", "price": i, "stars": i % 5} for i in range(20)])
            gateways = [Process(address, tmp_path / f"g{i}", "flats", 3600.0) for i in range(2)]
            try:
                judge(client, gateways, receiver)
            finally:
                for gateway in gateways:
                    gateway.end(signal.SIGTERM)
            overtaken(client, address)


def overtaken(client, address: str) -> None:
    """Who begins later paints; the service does not fence it off in its turn."""
    plan = read_plan(address, "flats")
    assert plan is not None
    other = Painter(address, plan)
    client.post("/topics/flats/events", json={"flat": "mine", "price": 1, "stars": 1})
    for number in range(3):
        time.sleep(1.2 * REST)
        other.publish({f"theirs{number}": {"price": 1.0, "stars": 1.0}}, 0)
    other.close()
    assert values_in(address, "flats").keys() >= {"theirs0", "theirs1", "theirs2"}
    assert "mine" not in values_in(address, "flats")


def judge(client, gateways, receiver) -> None:
    began: dict[str, list] = {}
    ranges = {"ann": (2, 8), "bea": (0, 19), "cid": (11, 12)}
    gate = httpx.Client(base_url=gateways[0].url, timeout=30, follow_redirects=True)

    def begun(name: str, asked: dict) -> dict | None:
        answer = gate.put(f"/watchers/{name}", json=asked)
        assert answer.status_code < 300 or answer.status_code >= 500, answer.text
        return answer.json() if answer.status_code < 300 else None

    for name, (l, r) in ranges.items():
        asked = {"filter": f"price BETWEEN {l} AND {r}", "by": "stars", "k": 3}
        client.put(f"/topics/flats/subscriptions/{name}", json=asked)
        hook = {"webhook": receiver.url} if name == "ann" else {}
        answer = wait_until(f"{name} begins", lambda name=name, more=asked | hook: begun(name, more))
        assert ("secret" in answer) == bool(hook)
        assert answer["list"] == own(client, name)
        began[name] = answer["list"]
    assert gate.put("/watchers/dan", json={"filter": "stars > 1", "by": "stars", "k": 3}).status_code == 422
    client.put("/topics/flats/subscriptions/eve", json={"filter": "stars > 8"})
    for number in range(1, 7):
        client.post("/topics/flats/events", json={"flat": f"n{number}", "price": number, "stars": 9 + number})
    assert by_id(gate, f"{gateways[1].url}/subscriptions/eve/stream", 6) == [f"n{number}" for number in range(1, 7)]
    for name in ranges:
        wait_until(f"{name}'s list is the service's", lambda n=name: gate.get(f"/watchers/{n}").json()["list"] == own(client, n))

    def called() -> bool:
        """What came, one after the other, makes the list that there is of the one that there was."""
        held = {flat for flat, _ in began["ann"]}
        for note in [json.loads(message.body)["data"] for message in receiver.taken]:
            (held.discard if note["why"] == "left" else held.add)(note["event"]["flat"])
        return held == {flat for flat, _ in own(client, "ann")} and len(receiver.taken) > 0

    wait_until("every change was called", called)
    assert len({message.headers["webhook-id"] for message in receiver.taken}) == len(receiver.taken)
    assert gate.delete("/watchers/cid").status_code == 204
    assert gate.get("/watchers/cid").status_code == 404
    gate.close()


def by_id(gate: httpx.Client, url: str, count: int) -> list[str]:
    """Flats that a stream tells of, from its beginning; one that ends, since its zone is another gateway's, is asked for again."""
    heard: list[str] = []
    last = "0"

    def listened() -> bool:
        nonlocal last
        with gate.stream("GET", url, headers={"last-event-id": last}) as response:
            for each in said(response) if response.status_code == 200 else ():
                last = each.id or last
                if each.kind == "notification":
                    heard.append(each.data["event"]["flat"])
                if len(heard) >= count:
                    break
        return len(heard) >= count

    wait_until(f"{count} notes were heard", listened)
    return heard


def own(client, name: str) -> list:
    found = client.get(f"/topics/flats/subscriptions/{name}/top").json()
    return [[match["event"], match["score"]] for match in found["top"]]
