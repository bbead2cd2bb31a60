"""Makes the fixture of a durable format: `python -m tests.durable.formats.make FOLDER`, once, by the release that wrote the format.

Three small topics with all that a folder can hold (segments, removals in them, a memtable that was not packed, windows by time and
by count, ideal points, live events, notifications that wait, from format 3 on owners, tags, circles and consumers, from format 4 on
groups, calendars, paces, windows of objects and what filters recall, from format 5 on events and notifications in batches), and
`answers.json`: what the release that wrote them answered.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import tidings as td

SCHEMA = {
    "price": td.Number(0, 1000),
    "size": td.Number(),
    "brand": td.Category(),
    "place": td.Place(),
    "about": td.Words(),
    "made": td.Time(),
}
EVENTS = [
    {
        "id": f"q{i}",
        "price": 125.0 * i,
        "size": i / 8,
        "brand": "abc"[i % 3],
        "place": (i, i / 2),
        "about": "red p30" if i % 2 else "blue",
    }
    for i in range(8)
]
RANKED = (
    "grouped",
    "today",
    "recent",
    "dropped",
    "cheapest",
    "counted",
    "fresh",
    "near",
    "bounded",
    "words",
    *(f"w{i:02d}" for i in range(12)),
)
SECOND = 1_000_000


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    plain(folder / "plain").abandon()
    keyed(folder / "keyed").abandon()
    windows(folder / "windows").abandon()
    kept = {}
    for name in ("plain", "keyed", "windows"):
        with td.open(folder / name, mode="r") as topic:
            kept[name] = answers(topic)
    (folder / "answers.json").write_text(json.dumps(kept, indent=1))


def plain(path: Path) -> Any:
    topic = td.open(path, "plain", SCHEMA)
    table = {
        "id": [f"r{i:03d}" for i in range(60)],
        "score": [i / 8 for i in range(60)],
        "price.lo": [None if i % 4 == 0 else 10.0 * i for i in range(60)],
        "price.hi": [None if i % 4 == 0 else 10.0 * i + 300 for i in range(60)],
        "brand.in": [["a", "b"] if i % 5 == 0 else None for i in range(60)],
        "about.all": [["p30"] if i % 7 == 0 else None for i in range(60)],
    }
    topic.subscribe_many(pa.table(table), time=0)
    for i in range(20):
        topic.subscribe(f"t{i:02d}", f"price BETWEEN {i * 20} AND {i * 40} OR brand = 'c'", score=i / 4, time=0)
    topic.subscribe("box", "S_INTERSECTS(place, BBOX(1, 0, 5, 3))", score="2 * price + 1", time=0)
    topic.subscribe("residue", "price * size > 100 AND brand LIKE 'a%'", time=0)
    topic.subscribe(
        "similar", "A_CONTAINS(about, ('red', 'p30')) AND S_INTERSECTS(place, BBOX(0, 0, 4, 4))", similarity=(0.5, 0.25), time=0
    )
    topic.subscribe("gone soon", "price >= 0", expires=50 * SECOND, time=0)
    topic.flush()
    topic.unsubscribe("r010")
    topic.update("t03", score=9.0, time=0)
    topic.flush()
    topic.unsubscribe("r011")
    topic.move("box", (4.0, 2.0), time=0)
    topic.subscribe("late", "about IS NULL OR price < 200", score=4.5, time=0)
    topic.subscribe("circle", "price > 0", within=((2.0, 1.0), 200_000.0), owner="u17", tags=["near", "shop"], time=0)
    topic.add_consumer("mailer", after=0)
    for event in EVENTS:
        topic.publish({**event, "expires": 100 * SECOND}, time=SECOND)
    many = [{"id": f"b{i}", "size": i / 8, "expires": (60 + i) * SECOND} for i in range(80)]
    topic.publish_batch(many, time=SECOND)
    topic.publish({"id": "b7", "price": 300.0}, time=SECOND)
    return topic


def keyed(path: Path) -> Any:
    topic = td.open(path, "keyed", SCHEMA, key="id")
    for i in range(12):
        topic.subscribe(f"w{i:02d}", f"price BETWEEN {i * 50} AND {i * 50 + 400}", k=1 + i % 3, by="-price", time=0)
    topic.subscribe("words", "A_CONTAINS(about, ('p30'))", k=2, by="size", time=0)
    topic.flush()
    topic.subscribe("recent", "price >= 0", k=5, by="-price", window="90 days", per="brand", time=0)
    topic.subscribe("dropped", "price < PREV(price)", by="PREV(price) - price", time=0)
    topic.subscribe("stays", "size >= 0.5", dwell="3 days", time=0)
    topic.publish_batch(EVENTS, time=SECOND)
    topic.publish({**EVENTS[2], "price": 999.0}, time=2 * SECOND)
    topic.publish({**EVENTS[3], "price": 9.0}, time=3 * SECOND)
    return topic


def windows(path: Path) -> Any:
    topic = td.open(path, "windows", SCHEMA)
    topic.subscribe("cheapest", "price < 900", k=2, window="4 seconds", by="-price", time=0)
    topic.subscribe("counted", "brand = 'a'", k=1, window="5 events", by="size", time=0)
    topic.subscribe("fresh", k=2, window="3 seconds", by={"near": {"price": 300}}, time=0)
    topic.subscribe("near", k=3, window="6 events", by={"near": {"price": 500, "size": 0.5}}, time=0)
    topic.flush()
    topic.subscribe("bounded", "price > 0", k=2, window="4 seconds", by="price", error=0.1, time=0)
    topic.subscribe("grouped", k=2, window="40 days", by="-price", per="brand", time=0)
    topic.subscribe("today", "price > 0", k=2, window="month", tz="Europe/Berlin", by="price", time=0)
    topic.subscribe("rare", "price > 0", budget="2 per day", cooldown="20 days", time=0)
    topic.subscribe("daily", k=3, digest="at 08:00", tz="Europe/Berlin", by="size", time=0)
    for i, event in enumerate(EVENTS):
        topic.publish(event, time=i * SECOND)
    return topic


def answers(topic: Any) -> dict[str, Any]:
    """What can be asked of a topic without changing it."""
    ids = [id for id in RANKED if known(topic, id)]
    return {
        "subscriptions": len(topic),
        "match": [[[m.subscription, m.score] for m in topic.match(event, time=2 * SECOND)] for event in EVENTS],
        "best": [[[m.subscription, m.score] for m in topic.match(event, k=5, time=2 * SECOND)] for event in EVENTS],
        "search": sorted(topic.search("price >= 250", time=8 * SECOND)["id"].to_pylist()),
        "top": {id: [[m.event, m.score] for m in topic.top(id, time=8 * SECOND)] for id in ids},
        "owned": [[s.id, s.filter, list(s.tags)] for s in topic.subscriptions(owner="u17", tag="near")],
        "consumers": topic.consumers(),
        "outbox": [[n.subscription, n.event, n.score, n.rank, n.why] for _, n in topic.outbox()],
    }


def known(topic: Any, id: str) -> bool:
    try:
        topic.subscription(id)
    except td.errors.SubscriptionError:
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
