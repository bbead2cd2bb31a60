"""Offers and who should hear of them, on Spark: build a topic of a DataFrame, match a stream, change subscriptions between."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import tidings as td
from tidings.spark import build, match, session

SCHEMA = {"price": td.Number(0, 10_000), "brand": td.Category(), "place": td.Place()}
NEAR = "S_INTERSECTS(place, BBOX(121.40, 36.10, 121.48, 36.20))"
SUBSCRIPTIONS = [
    ("ann", f"price <= 3300 AND {NEAR}", 2.0),
    ("bob", "price < 500", 1.0),
    ("cat", "brand IN ('Huawei', 'Nokia')", 1.5),
]
EVENT = "id string, price double, brand string, place struct<x: double, y: double>"


def main(spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        filters = [
            ("ann", f"price <= 3300 AND {NEAR}", 2.0),
            ("bob", "price < 500", 1.0),
            ("cat", "brand IN ('Huawei', 'Nokia')", 1.5),
        ]
        count = build(spark.createDataFrame(filters, "id string, filter string, score double"), folder / "topic", "offers", SCHEMA)
        print(f"built of {count} subscriptions")

        offers = [("e1", 3200.0, "Huawei", (121.44, 36.16)), ("e2", 300.0, "Nokia", (2.35, 48.85))]
        write(spark, offers, folder)
        show("the two best of each offer", run(spark, folder))

        with td.open(folder / "topic") as topic:
            topic.unsubscribe("cat")
            topic.subscribe("dan", "brand = 'Nokia'", score=3.0)
        write(spark, [("e3", 400.0, "Nokia", (2.36, 48.86))], folder)
        show("after a change of subscriptions", [row for row in run(spark, folder) if row[0] == "e3"])


def write(spark: SparkSession, offers: list, folder: Path) -> None:
    spark.createDataFrame(offers, EVENT).coalesce(1).write.mode("append").parquet(str(folder / "events"))


def run(spark: SparkSession, folder: Path) -> list[tuple]:
    """Match what has come since the last run; all that was found so far."""
    events = spark.readStream.schema(EVENT).parquet(str(folder / "events"))
    found = match(events, folder / "topic", k=2).writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    found.format("parquet").option("path", str(folder / "found")).trigger(availableNow=True).start().awaitTermination()
    return sorted(tuple(row) for row in spark.read.parquet(str(folder / "found")).collect())


def show(what: str, rows: list[tuple]) -> None:
    print(f"{what}: {', '.join(f'{event} -> {subscription} ({score:g})' for event, subscription, score in rows)}")


if __name__ == "__main__":
    main(session("offers", "local[2]", {"spark.sql.shuffle.partitions": "2"}))
