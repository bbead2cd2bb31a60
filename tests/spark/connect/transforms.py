"""What the test of Spark Connect runs as a client: every transform, on topics in a folder and in parts. It writes JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import tidings as td
from tests.spark.samples import EVENTS, SCHEMA, START, subscriptions
from tests.spark.transforms.test_board import SCHEMA as FLATS
from tests.spark.transforms.test_board import UPDATES, watchers
from tests.spark.transforms.test_search import LATER, asked
from tidings.errors import StorageError
from tidings.spark import board, build, follow, match, notify, paint, parse, search
from tidings.spark.job.runner import STARTS

SLOW = "connect back"
NOW = {"availableNow": True}
CHANGE = {"id": ["s7", "new"], "op": ["delete", "upsert"], "filter": [None, "price >= 0"], "seq": [1, 2]}


def patiently(start: Callable[[], StreamingQuery]) -> None:
    """Run a query to its end; again, as a job does, if Spark did not wait for its first Python worker."""
    for left in reversed(range(STARTS)):
        try:
            start().awaitTermination()
            break
        except PySparkException as error:
            if SLOW not in str(error) or not left:
                raise


class Client:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def stream(self, name: str, table: pa.Table) -> DataFrame:
        """The table as a stream of files, to which this adds one."""
        frame = self.spark.createDataFrame(table)
        frame.coalesce(1).write.mode("append").parquet(str(self.folder / name))
        return self.spark.readStream.schema(frame.schema).parquet(str(self.folder / name))

    def drained(self, frame: DataFrame, name: str) -> pa.Table:
        """What a stream has given when all is read."""
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(self.folder / f"{name}-checkpoint"))
        patiently(lambda: writer.trigger(**NOW).start(str(self.folder / name)))
        return self.spark.read.parquet(str(self.folder / name)).toArrow()


def offers(client: Client, name: str, **cut: object) -> dict[str, list[list[object]]]:
    """Matches and notifications before and after a change of subscriptions."""
    topic = client.folder / name
    build(client.spark.createDataFrame(subscriptions(60)), topic, "offers", SCHEMA, time=START, **cut)
    half = len(EVENTS) // 2
    seen = {"matches": rows(match(client.spark.createDataFrame(EVENTS), topic, 3).toArrow())}
    first = client.stream(f"{name}-events", EVENTS.slice(0, half))
    client.drained(notify(match(first, topic, ranking=True), topic, shards=2), f"{name}-told")
    changes = client.stream(f"{name}-changes", pa.table(CHANGE))
    patiently(lambda: follow(changes, topic, client.folder / f"{name}-followed", trigger=NOW))
    both = client.stream(f"{name}-events", EVENTS.slice(half))
    told = client.drained(notify(match(both, topic, ranking=True), topic, shards=2), f"{name}-told")
    return {**seen, "told": rows(told.drop_columns(["at", "digest"]))}


def main(address: str, work: str) -> None:
    spark = SparkSession.builder.remote(address).getOrCreate()
    folder = Path(work)
    client = Client(spark, folder)
    result: dict[str, Any] = {"folder": offers(client, "folder"), "parts": offers(client, "parts", part_by="place", parts=3)}
    raw = spark.createDataFrame([(json.dumps(event, default=str),) for event in EVENTS.to_pylist()], "value string")
    read = parse(raw, folder / "folder").where("_corrupt IS NULL").drop("_corrupt")
    result["parsed"] = {"matches": rows(match(read, folder / "folder").toArrow())}
    with td.open(folder / "live", "offers", SCHEMA) as live:
        live.publish_batch(EVENTS)
    result["search"] = {"found": rows(search(spark.createDataFrame(asked()), folder / "live", time=LATER).toArrow())}
    build(spark.createDataFrame(watchers(30)), folder / "flats", "flats", FLATS, key="address", time=START)
    told = client.drained(board(client.stream("updates", UPDATES), folder / "flats", shards=2), "board")
    result["board"] = {"told": rows(told.drop_columns(["id", "at", "digest"]))}
    kafka = {"brokers": "localhost:1", "families": ["price:-price:2"]}
    try:
        paint(client.stream("updates", UPDATES), folder / "flats", folder / "painted", **kafka)
    except StorageError as error:
        result["paint"] = str(error)
    (folder / "result.json").write_text(json.dumps(result))
    spark.stop()


def rows(table: pa.Table) -> list[list[object]]:
    return [list(row.values()) for row in table.to_pylist()]


if __name__ == "__main__":
    main(*sys.argv[1:])
