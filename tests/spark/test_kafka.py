"""The pipeline between real Kafka topics: events and subscriptions in, notifications out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidings as td
from tests.spark.connectors.jars import NoMaven, fetch
from tests.spark.kafka.broker import broker
from tests.spark.samples import EVENTS, SCHEMA, START, subscriptions
from tests.spark.transforms.test_notify import told

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("programs")]


def test_events_and_subscriptions_in_notifications_out(tmp_path):
    try:
        jars = fetch("connector")
        fetch("broker")
    except NoMaven as error:
        pytest.skip(str(error))
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(60), time=START)
    events = [json.dumps(event, default=str) for event in EVENTS.slice(0, 60).to_pylist()]
    (tmp_path / "events.json").write_text(json.dumps([*events, "this is no event"]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [Path("src").absolute(), Path().absolute()]))}
    with broker(tmp_path) as address:
        command = [sys.executable, "-m", "tests.spark.kafka.pipeline", address, ",".join(map(str, jars)), str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads((tmp_path / "result.json").read_text())
    with td.Topic("offers", SCHEMA) as plain:
        plain.subscribe_many(subscriptions(60), time=START)
        notes = plain.publish_batch(EVENTS.slice(0, 30))
        plain.subscribe("new", "price >= 0")
        plain.unsubscribe("s7")
        notes += plain.publish_batch(EVENTS.slice(30, 30))
    want = [row[:6] for row in told(notes)]
    assert sorted(map(tuple, result["notifications"])) == want
    assert result["keys"] == sorted({row[1] for row in want})
    assert result["refused"] == 1
    assert result["example"].splitlines() == [
        "ann hears of e1 (entered, rank 1, -300)",
        "ann hears of e2 (entered, rank 2, -450)",
        "ann hears of e4 (entered, rank 1, -200)",
        "bob hears of e1 (matched, rank None, 1)",
        "bob hears of e3 (matched, rank None, 1)",
    ]
