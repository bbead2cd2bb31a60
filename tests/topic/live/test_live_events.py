"""Searching many live events, across the tree's new measurements, gives what a scan gives."""

from __future__ import annotations

import numpy as np
import pytest

import tidings as td
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import batch_of
from tidings.model.door.event import read_event
from tidings.model.filter.compile import compile_filter
from tidings.topic.live import live_events
from tidings.topic.live.live_events import LiveEvents

SCHEMA = td.Schema({"price": td.Number(), "brand": td.Category(), "place": td.Place(plane=True), "about": td.Words()})
FILTERS = [
    "price BETWEEN 10 AND 12",
    "price < 30 AND brand = 'b3'",
    "S_INTERSECTS(place, BBOX(2, 2, 3, 3)) AND price > 50",
    "A_CONTAINS(about, ('w3', 'w4'))",
    "brand LIKE 'b1%'",
    "price IS NULL",
]


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("tail", [0, 20, 10_000])
def test_search_is_a_scan(tail, batches, monkeypatch):
    """Whether events come one by one or in batches, and although most of them are replaced."""
    monkeypatch.setattr(live_events, "CHUNK", 16)
    monkeypatch.setattr(live_events, "FIRST", 50)
    monkeypatch.setattr(live_events, "TAIL", tail)
    rng = np.random.default_rng(0)
    events = LiveEvents(SCHEMA)
    kept, before = {}, None
    for i in range(600):
        raw = {"id": f"e{rng.integers(0, 400)}", "brand": f"b{rng.integers(0, 20)}", "place": tuple(rng.integers(0, 80, 2) / 8)}
        raw |= {"price": float(rng.integers(0, 800) / 8)} if rng.random() < 0.9 else {}
        raw |= {"about": " ".join(f"w{w}" for w in rng.integers(0, 8, 3)), "expires": float(rng.integers(500, 700))}
        event = read_event(SCHEMA, raw)
        if not batches or i % 3 == 0:
            events.put(event)
        elif i % 3 == 2:
            pair = {one.id: one for one in (before, event)}
            batch = batch_of(SCHEMA, Vocabularies(SCHEMA), list(pair.values()))
            events.put_batch(batch, np.zeros(len(batch), np.int64), np.arange(len(batch)))
        kept[event.id] = before = event
        if i % 21 == 0:
            gone = f"e{rng.integers(0, 400)}"
            events.remove(gone)
            kept.pop(gone, None)
    for time in (0, 600_000_000, 550_000_000):
        for filter in FILTERS:
            clauses = compile_filter(SCHEMA, filter)
            expected = sorted(
                e.id for e in kept.values() if time < e.expires and any(clause.holds(SCHEMA, e.values) for clause in clauses)
            )
            assert events.search(clauses, time) == [kept[id] for id in expected]
            assert len(events) == len(kept)
    assert {id for _, id in events.expire(600_000_000)} == {e.id for e in kept.values() if e.expires <= 600_000_000}


def test_presence_of_a_category_places_no_edge():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("a", "brand IS NOT NULL", time=0)
    topic.subscribe("b", "brand = 'x'", time=0)
    topic.flush()
    topic.subscribe("c", "brand = 'y'", time=0)
    assert [m.subscription for m in topic.match({"id": "e", "brand": "y"}, time=0)] == ["a", "c"]
