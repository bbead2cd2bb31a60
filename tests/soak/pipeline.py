"""The pipeline while everything that it runs on is lost: workers and drivers of a standalone cluster, Kafka, the S3 server.

Events stand in Kafka, the topic on an S3 server, notifications go to Parquet, whose sink is exactly-once. Between micro-batches and
in the middle of them, whatever the seed draws is killed: a worker with its executors, the driver, the broker, the server; what was
killed comes back as an operator or a supervisor would bring it. In the end every notification that the embedded engine tells is
there, and none twice.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Producer

import tidings as td
from tests.durable.lake.s3_server import S3Server
from tests.spark.cluster.standalone import Cluster, cluster, kill
from tests.spark.connectors.jars import fetch
from tests.spark.job.test_faults import sink
from tests.spark.kafka.broker import Broker
from tests.spark.samples import SCHEMA, START, events, rows_of, subscriptions
from tests.spark.transforms.test_notify import told

EVENTS, A_BATCH = 1_200, 40
HARMS = {"worker": 10, "driver": 2, "kafka": 1, "s3": 1}
"""How often a seed does what."""
PATIENCE = 600.0
"""Seconds without a finished micro-batch after which the driver is looked upon as stuck, which is a failure."""


class Pipeline:
    def __init__(self, folder: Path, spark: Cluster, server: S3Server, kafka: Broker) -> None:
        self.folder, self.spark, self.server, self.kafka = folder, spark, server, kafka
        self.counts: Counter[str] = Counter()
        self.workers = [spark.worker(f"worker{number}") for number in range(2)]
        self.started = len(self.workers)
        self.driver = self._driver()

    def _driver(self) -> subprocess.Popen[bytes]:
        jars = ",".join(map(str, fetch("connector")))
        arguments = [self.spark.master, "s3a://bucket/offers", self.kafka.address, jars, str(self.folder), str(A_BATCH)]
        with (self.folder / "driver.out").open("ab") as out:
            command = [sys.executable, "-m", "tests.soak.pipeline_driver", *arguments]
            process = subprocess.Popen(command, env=self.spark.environment, stdout=out, stderr=out)
        self.spark.processes.append(process)
        return process

    def harm(self, what: str, draw: random.Random) -> None:
        if what == "worker":
            place = draw.randrange(len(self.workers))
            kill(self.workers[place])
            self.workers[place] = self.spark.worker(f"worker{self.started}")
            self.started += 1
            self.counts["pipeline: workers killed"] += 1
        elif what == "driver":
            kill(self.driver)
            self.driver = self._driver()
            self.counts["pipeline: drivers killed"] += 1
        elif what == "kafka":
            kill(self.kafka.process)
            self.kafka.start()
            self.counts["pipeline: Kafka killed and started"] += 1
        else:
            kill(self.server.process)
            self.server.start()
            self.counts["pipeline: S3 server killed and started"] += 1

    def await_batches(self, count: int) -> None:
        """Until so many more micro-batches are finished, or all; a driver that ended by itself is started again."""
        goal, last, since = self.finished() + count, self.finished(), time.monotonic()
        while self.finished() < goal and self.read() < EVENTS:
            if self.driver.poll() is not None:
                self.counts["pipeline: drivers that ended by themselves and were started again"] += 1
                self.driver = self._driver()
            if self.finished() != last:
                last, since = self.finished(), time.monotonic()
            if time.monotonic() - since > PATIENCE:
                raise AssertionError(f"no micro-batch in {PATIENCE:.0f} s: {(self.folder / 'driver.out').read_text()[-2000:]}")
            time.sleep(0.2)

    def finished(self) -> int:
        return max((int(path.name) for path in (self.folder / "checkpoint" / "commits").glob("[0-9]*")), default=-1)

    def read(self) -> int:
        """How many events the finished micro-batches have read."""
        number = self.finished()
        if number < 0:
            return 0
        lines = (self.folder / "checkpoint" / "offsets" / str(number)).read_text().splitlines()
        return sum(json.loads(lines[-1])["events"].values())


def publish(address: str, table: pa.Table) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    for event in table.to_pylist():
        # One partition: the order of events is theirs.
        producer.produce("events", json.dumps(event, default=str).encode(), partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0, "all events are in Kafka"


def pipeline(seed: int) -> dict[str, int]:
    """Counts of what was lost; raises if a notification was."""
    folder, draw = Path(tempfile.mkdtemp(prefix="tidings-pipeline-")), random.Random(seed)
    table = events(EVENTS)
    with td.Topic("offers", SCHEMA) as plain:
        plain.subscribe_many(subscriptions(100), time=START)
        want = told(plain.publish_batch(table))
    server, kafka = S3Server(folder / "s3"), Broker(folder)
    os.environ |= {**server.environment, "TIDINGS_CACHE": str(folder / "cache")}
    try:
        with td.open(folder / "offers", "offers", SCHEMA) as topic:
            topic.subscribe_many(subscriptions(100), time=START)
            topic.push("s3://bucket/offers")
        publish(kafka.address, table)
        with cluster(folder, workers=0) as spark:
            running = Pipeline(folder, spark, server, kafka)
            harms = [what for what, times in HARMS.items() for _ in range(times)]
            draw.shuffle(harms)
            running.await_batches(1)
            for what in harms:
                if running.read() >= EVENTS:
                    break
                running.harm(what, draw)
                running.await_batches(draw.choice((0, 0, 1, 1)))
                time.sleep(draw.random() * 2)
            running.await_batches(EVENTS)
            assert running.read() == EVENTS
        got = rows_of(sink(folder / "sink"))
        lost, doubled = len(set(want) - set(got)), len(got) - len(set(got))
        assert got == want, f"{lost} of {len(want)} notifications lost, {doubled} doubled"
    finally:
        kafka.stop()
        server.stop()
    shutil.rmtree(folder)
    return {**running.counts, "pipeline: notifications compared, none lost, none doubled": len(want)}
