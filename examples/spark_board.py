"""A keyed topic on Spark: every watcher sees each change of its two cheapest flats, a micro-batch at a time."""

from __future__ import annotations

import tempfile
from datetime import datetime

from pyspark.sql import SparkSession

import tidings as td
from tidings.spark import board, session

SCHEMA = {"size": td.Number(0, 500), "rent": td.Number(0, 10_000)}
FLAT = "address string, size double, rent double, deleted boolean, time timestamp"
TURNS = [
    [("Elm 1", 60.0, 900.0, False, "09:00"), ("Oak 7", 75.0, 1100.0, False, "09:00"), ("Fir 3", 55.0, 800.0, False, "09:01")],
    [("Elm 1", 60.0, 1200.0, False, "10:00")],
    [("Fir 3", None, None, True, "11:00")],
]


def main(spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory() as work:
        with td.open(f"{work}/topic", "flats", SCHEMA, key="address") as flats:
            flats.subscribe("ann", "size BETWEEN 50 AND 80", k=2, by="-rent", time="2026-11-01T08:00:00Z")
        seen: set[str] = set()
        for number, updates in enumerate(TURNS):
            rows = [(*update[:4], datetime.fromisoformat(f"2026-11-01T{update[4]}:00+00:00")) for update in updates]
            frame = spark.createDataFrame(rows, FLAT)
            frame.coalesce(1).write.mode("append").parquet(f"{work}/updates")
            stream = spark.readStream.schema(FLAT).parquet(f"{work}/updates")
            told = board(stream, f"{work}/topic").writeStream.option("checkpointLocation", f"{work}/checkpoint")
            told.format("parquet").option("path", f"{work}/told").trigger(availableNow=True).start().awaitTermination()
            for note in sorted(spark.read.parquet(f"{work}/told").collect(), key=lambda note: (note.why, note.rank or 0)):
                if note.id not in seen:
                    seen.add(note.id)
                    print(f"turn {number}: {note.subscription}: {note.event} {note.why}, rank {note.rank}, rent {-note.score:g}")


if __name__ == "__main__":
    main(session("flats", "local[2]", {"spark.sql.shuffle.partitions": "2"}))
