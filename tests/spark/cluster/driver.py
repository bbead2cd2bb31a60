"""A streaming job as a program of its own: match and notify, Parquet to Parquet, one file a micro-batch; fault tests kill it."""

from __future__ import annotations

import sys
from pathlib import Path

from tidings.spark import match, notify, session


def main(master: str, topic: str, source: str, work: str) -> None:
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "700m",
        "spark.task.maxFailures": "8",
    }
    spark = session("tidings-faults", master, settings)
    form = spark.read.parquet(source).schema
    events = spark.readStream.schema(form).option("maxFilesPerTrigger", "1").parquet(source)
    notes = notify(match(events, topic, ranking=True), topic, shards=3)
    writer = notes.writeStream.format("parquet").option("path", str(Path(work) / "sink"))
    query = writer.option("checkpointLocation", str(Path(work) / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
