"""The pipeline between Delta and Iceberg tables, with real Delta Lake and Iceberg: the answers of the embedded engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidings as td
from tests.spark.connectors.jars import NoMaven, fetch
from tests.spark.connectors.tables import CHANGE, COUNT, TURNS
from tests.spark.samples import EVENTS, SCHEMA, START, subscriptions
from tests.spark.transforms.test_notify import told

pytestmark = [pytest.mark.connectors, pytest.mark.xdist_group("programs")]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """One Spark with the jars of both, as a process of its own: this one may have a session already, without them."""
    try:
        jars = [*fetch("delta"), *fetch("iceberg")]
    except NoMaven as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("tables")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [Path("src").absolute(), Path().absolute()]))}
    command = [sys.executable, "-m", "tests.spark.connectors.tables", ",".join(map(str, jars)), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "result.json").read_text())


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_tables_of_subscriptions_events_and_changes_in_a_table_of_notifications_out(result, form):
    size = len(EVENTS) // TURNS
    with td.Topic("offers", SCHEMA) as plain:
        plain.subscribe_many(subscriptions(COUNT), time=START)
        notes = [note for turn in range(TURNS - 1) for note in plain.publish_batch(EVENTS.slice(turn * size, size))]
        plain.unsubscribe(CHANGE["id"][0])
        plain.subscribe(CHANGE["id"][1], CHANGE["filter"][1])
        notes += plain.publish_batch(EVENTS.slice((TURNS - 1) * size))
    assert sorted(map(tuple, result[form])) == [row[:6] for row in told(notes)]


def test_the_example(result):
    assert "first: ann hears of e1 (entered), bob hears of e1 (matched)" in result["example"]
    assert "then: ann hears of e3 (entered), bob hears of e3 (matched)" in result["example"]
