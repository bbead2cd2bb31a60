"""A lost worker and a lost driver change nothing at the sink: no notification is lost, none comes twice."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.cluster.standalone import cluster, kill, wait_for
from tests.spark_samples import EVENTS, SCHEMA, START, rows_of, subscriptions
from tests.test_spark_notify import told

BATCHES = 8

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("spark"), pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_a_worker_and_the_driver_are_killed(tmp_path):
    source = tmp_path / "events"
    source.mkdir()
    want = []
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(100), time=START)
        topic.flush()
        size = len(EVENTS) // BATCHES
        for number in range(BATCHES):
            part = EVENTS.slice(number * size, size)
            pq.write_table(part, source / f"{number}.parquet")
            want += topic.publish_batch(part)
    commits = tmp_path / "checkpoint" / "commits"

    def committed(count):
        return lambda: commits.is_dir() and sum(path.name.isdigit() for path in commits.iterdir()) >= count

    with cluster(tmp_path, workers=1) as spark:
        lost, log = spark.worker("lost"), tmp_path / "driver.out"
        arguments = [str(path) for path in (tmp_path / "offers", source, tmp_path)]
        driver = spark.driver(*arguments)
        wait_for("two micro-batches", committed(2), driver, log)
        kill(lost)
        wait_for("a micro-batch without the lost worker", committed(4), driver, log)
        kill(driver)
        assert len(list(commits.glob("[0-9]*"))) < BATCHES, "the driver was killed in the middle"
        again = spark.driver(*arguments)
        assert again.wait(240) == 0, log.read_text()[-3000:]
    assert rows_of(sink(tmp_path / "sink")) == told(want)


def sink(folder) -> pa.Table:
    """The rows that the sink's own log says are there: a killed task may leave files that it does not name."""
    log = folder / "_spark_metadata"
    entries = {}
    for path in sorted((p for p in log.iterdir() if p.name.split(".")[0].isdigit()), key=lambda p: int(p.name.split(".")[0])):
        for line in path.read_text().splitlines()[1:]:
            entry = json.loads(line)
            entries[entry["path"]] = entry
    table = pa.concat_tables([pq.read_table(path.removeprefix("file://")) for path in entries])
    at = table["at"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return table.set_column(table.column_names.index("at"), "at", at)
