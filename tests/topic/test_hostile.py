"""Nobody's subscription can fail an event for others, no score is infinite, and no mistake raises what is not ours."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import tidings as td
from tidings.errors import EventError, SubscriptionError, TidingsError

SCHEMA = {"price": td.Number(), "size": td.Number()}
HUGE = {"id": "huge", "price": 1e200, "size": 1e200}
EVENTS = (
    {"id": "zero", "price": 5.0, "size": 0.0},
    HUGE,
    {"id": "opposite", "price": 1e300, "size": -1e300},
    {"id": "lacking", "price": 5.0},
    {"id": "plain", "price": 5.0, "size": 2.0},
)
POISON = {
    "division": {"k": 1, "window": "1 day", "by": "price / size"},
    "product": {"k": 1, "window": "1 day", "by": "price * 1e308"},
    "remainder": {"filter": "(price * size) % 3 = 1"},
    "quotient": {"filter": "((price * size) - (price * size)) div 3 = 1"},
    "weightless": {"k": 1, "window": "1 day", "by": {"near": {"price": 5, "size": 1}, "weights": {"price": 0}}},
    "score": {"score": "1e200*price + 1e200*size"},
    "ranked": {"score": "1e200*price + 1e200*size", "k": 2, "window": "3 events"},
}


def poisoned(flush: bool, key: str | None = None) -> td.Topic:
    topic = td.Topic("deals", SCHEMA, key=key)
    topic.subscribe("calm", "price >= 0", score=2.0, time=0)
    for id, ranking in POISON.items():
        topic.subscribe(id, **ranking, time=0)
    if flush:
        topic.flush()
    return topic


@pytest.mark.parametrize("flush", [False, True])
def test_hostile_subscriptions_harm_nobody(flush):
    topic = poisoned(flush)
    for event in EVENTS:
        for k in (None, 1, 9):
            matches = topic.match(event, k, time=0)
            assert [m for m in matches if m.subscription == "calm"] or k == 1
            assert all(math.isfinite(m.score) for m in matches)
            table = topic.match_batch([event], k, time=0)
            assert table.to_pylist() == [{"event": m.event, "subscription": m.subscription, "score": m.score} for m in matches]
    for event in EVENTS:
        notes = topic.publish(event, time=1)
        assert "calm" in {note.subscription for note in notes}
        assert all(math.isfinite(note.score) for note in notes)
    assert [m.event for m in topic.top("division", time=1)] == ["plain"]
    assert [m.event for m in topic.top("weightless", time=1)] == ["plain"]
    assert "no finite value" in topic.explain(HUGE, "score", time=0).reason


@pytest.mark.parametrize("flush", [False, True])
def test_who_has_no_answer_is_counted(flush):
    topic = poisoned(flush)
    topic.match(EVENTS[-1], time=0)
    assert topic.stats()["without an answer"]["times"] == 0
    topic.match(HUGE, time=0)
    topic.match_batch([HUGE], time=0)
    topic.publish(HUGE, time=1)
    told = topic.stats()["without an answer"]
    assert told["worst"]["remainder"] == told["worst"]["score"] == 3
    assert told["times"] == sum(topic.explain(HUGE, id, time=1).failures for id in POISON) >= 10
    assert told["subscriptions"] == len([id for id in POISON if topic.explain(HUGE, id, time=1).failures])
    assert "times so far" in str(topic.explain(HUGE, "remainder", time=1))
    assert topic.explain(HUGE, "calm", time=1).failures == 0


def test_hostile_watchers_harm_nobody():
    topic = poisoned(False, key="sku")
    for event in EVENTS:
        notes = topic.publish({"sku": event["id"], **{n: v for n, v in event.items() if n != "id"}}, time=1)
        assert "calm" in {note.subscription for note in notes}
        assert all(note.score is None or math.isfinite(note.score) for note in notes)


def test_watchers_without_an_answer_are_counted():
    topic = td.Topic("objects", SCHEMA, key="sku")
    topic.subscribe("calm", "price >= 0", k=2, by="-price", time=0)
    topic.subscribe("ranged", "price BETWEEN 0 AND 9", k=2, by="size", time=0)
    topic.subscribe("all", k=2, by="size", time=0)
    for id, ranking in POISON.items():
        topic.subscribe(id, **ranking, time=0)
    for event in EVENTS:
        topic.publish({"sku": event["id"], **{n: v for n, v in event.items() if n != "id"}}, time=1)
    failures = {id: topic.explain({"sku": "x", "price": 1.0}, id, time=1).failures for id in POISON}
    assert failures["division"] == 2
    assert failures["product"] == 5
    assert failures["weightless"] == 3
    assert failures["score"] == failures["ranked"] >= 2
    worst = topic.stats()["without an answer"]
    assert worst["times"] >= sum(failures.values())
    assert topic.explain({"sku": "x", "price": 1.0}, "calm", time=1).failures == 0
    assert topic.explain({"sku": "x", "price": 1.0}, "ranged", time=1).failures == 1
    assert topic.explain({"sku": "x", "price": 1.0}, "all", time=1).failures == 1


def test_an_event_dated_far_ahead_is_refused_and_the_clock_stays():
    topic = td.Topic("deals", SCHEMA)
    with pytest.raises(EventError, match="ahead of the clock"):
        topic.publish({"id": "e", "time": "9999-12-31T00:00:00Z"})
    topic.publish({"id": "e"})
    assert topic.publish({"id": "f", "time": "9999-12-31T00:00:00Z"}, time="9999-12-30T00:00:00Z") == []


@pytest.mark.parametrize(
    "call",
    [
        lambda topic: topic.match({"id": "e"}, time=1e308),
        lambda topic: topic.match({"id": "e"}, time="garbage"),
        lambda topic: topic.advance("garbage"),
        lambda topic: topic.subscribe("a", within=5),
        lambda topic: topic.subscribe("a", by='{"by": ' * 100_000, k=1, window="1 day"),
        lambda topic: topic.subscribe("a", "price = '\ud800'"),
        lambda topic: topic.unsubscribe(5),
        lambda topic: topic.unsubscribe_many([None]),
        lambda topic: topic.top(None),
        lambda topic: topic.subscription([]),
        lambda topic: topic.update({}, score=1),
        lambda topic: topic.subscribe_many(pa.table({"id": ["a"], "by": ['{"near": 5}']})),
        lambda topic: topic.match({"type": np.array([1.0, 2.0])}),
        lambda topic: topic.match({"specversion": np.array([1.0, 2.0])}),
        lambda topic: topic.publish_batch({"type": np.array([1.0, 2.0])}),
        lambda topic: topic.subscribe("a", {"op": np.array([1.0, 2.0]), "args": []}),
        lambda topic: topic.subscribe("a", {"op": "and", "args": [{"op": np.array([1.0]), "args": [{"property": "price"}, 1]}]}),
        lambda topic: topic.publish_batch(pa.Table.from_arrays([pa.array([1.0])] * 2, names=["price", "price"])),
        lambda topic: td.Topic("x", 0),
        lambda topic: td.Schema(0),
    ],
)
def test_only_our_errors(call):
    with pytest.raises(TidingsError):
        call(td.Topic("deals", SCHEMA))


def test_an_id_that_is_a_number_is_known_by_it():
    topic = td.Topic("deals", SCHEMA)
    topic.subscribe(5)
    topic.unsubscribe(5)
    with pytest.raises(SubscriptionError, match="there is no subscription"):
        topic.unsubscribe(5)
