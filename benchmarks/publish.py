"""Publishing, in batches and single calls, beside doing nothing clever: microseconds of process time an event.

Every row has the figure that is wanted and, where one can be had in the same run, a peer: a scan in NumPy of all boxes, a plain
loop in Python over a tiny topic, a scan of all weights for relaxed matching, or matching without publishing. 100,000 subscriptions
on boxes unless the row says otherwise; single calls are given dicts, batches Arrow tables of 1,000 events. Of batches the quickest
of some rounds counts, of single calls the mean.

    python -m benchmarks.publish
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tidings as td
from experiments.report import provenance
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import events_from_arrow
from tidings.topic.live_events import LiveEvents

RESULT = Path(__file__).parent / "results" / "publish.json"
SCHEMA = td.Schema({"price": td.Number(0, 1000), "place": td.Place(plane=True), "about": td.Words()})
SUBSCRIPTIONS, BATCH, ROUNDS = 100_000, 1_000, 4
BEGIN = 1_600_000_000
RARE, USUAL = 0.0005, 0.02
"""Sides of boxes in a unit square: hardly any match an event, or 40 do."""
BEST = {"k": 10, "window": "1 day", "by": "-price"}
rng = np.random.default_rng(7)
Boxes = tuple[np.ndarray, np.ndarray]


def boxes(n: int, side: float) -> Boxes:
    corner = rng.random((n, 2))
    return corner, corner + side


def struct(columns: Any, names: list[str]) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(column) for column in columns], names=names)


def topic_of(placed: Boxes, words: bool = False, **ranking: Any) -> td.Topic:
    low, high = placed
    columns = {"id": [f"s{i:06}" for i in range(len(low))]}
    columns["place.box"] = struct((*low.T, *high.T), ["xmin", "ymin", "xmax", "ymax"])
    if words:
        columns["about.all"] = [[f"w{word}"] for word in rng.integers(0, 1000, len(low)).tolist()]
    columns |= {name: [value] * len(low) for name, value in ranking.items()}
    topic = td.Topic("t", SCHEMA)
    topic.subscribe_many(pa.table(columns), time=BEGIN - 1)
    return topic


def event_tables(first: int = 0) -> Iterator[pa.Table]:
    while True:
        columns = {"id": [f"e{i:08}" for i in range(first, first + BATCH)], "price": rng.integers(0, 1000, BATCH).astype(float)}
        columns["place"] = struct(rng.random((2, BATCH)), ["x", "y"])
        columns["time"] = pa.array((BEGIN + np.arange(first, first + BATCH)) * 1_000_000, pa.timestamp("us", "UTC"))
        first += BATCH
        yield pa.table(columns)


def dicts(tables: Iterator[pa.Table], n: int) -> list[dict[str, Any]]:
    return next(tables).slice(0, n).to_pylist()


def timed(act: Callable[[Any], Any], given: list[Any], each: int = 1) -> tuple[float, float]:
    """Microseconds of the quickest act, and the mean length of the answers, both for one of `each`."""
    act(given[0])
    least, told = np.inf, 0
    for one in given[1:]:
        start = time.process_time()
        answer = act(one)
        least = min(least, time.process_time() - start)
        told += len(answer)
    return least / each * 1e6, told / (len(given) - 1) / each


def mean(act: Callable[[Any], Any], given: list[Any]) -> tuple[float, float]:
    """The same of many short acts, by their mean."""
    for one in given[:20]:
        act(one)
    start = time.process_time()
    told = sum(len(act(one)) for one in given[20:])
    return (time.process_time() - start) / (len(given) - 20) * 1e6, told / (len(given) - 20)


def scan_of(placed: Boxes) -> Callable[[dict[str, Any]], np.ndarray]:
    (x0, y0), (x1, y1) = (np.ascontiguousarray(side.T) for side in placed)

    def scan(event: dict[str, Any]) -> np.ndarray:
        x, y = event["place"]["x"], event["place"]["y"]
        return np.flatnonzero((x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1))

    return scan


def row(what: str, measured: tuple[float, float], wanted: float, peer: str = "", beside: float | None = None) -> dict[str, Any]:
    made = {"what": what, "us": measured[0], "answers": measured[1], "wanted us": wanted}
    if beside is not None:
        made |= {"peer": peer, "peer us": beside, "times the peer": measured[0] / beside}
    print({name: round(value, 2) if isinstance(value, float) else value for name, value in made.items()}, flush=True)
    return made


def streams() -> Iterator[dict[str, Any]]:
    for side, name, batch_wanted in ((RARE, "hardly any notification", 10.0), (USUAL, "40 notifications", 40.0)):
        placed = boxes(SUBSCRIPTIONS, side)
        topic, tables = topic_of(placed), event_tables()
        given = [next(tables) for _ in range(ROUNDS + 1)]
        matching, _ = timed(topic.match_batch, given, BATCH)
        yield row(f"publish_batch, {name}", timed(topic.publish_batch, given, BATCH), batch_wanted, "match_batch", matching)
        scanned, _ = mean(scan_of(placed), dicts(tables, 200))
        yield row(f"publish, {name}", mean(topic.publish, dicts(tables, 400)), 100.0, "scan of all boxes", scanned)
        yield row(f"match(dict), {name}", mean(topic.match, dicts(tables, 400)), 40.0, "scan of all boxes", scanned)
        one = [[event] for event in dicts(tables, 300)]
        yield row(f"match_batch of one, {name}", mean(topic.match_batch, one), 60.0, "scan of all boxes", scanned)


def lists() -> Iterator[dict[str, Any]]:
    for name, ranking, wanted in (("k = 10", BEST, 40.0), ("without k", {"window": "1 day", "by": "-price"}, 20.0)):
        topic, tables = topic_of(boxes(SUBSCRIPTIONS, USUAL), **ranking), event_tables()
        given = [next(tables) for _ in range(12)]
        matching, _ = timed(topic.match_batch, given[:ROUNDS], BATCH)
        yield row(f"top-k/w over boxes, {name}, batches", timed(topic.publish_batch, given, BATCH), wanted, "match_batch", matching)
        yield row(f"top-k/w over boxes, {name}, one at a time", mean(topic.publish, dicts(tables, 400)), 200.0)


def live() -> Iterator[dict[str, Any]]:
    tables, codes, held = event_tables(), Vocabularies(SCHEMA), LiveEvents(SCHEMA)
    batches = [events_from_arrow(SCHEMA, codes, next(tables)) for _ in range(100)]
    start = time.process_time()
    for batch in batches:
        held.put_batch(batch)
    yield row("live events: taking one in", ((time.process_time() - start) / len(held) * 1e6, 0.0), 2.0)
    topic = td.Topic("t", SCHEMA)
    before = resident()
    for table in (next(tables) for _ in range(300)):
        topic.publish_batch(table)
    bytes_each = (resident() - before) / len(topic.publisher.events)
    print({"what": "live events: bytes each, resident", "bytes": round(bytes_each), "wanted bytes": 300})
    yield {"what": "live events: bytes each, resident", "bytes": bytes_each, "wanted bytes": 300}
    corners = rng.random((220, 2)).tolist()
    filters = [f"S_INTERSECTS(place, BBOX({x}, {y}, {x + 0.005}, {y + 0.005})) AND price < 500" for x, y in corners]
    yield row("search, 300,000 live events", mean(lambda filter: topic.search(filter, time=BEGIN), filters), 150.0)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def tiny() -> Iterator[dict[str, Any]]:
    for size in (10, 1_000):
        placed = boxes(size, USUAL)
        topic, given = topic_of(placed), dicts(event_tables(), 500)
        sides = [(*low, *high) for low, high in zip(*(side.tolist() for side in placed), strict=True)]

        def loop(event: dict[str, Any], sides: list[tuple[float, ...]] = sides) -> list[int]:
            x, y = event["place"]["x"], event["place"]["y"]
            return [i for i, (x0, y0, x1, y1) in enumerate(sides) if x0 <= x <= x1 and y0 <= y <= y1]

        looped, _ = mean(loop, given)
        yield row(f"match(dict), {size} subscriptions", mean(topic.match, given), looped, "loop in Python", looped)


def words() -> Iterator[dict[str, Any]]:
    topic = topic_of(boxes(SUBSCRIPTIONS, 0.1), words=True)
    given = [event | {"about": " ".join(f"w{w}" for w in rng.integers(0, 1000, 6))} for event in dicts(event_tables(), 400)]
    yield row("match(dict), words and boxes", mean(topic.match, given), 40.0)


def relaxed() -> Iterator[dict[str, Any]]:
    schema = td.Schema({name: td.Number(0, 1) for name in "abcd"})
    for size, wanted in ((1_000, 7.0), (10_000, 34.0), (100_000, 172.0)):
        low, weight = rng.random((4, size)), rng.random((4, size))
        high = low + 0.1
        columns = {"id": [f"s{i:06}" for i in range(size)]}
        for d, name in enumerate("abcd"):
            columns |= {f"{name}.lo": low[d], f"{name}.hi": high[d], f"{name}.weight": weight[d]}
        topic = td.Topic("t", schema)
        topic.subscribe_many(pa.table(columns))
        given = [dict(zip("abcd", point, strict=True)) for point in rng.random((220, 4)).tolist()]

        def scan(event: dict[str, float], sides: tuple[np.ndarray, ...] = (low, high, weight)) -> np.ndarray:
            lo, hi, own = sides
            score = np.zeros(lo.shape[1])
            for d, name in enumerate("abcd"):
                score += np.where((lo[d] <= event[name]) & (event[name] <= hi[d]), own[d], 0.0)
            return np.argpartition(-score, 10)[:10]

        found = mean(lambda event, topic=topic: topic.match(event, 10, relaxed=True), given)
        yield row(f"match(dict, 10, relaxed=True), {size} subscriptions", found, wanted, "scan in NumPy", mean(scan, given)[0])


def near() -> Iterator[dict[str, Any]]:
    schema = td.Schema({name: td.Number(0, 1) for name in "ab"})
    by = [json.dumps({"near": {"a": a, "b": b}}) for a, b in rng.random((SUBSCRIPTIONS, 2)).tolist()]
    ids = [f"s{i:06}" for i in range(SUBSCRIPTIONS)]
    topic = td.Topic("t", schema)
    table = pa.table({"id": ids, "k": [10] * len(ids), "window": ["1 h"] * len(ids), "by": by})
    topic.subscribe_many(table, time=BEGIN - 1)
    clock = iter(range(0, 10**9, BATCH))

    def batch() -> pa.Table:
        first = next(clock)
        at = pa.array((BEGIN + np.arange(first, first + BATCH)) * 1_000_000, pa.timestamp("us", "UTC"))
        ids = [f"e{i}" for i in range(first, first + BATCH)]
        return pa.table({"id": ids, "a": rng.random(BATCH), "b": rng.random(BATCH), "time": at})

    given = [batch() for _ in range(6)]
    measured = timed(topic.publish_batch, given, BATCH)
    yield row("lists by ideal point, k = 10, an hour, batches", measured, measured[1])


def main() -> None:
    rows = [one for part in (live, streams, lists, tiny, words, relaxed, near) for one in part()]
    facts = {"subscriptions": SUBSCRIPTIONS, "batch": BATCH}
    RESULT.write_text(json.dumps({"run": provenance(), **facts, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
