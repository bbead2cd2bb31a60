"""Every call of a topic once, on a few rows, in plain Python: which kernels are wanted, and for which types.

A kernel's types are those of arrays, which are the same whatever is in them; so a topic of thirty subscriptions wants what one of a
million does, if it goes the same ways: packed and not, with and without words, places, ranges, lists, a key. A kernel that is left
out here is compiled when it is first called.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidings.compiling import dispatching
from tidings.compiling.beside import Wanted
from tidings.durable.opening import open_topic
from tidings.model.values.schema import Attribute, Category, Number, Place, Time, Words
from tidings.model.values.vague import Between, Uncertain
from tidings.topic.topic import Topic

SCHEMA: dict[str, Attribute] = {
    "price": Number(0, 10_000),
    "size": Number(),
    "brand": Category(),
    "place": Place(plane=True),
    "about": Words(),
    "made": Time(),
}
SUBSCRIPTIONS = 30
START = 1_800_000_000


def rehearse() -> list[Wanted]:
    """What all acts want, each once."""
    with dispatching.rehearsing() as wanted:
        for act in ACTS:
            act()
    return sorted(wanted, key=lambda one: (one.module, one.name))


def event(number: int) -> dict[str, Any]:
    return {
        "id": f"e{number}",
        "price": 100 * (number % 40),
        "size": number % 12,
        "brand": ("Nokia", "Huawei")[number % 2],
        "place": (number % 10, number % 7),
        "about": f"red bike {('old', 'new', 'blue')[number % 3]}",
        "made": "2026-11-01T00:00:00Z",
    }


def table(numbers: range) -> pa.Table:
    events = [event(number) for number in numbers]
    columns = {name: [one[name] for one in events] for name in ("id", "price", "size", "brand", "about")}
    places = [{"x": float(one["place"][0]), "y": float(one["place"][1])} for one in events]
    return pa.table({**columns, "place": pa.array(places, pa.struct([("x", pa.float64()), ("y", pa.float64())]))})


def filters() -> Iterator[tuple[str, dict[str, Any]]]:
    """Filters of every shape, with every ranking."""
    shapes = (
        "price < {0}",
        "price BETWEEN {0} AND 4000 AND size > 2",
        "brand = 'Nokia' AND price > {0}",
        "brand IN ('Nokia', 'Huawei') AND NOT brand = 'Sony' OR size IS NULL",
        "S_INTERSECTS(place, BBOX(0, 0, {1}, 6))",
        "A_CONTAINS(about, ('red', 'bike')) AND S_INTERSECTS(place, BBOX(0, 0, {1}, 6))",
        "A_CONTAINS(about, ('bike')) AND price > {0}",
        "A_OVERLAPS(about, ('old', 'new'))",
        "price < 3 * size + {0}",
        "made > TIMESTAMP('2026-01-01T00:00:00Z') AND size < {1}",
    )
    rankings: tuple[dict[str, Any], ...] = (
        {},
        {"score": 2.0},
        {"score": "1 + 0.01 * price"},
        {"weights": {"price": 2.0}},
        {"k": 2, "window": "1 hour", "by": "-price"},
        {"k": 3, "window": "20 events"},
        {"k": 2, "window": "1 hour", "by": "size", "error": 0.1},
    )
    for number in range(SUBSCRIPTIONS):
        yield shapes[number % len(shapes)].format(100 * number, 1 + number % 9), rankings[number % len(rankings)]


def event_topic() -> None:
    topic = Topic("warm", SCHEMA)
    clock = count(START)
    questions(topic, clock)
    for number, (filter, ranking) in enumerate(filters()):
        topic.subscribe(f"s{number}", filter, time=next(clock), **ranking)
    questions(topic, clock)
    topic.subscribe_many(bulk())
    topic.flush()
    questions(topic, clock)
    changes(topic, clock)
    topic.flush()
    questions(topic, clock)


def questions(topic: Topic, clock: Iterator[int]) -> None:
    """Everything that is asked of events, one and many."""
    first, many = event(1), table(range(10, 40))
    asks: tuple[Callable[[], object], ...] = (
        lambda: topic.match(first),
        lambda: topic.match(first, k=3),
        lambda: topic.match(first, k=3, relaxed=True),
        lambda: topic.match(first, k=3, relaxed=True, aggregate="max"),
        lambda: topic.match({**first, "price": Between(20, 3000), "brand": Uncertain({"Nokia": 1, "Sony": 3})}, k=3),
        lambda: topic.match_batch(many),
        lambda: topic.match_batch(many, k=3),
        lambda: topic.match_batch(many, k=3, relaxed=True),
        lambda: topic.explain(first, k=3),
        lambda: topic.publish(event(next(clock)), time=next(clock)),
        lambda: topic.publish_batch([event(next(clock)) for _ in range(30)], time=next(clock)),
        lambda: topic.search("price < 3000 AND S_INTERSECTS(place, BBOX(0, 0, 6, 6))"),
        lambda: topic.search("A_CONTAINS(about, ('red')) OR brand = 'Nokia'"),
        lambda: topic.advance(next(clock) + 7200),
    )
    for ask in asks:
        ask()


def changes(topic: Topic, clock: Iterator[int]) -> None:
    """Subscriptions that move, change, go, and are told what is there."""
    topic.update("s1", score=3.0, time=next(clock))
    topic.move("s4", (3, 3), time=next(clock))
    topic.unsubscribe("s2")
    topic.unsubscribe("b3")
    topic.subscribe("late", "price < 3000", k=3, window="1 hour", by="-price", replay=True, time=next(clock))
    topic.top("late")


def bulk() -> pa.Table:
    boxes = pa.FixedSizeListArray.from_arrays(pa.array([float(n % 9 + d) for n in range(SUBSCRIPTIONS) for d in (0, 0, 2, 2)]), 4)
    ids = [f"b{number}" for number in range(SUBSCRIPTIONS)]
    lows = [10.0 * number for number in range(SUBSCRIPTIONS)]
    words = [["red", "bike"]] * SUBSCRIPTIONS
    return pa.table({"id": ids, "price.lo": lows, "price.hi": [low + 3000 for low in lows], "place.box": boxes, "about.all": words})


def ideal_points() -> None:
    """Lists around ideal points: one attribute and two."""
    for near in ({"price": 500}, {"price": 500, "size": 5}):
        topic, clock = Topic("near", SCHEMA), count(START)
        for number in range(SUBSCRIPTIONS):
            point = {name: value + number for name, value in near.items()}
            topic.subscribe(f"n{number}", k=2, window="1 hour", by={"near": point}, time=next(clock))
        for number in range(20):
            topic.publish(event(number), time=next(clock))
        topic.publish_batch([event(number) for number in range(20, 400)], time=next(clock))
        topic.unsubscribe("n3")
        topic.advance(next(clock) + 7200)


def similar() -> None:
    topic, clock = Topic("similar", SCHEMA), count(START)
    for number in range(SUBSCRIPTIONS):
        wanted = f"S_INTERSECTS(place, BBOX(0, 0, {1 + number % 9}, 6)) AND A_CONTAINS(about, ('red', 'bike'))"
        topic.subscribe(f"s{number}", wanted, similarity=(0.5, 0.4), time=next(clock))
    topic.match(event(1))
    topic.flush()
    topic.match(event(1), k=3)
    topic.match_batch(table(range(5)))
    topic.unsubscribe("s3")
    topic.publish(event(2), time=next(clock))


def ranges_alone() -> None:
    """One range each on the same attribute: the SOPT-R-tree's."""
    topic = Topic("ranges", SCHEMA)
    for number in range(SUBSCRIPTIONS):
        topic.subscribe(f"r{number}", f"price BETWEEN {number} AND {3000 + number}", score=float(number))
    topic.flush()
    topic.match(event(1), k=3)
    topic.match_batch(table(range(5)), k=3)
    topic.match_batch(table(range(5)), k=3, relaxed=True)


def places_alone() -> None:
    """A small box each, and a range: the place blocks'; whole numbers and others are packed in different ways."""
    for step in (1.0, 0.1234567891234):
        topic = Topic("places", SCHEMA)
        for number in range(3 * SUBSCRIPTIONS):
            box = f"BBOX({number % 9 * step}, {number % 7 * step}, {number % 9 * step + 0.1}, {number % 7 * step + 0.1})"
            topic.subscribe(f"p{number}", f"S_INTERSECTS(place, {box}) AND price < {3000 + number}", score=float(number % 4))
        topic.flush()
        topic.match(event(1))
        topic.match(event(1), k=3)
        topic.match_batch(table(range(5)))
        topic.match_batch(table(range(5)), k=3)
        topic.explain(event(1), k=3)


def keyed_topic() -> None:
    schema: dict[str, Attribute] = {"size": Number(0, 500), "rent": Number(0, 10_000), "about": Words()}
    topic, clock = Topic("flats", schema, key="address"), count(START)
    for number in range(SUBSCRIPTIONS):
        by: dict[str, Any] = {"by": "-rent"} if number % 2 else {}
        wanted = f"size BETWEEN {number} AND {60 + number}" if number % 3 else "A_CONTAINS(about, ('bike'))"
        topic.subscribe(f"w{number}", wanted, k=1 + number % 3, time=next(clock), **by)
    for number in range(12):
        topic.publish({"address": f"a{number % 8}", "size": 50 + number, "rent": 900 - number, "about": "bike"}, time=next(clock))
    topic.publish_batch([{"address": f"a{n}", "size": 30 + n, "rent": 500 + n} for n in range(9)], time=next(clock))
    topic.publish({"address": "a1", "deleted": True}, time=next(clock))
    topic.unsubscribe("w4")
    topic.top("w1")


def kept_topic() -> None:
    """A topic on disk: written, opened again, merged."""
    with tempfile.TemporaryDirectory() as folder:
        clock = count(START)
        for generation in range(3):
            topic = open_topic(Path(folder) / "kept", "kept", SCHEMA)
            for number, (filter, ranking) in enumerate(filters()):
                topic.subscribe(f"g{generation}s{number}", filter, time=next(clock), **ranking)
            topic.publish(event(next(clock)), time=next(clock))
            topic.flush()
            topic.match_batch(table(range(3)))
            topic.close()


ACTS = (event_topic, ideal_points, similar, ranges_alone, places_alone, keyed_topic, kept_topic)
