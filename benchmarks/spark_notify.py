"""The pipeline's speed with state: `notify` alone, and the latency of `match` and `notify` at 10,000 events/s, on two local cores.

`notify`: matches from Parquet, 200,000 a micro-batch, of random subscriptions with k = 20 and a window that holds all of them;
first micro-batches that give every subscription ten matches, then those that are measured. All of these matches are told, since
nobody's list is full: the most that there can be to write. Latency: Spark's rate source, 100,000 subscriptions to a place and a
price with k = 20 and a window of ten minutes, about two matches an event. A micro-batch starts when the last one has ended; the
first WARM of them compile, catch up and do not count.

Rates are of the median of the micro-batches' own time; `..._by_cpu` is what the CPU seconds of the JVM and its workers would allow,
if they were spread evenly over two cores, which a busy machine changes less. An event's latency is the time that its micro-batch
takes, and half of the time in which that one's events came.

`python -m benchmarks.spark_notify [notify | latency] [subscriptions]`: if nothing is named both, `notify` also with a million
subscriptions; only that run is stored.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import tidings as td
from benchmarks import workloads
from benchmarks.spark import spent
from experiments.report import provenance
from tidings.spark import build, match, notify, session

SIZES = (100_000, 1_000_000)
ROWS, PER_EVENT, FILL, MEASURED, CORES = 200_000, 100, 10, 10, 2
EVENTS_PER_SECOND, SECONDS, WARM = 10_000, 60, 30
RESULTS = Path(__file__).parent / "results" / "spark_notify.json"


def bench_notify(spark: SparkSession, subscriptions: int, folder: Path) -> dict[str, Any]:
    names = workloads.names("s", subscriptions)
    table = pa.table({"id": names, "k": np.full(subscriptions, 20, np.int32), "window": ["1 hour"] * subscriptions})
    build(spark.createDataFrame(table).repartition(CORES), folder / "topic", "bench", td.Schema({"price": td.Number()}), time=0)
    rows, source, rng = [subscriptions] * FILL + [ROWS] * MEASURED, folder / "matches", np.random.default_rng(1)
    source.mkdir()
    for number, count in enumerate(rows):
        event = np.arange(count) // PER_EVENT + number * max(rows)
        made = {
            "event": pa.array(event).cast(pa.string()),
            "subscription": names.take(pa.array(rng.integers(0, subscriptions, count))),
            "score": rng.random(count),
            "relevance": rng.random(count),
            "time": event + 1,
            "expires": pa.nulls(count, pa.int64()),
        }
        pq.write_table(pa.table(made), source / f"{number:03d}.parquet", row_group_size=count // CORES)
        time.sleep(0.01)
    form = spark.read.parquet(str(source / "000.parquet")).schema
    stream = spark.readStream.schema(form).option("maxFilesPerTrigger", "1").parquet(str(source))
    query = started(notify(stream, folder / "topic"), folder / "checkpoint", availableNow=True)
    begun = 0.0
    while query.isActive:
        last = query.lastProgress
        if last is not None and last["batchId"] == FILL - 1 and not begun:
            begun = spent()
        time.sleep(0.05)
    cpu = (spent() - begun) / MEASURED
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"] == ROWS][-MEASURED:]
    return {
        "subscriptions": subscriptions,
        "matches_per_second": ROWS / float(np.median(seconds)),
        "matches_per_second_by_cpu": ROWS / (cpu / CORES),
        "cpu_seconds_a_batch": cpu,
        "batch_seconds": seconds,
    }


def started(frame: DataFrame, checkpoint: Path, **trigger: Any) -> StreamingQuery:
    return frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()


def bench_latency(spark: SparkSession, subscriptions: int, folder: Path) -> dict[str, Any]:
    schema = td.Schema({"price": td.Number(0, 1000), "place": td.Place(plane=True)})
    rng = np.random.default_rng(2)
    corner, low = rng.random((subscriptions, 2)) * 1000, rng.random(subscriptions) * 800
    box = pa.FixedSizeListArray.from_arrays(pa.array(np.hstack([corner, corner + 10]).ravel()), 4)
    table = pa.table(
        {
            "id": workloads.names("s", subscriptions),
            "price.lo": low,
            "price.hi": low + 200,
            "place.box": box,
            "k": np.full(subscriptions, 20, np.int32),
            "window": ["10 min"] * subscriptions,
            "by": ["-price"] * subscriptions,
        }
    )
    build(spark.createDataFrame(table).repartition(CORES), folder / "topic", "bench", schema, time=0)
    rate = spark.readStream.format("rate").option("rowsPerSecond", EVENTS_PER_SECOND).option("numPartitions", CORES).load()
    random = [f"pmod(xxhash64(value, {seed}), 1000000) / 1000D" for seed in range(3)]
    events = rate.selectExpr(
        "cast(value as string) as id",
        "timestamp as time",
        f"{random[0]} as price",
        f"named_struct('x', {random[1]}, 'y', {random[2]}) as place",
    )
    notes = notify(match(events, folder / "topic", ranking=True), folder / "topic")
    query = started(notes, folder / "checkpoint", processingTime="0 seconds")
    try:
        while query.isActive and len(query.recentProgress) < WARM:
            time.sleep(1)
        query.awaitTermination(SECONDS)
    finally:
        query.stop()
    return {"subscriptions": subscriptions, "events_per_second": EVENTS_PER_SECOND, **latencies(query.recentProgress)}


def latencies(reports: list[Any]) -> dict[str, Any]:
    """Of the micro-batches of the last SECONDS: those before them warm up."""
    begun = np.array([np.datetime64(report["timestamp"].rstrip("Z"), "ms") for report in reports]).astype(float) / 1000
    took = np.array([report["durationMs"]["triggerExecution"] / 1000 for report in reports])
    rows = np.array([report["numInputRows"] for report in reports])
    kept = np.flatnonzero((rows > 0) & (begun > begun[-1] - SECONDS))[1:]
    return {
        "micro_batches": len(kept),
        "events": int(rows[kept].sum()),
        "batch_seconds_p50": float(np.median(took[kept])),
        "batch_seconds_p95": float(np.percentile(took[kept], 95)),
        "event_seconds_p50": float(np.median(took[kept] + (begun[kept] - begun[kept - 1]) / 2)),
    }


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:] if text.isdigit()]
    benches = {"notify": (bench_notify, sizes or SIZES), "latency": (bench_latency, sizes or SIZES[:1])}
    asked = [name for name in benches if name in sys.argv[1:]]
    settings = {"spark.sql.shuffle.partitions": str(CORES), "spark.driver.memory": "4g"}
    settings["spark.sql.streaming.numRecentProgressUpdates"] = "1000"
    spark = session("tidings-bench", f"local[{CORES}]", settings)
    results: dict[str, Any] = {**provenance(), **{name: [] for name in benches}}
    for name in asked or benches:
        bench, counts = benches[name]
        for subscriptions in counts:
            with tempfile.TemporaryDirectory() as folder:
                results[name].append(bench(spark, subscriptions, Path(folder)))
            print(json.dumps(results[name][-1]), flush=True)
    if not asked and not sizes:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
