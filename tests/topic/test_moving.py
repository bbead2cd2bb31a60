"""Notification areas that move: boxes and circles, in memory, packed, and back from disk."""

from __future__ import annotations

import numpy as np
import pytest

import tidings as td

SCHEMA = {"price": td.Number(), "place": td.Place()}


def ids(topic: td.Topic, place: tuple[float, float], price: float = 1.0) -> list[str]:
    return [m.subscription for m in topic.match({"id": "e", "place": place, "price": price}, time=0)]


def test_a_circle_moves_and_survives(tmp_path):
    with td.open(tmp_path, "taxis", SCHEMA) as topic:
        topic.subscribe("ann", "price < 5", within=((121.44, 36.16), 1000), time=0)
        assert ids(topic, (121.445, 36.16)) == ["ann"]
        assert ids(topic, (121.445, 36.16), price=9.0) == []
        # In the circle's box, 1.2 km from its centre.
        assert ids(topic, (121.4495, 36.1676)) == []
        topic.flush()
        topic.move("ann", (121.5, 36.2), time=0)
        assert ids(topic, (121.445, 36.16)) == []
        assert ids(topic, (121.505, 36.2)) == ["ann"]
    with td.open(tmp_path) as again:
        assert ids(again, (121.505, 36.2)) == ["ann"]
        again.move("ann", (179.999, 0.0), time=0)
        assert ids(again, (-179.999, 0.0)) == ["ann"]
        again.move("ann", (0.0, 0.0), time=0)
        assert ids(again, (0.005, 0.0)) == ["ann"]
        assert len(again.subscription("ann").clauses) == 1


def test_a_box_moves_across_the_meridian():
    topic = td.Topic("taxis", SCHEMA)
    topic.subscribe("bob", "S_INTERSECTS(place, BBOX(10, 10, 12, 12))")
    topic.move("bob", (180.0, 11.0))
    assert ids(topic, (-179.5, 11.0)) == ids(topic, (179.5, 10.5)) == ["bob"]
    topic.move("bob", (11.0, 11.0))
    assert ids(topic, (12.0, 12.0)) == ["bob"]
    assert ids(topic, (-179.5, 11.0)) == []


@pytest.mark.parametrize("away", [(0.0, 90.0), (0.0, -90.0), (180.0, 0.0), (-180.0, 89.0), (179.5, -90.0)])
def test_a_box_keeps_its_size_wherever_it_has_been(away):
    topic = td.Topic("taxis", SCHEMA)
    topic.subscribe("bob", "price < 5 AND S_INTERSECTS(place, BBOX(10, 10, 12, 12))")
    topic.move("bob", away)
    topic.flush()
    assert ids(topic, away) == ["bob"]
    topic.move("bob", (11.0, 11.0))
    assert [clause.box for clause in topic.subscription("bob").clauses] == [(10.0, 10.0, 12.0, 12.0)]
    assert ids(topic, (12.0, 12.0)) == ids(topic, (10.0, 10.0)) == ["bob"]


@pytest.mark.parametrize(
    "within", [5, (1, 2, 3), ((0, 0),), ("here", 5), ((0, 0), "far"), ((0, 0), -1), ((0, 0, 1, 1), 5), ((0, 95), 5)]
)
def test_a_malformed_circle_is_refused_in_one_sentence(within):
    topic = td.Topic("taxis", SCHEMA)
    with pytest.raises(td.errors.SubscriptionError):
        topic.subscribe("eve", within=within)
    assert len(topic) == 0


def test_what_has_no_place_or_another_shape_stays():
    topic = td.Topic("taxis", SCHEMA)
    topic.subscribe("cat", "price < 5")
    topic.subscribe("dan", "S_INTERSECTS(place, POLYGON((0 0, 1 0, 0 1, 0 0)))")
    with pytest.raises(td.errors.SubscriptionError, match="has no place"):
        topic.move("cat", (1.0, 1.0))
    with pytest.raises(td.errors.SubscriptionError, match="a shape other than a box"):
        topic.move("dan", (1.0, 1.0))
    with pytest.raises(td.errors.SubscriptionError, match="not both"):
        topic.subscribe("eve", "S_INTERSECTS(place, BBOX(0, 0, 1, 1))", within=((0.0, 0.0), 5.0))


def test_many_moves_are_as_many_new_subscriptions():
    rng = np.random.default_rng(5)
    moving, anew = td.Topic("moving", SCHEMA), td.Topic("anew", SCHEMA)
    for i in range(40):
        moving.subscribe(f"s{i}", f"price < {i % 8} AND S_INTERSECTS(place, BBOX(0, 0, 2, 2))")
    for step in range(300):
        i, (x, y) = rng.integers(0, 40), rng.integers(-8, 8, 2) / 2
        moving.move(f"s{i}", (x, y))
        anew.subscribe(f"s{i}", f"price < {i % 8} AND S_INTERSECTS(place, BBOX({x - 1}, {y - 1}, {x + 1}, {y + 1}))")
        if step % 60 == 59:
            moving.flush()
        if step % 100 == 99:
            moving.update(f"s{i}", score=2.0)
            anew.update(f"s{i}", score=2.0)
    for i in range(40):
        moving.move(f"s{i}", (i / 8, 0.0))
        anew.subscribe(
            f"s{i}", f"price < {i % 8} AND S_INTERSECTS(place, BBOX({i / 8 - 1}, -1, {i / 8 + 1}, 1))", score=anew_score(moving, i)
        )
    for x, y in rng.integers(-16, 40, (200, 2)) / 8:
        event = {"id": "e", "place": (float(x), float(y)), "price": float(rng.integers(0, 8))}
        assert moving.match(event, time=0) == anew.match(event, time=0)
    moving.store.memtable.check()


@pytest.mark.parametrize("key", [None, "id"])
def test_moving_tells_what_came_into_reach_and_what_went_out(tmp_path, key):
    with td.open(tmp_path, "taxis", SCHEMA, key=key) as topic:
        for n in range(4):
            topic.publish({"id": f"t{n}", "price": 1, "place": (n / 100, 0.0)}, time=0)
        topic.subscribe("ann", "price < 5", within=((0.0, 0.0), "1.5 km"), time=1)
        for step in range(1, 4):
            assert topic.move("ann", (step / 100_000, 0.0), time=2) == []
        assert [n[1:5:3] for n in topic.move("ann", (0.02, 0.0), time=3)] == [("t0", "left"), ("t2", "entered"), ("t3", "entered")]
        assert [n[1:5:3] for n in topic.update("ann", filter="price > 9", time=4)] == [
            ("t1", "left"),
            ("t2", "left"),
            ("t3", "left"),
        ]
        assert len(topic.outbox()) == 6 + (0 if key is None else 2)


def whys(notes) -> list[tuple[str, str, int | None]]:
    return [(note.event, note.why, note.rank) for note in notes]


@pytest.mark.parametrize("durable", [False, True])
def test_a_moving_list_tells_what_differs(tmp_path, durable):
    """Live events in a row, one a hundredth of a degree; the two nearest of the last hour within three kilometres are listed."""
    topic = td.open(tmp_path, "taxis", SCHEMA) if durable else td.Topic("taxis", SCHEMA)
    topic.subscribe("ann", within=((0.0, 0.0), "3 km"), k=2, window="1 hour", by="-price", time=0)
    for n in range(6):
        topic.publish({"id": f"t{n}", "price": n, "place": (n / 100, 0.0)}, time=1 + n)
    assert [match.event for match in topic.top("ann", time=10)] == ["t0", "t1"]
    for step in range(1, 4):
        assert topic.move("ann", (step / 100_000, 0.0), time=10) == []
    assert whys(topic.move("ann", (0.04, 0.0), time=11)) == [
        ("t0", "left", None),
        ("t1", "left", None),
        ("t2", "entered", 1),
        ("t3", "entered", 2),
    ]
    if durable:
        topic.abandon()
        topic = td.open(tmp_path)
    assert topic.move("ann", (0.04001, 0.0), time=12) == []
    assert whys(topic.publish({"id": "new", "price": 2.5, "place": (0.04, 0.0)}, time=13)) == [("new", "entered", 2)]
    assert whys(topic.update("ann", k=3, time=14)) == [("t3", "entered", 3)]
    assert whys(topic.update("ann", by="price", time=15)) == [
        ("t2", "left", None),
        ("new", "left", None),
        ("t5", "entered", 1),
        ("t4", "entered", 2),
    ]
    # Who was told and might yet come back is not told again.
    assert topic.advance(3606) == []
    assert [match.event for match in topic.top("ann", time=3606)] == ["new"]
    topic.close()


def test_what_a_list_has_told_it_does_not_tell_again_for_a_step():
    topic = td.Topic("taxis", SCHEMA)
    topic.subscribe("ann", within=((0.0, 0.0), "3 km"), k=1, window="1 hour", by="price", time=0)
    for n, expires in enumerate([None, 100]):
        topic.publish({"id": f"t{n}", "price": n, "place": (0.0, 0.0), "expires": expires}, time=1 + n)
    assert topic.move("ann", (0.00001, 0.0), time=10) == []
    assert topic.advance(200) == []
    assert [match.event for match in topic.top("ann", time=200)] == ["t0"]


def test_a_list_does_not_count_what_was_there_before_it_until_it_comes_into_reach():
    topic = td.Topic("taxis", SCHEMA)
    topic.publish({"id": "near", "price": 1, "place": (0.0, 0.0)}, time=0)
    topic.publish({"id": "far", "price": 1, "place": (1.0, 0.0)}, time=0)
    topic.subscribe("ann", within=((0.0, 0.0), "1 km"), k=3, window="1 hour", time=1)
    assert topic.move("ann", (0.00001, 0.0), time=2) == []
    assert whys(topic.move("ann", (1.0, 0.0), time=3)) == [("far", "entered", 1)]
    assert whys(topic.move("ann", (0.0, 0.0), time=4)) == [("far", "left", None), ("near", "entered", 1)]


def test_an_ideal_point_that_changes_tells_what_differs():
    topic = td.Topic("sizes", {"size": td.Number()})
    topic.subscribe("ann", k=1, window="1 hour", by={"near": {"size": 10}}, time=0)
    for n, size in enumerate([10, 40, 42]):
        topic.publish({"id": f"s{n}", "size": size}, time=1 + n)
    assert topic.update("ann", by={"near": {"size": 11}}, time=9) == []
    assert whys(topic.update("ann", by={"near": {"size": 41.5}}, time=10)) == [("s0", "left", None), ("s2", "entered", 1)]
    assert whys(topic.publish({"id": "s3", "size": 41.4}, time=11)) == [("s3", "entered", 1)]


def test_a_circle_of_the_filter_goes_with_it_and_one_beside_it_stays():
    topic = td.Topic("taxis", SCHEMA)
    topic.subscribe("of", "S_DWITHIN(place, POINT(0 0), 1, 'km') AND price < 5")
    topic.subscribe("beside", "price < 5", within=((0.0, 0.0), "1 km"))
    for id in ("of", "beside"):
        topic.update(id, filter="price < 9")
    assert ids(topic, (1.0, 1.0)) == ["of"]
    assert ids(topic, (0.001, 0.0)) == ["beside", "of"]


def test_the_nearest_are_the_best_and_the_score_is_the_distance():
    topic = td.Topic("taxis", SCHEMA)
    topic.subscribe("ann", k=1, window="1 hour", by={"near": {"place": (0.0, 0.0)}}, time=0)
    notes = [note for x in (0.03, 0.01, 0.02) for note in topic.publish({"id": f"t{x}", "place": (x, 0.0)}, time=1)]
    assert [(note.event, round(note.score)) for note in notes] == [("t0.03", -3336), ("t0.01", -1112)]


@pytest.mark.parametrize("by", [{"near": {"place": (0, 0), "price": 3}}, {"near": {"place": (0, 0, 1, 1)}}, {"near": {"place": 5}}])
def test_a_malformed_nearness_is_refused_in_one_sentence(by):
    with pytest.raises(td.errors.SubscriptionError, match=r"by\.near"):
        td.Topic("taxis", SCHEMA).subscribe("eve", k=1, by=by)


def anew_score(topic: td.Topic, i: int) -> float:
    return topic.subscription(f"s{i}").score
