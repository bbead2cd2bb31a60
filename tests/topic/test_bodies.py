"""Notifications with the bodies of their events: each reads back as the event that it tells of, here and in the outbox."""

from __future__ import annotations

import json

import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidings as td
from tests.topic.test_topic import SCHEMA, TIMES, events
from tidings.model.door.event import read_event

SHAPED = td.Schema({"area": td.Place(shapes=True), "day": td.Date(), "open": td.Bool(), "made": td.Time()})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(events(), TIMES), max_size=8), st.booleans())
def test_a_body_reads_back_as_its_event(published, keyed):
    topic = td.Topic("t", SCHEMA, key="id" if keyed else None)
    for name, ranking in (("all", {}), ("best", {"k": 1, "window": "5 seconds", "by": "-price"}), ("two", {"k": 2, "by": "price"})):
        topic.subscribe(name, "price IS NULL OR price < 6", time=0, **({**ranking, "window": None} if keyed else ranking))
    known = {}
    for event, time in published:
        known[event["id"]] = read_event(SCHEMA, event, topic.key)
        for note in topic.publish(event, time=time, bodies=True):
            if note.body is None:
                assert keyed, "only what was an object goes"
                assert note.event not in topic.search(time=time)["id"].to_pylist()
            else:
                assert read_event(SCHEMA, json.loads(json.dumps(note.body)), topic.key) == known[note.event]
    for note in topic.advance(100, bodies=True):
        assert note.body is None or read_event(SCHEMA, note.body, topic.key) == known[note.event]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(events(), max_size=5, unique_by=lambda event: event["id"]))
def test_a_batch_tells_the_same_with_bodies_as_without(batch):
    topics = [td.Topic("t", SCHEMA) for _ in range(2)]
    for topic in topics:
        topic.subscribe("all", time=0)
        topic.subscribe("best", "price < 7", k=1, window="3 events", by="size", time=0)
    plain, bodied = (topic.publish_batch(batch, time=1, bodies=asked) for topic, asked in zip(topics, (False, True), strict=True))
    assert plain == bodied
    assert plain.table().equals(bodied.table())
    assert all(note.body is None for note in plain)
    assert [note.body["id"] for note in bodied] == [note.event for note in plain]


def test_shapes_days_and_truths_are_written_as_users_write_them():
    topic = td.Topic("t", SHAPED)
    topic.subscribe("all", time=0)
    triangle = shapely.Polygon([(0, 0), (2, 0), (0, 2)])
    [note] = topic.publish({"id": "e", "area": triangle, "day": "2026-01-31", "open": True, "made": 5}, time=9, bodies=True)
    assert note.to_dict()["body"] == {
        "id": "e",
        "area": {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [0, 2], [0, 0]]]},
        "day": "2026-01-31",
        "open": True,
        "made": "1970-01-01T00:00:05+00:00",
    }
    assert json.loads(note.to_json()) == note.to_dict()
    assert note.to_dict()["at"] == "1970-01-01T00:00:09+00:00"


def test_the_outbox_keeps_bodies_longer_than_events_live(tmp_path):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("all", time=0)
        topic.publish({"id": "a", "price": 1, "expires": 5}, time=1, bodies=True)
        topic.publish({"id": "b", "price": 2}, time=6)
        assert topic.subscribe("late", replay=True, bodies=True, time=7)[0].body == {"id": "b", "price": 2.0}
    with td.open(tmp_path, mode="r") as topic:
        told = {(note.subscription, note.event): note.body for _, note in topic.outbox()}
        a = {"id": "a", "price": 1.0, "expires": "1970-01-01T00:00:05+00:00"}
        assert told == {("all", "a"): a, ("all", "b"): None, ("late", "b"): {"id": "b", "price": 2.0}}


def test_an_object_of_a_keyed_topic_is_told_as_it_was_at_each_instant():
    topic = td.Topic("t", {"price": td.Number()}, key="sku")
    topic.subscribe("all", k=5, by="-price", time=0)
    rows = [{"sku": "a", "price": n, "time": n} for n in (3, 2, 1)]
    assert [note.body["price"] for note in topic.publish_batch(rows, bodies=True)] == [3.0, 2.0, 1.0]
    [gone] = topic.publish({"sku": "a", "deleted": True}, time=9, bodies=True)
    assert (gone.why, gone.body) == ("left", None)


@pytest.mark.parametrize("bodies", [False, True])
def test_notifications_compare_and_unpack_alike(bodies):
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("all", time=0)
    [note] = topic.publish({"id": "e"}, time=1, bodies=bodies)
    subscription, event, score, rank, why, _ = note
    assert (subscription, event, score, rank, why) == ("all", "e", 1.0, None, "matched")
