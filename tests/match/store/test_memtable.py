"""The memtable against the definition: every shape of clause, one event and batches, and readers of changes that are long past."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from tests.model.filter.samples import SCHEMA, random_event, random_filter
from tidings.errors import NeverMatchesWarning
from tidings.match.store import memtable_reader, store
from tidings.match.store.memtable import Memtable
from tidings.model.columns.arrays import Vocabularies, encode_events
from tidings.model.door.subscription import make_subscription
from tidings.topic.topic import Topic

SEED = 20261116
FILTERS = (
    None,
    "price IS NULL",
    "price IS NOT NULL",
    "place IS NULL",
    "brand <> 'Acme'",
    "brand IN ('Acme', 'Beta')",
    "brand NOT IN ('Acme', 'Beta') AND stars > 2",
    "price * stars > 4",
    "A_CONTAINS(about, ('red', 'new'))",
    "S_INTERSECTS(place, BBOX(-1, -1, 1, 1)) AND price < 3",
    "price < 2 OR stars >= 3",
)


def subscription(r, number):
    filter = r.choice(FILTERS) if r.random() < 0.5 else random_filter(r)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        return make_subscription(SCHEMA, f"s{number:03d}", filter, **({"similarity": (0.5, 0.5)} if number % 17 == 0 else {}))


def expected(held, events):
    return [
        (row, s.id)
        for row, event in enumerate(events)
        for s in sorted(held, key=lambda s: s.id)
        if s.similarity is None and any(clause.holds(SCHEMA, event) for clause in s.clauses)
    ]


@pytest.mark.parametrize("most", [8, 60, 400])
@pytest.mark.parametrize("looped", [1, 10_000])
def test_it_finds_what_the_definition_says_at_every_change(most, looped, monkeypatch):
    monkeypatch.setattr(memtable_reader, "LOOPED", looped)
    r = random.Random(SEED + most)
    vocabularies = Vocabularies(SCHEMA)
    memtable, held, past = Memtable(SCHEMA, vocabularies), {}, []
    for seq in range(1, 300):
        number = r.randrange(most)
        if r.random() < 0.7:
            s = subscription(r, number)
            held[s.id] = s
            memtable.put(seq, s)
        elif memtable.remove(seq, f"s{number:03d}"):
            del held[f"s{number:03d}"]
        if seq % 20 == 0:
            past.append((memtable.reader(seq), [*held.values()]))
    memtable.check()
    events = [random_event(r)[0] for _ in range(12)]
    columns = encode_events(SCHEMA, vocabularies, events)
    for reader, then in past:
        want = expected(then, events)
        event, ordinal = reader.match(columns, lambda row: events[row])
        assert list(zip(event.tolist(), reader.names(ordinal), strict=True)) == want
        for row, one in enumerate(events):
            single = encode_events(SCHEMA, vocabularies, [one])
            assert sorted(reader.names(reader.match_one(single, one))) == [id for at, id in want if at == row]


def test_an_ideal_point_is_left_out_when_asked():
    vocabularies = Vocabularies(SCHEMA)
    memtable = Memtable(SCHEMA, vocabularies)
    memtable.put(1, make_subscription(SCHEMA, "near", by={"near": {"price": 1.0}}, window="10 events"))
    memtable.put(2, make_subscription(SCHEMA, "all"))
    reader = memtable.reader(2)
    columns = encode_events(SCHEMA, vocabularies, [{}])
    assert reader.names(reader.match(columns, lambda _: {})[1]) == ["all", "near"]
    assert reader.names(reader.match(columns, lambda _: {}, near=False)[1]) == ["all"]
    assert np.array_equal(memtable.near(), [memtable.subscriptions["near"]])


@pytest.mark.parametrize("packed_from", [512, 10**9])
def test_a_batch_has_the_answers_of_its_events(packed_from, monkeypatch):
    """Whether a large batch packs what is new first, or looks through it."""
    monkeypatch.setattr(store, "WORTH_PACKING_WORDS", packed_from)
    r = random.Random(SEED)
    topic = Topic("t", SCHEMA)
    rankings = ({}, {"score": 2.5}, {"score": "price * 2 + 1"}, {"expires": 5}, {"expires": 500}, {"k": 3})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        for number in range(120):
            filter = r.choice(FILTERS) if number % 2 else random_filter(r)
            topic.subscribe(f"s{r.randrange(1000)}", filter, time=0, **rankings[number % len(rankings)])
    items = [random_event(r)[1] for _ in range(600)]
    events = [{"id": f"e{i}"} | {name: value for name, value in item.items() if value is not None} for i, item in enumerate(items)]
    found, some = topic.match_batch(events, time=100).to_pylist(), events[:40]
    names = {event["id"] for event in some}
    assert [row for row in found if row["event"] in names] == [m._asdict() for e in some for m in topic.match(e, time=100)]
    assert (len(topic.store.memtable) == 0) == (packed_from == 512)
