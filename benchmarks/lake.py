"""A topic of millions in parts on an S3 server: built on Spark, matched, changed by `follow`, notified, and judged by brute force.

The server is real (versitygw, on loopback, over a folder of this machine), the cache of the machine is empty at first, and
everything runs on two local cores. `python -m benchmarks.lake [subscriptions] [parts]`: two million in 16 parts without numbers.
The workload is `ranges-place`, made in slices so that it never stands in memory as a whole; one subscription in ten has k and a
window.

Costs are CPU seconds of all that works (`benchmarks.spark.cost_of`) and wall time, on a machine that may be busy. `memory_mb` is
the most that the driver, the JVM and their workers held together, shared pages counted once (PSS). Brute force is NumPy over the
columns as they were given, for SAMPLE events: nothing of the engine is in it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks import workloads
from benchmarks.costs import Cost, cost_of, least
from benchmarks.spark import CORES
from experiments.report import provenance
from tests.durable.lake.s3_server import S3Server
from tidings.durable.snapshots import snapshots_at
from tidings.spark import build, follow, match, notify, session

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
PARTS = int(sys.argv[2]) if len(sys.argv) > 2 else 16
SLICE = 500_000
EVENTS, NOTIFIED, SAMPLE = 100_000, 10_000, 40
CHANGED = 10_000
ONE_TOPIC = 2_000_000
"""Up to so many the same is measured on one topic, too."""
REPEATS = 3
RANKED = 10
"""One subscription in so many has k and a window."""
URL = "s3a://bucket/topic"
RESULTS = Path(__file__).parent / "results" / "lake.json"


class Memory:
    """The most that this process and all below it hold, looked at twice a second while the block runs."""

    def __enter__(self) -> Memory:
        self.most, self._stop = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            held = 0.0
            for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                try:
                    held += process.memory_full_info().pss / 1e6
                except psutil.Error:
                    continue
            self.most = max(self.most, held)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def subscriptions(folder: Path) -> None:
    """Files of a slice each; every slice draws its own, under ids of its own."""
    folder.mkdir()
    for number in range(-(-SIZE // SLICE)):
        count = min(SLICE, SIZE - number * SLICE)
        pq.write_table(slice_of(number, count), folder / f"{number:04d}.parquet")


def slice_of(number: int, count: int, prefix: str = "s") -> pa.Table:
    """The workload's rows, moved a little for each slice, so that no two are the same."""
    table = workloads.ranges_place(count, 1).subscriptions
    ids = pa.array(np.char.add(f"{prefix}{number}-", np.arange(count).astype(str)))
    box = np.asarray(table["place.box"].combine_chunks().values) + number / 1e4
    table = table.set_column(0, "id", ids).set_column(1, "place.box", pa.FixedSizeListArray.from_arrays(pa.array(box), 4))
    ranked = np.arange(count) % RANKED == 0
    table = table.append_column("k", pa.array(np.full(count, 3), pa.int32(), mask=~ranked))
    return table.append_column("window", pa.array(np.where(ranked, "1 hour", None)))


def changes() -> pa.Table:
    """Of the first slice some go, some come back with the place of another slice, and some are new."""
    gone = pa.table({"id": [f"s0-{i}" for i in range(CHANGED // 4)], "op": ["delete"] * (CHANGED // 4)})
    moved = slice_of(9_999, CHANGED // 2)
    moved = moved.set_column(0, "id", pa.array([f"s0-{i}" for i in range(CHANGED // 4, CHANGED // 4 * 3)]))
    fresh = slice_of(5_555, CHANGED // 4, "n")
    return pa.concat_tables([gone, moved, fresh], promote_options="default").append_column("seq", pa.array(range(CHANGED)))


def brute(events: pa.Table, files: list[Path], change: pa.Table | None) -> set[tuple[str, str]]:
    """(event, subscription) of every match, from the definition, file by file."""
    found: set[tuple[str, str]] = set()
    later = set() if change is None else set(change["id"].to_pylist())
    tables = [(pq.read_table(file), True) for file in files]
    if change is not None:
        set_anew = change.filter(pa.array([op is None for op in change["op"].to_pylist()]))
        tables.append((set_anew, False))
    for table, old in tables:
        names = np.asarray(table["id"])
        box = np.asarray(table["place.box"].combine_chunks().flatten()).reshape(-1, 4)
        for event in events.to_pylist():
            x, y = event["place"]["x"], event["place"]["y"]
            holds = (box[:, 0] <= x) & (x <= box[:, 2]) & (box[:, 1] <= y) & (y <= box[:, 3])
            rows = np.flatnonzero(holds)
            for row in rows.tolist():
                one = table.slice(row, 1).to_pylist()[0]
                if all(_within(event, one, column) for column in one if column.endswith(".lo")) and not (
                    old and names[row] in later
                ):
                    found.add((event["id"], str(names[row])))
    return found


def _within(event: dict[str, Any], subscription: dict[str, Any], column: str) -> bool:
    name = column.removesuffix(".lo")
    low, high, value = subscription[column], subscription[f"{name}.hi"], event.get(name)
    return low is None and high is None if value is None else (low is None or low <= value) and (high is None or value <= high)


def sampled(events: pa.Table, matches: DataFrame) -> pa.Table:
    """Some events whatever they match, and as many again that are said to match somebody."""
    found = [row["event"] for row in matches.select("event").distinct().limit(SAMPLE).collect()]
    wanted = pa.array([*events["id"].slice(0, SAMPLE).to_pylist(), *found])
    return events.filter(pc.is_in(events["id"], wanted))


def pairs(frame: DataFrame) -> set[tuple[str, str]]:
    return {(row["event"], row["subscription"]) for row in frame.toArrow().to_pylist()}


def lake_bytes(server: S3Server) -> dict[str, Any]:
    files = [path for path in (server.folder / "bucket" / "topic" / "objects").iterdir() if path.is_file()]
    kinds = sorted({path.suffix for path in files})
    return {f"{kind[1:]}_mb": sum(path.stat().st_size for path in files if path.suffix == kind) / 1e6 for kind in kinds}


def _say(what: str, figures: dict[str, Any]) -> None:
    """A line when a part is done: the whole takes an hour at twenty million."""
    print(f"{time.strftime('%H:%M:%S')} {what}: {json.dumps(figures)}", flush=True)


def shown(cost: Cost) -> dict[str, float]:
    return {"wall_s": cost.wall, "cpu_s": cost.cpu}


def bench(spark: SparkSession, server: S3Server, folder: Path) -> dict[str, Any]:
    load = workloads.ranges_place(1_000, EVENTS)
    subscriptions(folder / "subscriptions")
    pq.write_table(load.events, folder / "events.parquet")
    files = sorted((folder / "subscriptions").iterdir())
    with Memory() as memory:
        made = cost_of(lambda: build(folder / "subscriptions", URL, "places", load.schema, part_by="place", parts=PARTS))
    result: dict[str, Any] = {"subscriptions": SIZE, "parts": PARTS, "build": {**shown(made), "memory_mb": memory.most}}
    result["lake"] = lake_bytes(server)
    _say("built", result)
    frame = match(spark.createDataFrame(load.events), URL)
    noop = frame.write.format("noop").mode("overwrite")
    cold = cost_of(lambda: noop.save())
    warm = least(lambda: noop.save(), REPEATS)
    result["match"] = {"events": EVENTS, "first": shown(cold), "warm": shown(warm), "cpu_us_per_event": warm.cpu / EVENTS * 1e6}
    _say("matched", result["match"])
    if SIZE <= ONE_TOPIC:
        result["match"] |= beside_one_topic(spark, load, folder, warm)
    sample = sampled(load.events, frame)
    asked = spark.createDataFrame(sample)
    want = brute(sample, files, None)
    result["equal_to_brute_force"] = {
        "sample_events": len(sample),
        "matches": len(want),
        "before": pairs(match(asked, URL)) == want,
    }
    _say("judged", result["equal_to_brute_force"])
    change = changes()
    (folder / "changes").mkdir()
    pq.write_table(change, folder / "changes" / "0.parquet")
    stream = spark.readStream.schema(spark.createDataFrame(change).schema).parquet(str(folder / "changes"))
    trigger: dict[str, object] = {"availableNow": True}
    before = lake_bytes(server)
    followed = cost_of(lambda: follow(stream, URL, folder / "followed", trigger=trigger).awaitTermination())
    after = lake_bytes(server)
    grown = sum(after.values()) - sum(before.values())
    result["follow"] = {"changes": CHANGED, **shown(followed), "uploaded_mb": grown, "manifest": snapshots_at(URL).newest().number}
    _say("followed", result["follow"])
    result["equal_to_brute_force"]["after"] = pairs(match(asked, URL)) == brute(sample, files, change)
    result["notify"] = notified(spark, load.events.slice(0, NOTIFIED), folder)
    _say("notified", result["notify"])
    result["equal_to_brute_force"] |= {"told": told_equals(spark, sample, files, change)}
    return result


def beside_one_topic(spark: SparkSession, load: workloads.Workload, folder: Path, parts: Cost) -> dict[str, float]:
    """The same events on the same subscriptions in one folder, in the same run."""
    build(folder / "subscriptions", folder / "whole", "places", load.schema)
    noop = match(spark.createDataFrame(load.events), folder / "whole").write.format("noop").mode("overwrite")
    noop.save()
    whole = least(lambda: noop.save(), REPEATS)
    return {"one_topic_cpu_us_per_event": whole.cpu / EVENTS * 1e6, "times_one_topic": parts.cpu / whole.cpu}


def notified(spark: SparkSession, events: pa.Table, folder: Path) -> dict[str, Any]:
    (folder / "stream").mkdir()
    pq.write_table(events, folder / "stream" / "0.parquet")
    stream = spark.readStream.schema(spark.createDataFrame(events).schema).parquet(str(folder / "stream"))
    notes = notify(match(stream, URL, ranking=True), URL)
    writer = notes.writeStream.format("parquet").option("path", str(folder / "notes"))
    writer = writer.option("checkpointLocation", str(folder / "told")).trigger(availableNow=True)
    cost = cost_of(lambda: writer.start().awaitTermination())
    return {"events": NOTIFIED, **shown(cost), "notifications": spark.read.parquet(str(folder / "notes")).count()}


def told_equals(spark: SparkSession, sample: pa.Table, files: list[Path], change: pa.Table) -> bool:
    """Who has no window hears of every match of his, and nobody else of anything else."""
    notes = notify(match(spark.createDataFrame(sample), URL, ranking=True), URL).where("why = 'matched'").toArrow()
    ranked = {id for table in [*map(pq.read_table, files), change] for id in _ranked(table)}
    want = {(event, who) for event, who in brute(sample, files, change) if who not in ranked}
    return {(row["event"], row["subscription"]) for row in notes.to_pylist()} == want


def _ranked(table: pa.Table) -> list[str]:
    ids: list[str] = table.filter(table["k"].is_valid())["id"].to_pylist()
    return ids


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        server = S3Server(Path(root) / "s3")
        os.environ |= {**server.environment, "TIDINGS_CACHE": f"{root}/cache"}
        try:
            memory = {"spark.driver.memory": "6g", "spark.local.dir": f"{root}/local", "spark.sql.shuffle.partitions": str(CORES)}
            spark = session("tidings-lake", f"local[{CORES}]", memory)
            options = os.environ.get("JDK_JAVA_OPTIONS", "")
            result = {**provenance(), "java_options": options, "load": os.getloadavg()[0], **bench(spark, server, Path(root))}
            spark.stop()
        finally:
            server.stop()
    print(json.dumps(result, indent=1), flush=True)
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    RESULTS.write_text(json.dumps([*kept, result], indent=1) + "\n")


if __name__ == "__main__":
    main()
