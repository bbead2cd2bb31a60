"""A Kafka sink on a real broker: every note a record, keyed by its subscription and in its order."""

from __future__ import annotations

import json
import time

import pytest
from confluent_kafka import Consumer

from tests.serve.conftest import DEALS, serving
from tests.spark.connectors.jars import NoMaven, fetch
from tests.spark.kafka.broker import broker
from tidings.serve.settings import Settings

pytestmark = pytest.mark.kafka
COUNT = 20


def records(address: str, count: int) -> list:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["told"])
    found, deadline = [], time.monotonic() + 90
    try:
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} came"
            record = consumer.poll(1.0)
            if record is not None and record.error() is None:
                found.append(record)
    finally:
        consumer.close()
    return found


def test_notes_are_records_in_order_for_each_subscription(tmp_path):
    try:
        fetch("broker")
    except NoMaven as error:
        pytest.skip(str(error))
    with broker(tmp_path) as address, serving(Settings(tmp_path / "data", open=True)) as client:
        client.put("/topics/deals", json=DEALS)
        for name in ("ann", "bob"):
            client.put(f"/topics/deals/subscriptions/{name}", json={"owner": f"o-{name}"})
        sink = {"kind": "kafka", "brokers": address, "topic": "told", "batch": 10}
        assert client.put("/topics/deals/sinks/log", json=sink).status_code == 201
        for number in range(COUNT):
            client.post("/topics/deals/events", json={"id": f"e{number}", "price": number})
        found = records(address, 2 * COUNT)
        bodies = [json.loads(record.value()) for record in found]
        for name in ("ann", "bob"):
            mine = [(record, body) for record, body in zip(found, bodies, strict=True) if record.key() == name.encode()]
            assert [body["event"]["id"] for _, body in mine] == [f"e{number}" for number in range(COUNT)]
            assert {body["owner"] for _, body in mine} == {f"o-{name}"}
            assert len({record.partition() for record, _ in mine}) == 1
        for record, body in zip(found, bodies, strict=True):
            headers = dict(record.headers())
            assert (headers["ce_id"].decode(), headers["ce_type"]) == (body["id"], b"tidings.notification")
        deadline = time.monotonic() + 30
        while (said := client.get("/topics/deals/sinks/log").json())["behind"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert (said["delivered"], said["dead_letters"]) == (2 * COUNT, 0)
