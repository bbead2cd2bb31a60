"""The other direction on Spark: a DataFrame of wishes looks through the offers that stand, in a topic or in a DataFrame."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import tidings as td
from tidings.spark import search, session

SCHEMA = {"price": td.Number(0, 10_000), "brand": td.Category()}
OFFERS = [
    {"id": "e1", "price": 3200, "brand": "Huawei", "expires": "2026-12-05"},
    {"id": "e2", "price": 300, "brand": "Nokia"},
    {"id": "e3", "price": 90, "brand": "Nokia"},
]
WISHES = [("ann", "price < 400", "1"), ("bob", "brand = 'Huawei' OR price < 100", "1000 - price")]


def main(spark: SparkSession) -> None:
    wishes = spark.createDataFrame(WISHES, "id string, filter string, score string")
    with tempfile.TemporaryDirectory() as work:
        with td.open(f"{work}/topic", "offers", SCHEMA) as topic:
            topic.publish_batch(OFFERS, time="2026-11-01")
        show("on 2 November", search(wishes, f"{work}/topic", time="2026-11-02"))
        show("at Christmas", search(wishes, f"{work}/topic", time="2026-12-24"))

        offers = spark.createDataFrame([("e7", 20.0, "Nokia")], "id string, price double, brand string")
        show("in a DataFrame", search(wishes, offers, SCHEMA, snapshot=Path(work) / "snapshot"))


def show(what: str, found) -> None:
    rows = sorted(tuple(row) for row in found.collect())
    print(f"{what}: {', '.join(f'{wish} finds {offer} ({score:g})' for wish, offer, score in rows)}")


if __name__ == "__main__":
    main(session("wishes", "local[2]"))
