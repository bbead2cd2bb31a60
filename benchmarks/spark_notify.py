"""The pipeline's speed with state: `notify` alone, a micro-batch beside the same plan with empty functions, and the latency of
`match` and `notify` at 10,000 events/s, on two local cores.

`notify`: matches from Parquet, 200,000 a micro-batch, of random subscriptions with k = 20 and a window that holds all of them;
first micro-batches that give every subscription ten matches, then those that are measured. All of these matches are told, since
nobody's list is full: the most that there can be to write. `batch`: micro-batches of 2,000 events, about 20 matches each, through
`match` and `notify`; `empty` is the same plan, of which each Python function does nothing but what Spark asks of it: records
without a body for every shard, a head and a step kept for each, and no notification. Latency: Spark's rate source, 100,000
subscriptions to a place and a price with k = 20 and a window of ten minutes, about two matches an event. A micro-batch starts when
the last one has ended; the first WARM of them compile, catch up and do not count.

Rates are of the median of the micro-batches' own time; `..._by_cpu` is what the CPU seconds of the JVM and its workers would allow,
if they were spread evenly over two cores, which a busy machine changes less. An event's latency is the time that its micro-batch
takes, and half of the time in which that one's events came.

`python -m benchmarks.spark_notify [notify | batch | latency] [subscriptions]`: if nothing is named all of it, `notify` also with a
million subscriptions; only that run is stored.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

import tidings as td
from benchmarks import workloads
from benchmarks.costs import spent
from experiments.report import provenance
from tidings.spark import build, match, notify, session
from tidings.spark.frames.answer_columns import NOTIFICATION
from tidings.spark.frames.arrow_stage import Batches, spark_type
from tidings.spark.frames.id_hash import even_shards
from tidings.spark.frames.metrics import MANIFEST
from tidings.spark.frames.worker_upkeep import begin_task
from tidings.spark.state.shard_records import PACKED

SIZES = (100_000, 1_000_000)
ROWS, PER_EVENT, FILL, MEASURED, CORES = 200_000, 100, 10, 10, 2
EVENTS_PER_SECOND, SECONDS, WARM = 10_000, 60, 30
EVENTS, BATCHES = 2_000, 30
KINDS = {"wall": "batch_seconds_p50", "cpu": "cpu_seconds_a_batch"}
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


def bench_batch(spark: SparkSession, subscriptions: int, folder: Path) -> dict[str, Any]:
    schema = td.Schema({"price": td.Number(0, 1000), "place": td.Place(plane=True)})
    rng, side = np.random.default_rng(3), 1000 * (20 / subscriptions / 0.2) ** 0.5
    build(spark.createDataFrame(near(rng, subscriptions, side)).repartition(CORES), folder / "topic", "bench", schema, time=0)
    (folder / "events").mkdir()
    for number in range(BATCHES):
        rows = np.arange(EVENTS) + number * EVENTS
        place = pa.StructArray.from_arrays([pa.array(axis) for axis in rng.random((2, EVENTS)) * 1000], ["x", "y"])
        columns = {"id": pa.array(rows).cast(pa.string()), "price": rng.random(EVENTS) * 1000, "place": place}
        times = {"time": pa.array(rows * 1000 + 1, pa.timestamp("us", "UTC"))}
        pq.write_table(pa.table(columns | times), folder / "events" / f"{number:03d}.parquet", row_group_size=EVENTS // CORES)
        os.utime(folder / "events" / f"{number:03d}.parquet", (1_700_000_000 + number,) * 2)
    form = spark.read.parquet(str(folder / "events")).schema
    reader = spark.readStream.schema(form).option("maxFilesPerTrigger", "1")
    topic, found = folder / "topic", {}
    frames = {
        "ours": lambda: notify(match(reader.parquet(str(folder / "events")), topic, ranking=True), topic),
        "empty": lambda: empty(reader.parquet(str(folder / "events"))),
    }
    for turn in range(2):
        for name, frame in frames.items():
            query = started(frame(), folder / f"{name}{turn}", availableNow=True)
            begun = 0, 0.0
            while query.isActive:
                last = query.lastProgress
                if last is not None and last["batchId"] >= BATCHES // 2 and not begun[1]:
                    begun = last["batchId"], spent()
                time.sleep(0.05)
            cpu = (spent() - begun[1]) / (BATCHES - 1 - begun[0])
            seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"]][
                BATCHES // 2 :
            ]
            metrics = [row.asDict() for row in query.lastProgress["observedMetrics"].values()]
            counts = {key: row[key] for row in metrics for key in ("matched", "told") if key in row}
            found[name] = {"batch_seconds_p50": float(np.median(seconds)), "cpu_seconds_a_batch": cpu, **counts}
    ratios = {f"times_empty_by_{kind}": found["ours"][key] / found["empty"][key] for kind, key in KINDS.items()}
    return {"subscriptions": subscriptions, "events_a_batch": EVENTS, **found, **ratios}


def empty(events: DataFrame) -> DataFrame:
    """The plan of `match` and `notify` with functions that do nothing."""
    shards = even_shards(CORES)

    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        begin_task()
        for _ in batches:
            pass
        columns = {name: pa.array([0] * shards, kind) for name, kind in PACKED.items() if name not in ("shard", "body")}
        columns |= {"shard": pa.array(range(shards), pa.int32()), "body": pa.array([b""] * shards, pa.binary())}
        yield pa.record_batch([columns[name] for name in PACKED], names=list(PACKED))

    def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
        begin_task()
        for _ in batches:
            pass
        yield from ()

    packed = events.mapInArrow(pack, spark_type(PACKED))
    packed = packed.observe("empty match", F.sum("matched")).observe("empty shards", F.sum("rows")).where("clock IS NOT NULL")
    told = packed.select("shard", "clock", "body").groupBy("shard")
    told = told.transformWithState(EmptyProcessor(), spark_type({"body": pa.binary()}), "append", "none")
    notes = told.mapInArrow(unpack, spark_type(NOTIFICATION | {MANIFEST: pa.int64()}))
    return notes.observe("empty notify", F.count(F.lit(1)), F.max("at")).drop(MANIFEST)


class EmptyProcessor(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        begin_task()
        self.head = handle.getValueState("head", "body string")
        self.log = handle.getMapState("log", "step long", "body binary")

    def handleInputRows(self, key: tuple[int], rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        for _ in rows:
            pass
        step = int((self.head.get() or ("0",))[0]) + 1
        self.log.updateValue((step,), (b"",))
        self.head.update((str(step),))
        yield Row(body=b"")


def near(rng: np.random.Generator, subscriptions: int, side: float) -> pa.Table:
    """Boxes of this side and a fifth of the prices, k = 20 in ten minutes, the cheapest first."""
    corner, low = rng.random((subscriptions, 2)) * 1000, rng.random(subscriptions) * 800
    box = pa.FixedSizeListArray.from_arrays(pa.array(np.hstack([corner, corner + side]).ravel()), 4)
    return pa.table(
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


def started(frame: DataFrame, checkpoint: Path, **trigger: Any) -> StreamingQuery:
    return frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()


def bench_latency(spark: SparkSession, subscriptions: int, folder: Path) -> dict[str, Any]:
    schema = td.Schema({"price": td.Number(0, 1000), "place": td.Place(plane=True)})
    table = near(np.random.default_rng(2), subscriptions, 10)
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
    benches = {
        "notify": (bench_notify, sizes or SIZES),
        "batch": (bench_batch, sizes or [20_000]),
        "latency": (bench_latency, sizes or SIZES[:1]),
    }
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
