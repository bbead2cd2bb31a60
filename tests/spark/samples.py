"""Events and subscriptions that the Spark tests share: small, seeded, in eighths."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

import tidings as td
from tidings.spark.job.runner import SLOW_WORKER, STARTS

SPARK = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""The marks of a module that runs Spark."""
SCHEMA = td.Schema(
    {
        "price": td.Number(0, 100),
        "size": td.Number(0, 100),
        "brand": td.Category(),
        "place": td.Place(plane=True),
        "about": td.Words("as-is"),
    }
)
START = "2025-12-31T22:59:20Z"
"""Forty seconds before the year ends in Berlin."""
WORDS = np.array([f"w{i}" for i in range(12)])


def subscriptions(n: int, windows: bool = True) -> pa.Table:
    rng = np.random.default_rng(11)
    low, width = rng.integers(0, 800, n) / 8, rng.integers(40, 640, n) / 8
    corner, side = rng.integers(0, 64, (n, 2)) / 8, rng.integers(8, 48, (n, 2)) / 8
    everywhere = rng.random(n) < 0.4
    boxes = [None if none else box for none, box in zip(everywhere, np.hstack([corner, corner + side]).tolist(), strict=True)]
    words = [None if rng.random() < 0.7 else [str(w)] for w in rng.choice(WORDS, n)]
    brands = [None if rng.random() < 0.6 else [f"b{i % 5}", f"b{i % 3}"] for i in range(n)]
    columns = {
        "id": [f"s{i}" for i in range(n)],
        "score": rng.integers(0, 8, n) / 8,
        "price.lo": low,
        "price.hi": low + width,
        "place.box": pa.array(boxes, pa.list_(pa.float64())),
        "about.all": pa.array(words, pa.list_(pa.string())),
        "brand.in": pa.array(brands, pa.list_(pa.string())),
    }
    if windows:
        columns["k"] = pa.array([None if i % 7 == 0 else i % 4 for i in range(n)], pa.int32())
        columns["window"] = pa.array([(None, "20 s", "35 s", "7 events")[i % 4] if i % 7 else None for i in range(n)])
        columns["by"] = pa.array([(None, "-price", "size * 2")[i % 3] for i in range(n)])
        periods = [("day", "week", "month")[i % 3] if i % 9 == 5 and i % 7 else None for i in range(n)]
        columns["window"] = pa.array([p or w for p, w in zip(periods, columns["window"].to_pylist(), strict=True)])
        columns["tz"] = pa.array([None if p is None else "Europe/Berlin" for p in periods], pa.string())
        columns["per"] = pa.array([(None, "brand", "size", "brand", None)[i % 5] for i in range(n)], pa.string())
    return pa.table(columns)


def events(n: int) -> pa.Table:
    rng = np.random.default_rng(12)
    start = datetime.fromisoformat(START)
    begun = [start + timedelta(seconds=int(s)) for s in np.sort(rng.integers(1, 90, n))]
    lives = [None if rng.random() < 0.6 else at + timedelta(seconds=int(rng.integers(1, 40))) for at in begun]
    return pa.table(
        {
            "id": [f"e{i:04d}" for i in range(n)],
            "price": rng.integers(0, 800, n) / 8,
            "size": rng.integers(0, 800, n) / 8,
            "brand": [f"b{i}" for i in rng.integers(0, 6, n)],
            "place": [{"x": x, "y": y} for x, y in (rng.integers(0, 80, (n, 2)) / 8).tolist()],
            "about": [sorted({str(w) for w in rng.choice(WORDS, 4)}) for _ in range(n)],
            "time": pa.array(begun, pa.timestamp("us", "UTC")),
            "expires": pa.array(lives, pa.timestamp("us", "UTC")),
        }
    )


EVENTS = events(120)


def subscribe_paced(topic: td.Topic) -> None:
    """Every pace that a stream can have, with and without a list; a day ends in the middle of EVENTS."""
    topic.subscribe("few", "price >= 20", budget="9 per day", tz="Europe/Berlin", time=START)
    topic.subscribe("seldom", "price >= 10", cooldown="4 s", per="brand", time=START)
    topic.subscribe("both", "size >= 10", budget="12 per hour", cooldown="PT3S", by="size / (price - 50)", time=START)
    topic.subscribe("listed", k=2, window="20 s", by="-price", cooldown="5 s", per="brand", time=START)
    topic.subscribe("ending", budget="40 per day", expires="2025-12-31T23:00:10Z", time=START)
    topic.subscribe("daily", k=3, by="-price", per="brand", digest="day", tz="Europe/Berlin", time=START)
    topic.subscribe("timely", "size <= 50", k=2, digest="at 23:00", time=START)
    topic.subscribe("all", "price <= 30", digest="month", tz="Europe/Berlin", time=START)


def rows_of(table: pa.Table | DataFrame) -> list[tuple]:
    """The rows, in order; without a digest where there is none."""
    made = table if isinstance(table, pa.Table) else table.toArrow()
    return sorted(tuple(value for name, value in row.items() if name != "digest" or value is not None) for row in made.to_pylist())


def told(notes: Iterable[td.Notification]) -> list[tuple]:
    """The same of notifications."""
    digests = {note.id: [{**one, "at": datetime.fromisoformat(one["at"])} for one in note.digest] for note in notes}
    return sorted((note.id, *note, *([digests[note.id]] if digests[note.id] else [])) for note in notes)


def drain(stream: DataFrame, sink: Path, checkpoint: Path, **options: str) -> None:
    """Run a streaming query over all that is there, into Parquet; again, as a job does, if its first worker was slow."""
    writer = stream.writeStream.format("parquet").option("path", str(sink)).option("checkpointLocation", str(checkpoint))
    for left in reversed(range(STARTS)):
        try:
            writer.options(**options).trigger(availableNow=True).start().awaitTermination()
            break
        except StreamingQueryException as error:
            if SLOW_WORKER not in str(error) or not left:
                raise
