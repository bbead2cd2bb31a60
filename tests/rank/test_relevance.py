"""What `by` means, and what it refuses."""

from __future__ import annotations

import json
import math

import pytest

import tidings as td
from tidings.errors import SubscriptionError
from tidings.rank.relevance import relevance_of

SCHEMA = td.Schema({"price": td.Number(), "size": td.Number(), "brand": td.Category()})
DAY = 86_400_000_000


def test_an_expression_is_its_value():
    relevance = relevance_of(SCHEMA, "2 * size - price")
    assert relevance({"price": 3.0, "size": 4.0}, 0) == 5.0
    assert relevance({"price": 3.0}, 0) is None


def test_near_is_minus_the_weighted_distance():
    relevance = relevance_of(SCHEMA, json.dumps({"near": {"price": 500, "size": 70}, "weights": {"price": 0.25}}))
    assert relevance({"price": 506.0, "size": 74.0}, 0) == -5.0
    assert relevance({"price": 500.0, "size": 70.0}, 0) == 0.0
    assert relevance({"price": 500.0}, 0) is None


def test_decay_raises_the_newer():
    relevance = relevance_of(SCHEMA, json.dumps({"by": "-price", "decay": "1 day"}))
    assert relevance({"price": 3.0}, 2 * DAY) == -1.0
    older, newer = relevance({"price": 3.0}, 0), relevance({"price": 3.5}, DAY)
    assert older < newer


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ({"near": {"brand": 1}}, "by.near names 'brand'"),
        ({"near": {}}, "by.near needs one attribute at least"),
        ({"near": {"price": math.inf}}, "a finite number is accepted"),
        ({"near": {"price": 1}, "weights": {"price": -1}}, "0 or more"),
        ({"near": {"price": 1}, "by": "price"}, "either 'near' or 'by'"),
        ({"far": 1}, "by has the field 'far'"),
        ({"by": "price", "decay": "3 events"}, "by.decay is '3 events'"),
        ({"by": 7}, "by.by is 7"),
    ],
)
def test_refused(by, sentence):
    with pytest.raises(SubscriptionError, match=sentence):
        td.Topic("t", SCHEMA).subscribe("s", by=by, k=1)


def test_a_topic_ranks_by_nearness():
    topic = td.Topic("flats", SCHEMA)
    topic.subscribe("ann", k=1, window="3 events", by={"near": {"price": 500, "size": 70}}, time=0)
    assert [n.why for n in topic.publish({"id": "a", "price": 600, "size": 70}, time=1)] == ["entered"]
    assert topic.publish({"id": "b", "price": 700, "size": 70}, time=2) == []
    assert topic.publish({"id": "lacks-size", "price": 500}, time=3) == []
    assert [(n.event, n.why) for n in topic.publish({"id": "c", "price": 800, "size": 70}, time=4)] == [("b", "promoted")]
    assert [m.event for m in topic.top("ann", time=4)] == ["b"]
