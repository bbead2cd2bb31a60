"""The pipeline's speed without state: `build` and `match`, Parquet to Parquet, on two local cores, beside the embedded engine and a
Spark SQL join.

Costs are CPU seconds of everything that works: the JVM and its Python workers, user and system, so a busy machine does not change
them; `per second and core` is the work divided by them. Wall time stands beside. The embedded engine's is CPU time of one thread on
batches of as many events as Spark hands its workers at a time. Under `files`, `build` and `match` are given the path of the Parquet
files, which the workers then read; under `frame`, what `spark.read.parquet` makes of it. The join is run on a slice and
extrapolated by pairs.

Each is run several times and the least counts: the first runs of a JVM are those of its compiler.

`python -m benchmarks.spark [subscriptions]`: a million without a number; only that run is stored.
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
from benchmarks.costs import Cost, least
from experiments.report import provenance
from tidings.durable.manifest_view import View
from tidings.spark import build, match, session

FULL = 1_000_000
SIZE = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else FULL
BATCH, BATCHES = 100_000, 20
CORES, REPEATS = 2, 5
WORKLOADS = {"ranges-place": workloads.ranges_place, "words-box": workloads.words_box}
RESULTS = Path(__file__).parent / "results" / "spark.json"


def embedded_rate(folder: Path, events: pa.Table) -> float:
    """Events a second of CPU time of one thread, the best of some."""
    view, times = View.open(folder), []
    for _ in range(REPEATS + 1):
        begun = time.process_time()
        view.match(events, time=0)
        times.append(time.process_time() - begun)
    return len(events) / min(times)


def bench(spark: SparkSession, name: str, folder: Path) -> dict[str, Any]:
    load = WORKLOADS[name](SIZE, BATCH)
    source = folder / "events"
    write_subscriptions(load.subscriptions, folder / "subscriptions")
    write_events(load.events, source)
    given = {"files": folder / "subscriptions", "frame": spark.read.parquet(str(folder / "subscriptions"))}
    names = iter("abcd")
    building = {h: least(lambda g=g: build(g, folder / next(names), name, load.schema), 2) for h, g in given.items()}
    topic = folder / "b"
    frames = {"files": match(source, topic), "frame": match(spark.read.parquet(str(source)), topic)}
    matching = {h: least(lambda f=f: f.write.mode("overwrite").parquet(str(folder / "out"))) for h, f in frames.items()}
    shared = memory(topic)
    embedded = embedded_rate(topic, load.events)
    events = BATCH * BATCHES
    return {
        "workload": name,
        "subscriptions": SIZE,
        "events": events,
        "matches": spark.read.parquet(str(folder / "out")).count(),
        "embedded_events_per_second_core": embedded,
        **{how: figures(building[how], matching[how], embedded) for how in given},
        "join_times_slower": join_ratio(spark, load, matching["frame"].cpu / events) if name == "ranges-place" else None,
        **shared,
    }


def figures(building: Cost, matching: Cost, embedded: float) -> dict[str, float]:
    rate = BATCH * BATCHES / matching.cpu
    return {
        "build_wall_s": building.wall,
        "build_per_second": SIZE / building.wall,
        "build_per_cpu_second_times_cores": SIZE / building.cpu * CORES,
        "match_wall_s": matching.wall,
        "match_cpu_s": matching.cpu,
        "spark_events_per_second_core": rate,
        "share_of_embedded": rate / embedded,
    }


def write_subscriptions(subscriptions: pa.Table, folder: Path) -> None:
    """A file for each core."""
    folder.mkdir()
    each = SIZE // CORES
    for core in range(CORES):
        pq.write_table(subscriptions.slice(core * each, each if core + 1 < CORES else None), folder / f"{core}.parquet")


def write_events(events: pa.Table, folder: Path) -> None:
    """The same events so many times under other ids, in a file for each core."""
    folder.mkdir()
    for core in range(CORES):
        parts = []
        for number in range(core, BATCHES, CORES):
            ids = pa.array(np.char.add(f"{number}-", np.asarray(events["id"]).astype(str)))
            parts.append(events.set_column(events.column_names.index("id"), "id", ids))
        pq.write_table(pa.concat_tables(parts), folder / f"{core}.parquet")


def join_ratio(spark: SparkSession, load: workloads.Workload, cpu_per_event: float) -> float:
    """How many times the CPU time of `match` a nested-loop join takes, by what some events and 20,000 subscriptions take."""
    few, many = 50, 20_000
    corners = np.array(load.subscriptions["place.box"].slice(0, many).to_pylist())
    names = [c for c in load.subscriptions.column_names if c.endswith((".lo", ".hi"))]
    columns = {c.replace(".", "_"): load.subscriptions[c].slice(0, many) for c in names}
    boxes = {f"b{i}": corners[:, i] for i in range(4)}
    ids = load.subscriptions["id"].slice(0, many)
    subscriptions = spark.createDataFrame(pa.table({"sid": ids, **boxes, **columns})).cache()
    events = spark.createDataFrame(load.events.slice(0, few)).repartition(CORES).cache()
    holds = F.col("place.x").between(F.col("b0"), F.col("b2")) & F.col("place.y").between(F.col("b1"), F.col("b3"))
    for attribute in sorted({c.split(".")[0] for c in names}):
        low, high = F.col(f"{attribute}_lo"), F.col(f"{attribute}_hi")
        holds = holds & (low.isNull() | (F.col(attribute) >= low)) & (high.isNull() | (F.col(attribute) <= high))
    joined = events.join(F.broadcast(subscriptions), holds)
    noop(joined)
    fixed = least(lambda: noop(events))
    cost = least(lambda: noop(joined))
    return (cost.cpu - fixed.cpu) / (few * many) * SIZE / cpu_per_event


def noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def memory(topic: Path) -> dict[str, Any]:
    """Megabytes of the Python workers that map the topic's segments: as often as mapped (RSS), and shared pages once (PSS)."""
    rows = []
    alive = [p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]
    for process in alive:
        mapped = [m for m in process.memory_maps(grouped=True) if m.path.startswith(str(topic / "segments"))]
        if mapped:
            whole = process.memory_full_info()
            rows.append((whole.rss, whole.pss, sum(m.rss for m in mapped), sum(m.pss for m in mapped)))
    sums = [sum(column) / 1e6 for column in zip(*rows, strict=True)] or [0.0] * 4
    names = ("workers_rss_mb", "workers_pss_mb", "segments_rss_mb", "segments_pss_mb")
    files = sum(file.stat().st_size for file in (topic / "segments").iterdir())
    return {"workers": len(rows), **dict(zip(names, sums, strict=True)), "segment_files_mb": files / 1e6}


def main() -> None:
    spark = session("tidings-bench", f"local[{CORES}]", {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "4g"})
    results: dict[str, Any] = {**provenance(), "runs": []}
    for name in WORKLOADS:
        with tempfile.TemporaryDirectory() as folder:
            results["runs"].append(bench(spark, name, Path(folder)))
            print(json.dumps(results["runs"][-1], indent=1), flush=True)
    if SIZE == FULL:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
