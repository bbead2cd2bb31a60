"""One reader at a change: it keeps its answers, the next change makes another, and a single event is answered as a batch of one."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import tidings as td
from tidings.match.store import definition

SCHEMA = {"price": td.Number(), "place": td.Place(plane=True), "about": td.Words(), "kind": td.Category()}
FILTERS = [
    "price < 3",
    "price BETWEEN 2 AND 5 AND kind = 'a'",
    "S_INTERSECTS(place, BBOX(0, 0, 2, 2))",
    "S_INTERSECTS(place, BBOX(1, 1, 4, 4)) AND A_CONTAINS(about, ('red'))",
    "A_CONTAINS(about, ('red', 'w70'))",
    "kind IS NULL OR price = 7",
    "price * 2 = 6",
    "TRUE",
]
EVENTS = [
    {"id": "none"},
    {"id": "all", "price": 2.5, "place": {"x": 1.5, "y": 1.5}, "about": "red bike", "kind": "a"},
    {"id": "wordy", "about": " ".join(["red", *(f"w{i}" for i in range(200))])},
    {"id": "few words after many", "about": "red", "place": {"x": 3.0, "y": 1.0}},
    {"id": "by residue", "price": 3, "kind": "b"},
    {"id": "box", "place": [0.5, 0.5, 3.0, 3.0], "price": 7.0},
]


def filled(copies: int) -> td.Topic:
    topic = td.Topic("t", SCHEMA)
    for copy in range(copies):
        for number, filter in enumerate(FILTERS):
            topic.subscribe(f"s{copy}.{number}", filter, score=float((copy * 7 + number * 3) % 5), time=0)
    # Words that only some clause names are known to events.
    topic.subscribe("last", "A_CONTAINS(about, ('w150', 'w199'))", time=0)
    return topic


@pytest.mark.parametrize("copies", [1, 2 * definition.TINY // len(FILTERS)])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("k", [None, 1, 3, 10_000])
def test_an_event_alone_is_answered_as_in_a_batch(copies, packed, k):
    topic = filled(copies)
    if packed:
        topic.flush()
        topic.unsubscribe("s0.7")
    table = topic.match_batch(EVENTS, k, time=0)
    for event in EVENTS:
        rows = [row for row in table.to_pylist() if row["event"] == event["id"]]
        assert [match._asdict() for match in topic.match(event, k, time=0)] == rows
        assert topic.match_batch([event], k, time=0).to_pylist() == rows
        assert topic.match_batch([event], k, time=0).schema == table.schema


def test_a_reader_keeps_its_answers_and_the_next_change_makes_another():
    topic = filled(2)
    store, values = topic.store, {"price": 2.5}
    before = store.reader()
    assert store.reader() is before
    found = [found.source.names(found.ordinal) for found in before.match_one(values, 0)]
    topic.subscribe("new", "price > 2", time=0)
    after = store.reader()
    assert after is not before
    assert [found.source.names(found.ordinal) for found in before.match_one(values, 0)] == found
    assert "new" in {name for found in after.match_one(values, 0) for name in found.source.names(found.ordinal)}
    topic.flush()
    topic.merge()
    assert store.reader().snapshot is store.snapshot


def test_threads_have_events_of_their_own():
    topic = filled(20)
    topic.flush()
    wanted = {event["id"]: topic.match(event, time=0) for event in EVENTS}
    wrong: list[str] = []

    def ask(first: int) -> None:
        for turn in range(200):
            event = EVENTS[(first + turn) % len(EVENTS)]
            if topic.match(event, time=0) != wanted[event["id"]]:
                wrong.append(event["id"])

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_table_of_one_event_without_matches_has_the_columns():
    topic = td.Topic("t", SCHEMA)
    assert topic.match_batch([{"id": "e"}], time=0).schema == pa.schema(
        [("event", pa.string()), ("subscription", pa.string()), ("score", pa.float64())]
    )
