"""One join of points and boxes on Spark, or the ten best events of each box, in a process of its own, since not every way runs on
the same minor of Spark.

    python -m benchmarks.peers.spark_child WAY FOLDER FEW [JAR]

`FOLDER` has subscriptions.parquet (row, xmin, ymin, xmax, ymax) and events.parquet (row, x, y), and for the way `tidings` a topic.
The last line printed is JSON: CPU seconds an event of everything that works, JVM and Python, the least of some runs, and the rows
found for the first FEW events, or the best events of the first FEW subscriptions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

REPEATS = 3
RANGES = "e.x BETWEEN s.xmin AND s.xmax AND e.y BETWEEN s.ymin AND s.ymax"
SEDONA = {
    "spark.sql.extensions": "org.apache.sedona.sql.SedonaSqlExtensions",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.sedona.core.serde.SedonaKryoRegistrator",
}


def main(way: str, folder: Path, few: int, jar: str | None) -> None:
    plain = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "6g"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in (plain | (SEDONA | {"spark.jars": jar} if jar else {})).items():
        builder = builder.config(name, str(value))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    joined = WAYS[way](spark, folder)
    events = spark.read.parquet(str(folder / "events.parquet")).count()
    costs = []
    for _ in range(REPEATS):
        before = spent()
        joined().write.format("noop").mode("overwrite").save()
        costs.append(spent() - before)
    answers: list[list[int]] = [[] for _ in range(few)]
    asked, found = ("subscription", "event") if way.endswith("best") else ("event", "subscription")
    for row in joined().where(f"{asked} < {few}").collect():
        answers[row[asked]].append(row[found])
    print(json.dumps({"version": spark.version, "batch": min(costs) / events, "answers": [sorted(rows) for rows in answers]}))
    spark.stop()


def spent() -> float:
    below = psutil.Process().children(recursive=True)
    return time.process_time() + sum(sum(process.cpu_times()[:4]) for process in below)


def views(spark: SparkSession, folder: Path) -> None:
    for name, view in (("subscriptions", "s"), ("events", "e")):
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(view)


def by_ranges(spark: SparkSession, folder: Path) -> Callable[[], DataFrame]:
    views(spark, folder)
    return lambda: spark.sql(f"SELECT e.row AS event, s.row AS subscription FROM e JOIN s ON {RANGES}")


def by_geometry(spark: SparkSession, folder: Path) -> Callable[[], DataFrame]:
    views(spark, folder)
    spark.sql("SELECT row, ST_PolygonFromEnvelope(xmin, ymin, xmax, ymax) AS box FROM s").createOrReplaceTempView("boxes")
    spark.sql("SELECT row, ST_Point(x, y) AS point FROM e").createOrReplaceTempView("points")
    joined = "SELECT e.row AS event, s.row AS subscription FROM points e JOIN boxes s ON ST_Intersects(s.box, e.point)"
    return lambda: spark.sql(joined)


def by_tidings(spark: SparkSession, folder: Path) -> Callable[[], DataFrame]:
    from tidings.spark import match

    asked = "concat('e', row) AS id", "struct(x, y) AS place"
    events = spark.read.parquet(str(folder / "events.parquet")).selectExpr(*asked)
    rows = "int(substr(event, 2)) AS event", "int(substr(subscription, 2)) AS subscription"
    return lambda: match(events, folder / "topic").selectExpr(*rows)


def best_by_tidings(spark: SparkSession, folder: Path) -> Callable[[], DataFrame]:
    """What notify tells is every change of every list; the last lists are the ten best that ever came into each."""
    from tidings.spark import match, notify

    asked = "concat('e', row) AS id", "struct(x, y) AS place", "worth", "timestamp_micros(row) AS time"
    events = spark.read.parquet(str(folder / "events.parquet")).selectExpr(*asked)
    rows = "int(substr(event, 2)) AS event", "int(substr(subscription, 2)) AS subscription", "score"
    told = notify(match(events, folder / "topic", ranking=True), folder / "topic").selectExpr(*rows)
    return lambda: best_of(told, "score")


def best_by_sql(spark: SparkSession, folder: Path) -> Callable[[], DataFrame]:
    """As one writes Top-N in SQL: the last lists alone."""
    views(spark, folder)
    joined = spark.sql(f"SELECT e.row AS event, s.row AS subscription, e.worth FROM e JOIN s ON {RANGES}")
    return lambda: best_of(joined, "worth")


def best_of(rows: DataFrame, by: str) -> DataFrame:
    number = F.row_number().over(Window.partitionBy("subscription").orderBy(F.desc(by)))
    return rows.withColumn("number", number).where("number <= 10").select("event", "subscription")


WAYS = {
    "tidings": by_tidings,
    "sql": by_ranges,
    "sedona": by_geometry,
    "tidings best": best_by_tidings,
    "sql best": best_by_sql,
}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None)
