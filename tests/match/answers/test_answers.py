"""Order, the k best, relaxed scores and explanations, over subscriptions that stand in segments, in the memtable and by
similarity.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidings as td
from tests.oracle.topic import TopicOracle
from tidings.match.store.reader import Encoded
from tidings.model.door.event import read_event
from tidings.topic.ranked_matches import parted

SCHEMA = td.Schema(
    {"price": td.Number(0, 100), "size": td.Number(), "brand": td.Category(), "place": td.Place(), "about": td.Words()}
)
FILTERS = {
    "all": None,
    "cheap": "price <= 20",
    "dear": "price > 20",
    "one of": "brand IN ('a', 'b')",
    "none of": "brand NOT IN ('b', 'c')",
    "nameless": "brand IS NULL",
    "here": "S_INTERSECTS(place, BBOX(0, 0, 2, 2))",
    "red": "A_CONTAINS(about, ('red'))",
    "either": "price < 10 OR brand = 'c'",
    "product": "price * size > 30",
}
EVENTS = [
    {"id": "e0", "price": 8, "size": 1, "brand": "a", "place": (1, 1), "about": "red car"},
    {"id": "e1", "price": 20, "size": 4, "brand": "c", "place": (2, 2), "about": "blue"},
    {"id": "e2", "price": 64, "place": (5, 5)},
    {"id": "e3"},
]


@pytest.fixture(params=["memtable", "segments", "both"])
def pair(request):
    """A topic and its oracle."""
    topic, oracle = td.Topic("t", SCHEMA), TopicOracle(SCHEMA)
    for number, (id, filter) in enumerate(FILTERS.items()):
        ranking = {"score": [1.0, 2.0, 2.0, "3 - price / 8"][number % 4]}
        for side in (topic, oracle):
            side.subscribe(id, filter, **ranking, **({"time": 0} if side is topic else {}))
        if request.param == "both" and number == 5:
            topic.flush()
    if request.param == "segments":
        topic.merge()
    return topic, oracle


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["id"])
@pytest.mark.parametrize("k", [None, 0, 1, 3, 50])
def test_one_event_and_a_batch_are_in_the_order_of_the_definition(pair, event, k):
    topic, oracle = pair
    assert topic.match(event, k, time=0) == oracle.match(event, k)
    table = topic.match_batch(EVENTS, k, time=0)
    rows = zip(*(table[name].to_pylist() for name in ("event", "subscription", "score")), strict=True)
    assert [row for row in rows if row[0] == event["id"]] == oracle.match(event, k)


@pytest.mark.parametrize("aggregate", ["sum", "max", "min"])
@pytest.mark.parametrize("k", [None, 2])
def test_relaxed_scores_are_those_of_the_definition(pair, aggregate, k):
    topic, oracle = pair
    for event in EVENTS:
        assert topic.match(event, k, relaxed=True, aggregate=aggregate, time=0) == oracle.match_relaxed(event, k, aggregate)
    table = topic.match_batch(EVENTS, k, relaxed=True, aggregate=aggregate, time=0)
    assert table.num_rows == sum(len(oracle.match_relaxed(event, k, aggregate)) for event in EVENTS)


def test_an_aggregate_that_is_none_is_named():
    with pytest.raises(td.errors.SubscriptionError, match="aggregate = 'mean': one of sum, max, min"):
        td.Topic("t", SCHEMA).match(EVENTS[0], 1, relaxed=True, aggregate="mean")


def test_publishing_parts_those_with_a_ranking_from_those_without():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("b", "price < 50", time=0)
    topic.subscribe("a", "price < 50", time=0)
    topic.subscribe("ranked", "price < 50", k=1, window="1 day", by="price", time=0)
    for act in (lambda: None, topic.flush):
        act()
        events = [read_event(SCHEMA, event) for event in EVENTS]
        asked = Encoded(topic.encode(events), lambda row, events=events: events[row].values)
        plain, ranked = parted(topic.store.reader().match(asked, at=0))
        assert named(plain) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
        assert named(ranked) == [(0, "ranked"), (1, "ranked")]


def named(hits):
    return [pair for found in hits for pair in zip(found.event.tolist(), found.source.names(found.ordinal), strict=True)]


REASONS = {
    "dear": "price is 8, wanted above 20",
    "one of": "brand is missing",
    "none of": "brand is c, wanted none of b, c",
    "nameless": "brand must be missing and is 'a'",
    "here": "to touch (0, 0, 2, 2)",
    "red": "about is missing",
}


@pytest.mark.parametrize(("id", "event"), [("dear", 0), ("one of", 2), ("none of", 1), ("nameless", 0), ("here", 2), ("red", 2)])
def test_an_explanation_names_the_first_predicate_that_fails(pair, id, event):
    told = pair[0].explain(EVENTS[event], id, time=0)
    assert not told.matched
    assert REASONS[id] in told.reason
    assert REASONS[id] in str(told)


def test_explanations_agree_with_matching_and_say_where_a_clause_stands(pair):
    topic, oracle = pair
    for event in EVENTS:
        matched = {m.subscription: m.score for m in oracle.match(event)}
        for id in FILTERS:
            told = topic.explain(event, id, time=0)
            assert told.matched == (id in matched)
            assert told.score == matched.get(id)
            assert len(told.home) == len(told.reached) == len(topic.subscription(id).clauses)
            assert not told.matched or any(told.reached)


def test_an_event_alone_tells_what_each_step_left(pair):
    topic, oracle = pair
    told = topic.explain(EVENTS[0], k=3, time=0)
    assert told.steps["subscriptions"] == len(FILTERS)
    assert told.steps["matches"] == len(oracle.match(EVENTS[0]))
    assert len(told.plans) == len(topic.store.snapshot.segments) + bool(told.steps["in the memtable"])


def test_the_expired_and_those_that_never_match_are_explained():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("short", expires=1, time=0)
    with pytest.warns(td.errors.NeverMatchesWarning):
        topic.subscribe("never", "price < 1 AND price > 2", time=0)
    assert topic.explain(EVENTS[0], "short", time=5).reason == "it has expired"
    assert topic.explain(EVENTS[0], "never", time=0).reason == "its filter can never match"
    assert topic.match(EVENTS[0], time=5) == []


def test_a_batch_of_nothing_is_an_empty_table(pair):
    table = pair[0].match_batch([], time=0)
    assert table.schema == pa.schema([("event", pa.string()), ("subscription", pa.string()), ("score", pa.float64())])
    assert table.num_rows == 0
