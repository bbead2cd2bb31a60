"""The pipeline's speed: `match` and `build` on two local cores, beside the embedded engine and a Spark SQL join.

Ratios are of one run. Spark's time is wall time, since its work is spread over a JVM and two Python workers; the embedded engine's
is CPU time of one thread, so `events/s/core` of Spark is its rate divided by two. The join is run on a slice and extrapolated.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import workloads
from experiments.report import provenance
from tidings.engine.view import View
from tidings.spark import build, match, session

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 1_000_000
EVENTS = 100_000
CORES = 2
RESULTS = Path(__file__).parent / "results" / "spark.json"


def timed(work: Any) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def embedded_rate(folder: Path, events: pa.Table) -> float:
    """Events a second of CPU time of one thread, the best of three."""
    view = View.open(folder)
    best = 0.0
    for _ in range(3):
        begun = time.process_time()
        view.match(events, time=0)
        best = max(best, len(events) / (time.process_time() - begun))
    return best


def bench_match(spark: SparkSession, name: str, folder: Path) -> dict[str, Any]:
    load = {"ranges-place": workloads.ranges_place, "words-box": workloads.words_box}[name](SIZE, EVENTS)
    source = folder / "events.parquet"
    pq.write_table(load.subscriptions, folder / "subscriptions.parquet", row_group_size=SIZE // 4)
    pq.write_table(load.events, source, row_group_size=EVENTS // 4)
    topic = folder / "topic"
    building, count = timed(lambda: build(spark.read.parquet(str(folder / "subscriptions.parquet")), topic, name, load.schema))
    frame = match(spark.read.parquet(str(source)).repartition(CORES).cache(), topic)
    rows = frame.count()
    times = [timed(lambda: frame.write.mode("overwrite").parquet(str(folder / "out")))[0] for _ in range(3)]
    embedded = embedded_rate(topic, load.events)
    rate = EVENTS / min(times) / CORES
    return {
        "workload": name,
        "subscriptions": SIZE,
        "build_per_second": count / building,
        "matches": rows,
        "spark_events_per_second_core": rate,
        "embedded_events_per_second_core": embedded,
        "share_of_embedded": rate / embedded,
        "join_times_slower": join_ratio(spark, load, EVENTS / min(times)) if name == "ranges-place" else None,
        **memory(),
    }


def join_ratio(spark: SparkSession, load: workloads.Workload, rate: float) -> float:
    """How many times slower a nested-loop join is: a slice of 20 events and 20,000 subscriptions, extrapolated by pairs."""
    slice_of, few = 20_000, 20
    corners = np.array(load.subscriptions["place.box"].slice(0, slice_of).to_pylist())
    names = [c for c in load.subscriptions.column_names if c.endswith((".lo", ".hi"))]
    columns = {c.replace(".", "_"): load.subscriptions[c].slice(0, slice_of) for c in names}
    boxes = {f"b{i}": corners[:, i] for i in range(4)}
    ids = load.subscriptions["id"].slice(0, slice_of)
    subscriptions = spark.createDataFrame(pa.table({"sid": ids, **boxes, **columns})).cache()
    events = spark.createDataFrame(load.events.slice(0, few)).cache()
    holds = F.col("place.x").between(F.col("b0"), F.col("b2")) & F.col("place.y").between(F.col("b1"), F.col("b3"))
    for attribute in sorted({c.split(".")[0] for c in names}):
        low, high = F.col(f"{attribute}_lo"), F.col(f"{attribute}_hi")
        holds = holds & (low.isNull() | (F.col(attribute) >= low)) & (high.isNull() | (F.col(attribute) <= high))
    joined = events.join(F.broadcast(subscriptions), holds)
    noop(joined)
    seconds = min(timed(lambda: noop(joined))[0] for _ in range(2))
    return rate * (seconds / (few * slice_of)) * SIZE


def memory() -> dict[str, float]:
    """Megabytes of the Python workers: shared pages counted once each (PSS), and as often as mapped (RSS)."""
    workers = [p for p in psutil.process_iter(["cmdline"]) if "pyspark.daemon" in " ".join(p.info["cmdline"] or ())]
    infos = [worker.memory_full_info() for worker in workers]
    return {"workers_pss_mb": sum(i.pss for i in infos) / 1e6, "workers_rss_mb": sum(i.rss for i in infos) / 1e6}


def main() -> None:
    spark = session("tidings-bench", f"local[{CORES}]", {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "4g"})
    results: dict[str, Any] = {**provenance(), "match": []}
    for name in ("ranges-place", "words-box"):
        with tempfile.TemporaryDirectory() as folder:
            results["match"].append(bench_match(spark, name, Path(folder)))
            print(json.dumps(results["match"][-1]), flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
