"""A few clauses asked one by one give what arrays give, wherever they stand, with the failures of filters that have no answer."""

from __future__ import annotations

import pytest

import tidings as td
from tidings.match.store import definition

SCHEMA = {"price": td.Number(0, 8), "size": td.Number(), "brand": td.Category(), "place": td.Place(plane=True), "about": td.Words()}
FILTERS = [
    None,
    "price < 4",
    "price BETWEEN 1 AND 2 AND size >= 1",
    "price = 1 OR size = 1",
    "S_INTERSECTS(place, BBOX(0, 0, 1, 1))",
    "S_INTERSECTS(place, BBOX(0, 0, 1, 1)) AND price <= 1",
    "brand IN ('a', 'b')",
    "brand <> 'a'",
    "price IS NULL",
    "price IS NOT NULL",
    "A_CONTAINS(about, ('red', 'bike'))",
    "size / price > 1",
]
EVENTS = [
    {"id": "e0"},
    {"id": "e1", "price": 1, "size": 1, "brand": "a", "place": (1, 1), "about": "red bike"},
    {"id": "e2", "price": 0, "size": 1, "place": (1.125, 0), "about": "red"},
    {"id": "e3", "price": 4, "size": 0.5, "brand": "c", "place": (0, 0)},
]


def topic_of(tiny: int, monkeypatch: pytest.MonkeyPatch, packed: bool) -> td.Topic:
    monkeypatch.setattr(definition, "TINY", tiny)
    topic = td.Topic("t", SCHEMA)
    for number, filter in enumerate(FILTERS):
        topic.subscribe(f"s{number % 5}{number}", filter, time=0)
    topic.subscribe("near", k=1, window="1 h", by={"near": {"price": 1}}, time=0)
    topic.subscribe("gone", "price < 4", time=0)
    if packed:
        topic.flush()
    topic.unsubscribe("gone")
    return topic


@pytest.mark.parametrize("packed", [False, True])
def test_one_by_one_is_as_in_arrays(packed, monkeypatch):
    few, arrays = (topic_of(tiny, monkeypatch, packed) for tiny in (64, 0))
    for event in EVENTS:
        found = few.match(event, time=1)
        assert found == arrays.match(event, time=1) != []
        assert [match.subscription for match in found] == sorted(match.subscription for match in found)
        assert few.publish(event, time=1) == arrays.publish(event, time=1)
    assert few.store.failures == arrays.store.failures
    assert few.store.failures["s111"] == 2, "e2 divides by zero, when it is matched and when it is published"


def test_what_grows_is_tiny_no_longer(monkeypatch):
    topic = topic_of(14, monkeypatch, packed=False)
    assert topic.store.reader().memtable.few is None
    topic = topic_of(16, monkeypatch, packed=False)
    assert topic.store.reader().memtable.few is not None
    topic.subscribe("one more", "price < 4 OR size < 4", time=0)
    assert topic.store.reader().memtable.few is None
    assert "one more" in [match.subscription for match in topic.match(EVENTS[1], time=1)]
