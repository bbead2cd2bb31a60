"""`paint` on a real local Spark, a real broker and real gateways: lists and streams are the oracle's, and a micro-batch that runs
again is told once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import tidings as td
from tests.public import run_example
from tests.serve.gateway.world import FAMILY, OTHER, SCHEMA, World, world
from tests.spark.connectors.jars import NoMaven, fetch
from tests.spark.samples import SPARK
from tidings.errors import EventError, SchemaError
from tidings.kafka.layout import Plan
from tidings.kafka.painter import Painter
from tidings.kafka.writer import read_plan
from tidings.model.values.times import parse_time
from tidings.spark import paint
from tidings.spark.job.job_reading import job_of
from tidings.spark.job.runner import start_main

pytestmark = SPARK
FAMILIES = [FAMILY.name, OTHER.name]
START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = pa.schema(
    {"flat": pa.string(), "price": pa.float64(), "stars": pa.float64(), "time": pa.timestamp("us", "UTC"), "deleted": pa.bool_()}
)


def table(changes: dict[str, Any], at: datetime) -> pa.Table:
    rows = [{"flat": key, "time": at, "deleted": values is None, **(values or {})} for key, values in changes.items()]
    return pa.Table.from_pylist(rows, COLUMNS)


class SparkPainter:
    """A streaming query over a folder; `publish` waits until it has painted what is put there."""

    def __init__(self, spark: SparkSession, folder: Path, brokers: str, plan: Plan) -> None:
        self.spark, self.folder, self.brokers, self.first = spark, folder, brokers, plan
        with td.open(folder / "flats", plan.topic, SCHEMA, key=plan.key) as topic:
            topic.flush()
        self.turn = self.last_at = 0
        self.form = spark.createDataFrame(table({}, START)).schema
        self.begin("first")

    def begin(self, name: str) -> None:
        """The query of this name goes on, or begins with what is published from now on."""
        self.updates, self.checkpoint = self.folder / f"updates-{name}", self.folder / f"checkpoint-{name}"
        self.updates.mkdir(exist_ok=True)
        self.query = self.started()

    def started(self) -> StreamingQuery:
        stream = self.spark.readStream.schema(self.form).parquet(str(self.updates))
        how = {"brokers": self.brokers, "families": FAMILIES, "zones": len(self.first.zones[0])}
        return paint(stream, self.folder / "flats", self.checkpoint, **how)

    @property
    def plan(self) -> Plan:
        found = read_plan(self.brokers, self.first.topic)
        assert found is not None
        return found

    def publish(self, changes: dict[str, Any], at: int) -> None:
        self.put(changes)
        self.query.processAllAvailable()

    def put(self, changes: dict[str, Any]) -> None:
        """One file, one micro-batch."""
        self.turn += 1
        at = START + timedelta(seconds=self.turn)
        self.last_at = parse_time(at)
        self.spark.createDataFrame(table(changes, at)).coalesce(1).write.mode("append").parquet(str(self.updates))

    def forget_last_commit(self) -> None:
        """As if the driver had died after Kafka took the last micro-batch and before Spark noted it."""
        self.query.stop()
        commits = self.checkpoint / "commits"
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)

    def close(self) -> None:
        self.query.stop()


class JobPainter(SparkPainter):
    """The same by a job, for watchers alone."""

    def started(self) -> StreamingQuery:
        form = "flat STRING, price DOUBLE, stars DOUBLE, time TIMESTAMP, deleted BOOLEAN"
        options = {"brokers": self.brokers, "zones": len(self.first.zones[0]), "sparse": True}
        spec = {
            "topic": {"path": str(self.folder / "flats")},
            "events": {"format": "parquet", "options": {"path": str(self.updates)}, "schema": form},
            "answer": {"kind": "messages", "families": FAMILIES},
            "sink": {"format": "gateways", "options": options},
            "run": {"checkpoint": str(self.checkpoint), "trigger": "1 second"},
        }
        return start_main(self.spark, job_of(spec))


def refused(flats: World, changes: dict[str, Any]) -> str:
    """Why the query stops instead of painting these."""
    flats.painter.put(changes)
    with pytest.raises(StreamingQueryException) as raised:
        flats.painter.query.processAllAvailable()
    return str(raised.value)


@pytest.fixture
def jars():
    try:
        fetch("broker")
    except NoMaven as error:
        pytest.skip(str(error))


@pytest.mark.kafka
def test_gateways_serve_what_spark_paints_each_micro_batch_once(spark, jars, tmp_path):
    with world(tmp_path, 6, paints=partial(SparkPainter, spark, tmp_path)) as flats:
        flats.update(20)
        assert flats.painter.plan.partitions == 4
        flats.join()
        flats.join()
        flats.crowd(12, hears=2)
        for _ in range(3):
            flats.update(3)
        flats.agree()

        flats.painter.forget_last_commit()
        before = flats.ends()
        flats.painter.begin("first")
        flats.painter.query.processAllAvailable()
        assert flats.ends() == before, "the repeated micro-batch was written again"
        flats.update(3)
        flats.agree()

        other = Painter(flats.broker.address, flats.plan)  # fences the query off
        changes = flats.drawn(3)
        assert "another painter of 'flats' has begun" in refused(flats, changes)
        flats.painter.begin("first")
        flats.painter.query.processAllAvailable()
        flats.expect(changes)
        flats.update(3)
        flats.agree()

        other = Painter(flats.broker.address, flats.plan)
        changes = {"f1": {"price": 5.0, "stars": 3.5}, "f2": None}
        other.publish(changes, 0)
        flats.painter.last_at = other.last_at
        flats.expect(changes)
        other.close()
        flats.painter.begin("first")
        assert "is not what this query wrote last" in refused(flats, flats.drawn(1))
        flats.painter.begin("second")
        for _ in range(3):
            flats.update(4)
        flats.agree()
        assert sum(len(ear.heard) for ear in flats.ears.values()) > 10

        names = {"spark": spark, "folder": str(tmp_path / "homes"), "brokers": flats.broker.address}
        run_example("tidings.spark.paint", paint, names)
        plan = read_plan(flats.broker.address, "homes")
        assert plan is not None
        assert plan.partitions == 2


@pytest.mark.kafka
def test_a_job_paints_for_watchers_alone_and_hears_of_them_while_nothing_comes(spark, jars, tmp_path):
    with world(tmp_path, 7, paints=partial(JobPainter, spark, tmp_path)) as flats:
        flats.update(20)
        assert flats.painter.plan.sparse
        flats.join()
        flats.watch("few", 1.0, 2.0, hears=True)
        before, far = flats.ends(), {"far": {"price": 9.0, "stars": 9.0}}
        flats.painter.publish(far, 0)
        flats.expect(far)
        assert flats.ends() == before, "nobody watches there"
        flats.crowd(6, hears=2)
        for _ in range(2):
            flats.update(6)
        flats.agree()


def test_what_paint_refuses(spark, tmp_path):
    more = {"brokers": "localhost:1", "families": FAMILIES}
    flats = tmp_path / "flats"
    with td.open(flats, "flats", SCHEMA, key="flat") as keyed, td.open(tmp_path / "events", "events", SCHEMA) as events:
        keyed.flush()
        events.flush()
    form = spark.createDataFrame(table({}, START)).schema
    (tmp_path / "updates").mkdir()
    stream = spark.readStream.schema(form).parquet(str(tmp_path / "updates"))
    with pytest.raises(EventError, match="updates are no stream"):
        paint(spark.createDataFrame(table({}, START)), flats, tmp_path / "c", **more)
    with pytest.raises(SchemaError, match="paint takes the objects of a keyed topic"):
        paint(stream.withColumnRenamed("flat", "id"), tmp_path / "events", tmp_path / "c", **more)
    with pytest.raises(SchemaError, match="families is empty"):
        paint(stream, flats, tmp_path / "c", brokers="localhost:1", families=[])
