"""A topic with windows opens again whatever its state says, and its notifications come in order of time."""

import json
import sqlite3
import warnings

import pytest

import tidings as td
from tidings.errors import StorageWarning

SCHEMA = {"price": td.Number(), "size": td.Number()}
NEAR = {"near": {"price": 5.0}}


def state(folder):
    return sqlite3.connect(next(folder.rglob("*.sqlite")))


def test_an_event_without_the_attribute_pushes_out_and_the_topic_opens(tmp_path):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("s", k=1, window="2 events", by=NEAR, time=0)
        for time, price in ((1, 5), (2, 6), (3, 9)):
            topic.publish({"id": f"e{time}", "price": price}, time=time)
        topic.publish({"id": "silent", "size": 1}, time=9)
        before = topic.top("s", time=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        topic = td.open(tmp_path, "t")
    with topic:
        assert topic.top("s", time=9) == before
        assert [n.event for n in topic.publish({"id": "e5", "price": 5}, time=10)] == ["e5"]


@pytest.mark.parametrize("window", ["4 seconds", "3 events"])
def test_told_events_that_fell_off_and_left_are_no_loss(tmp_path, window):
    """Nobody in the list changes when they leave, so the state still names them when their points are gone."""
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("s", k=1, window=window, by=NEAR, time=0)
        for time in range(1, 40):
            topic.publish({"id": f"e{time}", "price": 5 + (37 * time) % 11 / 8}, time=time)
            if time % 3 == 0:
                topic.publish({"id": f"silent{time}", "size": 1}, time=time)
            topic.close()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                topic = td.open(tmp_path, "t")
    topic.close()


@pytest.mark.parametrize(
    "body", ["nonsense", "null", "{}", '{"k": 1}', '{"k": "x", "since": 0, "error": null, "candidates": [[1]]}', "[1, 2]"]
)
@pytest.mark.parametrize("ranking", [{"by": NEAR}, {"by": "-price", "filter": "price > 0"}], ids=["near", "matched"])
def test_a_state_that_cannot_be_read_is_reported_and_begun_anew(tmp_path, body, ranking):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("s", k=1, window="9 events", time=0, **ranking)
        topic.publish({"id": "a", "price": 5}, time=1)
    with state(tmp_path) as db:
        assert db.execute("UPDATE state SET body = ?, crc = NULL WHERE name = 's'", (body,)).rowcount == 1
    db.close()
    with pytest.warns(StorageWarning, match="the window of 's' begins anew"):
        topic = td.open(tmp_path, "t")
    with topic:
        assert [n.event for n in topic.publish({"id": "b", "price": 6}, time=2)] == ["b"]


@pytest.mark.parametrize("body", [None, "nonsense", '[["a", 1, null, 1, [5.0, 1.0]]]'])
def test_points_that_are_lost_are_reported(tmp_path, body):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("s", k=1, window="9 events", by=NEAR, time=0)
        topic.publish({"id": "a", "price": 5}, time=1)
    with state(tmp_path) as db:
        name = "points\0" + json.dumps(["price"]) + "\0" + "1"
        change = "DELETE FROM state WHERE name = ?" if body is None else "UPDATE state SET body = ?, crc = NULL WHERE name = ?"
        assert db.execute(change, (name,) if body is None else (body, name)).rowcount == 1
    db.close()
    with pytest.warns(StorageWarning) as caught:
        topic = td.open(tmp_path, "t")
    assert any("loses ['a']: their points are not stored" in str(warning.message) for warning in caught)
    with topic:
        assert [n.event for n in topic.publish({"id": "b", "price": 6}, time=2)] == ["b"]


def test_in_a_batch_all_kinds_of_lists_tell_in_order_of_time():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("near", k=1, window="2 seconds", by=NEAR, time=0)
    topic.subscribe("sizes", "size > 0", k=1, window="2 seconds", by="size", time=0)
    topic.subscribe("plain", "size > 0", time=0)
    events = [{"id": f"e{time}", "price": 5 + time % 4, "size": 9 - time % 4, "time": time} for time in range(1, 30)]
    told = topic.publish_batch(events)
    assert [note.at for note in told] == sorted(note.at for note in told)
    again = td.Topic("t", SCHEMA)
    again.subscribe("near", k=1, window="2 seconds", by=NEAR, time=0)
    again.subscribe("sizes", "size > 0", k=1, window="2 seconds", by="size", time=0)
    again.subscribe("plain", "size > 0", time=0)
    assert told == [note for event in events for note in again.publish(event)]
    assert {note.why for note in told} == {"matched", "entered", "promoted"}


@pytest.mark.parametrize("window", ["100 seconds", "9 events"])
@pytest.mark.parametrize("ranking", [{"by": NEAR}, {"by": "-price"}, {}], ids=["near", "by", "score"])
def test_a_list_that_began_with_a_replay_outlives_a_restart(tmp_path, window, ranking):
    twin, filter = td.Topic("t", SCHEMA), None if ranking == {"by": NEAR} else "price > 0"
    with td.open(tmp_path, "t", SCHEMA) as topic:
        for one in (twin, topic):
            one.publish_batch([{"id": f"e{i}", "price": i} for i in range(1, 9)], time=1)
            told = one.subscribe("s", filter, k=2, window=window, **ranking, replay=True, time=2)
        before = topic.top("s", time=2)
        assert [(n.event, n.score) for n in told] == [(m.event, m.score) for m in before]
        assert [(n.rank, n.why) for n in told] == [(1, "entered"), (2, "entered")]
        topic.abandon()
    with td.open(tmp_path) as topic:
        assert topic.top("s", time=2) == before
        for time in range(3, 9):
            event = {"id": f"f{time}", "price": time}
            assert topic.publish(event, time=time) == twin.publish(event, time=time)
        assert topic.advance(103) == twin.advance(103)
