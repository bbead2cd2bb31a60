"""Codes of strings that nobody names any more are taken back at `merge()`, and no answer changes."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import tidings as td
from tests.oracle.topic import TopicOracle

SCHEMA = td.Schema({"price": td.Number(0, 8), "brand": td.Category(), "city": td.Category(), "about": td.Words()})


def filter_of(draw: random.Random, n: int) -> str:
    new = f"w{n}"
    shapes = [
        f"brand = '{new}'",
        f"brand IN ('{new}', 'b{n % 5}', 'x{n}') AND price > {n % 8}",
        f"city NOT IN ('c{n % 3}', '{new}')",
        f"A_CONTAINS(about, ('{new}', 'red'))",
        f"A_OVERLAPS(about, ('{new}', 'w{n - 1}')) OR city = 'c{n % 3}'",
        "brand IS NULL",
        "city IS NOT NULL",
        f"brand LIKE '{new}%'",
    ]
    return draw.choice(shapes)


def events(draw: random.Random, n: int) -> list[dict[str, object]]:
    names = [*(f"w{i}" for i in range(n - 40, n)), "b1", "x3", "c0", "c1", "red"]
    return [
        {"id": f"e{i}", "price": draw.randrange(9), "brand": draw.choice(names), "city": draw.choice(names)}
        | ({"about": draw.sample([*names, "red"], 4)} if i % 3 else {})
        for i in range(40)
    ]


@pytest.mark.parametrize("durable", [False, True])
def test_codes_are_bounded_by_those_in_use(durable, tmp_path):
    draw, oracle = random.Random(5), TopicOracle(SCHEMA)
    topic = td.open(tmp_path, "t", SCHEMA) if durable else td.Topic("t", SCHEMA)
    sizes = []
    for round in range(4):
        for n in range(round * 400, round * 400 + 400):
            filter = filter_of(draw, n)
            topic.subscribe(f"s{n % 30}", filter, score=n % 7, time=0)
            oracle.subscribe(f"s{n % 30}", filter, score=n % 7)
        table = pa.table({"id": ["bulk"], "brand.in": [[f"w{n}", "b1"]], "about.any": [[f"w{n}", "red"]]})
        topic.subscribe_many(table, time=0)
        oracle.subscribe("bulk", f"brand IN ('w{n}', 'b1') AND A_OVERLAPS(about, ('w{n}', 'red'))")
        topic.merge()
        sizes.append(topic.vocabularies.size)
        if durable and round == 2:
            topic.close()
            topic = td.open(tmp_path)
        for event in events(draw, n):
            expected = oracle.match(event)
            assert topic.match(event, time=0) == expected
            assert topic.match(event, 5, time=0) == oracle.match(event, 5)
        for id in oracle.subscriptions:
            assert topic.subscription(id).clauses == oracle.subscriptions[id].clauses
    assert max(sizes) < 256 < 400
    topic.close()


def test_a_batch_and_a_reader_that_hold_the_old_codes_go_on():
    topic = td.Topic("t", SCHEMA)
    for n in range(600):
        topic.subscribe("a", f"brand = 'w{n}'", time=0)
    topic.subscribe("b", "brand = 'z'", time=0)
    batch = topic._batch([{"id": "e", "brand": "z"}, {"id": "f", "brand": "w599"}])
    before, old = topic.store.reader(), topic.vocabularies
    topic.merge()
    assert topic.vocabularies is not old
    assert topic.vocabularies.size < old.size
    for reader in (before, topic.store.reader(), before):
        found = reader.match(batch, at=0)
        assert sorted(id for one in found for id in one.source.names(one.ordinal)) == ["a", "b"]
    assert len(topic.match_batch(batch.table, time=0)) == 2


def test_words_of_similarity_are_taken_back_too_and_weigh_what_they_weighed():
    topic, draw = td.Topic("t", SCHEMA), random.Random(3)
    words = [f"k{n}" for n in range(40)]
    for n in range(900):
        own = draw.sample(words, 2) + ([f"v{n}"] if n < 860 else [])
        texts = ", ".join(f"'{word}'" for word in own)
        topic.subscribe(f"s{n % 60}", f"A_CONTAINS(about, ({texts}))", similarity=(0.0, 0.25), time=0)
        if n % 300 == 0:
            topic.match({"id": "e", "about": "k1"}, time=0)
    events = [{"id": f"e{n}", "about": draw.sample(words, 6)} for n in range(12)]
    before, reader = [topic.match(event, time=0) for event in events], topic.store.reader()
    assert sum(map(len, before)) > 100
    size = topic.vocabularies.size
    topic.merge()
    assert topic.vocabularies.size < 256 < size
    assert [topic.match(event, time=0) for event in events] == before
    batch = topic._batch(events)
    assert sum(len(found.event) for found in reader.match(batch, at=0)) == sum(map(len, before))
    topic.subscribe("new", "A_CONTAINS(about, ('k1', 'k2'))", similarity=(0.0, 0.25), time=0)
    topic.unsubscribe("s3")
    kept = [[m for m in matches if m.subscription != "s3"] for matches in before]
    assert [[m for m in topic.match(event, time=0) if m.subscription != "new"] for event in events] == kept


def test_answers_stand_while_codes_are_taken_back():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("always", "brand IN ('z', 'y')", time=0)
    stop = threading.Event()

    def ask() -> int:
        asked = 0
        while not stop.is_set():
            assert [m.subscription for m in topic.match({"id": "e", "brand": "z"}, time=0)] == ["always"]
            assert topic.match_batch([{"id": "e", "brand": "y"}], time=0)["subscription"].to_pylist() == ["always"]
            asked += 1
        return asked

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        for n in range(900):
            topic.subscribe("a", f"brand = 'w{n}'", time=0)
            if n % 300 == 299:
                topic.merge()
        stop.set()
        assert asking.result()
    assert topic.vocabularies.size < 300
