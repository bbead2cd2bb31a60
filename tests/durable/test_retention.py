"""How long things are kept: events without an end, and notifications that wait."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidings as td

SCHEMA = {"price": td.Number()}
DAY = 86_400


@pytest.mark.parametrize("key", [None, "id"])
def test_events_without_an_end_get_one_from_the_topics_retention(tmp_path, key):
    with td.open(tmp_path, "t", SCHEMA, key=key, retention="2 days") as topic:
        topic.subscribe("s", "price < 5", time=0)
        topic.publish({"id": "one", "price": 1}, time=0)
        topic.publish_batch(pa.table({"id": ["many", "ends"], "price": [2.0, 3.0], "expires": [None, 9 * DAY]}), time=1)
    with td.open(tmp_path) as topic:
        assert topic.search(time=2 * DAY - 1)["id"].to_pylist() == ["ends", "many", "one"]
        left = [(note.event, note.why, note.at.timestamp()) for note in topic.advance(5 * DAY)]
        assert left == ([] if key is None else [("one", "left", 2.0 * DAY), ("many", "left", 2.0 * DAY + 1)])
        assert topic.search(time=5 * DAY)["id"].to_pylist() == ["ends"]
    with td.open(tmp_path, retention="1 day") as topic:
        topic.publish({"id": "later", "price": 1}, time=6 * DAY)
        assert topic.search(time=7 * DAY)["id"].to_pylist() == ["ends"]


def test_the_outbox_keeps_the_newest_up_to_its_limit(tmp_path):
    with td.open(tmp_path, "t", SCHEMA, outbox_limit=3) as topic:
        topic.subscribe("s", time=0)
        for n in range(5):
            topic.publish({"id": f"e{n}", "price": n}, time=n)
        assert [note.event for _, note in topic.outbox()] == ["e2", "e3", "e4"]
    with td.open(tmp_path) as topic:
        topic.publish({"id": "e5", "price": 5}, time=5)
        assert [(number, note.event) for number, note in topic.outbox()] == [(4, "e3"), (5, "e4"), (6, "e5")]
    for limit in (0, -1, 1.5, True):
        with pytest.raises(td.errors.StorageError, match="outbox_limit is"):
            td.open(tmp_path, outbox_limit=limit)
    with pytest.raises(td.errors.SubscriptionError, match="retention is 'long'"):
        td.open(tmp_path, retention="long")
