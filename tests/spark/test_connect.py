"""Every transform by Spark Connect, against a real server: the answers of the embedded engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidings as td
from tests.spark.connect.server import connect_server
from tests.spark.connect.transforms import CHANGE
from tests.spark.samples import EVENTS, SCHEMA, START, rows_of, subscriptions
from tests.spark.transforms import test_board as boards
from tests.spark.transforms import test_search as searches
from tests.spark.transforms.test_notify import told

pytestmark = [pytest.mark.connectors, pytest.mark.xdist_group("programs")]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A client as a process of its own: this one may have a session that is not remote."""
    folder = tmp_path_factory.mktemp("connect")
    with connect_server(folder) as address:
        here = os.pathsep.join(map(str, [Path("src").absolute(), Path().absolute()]))
        command = [sys.executable, "-m", "tests.spark.connect.transforms", address, str(folder)]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": here}, capture_output=True, text=True, timeout=800)
        assert done.returncode == 0, done.stderr[-3000:] + (folder / "connect.out").read_text()[-3000:]
    return json.loads((folder / "result.json").read_text())


@pytest.mark.parametrize("place", ["folder", "parts"])
def test_build_match_notify_and_follow(result, place):
    half = len(EVENTS) // 2
    with td.Topic("offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(60), time=START)
        assert sorted(map(tuple, result[place]["matches"])) == rows_of(topic.match_batch(EVENTS, k=3))
        notes = [*topic.publish_batch(EVENTS.slice(0, half))]
        topic.unsubscribe(CHANGE["id"][0])
        topic.subscribe(CHANGE["id"][1], CHANGE["filter"][1])
        notes += topic.publish_batch(EVENTS.slice(half))
    assert sorted(map(tuple, result[place]["told"])) == [row[:6] for row in told(notes)]


def test_parse(result):
    with td.Topic("offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(60), time=START)
        topic.unsubscribe(CHANGE["id"][0])
        topic.subscribe(CHANGE["id"][1], CHANGE["filter"][1])
        assert sorted(map(tuple, result["parsed"]["matches"])) == rows_of(topic.match_batch(EVENTS))


def test_search(result):
    with td.Topic("offers", SCHEMA) as topic:
        topic.publish_batch(EVENTS)
        assert sorted(map(tuple, result["search"]["found"])) == searches.expected(topic, searches.asked())


def test_board(result):
    with td.Topic("flats", boards.SCHEMA, key="address") as topic:
        topic.subscribe_many(boards.watchers(30), time=START)
        notes = topic.publish_batch(boards.UPDATES, time=boards.UPDATES["time"][-1].as_py())
    want = [row[:5] for row in boards.told(notes)]
    assert sorted(map(tuple, result["board"]["told"]), key=repr) == sorted(want, key=repr)


def test_paint_is_refused(result):
    assert "paint writes from the driver, which Spark Connect has elsewhere" in result["paint"]
