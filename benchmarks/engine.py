"""The engine end to end, Arrow or dict in, Arrow or matches out, beside its peers in the same run.

    python -m benchmarks.engine [--full] [--only SECTION ...]

Workloads are those of `benchmarks.workloads`; times are process CPU time, the least of three. Default sizes are a tenth (100k,
words-box 1M); `--full` takes 1M and 10M. Peers: a NumPy columnar scan and DuckDB on a few events (ranges-place), shapely's
STRtree with argpartition and `rtree` (boxes-top10), cql2's own parser (subscribe). `growth` keeps the matches an event the same
while subscriptions grow tenfold; `mix` is eight messages to one new subscription and one removal. Results go to
benchmarks/results/engine.json, from which README takes its figure. With `--only` just these sections run; at full size they replace
the stored ones.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import cql2
import duckdb
import numpy as np
import pyarrow as pa
import rtree
import shapely

import tidings as td
from benchmarks import workloads
from benchmarks.workloads import Workload
from experiments.report import cpu_seconds, markdown, provenance

RESULT = Path(__file__).parent / "results" / "engine.json"
SCANNED = 20


def topic_of(workload: Workload) -> td.Topic:
    topic = td.Topic(workload.name, workload.schema)
    topic.subscribe_many(workload.subscriptions, time=0)
    topic.match_batch(workload.events.slice(0, 200), time=0)
    return topic


def dicts(events: pa.Table, n: int) -> list[dict[str, Any]]:
    return [{name: value for name, value in event.items() if value is not None} for event in events.slice(0, n).to_pylist()]


def matching(workload: Workload) -> dict[str, Any]:
    """Batch and single matching, and memory in all."""
    topic = topic_of(workload)
    n, m = len(workload.subscriptions), len(workload.events)
    batch = cpu_seconds(lambda: topic.match_batch(workload.events, time=0))
    matches = len(topic.match_batch(workload.events, time=0))
    singles = dicts(workload.events, 2000)
    topic.match(singles[0], time=0)
    single = cpu_seconds(lambda: [topic.match(event, time=0) for event in singles])
    return {
        "workload": workload.name,
        "subscriptions": n,
        "matches an event": matches / m,
        "batch us an event": batch / m * 1e6,
        "events a second": m / batch,
        "single us": single / len(singles) * 1e6,
        "bytes a subscription": topic.stats()["bytes"] / n,
    }


def scan(workload: Workload) -> dict[str, Any]:
    """The same matches by a NumPy columnar scan and by DuckDB, on a few events; ratios against the batch figure."""
    names = [name.removesuffix(".lo") for name in workload.subscriptions.column_names if name.endswith(".lo")]
    columns = {}
    for name in names:
        low, high = (workload.subscriptions[f"{name}.{end}"].to_numpy() for end in ("lo", "hi"))
        columns[name] = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high), np.isnan(low)
    box = np.stack(workload.subscriptions["place.box"].combine_chunks().flatten().to_numpy().reshape(-1, 4).T)
    events = dicts(workload.events, SCANNED)

    def scanned() -> list[int]:
        counts = []
        for event in events:
            x, y = event["place"]["x"], event["place"]["y"]
            hit = (box[0] <= x) & (x <= box[2]) & (box[1] <= y) & (y <= box[3])
            for name, (low, high, free) in columns.items():
                hit &= free if name not in event else (low <= event[name]) & (event[name] <= high)
            counts.append(int(hit.sum()))
        return counts

    topic = topic_of(workload)
    assert scanned() == [len(topic.match(event, time=0)) for event in events], "the scan and the engine disagree"
    database = duckdb.connect()
    database.execute("SET threads = 1")
    flat = workload.subscriptions.select([c for c in workload.subscriptions.column_names if c != "place.box"])
    for side, corner in zip(("x0", "y0", "x1", "y1"), box, strict=True):
        flat = flat.append_column(side, pa.array(corner))
    database.register("arrow_subscriptions", flat)
    database.execute("CREATE TABLE subscriptions AS SELECT * FROM arrow_subscriptions")

    def queried() -> list[int]:
        counts = []
        for event in events:
            x, y = event["place"]["x"], event["place"]["y"]
            where = [f"x0 <= {x} AND x1 >= {x} AND y0 <= {y} AND y1 >= {y}"]
            for name in names:
                value = event.get(name)
                between = f'("{name}.lo" <= {value} AND "{name}.hi" >= {value})'
                where.append(f'("{name}.lo" IS NULL{"" if value is None else f" OR {between}"})')
            counts.append(database.execute(f"SELECT count(*) FROM subscriptions WHERE {' AND '.join(where)}").fetchone()[0])
        return counts

    assert queried() == scanned(), "DuckDB and the scan disagree"
    ours = cpu_seconds(lambda: topic.match_batch(workload.events, time=0)) / len(workload.events)
    numpy_scan, query = cpu_seconds(scanned) / SCANNED, cpu_seconds(queried) / SCANNED
    return {
        "workload": workload.name,
        "tidings us": ours * 1e6,
        "NumPy scan us": numpy_scan * 1e6,
        "scan / tidings": numpy_scan / ours,
        "DuckDB us": query * 1e6,
        "DuckDB / tidings": query / ours,
    }


def best_boxes(n: int, events: int, side: float, k: int = 10) -> dict[str, Any]:
    """The ten best of the boxes round a point: STRtree and rtree find all and select, tidings finds them in order of score."""
    workload = workloads.scored_boxes(n, events, side)
    topic = topic_of(workload)
    corners = workload.subscriptions["place.box"].combine_chunks().flatten().to_numpy().reshape(-1, 4)
    score = workload.subscriptions["score"].to_numpy()
    where = np.array([(e["place"]["x"], e["place"]["y"]) for e in workload.events.to_pylist()])
    tree = shapely.STRtree(shapely.box(*corners.T))
    spatial = rtree.index.Index((i, tuple(box), None) for i, box in enumerate(corners.tolist()))

    def select(found: np.ndarray) -> np.ndarray:
        best = found if len(found) <= k else found[np.argpartition(-score[found], k)[:k]]
        return best[np.argsort(-score[best])]

    def by_strtree() -> list[np.ndarray]:
        return [select(tree.query(shapely.Point(x, y))) for x, y in where]

    def by_rtree() -> list[np.ndarray]:
        return [select(np.fromiter(spatial.intersection((x, y, x, y)), np.int64)) for x, y in where[:200]]

    ours = topic.match_batch(workload.events, k, time=0)
    names = workload.subscriptions["id"].to_pylist()
    assert ours["subscription"].to_pylist() == [names[i] for found in by_strtree() for i in found], "the answers differ"
    ids = topic.match_batch(workload.events.slice(0, 200), time=0)
    mine = cpu_seconds(lambda: topic.match_batch(workload.events, k, time=0)) / events
    peer, other = cpu_seconds(by_strtree) / events, cpu_seconds(by_rtree) / 200
    return {
        "workload": "boxes-top10",
        "matches an event": len(ids) / 200,
        "tidings us": mine * 1e6,
        "STRtree us": peer * 1e6,
        "STRtree / tidings": peer / mine,
        "rtree / tidings": other / mine,
    }


FILTER = "a2 BETWEEN 0.2 AND {} AND a3 <= 0.5 AND S_INTERSECTS(place, BBOX(0.4, 0.4, 0.41, 0.41)) AND a5 > 0.1 AND a6 < 0.9"
SHAPE = "a{} BETWEEN 0.2 AND 0.8 AND a{} <= 0.5 AND S_INTERSECTS(place, BBOX(0.4, 0.4, 0.41, 0.41)) AND a{} > 0.1 AND a{} < 0.9"
CHANGES, STRETCHES = 2048, 4


def changes(n: int) -> list[dict[str, Any]]:
    """What a change costs, and what matching costs after as many random updates as there are subscriptions."""
    workload = workloads.ranges_place(n, 20_000)
    topic = topic_of(workload)
    fresh = cpu_seconds(lambda: topic.match_batch(workload.events, time=0))
    ids = workload.subscriptions["id"].to_pylist()
    rng = np.random.default_rng(1)
    rows = [*moves(topic, [ids[i] for i in rng.choice(n, STRETCHES * CHANGES, replace=False)], rng), *subscriptions(topic)]
    for _ in range(n // 20_000):
        topic.subscribe_many(workload.subscriptions.take(np.unique(rng.choice(n, 20_000))), time=0)
    topic.housekeeping.settle()
    worn = cpu_seconds(lambda: topic.match_batch(workload.events, time=0))
    rows.append({"act": f"match_batch after {n:,} updates / fresh", "ratio": worn / fresh})
    return rows


def a_change(name: str, act: Callable[[int], object], topic: td.Topic) -> dict[str, Any]:
    """Microseconds of `act(i)`: `us` of the cheapest of four stretches, `us in all` on average, with two memtables packed and what
    merges in the background. What is put off until a match is in both."""
    event = {"id": "e", "place": (0.5, 0.5)}

    def stretch(first: int) -> float:
        return cpu_seconds(lambda: ([act(i) for i in range(first, first + CHANGES)], topic.match(event, time=0)), 1) / CHANGES

    topic.match(event, time=0)
    topic.housekeeping.settle()
    spent = [stretch(part * CHANGES) for part in range(STRETCHES)]
    return {"act": name, "us": min(spent) * 1e6, "us in all": sum(spent) / STRETCHES * 1e6}


def moves(topic: td.Topic, ids: list[str], rng: np.random.Generator) -> list[dict[str, Any]]:
    """A subscriber moves out of a packed segment; then, being in the memtable, again."""
    points = [tuple(point) for point in rng.random((len(ids), 2)).tolist()]
    topic.move(ids[-1], points[-1])
    packed = a_change("move a subscriber, packed", lambda i: topic.move(ids[i], points[i]), topic)
    for id in ids[:CHANGES]:
        topic.move(id, (0.5, 0.5))
    return [packed, a_change("move a subscriber, new", lambda i: topic.move(ids[i % CHANGES], points[i]), topic)]


def subscriptions(topic: td.Topic) -> list[dict[str, Any]]:
    """Subscribing by text, no two alike, beside the parser alone; by texts of which no two have the same shape, so that the parser
    reads each; by CQL2 JSON; and unsubscribing."""
    texts = [FILTER.format(0.2 + i / 100_000) for i in range(STRETCHES * CHANGES)]
    shapes = [SHAPE.format(*four) for four in islice(permutations(range(2, workloads.ATTRIBUTES), 4), STRETCHES * CHANGES)]
    trees = [cql2.parse_text(text).to_json() for text in texts]
    rows = [
        a_change("cql2 parses a text", lambda i: cql2.parse_text(texts[i]).to_json(), topic),
        a_change("subscribe, CQL2 text", lambda i: topic.subscribe(f"t{i}", texts[i]), topic),
        a_change("subscribe, CQL2 text of a new shape", lambda i: topic.subscribe(f"n{i}", shapes[i]), topic),
        a_change("subscribe, CQL2 JSON", lambda i: topic.subscribe(f"j{i}", trees[i]), topic),
        a_change("unsubscribe", lambda i: topic.unsubscribe(f"j{i}"), topic),
    ]
    return [row | {"ratio": row["us"] / rows[0]["us"]} for row in rows]


def growth(sizes: list[int]) -> list[dict[str, Any]]:
    """The cost of an event as subscriptions grow tenfold and boxes shrink so that as many match."""
    rows = []
    for name, make in (
        ("ranges-place", lambda n, by: workloads.ranges_place(n, 20_000, scale=3 * by)),
        ("words-box", lambda n, by: workloads.words_box(n, 20_000, side=(0.01 * by, 0.05 * by))),
    ):
        before = None
        for n in sizes:
            workload = make(n, (1_000_000 / n) ** 0.5)
            topic = topic_of(workload)
            matches = len(topic.match_batch(workload.events, time=0)) / len(workload.events)
            spent = cpu_seconds(lambda: topic.match_batch(workload.events, time=0)) / len(workload.events) * 1e6  # noqa: B023
            row = {"workload": name, "subscriptions": n, "matches an event": matches, "us an event": spent}
            rows.append(row | ({} if before is None else {"growth": spent / before}))
            print(rows[-1], flush=True)
            before = spent
    return rows


def mix(n: int, rounds: int = 8, each: int = 1000) -> list[dict[str, Any]]:
    """Eight messages to one new subscription and one removal: in batches, and one at a time."""
    workload = workloads.words_box(n + 2 * rounds * each, 8 * each)
    topic = td.Topic(workload.name, workload.schema)
    topic.subscribe_many(workload.subscriptions.slice(0, n), time=0)
    topic.match_batch(workload.events.slice(0, 200), time=0)
    new = [workload.subscriptions.slice(n + i * each, each) for i in range(2 * rounds)]
    gone = np.random.default_rng(2).permutation(n)[: 2 * rounds * each].reshape(-1, each)
    gone = [workload.subscriptions["id"].take(pa.array(part)).to_pylist() for part in gone]

    def batched(i: int) -> None:
        topic.match_batch(workload.events, time=0)
        topic.subscribe_many(new[i], time=0)
        topic.unsubscribe_many(gone[i])

    singles = dicts(workload.events, 8 * each)

    def single(i: int) -> None:
        for at, row in enumerate(new[i].to_pylist()):
            for event in singles[8 * at : 8 * at + 8]:
                topic.match(event, time=0)
            tree = [{"op": "a_contains", "args": [{"property": "about"}, row["about.all"]]}]
            tree += [{"op": "s_intersects", "args": [{"property": "place"}, {"bbox": row["place.box"]}]}]
            topic.subscribe(row["id"], {"op": "and", "args": tree}, time=0)
            topic.unsubscribe(gone[i][at])

    batched(0)
    rows = []
    for how, act, first, last in (("batches of 8,000", batched, 1, rounds), ("one at a time", single, rounds, rounds + 2)):
        spent = cpu_seconds(lambda: ([act(i) for i in range(first, last)], topic.housekeeping.settle()), 1)  # noqa: B023
        rows.append({"messages": how, "subscriptions": n, "operations a second": (last - first) * 10 * each / spent})
        print(rows[-1], flush=True)
    return rows


def durable(n: int) -> list[dict[str, Any]]:
    workload = workloads.words_box(n, 100)
    folder = Path(tempfile.mkdtemp())
    try:
        topic = td.open(folder / "topic", "t", workload.schema)
        topic.subscribe_many(workload.subscriptions.slice(0, 1000), time=0)
        load = cpu_seconds(lambda: topic.subscribe_many(workload.subscriptions, time=0), 1)
        topic.close()
        opened = []
        for _ in range(3):
            begin = time.perf_counter()
            with td.open(folder / "topic") as again:
                opened.append(time.perf_counter() - begin)
                assert len(again) == n
    finally:
        shutil.rmtree(folder)
    return [
        {"act": "durable bulk load", "subscriptions a second": n / load},
        {"act": "open (wall clock, the median of three)", "seconds": sorted(opened)[1]},
    ]


def all_matching(n: int, most: int) -> list[dict[str, Any]]:
    rows = []
    for make, size in (
        (workloads.ranges_place, n),
        (workloads.ranges, n),
        (workloads.words_box, n),
        (workloads.words_box, most),
        (workloads.mixed, n),
    ):
        rows.append(matching(make(size, 20_000 if make is not workloads.mixed else 1000)))
        print(rows[-1], flush=True)
    return rows


def main(full: bool = False, only: Sequence[str] = ()) -> None:
    n, most = (1_000_000, 10_000_000) if full else (100_000, 1_000_000)
    sections: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "matching": lambda: all_matching(n, most),
        "peers": lambda: [scan(workloads.ranges_place(n, 20_000))],
        "best": lambda: [best_boxes(100_000, 2000, side) for side in (0.0198, 0.1885)],
        "changes": lambda: changes(n),
        "durable": lambda: durable(n),
        "growth": lambda: growth([100_000, 1_000_000, most] if full else [10_000, 100_000, most]),
        "mix": lambda: mix(most),
    }
    results = {}
    for name in only or sections:
        results[name] = sections[name]()
        print(f"\n{name}\n{markdown(results[name])}", flush=True)
    if only and full:
        stored = json.loads(RESULT.read_text())
        results = stored | results | {"run again": stored.get("run again", {}) | dict.fromkeys(only, provenance())}
    if full or not only:
        RESULT.write_text(json.dumps({"run": provenance(), **results}, indent=1) + "\n")


if __name__ == "__main__":
    chosen = sys.argv[sys.argv.index("--only") + 1 :] if "--only" in sys.argv else []
    main("--full" in sys.argv, [name for name in chosen if not name.startswith("-")])
