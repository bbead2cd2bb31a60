"""Delta to Delta: subscriptions and offers are Delta tables, and so is what is told; a second run goes on where the first stopped.

`python -m examples.spark_delta`: Spark brings Delta Lake from Maven Central.
"""

from __future__ import annotations

import tempfile

from pyspark.sql import SparkSession

import tidings as td
from tidings.spark import build, match, notify, session

DELTA = "io.delta:delta-spark_4.1_2.13:4.1.0"
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": "2",
}
SCHEMA = {"price": td.Number(0, 10_000), "brand": td.Category()}
SUBSCRIPTIONS = [("ann", "price <= 500", 1, "1 hour", "-price"), ("bob", "brand = 'Nokia'", None, None, None)]


def main(spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory() as work:
        filters = spark.createDataFrame(SUBSCRIPTIONS, "id string, filter string, k int, window string, by string")
        filters.write.format("delta").save(f"{work}/subscriptions")
        build(spark.read.format("delta").load(f"{work}/subscriptions"), f"{work}/topic", "offers", SCHEMA, time="2026-11-01T08:00Z")

        write(spark, [("e1", 300.0, "Nokia", "2026-11-01 09:00:00"), ("e2", 450.0, "Huawei", "2026-11-01 09:01:00")], work)
        show("first", run(spark, work))
        write(spark, [("e3", 200.0, "Nokia", "2026-11-01 09:02:00")], work)
        show("then", [row for row in run(spark, work) if row[1] == "e3"])


def write(spark: SparkSession, offers: list[tuple[str, float, str, str]], work: str) -> None:
    rows = spark.createDataFrame(offers, "id string, price double, brand string, time string")
    rows.selectExpr("id", "price", "brand", "timestamp(time) AS time").write.format("delta").mode("append").save(f"{work}/offers")


def run(spark: SparkSession, work: str) -> list[tuple[str, str, str]]:
    """Tell of what has come since the last run; all that was told so far."""
    offers = spark.readStream.format("delta").load(f"{work}/offers")
    told = notify(match(offers, f"{work}/topic", ranking=True), f"{work}/topic").writeStream.format("delta")
    told.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True).start(f"{work}/told").awaitTermination()
    rows = spark.read.format("delta").load(f"{work}/told").select("subscription", "event", "why").collect()
    return sorted(tuple(row) for row in rows)


def show(when: str, rows: list[tuple[str, str, str]]) -> None:
    print(f"{when}: {', '.join(f'{who} hears of {event} ({why})' for who, event, why in rows)}")


if __name__ == "__main__":
    main(session("offers", "local[2]", {"spark.jars.packages": DELTA, **SETTINGS}))
