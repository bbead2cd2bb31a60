"""What the Kafka test runs with the connector's jars: jobs between Kafka topics. Writes what it saw as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from examples import spark_kafka
from tidings.spark import follow, session
from tidings.spark.job.job_file import Job
from tidings.spark.job.job_reading import job_of
from tidings.spark.job.runner import launch, launch_others

NOTE = "id STRING, subscription STRING, event STRING, score DOUBLE, rank INT, why STRING"


def main(address: str, jars: str, folder: str) -> None:
    spark = session("tidings-kafka", "local[2]", {"spark.jars": jars, "spark.sql.shuffle.partitions": "2"})
    work = Path(folder)
    events = json.loads((work / "events.json").read_text())
    topic, kafka = str(work / "offers"), {"kafka.bootstrap.servers": address}
    source = {**kafka, "subscribe": "events", "startingOffsets": "earliest"}
    job = job_of(
        {
            "topic": {"path": topic},
            "events": {"format": "kafka", "options": source, "value": "json"},
            "sink": {"format": "kafka", "options": {**kafka, "topic": "notifications"}},
            "refused": {"format": "json", "options": {"path": str(work / "refused")}},
            "run": {"checkpoint": str(work / "checkpoint")},
        }
    )
    send(spark, address, "events", [(None, value) for value in [*events[:30], events[-1]]])
    finish(run(spark, job))
    send(spark, address, "subscriptions", [("new", '{"filter": "price >= 0"}'), ("s7", '{"filter": "price < 0"}'), ("s7", None)])
    changes = spark.readStream.format("kafka").options(**{**source, "subscribe": "subscriptions"}).load()
    finish([follow(changes, topic, work / "changes", trigger={"availableNow": True})])
    send(spark, address, "events", [(None, value) for value in events[30:-1]])
    finish(run(spark, job))
    notes = received(spark, address, "notifications").selectExpr(
        "CAST(key AS STRING) AS key", f"from_json(CAST(value AS STRING), '{NOTE}') AS n"
    )
    rows = notes.select("key", "n.*").collect()
    with contextlib.redirect_stdout(io.StringIO()) as said:
        spark_kafka.main(spark, address)
    result = {
        "notifications": [list(row)[1:] for row in rows],
        "keys": sorted({row.key for row in rows}),
        "refused": spark.read.json(str(work / "refused")).count(),
        "example": said.getvalue(),
    }
    (work / "result.json").write_text(json.dumps(result))
    spark.stop()


def run(spark: SparkSession, job: Job) -> list[StreamingQuery]:
    running = launch(spark, job)
    launch_others(spark, running)
    return running.queries


def send(spark: SparkSession, address: str, topic: str, rows: list[tuple[str | None, str | None]]) -> None:
    frame = spark.createDataFrame(rows, "key STRING, value STRING").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", topic).save()


def received(spark: SparkSession, address: str, topic: str) -> DataFrame:
    return spark.read.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic).load()


def finish(queries) -> None:
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
