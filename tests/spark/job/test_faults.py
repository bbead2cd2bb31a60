"""A lost worker, a lost driver, Ctrl-C: nothing changes at the sink, no notification is lost, none comes twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.spark.cluster.standalone import cluster, kill, wait_for
from tests.spark.samples import EVENTS, SCHEMA, START, rows_of, subscriptions
from tests.spark.transforms.test_notify import told

BATCHES = 8

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("programs"), pytest.mark.filterwarnings("ignore::ResourceWarning")]


def prepare(folder) -> list:
    """A topic and files of events in `folder`; what the embedded engine tells of them."""
    source = folder / "events"
    source.mkdir()
    want = []
    with td.open(folder / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(100), time=START)
        topic.flush()
        size = len(EVENTS) // BATCHES
        for number in range(BATCHES):
            part = EVENTS.slice(number * size, size)
            pq.write_table(part, source / f"{number}.parquet")
            want += topic.publish_batch(part)
    return told(want)


def committed(commits, count):
    return lambda: commits.is_dir() and sum(path.name.isdigit() for path in commits.iterdir()) >= count


def test_a_worker_and_the_driver_are_killed(tmp_path):
    want, commits = prepare(tmp_path), tmp_path / "checkpoint" / "commits"
    with cluster(tmp_path, workers=1) as spark:
        lost, log = spark.worker("lost"), tmp_path / "driver.out"
        arguments = [str(path) for path in (tmp_path / "offers", tmp_path / "events", tmp_path)]
        driver = spark.driver(*arguments)
        wait_for("two micro-batches", committed(commits, 2), driver, log)
        kill(lost)
        wait_for("a micro-batch without the lost worker", committed(commits, 4), driver, log)
        kill(driver)
        assert len(list(commits.glob("[0-9]*"))) < BATCHES, "the driver was killed in the middle"
        again = spark.driver(*arguments)
        assert again.wait(240) == 0, log.read_text()[-3000:]
    assert rows_of(sink(tmp_path / "sink")) == want


def job_in(folder: Path) -> Path:
    job = folder / "job.toml"
    job.write_text(
        f"""
        [topic]
        path = "{folder / "offers"}"
        [events]
        format = "parquet"
        options = {{ path = "{folder / "events"}", maxFilesPerTrigger = "1" }}
        [answer]
        shards = 2
        [sink]
        format = "parquet"
        options = {{ path = "{folder / "sink"}" }}
        [run]
        checkpoint = "{folder / "checkpoint"}"
        report = "{folder / "report.html"}"
        """
    )
    return job


def run(job: Path, log: Path) -> subprocess.Popen[bytes]:
    """`tidings run` as a terminal starts it: with a process group of its own, of which all are interrupted."""
    command = [sys.executable, "-c", "from tidings.cli import main; main()", "run", str(job), "--master", "local[2]"]
    environment = {**os.environ, "PYTHONPATH": str(Path("src").absolute())}
    with log.open("wb") as out:
        return subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)


@pytest.mark.parametrize("begun", [1, 3], ids=["the first", "a later"])
def test_ctrl_c_ends_a_job_after_its_micro_batch_and_the_next_run_goes_on(tmp_path, begun):
    want, checkpoint, log = prepare(tmp_path), tmp_path / "checkpoint" / "answers", tmp_path / "run.out"
    job = job_in(tmp_path)
    first = run(job, log)
    try:
        wait_for("a micro-batch", committed(checkpoint / "offsets", begun), first, log)
        os.killpg(first.pid, signal.SIGINT)
        assert first.wait(240) == 0, log.read_text()[-3000:]
    finally:
        if first.poll() is None:
            kill(first)
    said = log.read_text()
    assert "stopping after the running micro-batch" in said
    assert "Traceback" not in said
    assert (tmp_path / "report.html").exists()
    assert begun <= len(list((checkpoint / "commits").glob("[0-9]*"))) < BATCHES, "it was stopped in the middle"
    assert run(job, log).wait(300) == 0, log.read_text()[-3000:]
    assert rows_of(sink(tmp_path / "sink")) == want
    assert "WARN" not in log.read_text(), "Spark's own words are in its log"


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
