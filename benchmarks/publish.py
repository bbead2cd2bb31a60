"""Publishing, in batches and single calls, beside doing nothing clever: microseconds of process time an event.

Every row has the figure that is wanted and, where one can be had in the same run, a peer: a scan in NumPy of all columns, a plain
loop in Python over a tiny topic, a scan of all weights for relaxed matching, or matching without publishing. 100,000 subscriptions
on boxes unless the row says otherwise; single calls are given dicts, batches Arrow tables of 1,000 events. Of batches the quickest
of some rounds counts, of single calls the mean. `large` and `places` have a million subscriptions, `searches` a million live
events. Spark's `notify` is measured by `benchmarks.spark_notify`; PostgreSQL, Tile38 and others stand in `benchmarks.peers`.

    python -m benchmarks.publish [--only SECTION ...]

With `--only` the rows of these sections replace the stored ones.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tidings as td
from benchmarks import workloads
from experiments.report import provenance
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import events_from_arrow
from tidings.topic.live.live_events import LiveEvents

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
    topic = td.Topic("t", SCHEMA)
    topic.subscribe_many(subscriptions_of(placed, words, **ranking), time=BEGIN - 1)
    return topic


def subscriptions_of(placed: Boxes, words: bool = False, **ranking: Any) -> pa.Table:
    low, high = placed
    columns = {"id": [f"s{i:06}" for i in range(len(low))]}
    columns["place.box"] = struct((*low.T, *high.T), ["xmin", "ymin", "xmax", "ymax"])
    if words:
        columns["about.all"] = [[f"w{word}"] for word in rng.integers(0, 1000, len(low)).tolist()]
    return pa.table(columns | {name: [value] * len(low) for name, value in ranking.items()})


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
    for first, batch in enumerate(batches):
        held.put_batch(batch, np.full(BATCH, BEGIN), np.arange(first * BATCH, (first + 1) * BATCH))
    yield row("live events: taking one in", ((time.process_time() - start) / len(held) * 1e6, 0.0), 2.0)
    topic = td.Topic("t", SCHEMA)
    before = resident()
    for table in (next(tables) for _ in range(300)):
        topic.publish_batch(table)
    bytes_each = (resident() - before) / len(topic.publisher.events)
    print({"what": "live events: bytes each, resident", "bytes": round(bytes_each), "wanted bytes": 300})
    yield {"what": "live events: bytes each, resident", "bytes": bytes_each, "wanted bytes": 300}


def durable() -> Iterator[dict[str, Any]]:
    """On disk, every batch a commit, beside the same in memory."""
    for name, side, wanted in (("hardly any notification", RARE, 10.0), ("39 notifications an event", USUAL, 40.0)):
        placed, tables = boxes(SUBSCRIPTIONS, side), event_tables()
        given = [next(tables) for _ in range(12)]
        memory, _ = timed(topic_of(placed).publish_batch, given, BATCH)
        with tempfile.TemporaryDirectory() as folder, td.open(folder, "t", SCHEMA) as topic:
            topic.subscribe_many(subscriptions_of(placed), time=BEGIN - 1)
            yield row(f"durable publish_batch, {name}", timed(topic.publish_batch, given, BATCH), wanted, "in memory", memory)


def searches() -> Iterator[dict[str, Any]]:
    """Beside it the columns of all events, scanned in NumPy."""
    topic, tables, place, price = td.Topic("t", SCHEMA), event_tables(), [], []
    for table in (next(tables) for _ in range(1_000)):
        topic.publish_batch(table)
        place.append(np.stack([column.to_numpy() for column in table["place"].combine_chunks().flatten()]))
        price.append(table["price"].to_numpy())
    (x, y), prices = np.concatenate(place, axis=1).astype("f4"), np.concatenate(price).astype("f4")
    corners = rng.random((220, 2)).tolist()
    filters = {f"S_INTERSECTS(place, BBOX({a}, {b}, {a + 0.005}, {b + 0.005})) AND price < 500": (a, b) for a, b in corners}

    def scan(filter: str) -> np.ndarray:
        a, b = filters[filter]
        return np.flatnonzero((a <= x) & (x <= a + 0.005) & (b <= y) & (y <= b + 0.005) & (prices < 500))

    scanned, _ = mean(scan, [*filters][:60])
    found = mean(lambda filter: topic.search(filter, time=BEGIN), [*filters])
    yield row("search, 1,000,000 live events", found, 150.0, "scan in NumPy", scanned)


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
    for size, wanted in ((1_000, 7.0), (10_000, 34.0), (100_000, 172.0), (1_000_000, 1943.0)):
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


def places() -> Iterator[dict[str, Any]]:
    """A box and three ranges: loading them, batches, the first removals. Beside it the columns of all, scanned in NumPy."""
    n, schema = 1_000_000, td.Schema({"place": td.Place(plane=True), **{name: td.Number() for name in "abc"}})
    corner, middle = rng.random((n, 2)), rng.random((3, n)) * 0.7
    sides = 0.01 * np.exp(rng.uniform(-np.log(2), np.log(2), (n, 2)))
    columns = {"id": workloads.names("s", n), "place.box": workloads.boxes(corner - sides / 2, corner + sides / 2)}
    for d, name in enumerate("abc"):
        columns |= {f"{name}.lo": middle[d], f"{name}.hi": middle[d] + 0.3}
    table = pa.table(columns)
    td.Topic("t", schema).subscribe_many(table.slice(0, 1000), time=0)
    topic = td.Topic("t", schema)
    start = time.process_time()
    topic.subscribe_many(table, time=0)
    yield row("bulk load, 1M ranges and place, columnar", ((time.process_time() - start) / n * 1e6, 0.0), 3.0)
    low = np.vstack([(corner - sides / 2).T, middle]).astype("f4")
    high = np.vstack([(corner + sides / 2).T, middle + 0.3]).astype("f4")
    yield from in_batches(topic, "1M of a box and three ranges", schema, (low, high), ((10_000, 1.3), (1_000, 3.5)))
    ids = table["id"].slice(0, 300).to_pylist()
    topic.unsubscribe(ids.pop())
    yield row("unsubscribe, first ones after a load", mean(lambda id: topic.unsubscribe(id) or (), ids[:120]), 10.0)


def in_batches(
    topic: td.Topic, name: str, schema: td.Schema, columns: Boxes, sizes: tuple[tuple[int, float], ...]
) -> Iterator[dict[str, Any]]:
    """Batches of points and values beside a scan of all columns, x and y first."""
    low, high = columns
    numbers = schema.ranges

    def batch(count: int) -> pa.Table:
        point = rng.random((2 + len(numbers), count))
        names = [f"e{i}" for i in range(count)]
        return pa.table({"id": names, "place": struct(point[:2], ["x", "y"]), **dict(zip(numbers, point[2:], strict=True))})

    def scan(event: np.ndarray) -> np.ndarray:
        hit = (low[0] <= event[0]) & (event[0] <= high[0])
        for d in range(1, len(low)):
            hit &= (low[d] <= event[d]) & (event[d] <= high[d])
        return np.flatnonzero(hit)

    scanned, _ = timed(scan, [*rng.random((8, len(low))).astype("f4")])
    for size, wanted in sizes:
        measured = timed(topic.match_batch, [batch(size) for _ in range(6)], size)
        yield row(f"match_batch, {name}, batches of {size:,}", measured, wanted, "scan in NumPy", scanned)


def large() -> Iterator[dict[str, Any]]:
    """MO-Tree's workload: K predicates of 20 attributes, two of them the place."""
    for predicates, wanted in ((10, 5.0), (4, 12.0)):
        work = workloads.ranges_place(1_000_000, 60_000, predicates)
        topic = td.Topic("t", work.schema)
        topic.subscribe_many(work.subscriptions, time=0)
        given = [work.events.slice(first, 10_000) for first in range(0, 60_000, 10_000)]
        names = [name for name in work.schema if name != "place"]
        low, high = (
            np.stack([work.subscriptions[f"{name}.{end}"].to_numpy() for name in names]).astype("f4") for end in ("lo", "hi")
        )
        box = work.subscriptions["place.box"].combine_chunks().flatten().to_numpy().reshape(-1, 4).T.astype("f4")
        free = np.isnan(low)

        def scan(
            event: dict[str, Any], sides: tuple[np.ndarray, ...] = (box, low, high, free), names: list[str] = names
        ) -> np.ndarray:
            box, low, high, free = sides
            x, y = event["place"]["x"], event["place"]["y"]
            hit = (box[0] <= x) & (x <= box[2]) & (box[1] <= y) & (y <= box[3])
            for d, value in enumerate([event[name] for name in names]):
                hit &= free[d] if value is None else free[d] | ((low[d] <= value) & (value <= high[d]))
            return np.flatnonzero(hit)

        scanned, _ = timed(scan, work.events.slice(0, 6).to_pylist())
        measured = timed(topic.match_batch, given, 10_000)
        yield row(f"match_batch, MO-Tree's workload, 1M, K = {predicates}", measured, wanted, "scan in NumPy", scanned)


def keyed() -> Iterator[dict[str, Any]]:
    """Watchers of a range, k = 10, over 5,000 objects that change: wanted is 1 us a notification."""
    schema = td.Schema({"price": td.Number(0, 1), "rank": td.Number()})
    low = rng.random(SUBSCRIPTIONS) * 0.9
    columns = {"id": [f"s{i:06}" for i in range(SUBSCRIPTIONS)], "price.lo": low, "price.hi": low + 0.1}
    columns |= {"k": [10] * SUBSCRIPTIONS, "by": ["rank"] * SUBSCRIPTIONS}
    topic = td.Topic("t", schema, key="sku")
    topic.subscribe_many(pa.table(columns), time=BEGIN - 1)
    clock = iter(range(BEGIN, 10**10, BATCH))

    def batch(objects: np.ndarray) -> pa.Table:
        at = pa.array((next(clock) + np.arange(len(objects))) * 1_000_000, pa.timestamp("us", "UTC"))
        values = {"price": rng.random(len(objects)), "rank": rng.random(len(objects))}
        return pa.table({"sku": [f"o{i}" for i in objects.tolist()], **values, "time": at})

    topic.publish_batch(batch(np.arange(5_000)))
    given = [batch(rng.integers(0, 5_000, BATCH)) for _ in range(5)]
    measured = timed(topic.publish_batch, given, BATCH)
    high = low + 0.1
    scanned, _ = timed(lambda price: np.flatnonzero((low <= price) & (price <= high)), rng.random(50).tolist())
    yield row("keyed topic, 100,000 watchers of a range, batches", measured, measured[1], "scan of all watchers", scanned)


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


SECTIONS = (live, durable, searches, streams, lists, tiny, words, relaxed, near, keyed, places, large)


def main(only: tuple[str, ...] = ()) -> None:
    chosen = [section for section in SECTIONS if not only or section.__name__ in only]
    rows = [{"section": section.__name__, **one} for section in chosen for one in section()]
    facts: dict[str, Any] = {"subscriptions": SUBSCRIPTIONS, "batch": BATCH}
    if only:
        stored = json.loads(RESULT.read_text())
        kept = [one for one in stored["results"] if one.get("section") not in only]
        facts |= {"run": stored["run"], "run again": stored.get("run again", {}) | dict.fromkeys(only, provenance())}
        rows = kept + rows
    else:
        facts |= {"run": provenance()}
    RESULT.write_text(json.dumps({**facts, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main(tuple(sys.argv[2:]) if sys.argv[1:2] == ["--only"] else ())
