"""What the Kafka test runs with the connector's jars: jobs between Kafka topics. Writes what it saw as JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tidings.spark import follow, match, parse, session
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
    result = {
        "notifications": [list(row)[1:] for row in rows],
        "keys": sorted({row.key for row in rows}),
        "refused": spark.read.json(str(work / "refused")).count(),
        "real_time": real_time(spark, address, topic, source, work),
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


def real_time(spark: SparkSession, address: str, topic: str, source: dict[str, str], work: Path) -> int | str:
    """How many matches of all events come out of the stateless match in Real-Time Mode, or why Spark would not run it."""
    events = parse(spark.readStream.format("kafka").options(**source).load(), topic)
    found = match(events, topic, corrupt=True).where("_corrupt IS NULL").selectExpr("event AS key", "to_json(struct(*)) AS value")
    writer = found.writeStream.format("kafka").option("kafka.bootstrap.servers", address).option("topic", "matches")
    try:
        query = (
            writer.option("checkpointLocation", str(work / "real-time")).outputMode("update").trigger(realTime="5 seconds").start()
        )
        wanted = match(parse(received(spark, address, "events"), topic), topic, corrupt=True).where("_corrupt IS NULL").count()
        for _ in range(120):
            time.sleep(0.5)
            if query.exception() is not None:
                return str(query.exception()).splitlines()[0]
            if received(spark, address, "matches").count() >= wanted:
                break
        query.stop()
    except Exception as error:  # noqa: BLE001 - what Spark says is the answer
        return str(error).splitlines()[0]
    return received(spark, address, "matches").count() - wanted


if __name__ == "__main__":
    main(*sys.argv[1:])
