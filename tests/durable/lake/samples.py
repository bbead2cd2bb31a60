"""A topic of every kind of subscription, and what it answers: what lake tests compare."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import tidings as td

START = 1_700_000_000
SCHEMA = td.Schema({"price": td.Number(0, 1000), "brand": td.Category(), "place": td.Place(), "about": td.Words()})
EVENTS = [
    {
        "id": f"e{i}",
        "price": i * 7 % 100,
        "brand": f"b{i % 5}",
        "place": (i % 10, i % 7),
        "about": [f"w{i % 4}", f"w{i % 9}"],
        "time": START + i,
    }
    for i in range(60)
]


def bulk(first: int = 0, count: int = 200) -> pa.Table:
    rows = range(first, first + count)
    return pa.table(
        {
            "id": [f"s{i}" for i in rows],
            "price.lo": [float(i % 50) for i in rows],
            "price.hi": [float(i % 50 + 20) for i in rows],
            "brand.in": pa.array([[f"b{i % 5}", f"b{i % 3}"] if i % 4 else None for i in rows], pa.list_(pa.string())),
            "score": [float(i % 9) for i in rows],
            "k": pa.array([3 if i % 10 == 0 else None for i in rows], pa.int32()),
        }
    )


def fill(topic: Any) -> None:
    """A bulk load, filters of several kinds, replacements and removals, events with windows."""
    topic.subscribe_many(bulk(), time=START)
    topic.subscribe("text", "price < 50 AND A_CONTAINS(about, ('w1'))", score=2.0, time=START)
    topic.subscribe("either", "price BETWEEN 1 AND 20 OR brand = 'b2'", time=START)
    topic.subscribe("residue", "price + 5 > 60 AND brand <> 'b1'", time=START)
    topic.subscribe("window", "price < 90", k=2, window="1 minute", by="-price", time=START)
    topic.subscribe("like", "A_CONTAINS(about, ('w1', 'w2')) AND S_INTERSECTS(place, BBOX(0, 0, 6, 6))", similarity=(0.5, 0.3))
    topic.subscribe("s7", "price > 30", time=START)
    topic.unsubscribe_many(["s3", "s4"])
    topic.flush()
    topic.publish_batch(EVENTS[:30])


def answers(topic: Any) -> Any:
    """What it says of every event: matches, the k best, relaxed; the lists of windows; what a search finds."""
    found = topic.match_batch(EVENTS).to_pylist()
    return (
        sorted(map(repr, found)),
        [topic.match(event, k=3, time=START) for event in EVENTS[::7]],
        [topic.match(event, k=3, relaxed=True, time=START) for event in EVENTS[::11]],
        topic.top("window"),
        sorted(row["id"] for row in topic.search("price < 40").to_pylist()),
    )
