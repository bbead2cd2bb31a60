"""Kafka to Kafka: JSON offers in, who should hear of each out, best first, exactly as the embedded engine would tell it.

`python -m examples.spark_kafka 127.0.0.1:9092`: a broker of yours; Spark brings its connector from Maven Central.
"""

from __future__ import annotations

import json
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidings as td
from tidings.spark import build, match, notify, parse, session

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
SCHEMA = {"price": td.Number(0, 10_000), "brand": td.Category()}
SUBSCRIPTIONS = [
    ("ann", "price <= 500", 2, "1 hour", "-price"),
    ("bob", "brand = 'Nokia'", None, None, None),
]
OFFERS = [
    {"id": "e1", "price": 300, "brand": "Nokia", "time": "2026-11-01T09:00:00Z"},
    {"id": "e2", "price": 450, "brand": "Huawei", "time": "2026-11-01T09:01:00Z"},
    {"id": "e3", "price": 480, "brand": "Nokia", "time": "2026-11-01T09:02:00Z"},
    {"id": "e4", "price": 200, "brand": "Huawei", "time": "2026-11-01T09:03:00Z"},
]
NOTE = "subscription STRING, event STRING, score DOUBLE, rank INT, why STRING"


def main(spark: SparkSession, address: str) -> None:
    with tempfile.TemporaryDirectory() as work:
        filters = spark.createDataFrame(SUBSCRIPTIONS, "id string, filter string, k int, window string, by string")
        build(filters, f"{work}/topic", "offers", SCHEMA, time="2026-11-01T08:00:00Z")
        send(spark, address)

        raw = spark.readStream.format("kafka").options(**at(address), subscribe="offers", startingOffsets="earliest").load()
        offers = parse(raw, f"{work}/topic").where("_corrupt IS NULL").drop("_corrupt")
        told = notify(match(offers, f"{work}/topic", ranking=True), f"{work}/topic")
        written = told.select(F.col("subscription").alias("key"), F.to_json(F.struct("*")).alias("value"))
        sink = written.writeStream.format("kafka").options(**at(address), topic="told")
        sink.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True).start().awaitTermination()

        for note in sorted(received(spark, address).collect(), key=lambda note: (note.subscription, note.event)):
            print(f"{note.subscription} hears of {note.event} ({note.why}, rank {note.rank}, {note.score:g})")


def at(address: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": address}


def send(spark: SparkSession, address: str) -> None:
    rows = spark.createDataFrame([(json.dumps(offer),) for offer in OFFERS], "value string").coalesce(1)
    rows.write.format("kafka").options(**at(address), topic="offers").save()


def received(spark: SparkSession, address: str) -> DataFrame:
    raw = spark.read.format("kafka").options(**at(address), subscribe="told").load()
    return raw.select(F.from_json(F.col("value").cast("string"), NOTE).alias("note")).select("note.*")


if __name__ == "__main__":
    main(session("offers", "local[2]", {"spark.jars.packages": CONNECTOR, "spark.sql.shuffle.partitions": "2"}), sys.argv[1])
