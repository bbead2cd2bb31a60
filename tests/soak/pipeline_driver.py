"""The streaming job that the soak kills: Kafka to match to notify to Parquet, for as long as it lives."""

from __future__ import annotations

import sys
from pathlib import Path

from tidings.spark import match, notify, parse, session

AGAIN = "100000"


def main(master: str, topic: str, address: str, jars: str, work: str, batch: str) -> None:
    settings = {
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.task.maxFailures": AGAIN,
        "spark.stage.maxConsecutiveAttempts": AGAIN,
        "spark.ui.enabled": "false",
    }
    spark = session("tidings-soak", master, settings)
    options = {"kafka.bootstrap.servers": address, "subscribe": "events", "startingOffsets": "earliest"}
    raw = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=batch).load()
    events = parse(raw, topic).where("_corrupt IS NULL").drop("_corrupt")
    notes = notify(match(events, topic, ranking=True), topic, shards=3)
    writer = notes.writeStream.format("parquet").option("path", str(Path(work) / "sink"))
    writer.option("checkpointLocation", str(Path(work) / "checkpoint")).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
