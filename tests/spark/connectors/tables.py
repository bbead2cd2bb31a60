"""What the tests of table formats run with their jars: subscriptions, events, changes and notifications as tables of a format.

Writes what it saw as JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from examples import spark_delta
from tests.spark.samples import EVENTS, SCHEMA, START, subscriptions
from tidings.spark import build, follow, match, notify, session

COUNT, TURNS = 60, 3
CHANGE = {"id": ["s7", "new"], "op": ["delete", "upsert"], "filter": [None, "price >= 0"], "seq": [1, 2]}
ICEBERG = "spark.sql.catalog.ice"


class DeltaTables:
    """At paths."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def append(self, name: str, frame: DataFrame) -> None:
        frame.write.format("delta").mode("append").save(str(self.folder / name))

    def read(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.folder / name))

    def stream(self, name: str) -> DataFrame:
        return self.spark.readStream.format("delta").option("maxFilesPerTrigger", "1").load(str(self.folder / name))

    def drain(self, frame: DataFrame, name: str) -> None:
        writer = frame.writeStream.format("delta").option("checkpointLocation", str(self.folder / f"{name}-checkpoint"))
        writer.trigger(availableNow=True).start(str(self.folder / name)).awaitTermination()


class IcebergTables:
    """In a catalog of their own."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def append(self, name: str, frame: DataFrame) -> None:
        there = self.spark.catalog.tableExists(f"ice.tidings.{name}")
        writer = frame.writeTo(f"ice.tidings.{name}")
        writer.append() if there else writer.create()

    def read(self, name: str) -> DataFrame:
        return self.spark.read.format("iceberg").load(f"ice.tidings.{name}")

    def stream(self, name: str) -> DataFrame:
        return (
            self.spark.readStream.format("iceberg").option("streaming-max-files-per-micro-batch", "1").load(f"ice.tidings.{name}")
        )

    def drain(self, frame: DataFrame, name: str) -> None:
        if not self.spark.catalog.tableExists(f"ice.tidings.{name}"):
            self.spark.createDataFrame([], frame.schema).writeTo(f"ice.tidings.{name}").create()
        writer = frame.writeStream.format("iceberg").option("checkpointLocation", str(self.folder / f"{name}-checkpoint"))
        writer.outputMode("append").trigger(availableNow=True).toTable(f"ice.tidings.{name}").awaitTermination()


def through(tables: DeltaTables | IcebergTables, spark: SparkSession) -> list[list[object]]:
    """What is told of all events; subscriptions change before the last of them."""
    topic = tables.folder / "topic"
    tables.append("subscriptions", spark.createDataFrame(subscriptions(COUNT)))
    build(tables.read("subscriptions"), topic, "offers", SCHEMA, time=START)
    size = len(EVENTS) // TURNS
    for turn in range(TURNS):
        tables.append("events", spark.createDataFrame(EVENTS.slice(turn * size, size)).coalesce(1))
        if turn == TURNS - 1:
            tables.append("changes", spark.createDataFrame(pa.table(CHANGE)).coalesce(1))
            follow(tables.stream("changes"), topic, tables.folder / "followed", trigger={"availableNow": True}).awaitTermination()
        if turn > 0:
            tables.drain(notify(match(tables.stream("events"), topic, ranking=True), topic, shards=2), "told")
    told = tables.read("told").drop("at", "digest").collect()
    return [list(row) for row in told]


def main(jars: str, folder: str) -> None:
    work = Path(folder)
    catalog = "org.apache.iceberg.spark.SparkCatalog"
    iceberg = {ICEBERG: catalog, f"{ICEBERG}.type": "hadoop", f"{ICEBERG}.warehouse": str(work / "ice")}
    spark = session("tidings-tables", "local[2]", {"spark.jars": jars, **spark_delta.SETTINGS, **iceberg})
    result: dict[str, object] = {}
    for name, kind in (("delta", DeltaTables), ("iceberg", IcebergTables)):
        (work / name).mkdir()
        result[name] = through(kind(spark, work / name), spark)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        spark_delta.main(spark)
    result["example"] = said.getvalue()
    (work / "result.json").write_text(json.dumps(result))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
