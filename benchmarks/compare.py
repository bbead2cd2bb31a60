"""Two trees of sources beside each other in one run: what users call most, in alternation, so that a slower day slows both.

    python -m benchmarks.compare OLD          # OLD is a checkout of another commit, with the calls named here
    python -m benchmarks.compare OLD words    # a million subscriptions by words and boxes, with words as they are and plain texts
    python -m benchmarks.compare OLD topkw    # the k nearest of the last 20,000 publications, 500 and 20,000 subscriptions
    python -m benchmarks.compare OLD spark    # `build` and `match` on Spark, CPU time of the JVM and its workers

Each measure is the least CPU time of some repeats in a fresh process; ROUNDS processes a tree, old and new by turns. The result
goes to benchmarks/results/compare.json, of words to compare-words.json and so on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tidings as td
from benchmarks import workloads

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
ROUNDS = 6


def cpu(act: Callable[[], object], repeats: int = 5) -> float:
    """Microseconds, the least of some repeats."""
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        act()
        best = min(best, time.process_time() - begin)
    return best * 1e6


def dicts(events: pa.Table, n: int) -> list[dict[str, Any]]:
    return [{name: value for name, value in event.items() if value is not None} for event in events.slice(0, n).to_pylist()]


def matching() -> dict[str, float]:
    out = {}
    for make in (workloads.ranges_place, workloads.ranges, workloads.words_box):
        load = make(100_000, 10_000)
        topic = loaded(load)
        topic.match_batch(load.events.slice(0, 200), time=0)
        out[f"{load.name}, batch"] = cpu(lambda: topic.match_batch(load.events, time=0)) / 10_000  # noqa: B023
        single = dicts(load.events, 1000)
        topic.match(single[0], time=0)
        out[f"{load.name}, single"] = cpu(lambda: [topic.match(event, time=0) for event in single]) / 1000  # noqa: B023
    return out


def best() -> dict[str, float]:
    out = {}
    for matches, side in ((39, 0.0198), (3187, 0.1885)):
        load = workloads.scored_boxes(100_000, 2000, side)
        topic = loaded(load)
        topic.match_batch(load.events.slice(0, 100), 10, time=0)
        out[f"boxes-top10 of {matches}, batch"] = cpu(lambda: topic.match_batch(load.events, 10, time=0)) / 2000  # noqa: B023
        single = dicts(load.events, 300)
        topic.match(single[0], 10, time=0)
        out[f"boxes-top10 of {matches}, single"] = cpu(lambda: [topic.match(e, 10, time=0) for e in single]) / 300  # noqa: B023
    return out


def changes() -> dict[str, float]:
    load = workloads.ranges_place(100_000, 10)
    topic, numbers = loaded(load), iter(range(1, 10**6))

    def subscribe() -> None:
        for n in (next(numbers) for _ in range(1000)):
            topic.subscribe(f"x{n}", f"a2 <= 0.{n % 999 + 1} AND a3 BETWEEN 0.1 AND 0.{n % 97 + 2}", time=0)

    def move() -> None:
        for n in (next(numbers) for _ in range(1000)):
            topic.move(f"s{n:05d}", (0.5, 0.5), time=0)

    def unsubscribe() -> None:
        for n in (next(numbers) for _ in range(1000)):
            topic.unsubscribe(f"s{n:05d}")

    subscribe()
    move()
    out = {act.__name__: cpu(act, 3) / 1000 for act in (subscribe, move, unsubscribe)}
    with tempfile.TemporaryDirectory() as folder:

        def load_durable() -> None:
            with td.open(Path(folder) / str(next(numbers)), "t", load.schema) as kept:
                kept.subscribe_many(load.subscriptions, time=0)

        load_durable()
        out["durable bulk load, a row"] = cpu(load_durable, 3) / 100_000
    return out


def publishing() -> dict[str, float]:
    rng = np.random.default_rng(1)
    schema = {"price": td.Number(0, 1), "place": td.Place(plane=True)}
    events = pa.table(
        {"id": workloads.names("e", 20_000), "price": rng.random(20_000), "place": workloads.points(rng.random((20_000, 2)))}
    )
    ranked, plain, near = (td.Topic(name, schema) for name in ("ranked", "plain", "near"))
    centre = rng.random((1000, 2))
    ranking = {"k": pa.array([10] * 1000, pa.int32()), "window": ["1 day"] * 1000, "by": ["-price"] * 1000}
    table = {"id": workloads.names("s", 1000), "place.box": workloads.boxes(centre - 0.1, centre + 0.1), **ranking}
    ranked.subscribe_many(pa.table(table), time=0)
    centre = rng.random((100_000, 2))
    table = {"id": workloads.names("s", 100_000), "place.box": workloads.boxes(centre - 0.0099, centre + 0.0099)}
    plain.subscribe_many(pa.table(table), time=0)
    for i in range(300):
        near.subscribe(f"s{i}", k=10, window="1 hour", by={"near": {"price": float(rng.random())}}, time=0)
    out = {}
    for name, topic in (("windows of 1,000", ranked), ("39 plain notifications", plain), ("300 ideal points", near)):
        batches, singles = iter(range(0, 10_000, 1000)), iter(dicts(events.slice(10_000), 2000))

        def batch(topic: td.Topic = topic, batches: Any = batches) -> None:
            first = next(batches)
            topic.publish_batch(events.slice(first, 1000), time=first / 1000)

        def single(topic: td.Topic = topic, singles: Any = singles) -> None:
            for _ in range(200):
                topic.publish(next(singles), time=20)

        batch()
        out[f"publish_batch, {name}"] = cpu(batch, 4) / 1000
        single()
        out[f"publish, {name}"] = cpu(single, 3) / 200
    return out


def words() -> dict[str, float]:
    out = {}
    load = workloads.words_box(1_000_000, 10_000)
    texts = pa.array([" ".join(words) for words in load.events["about"].to_pylist()])
    column = load.events.column_names.index("about")
    for kind, tokenizer, events in (
        ("words as they are", "as-is", load.events),
        ("plain texts", "plain", load.events.set_column(column, "about", texts)),
    ):
        topic = td.Topic(load.name, td.Schema({**load.schema, "about": td.Words(tokenizer)}))
        topic.subscribe_many(load.subscriptions, time=0)
        topic.match_batch(events.slice(0, 200), time=0)
        out[f"words-box of 1M, {kind}, batch"] = cpu(lambda: topic.match_batch(events, time=0), 15) / 10_000  # noqa: B023
        single = dicts(events, 1000)
        topic.match(single[0], time=0)
        out[f"words-box of 1M, {kind}, single"] = cpu(lambda: [topic.match(event, time=0) for event in single], 3) / 1000  # noqa: B023
        topic.close()
    return out


def topkw() -> dict[str, float]:
    """Lists by ideal point, as of the top-k/w paper."""
    out, rng, n = {}, np.random.default_rng(7), 8192
    points = rng.random((20_480 + 4 * n, 2))
    events = pa.table({"id": workloads.names("e", len(points)), "x": points[:, 0], "y": points[:, 1]})
    for subscriptions, k in ((500, 1), (500, 10), (500, 100), (20_000, 10)):
        topic = td.Topic("points", {"x": td.Number(0, 1), "y": td.Number(0, 1)})
        for number, (x, y) in enumerate(rng.random((subscriptions, 2)).tolist()):
            topic.subscribe(f"s{number}", k=k, window="20000 events", by={"near": {"x": x, "y": y}}, time=0)
        topic.publish_batch(events.slice(0, 20_480), time=1)
        batches = iter(range(20_480, len(points), n))
        once = lambda topic=topic, batches=batches: topic.publish_batch(events.slice(next(batches), n), time=1)  # noqa: E731
        out[f"top-k/w, {subscriptions:,} subscriptions, k = {k}, batch"] = cpu(once, 4) / n
        topic.close()
    return out


def spark() -> dict[str, float]:
    """Microseconds a subscription and an event, on two local cores."""
    from pyspark.sql import SparkSession

    from benchmarks.costs import cost_of
    from tidings.spark import build, match, session

    running: SparkSession = session("compare", "local[2]")
    out, numbers = {}, iter(range(100))
    with tempfile.TemporaryDirectory() as folder:
        for make in (workloads.ranges_place, workloads.words_box):
            load, rows = make(100_000, 200_000), {}
            for name, table in (("subscriptions", load.subscriptions), ("events", load.events)):
                rows[name] = Path(folder) / f"{load.name}-{name}.parquet"
                pq.write_table(table, rows[name], row_group_size=len(table) // 2)
            frames = {name: running.read.parquet(str(path)) for name, path in rows.items()}
            topics: list[Path] = []

            def built(frames: Any = frames, topics: list[Path] = topics, load: workloads.Workload = load) -> None:
                topics.append(Path(folder) / f"topic{next(numbers)}")
                build(frames["subscriptions"], topics[-1], load.name, td.Schema(load.schema), time=0)

            def matched(frames: Any = frames, topics: list[Path] = topics) -> None:
                match(frames["events"], topics[0]).write.format("noop").mode("overwrite").save()

            out[f"Spark, {load.name}, build"] = min(cost_of(built).cpu for _ in range(4)) / 100_000 * 1e6
            out[f"Spark, {load.name}, match"] = min(cost_of(matched).cpu for _ in range(8)) / 200_000 * 1e6
    running.stop()
    return out


def loaded(load: workloads.Workload) -> td.Topic:
    topic = td.Topic(load.name, load.schema)
    topic.subscribe_many(load.subscriptions, time=0)
    return topic


def measured(tree: Path, what: str) -> dict[str, float]:
    paths = os.pathsep.join(map(str, (tree / "src", ROOT)))
    command = [sys.executable, "-c", f"from benchmarks.compare import child; child({what!r})"]
    said = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


def child(what: str) -> None:
    kinds = {"words": words, "topkw": topkw, "spark": spark}
    print(json.dumps(kinds[what]() if what in kinds else matching() | best() | changes() | publishing()))


def main(old: Path, what: str) -> None:
    from experiments.report import markdown, provenance

    rounds = [(measured(old, what), measured(ROOT, what)) for _ in range(ROUNDS)]
    rows = []
    for name in rounds[0][0]:
        before, after = (min(pair[side][name] for pair in rounds) for side in (0, 1))
        rows.append({"what": name, "old us": before, "new us": after, "new / old": after / before})
    print(markdown(rows))
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=old, capture_output=True, text=True, check=True).stdout.strip()
    (RESULTS / ("compare.json" if what == "all" else f"compare-{what}.json")).write_text(
        json.dumps({"run": provenance(), "old": commit, "rounds": ROUNDS, "rows": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2] if sys.argv[2:] else "all")
