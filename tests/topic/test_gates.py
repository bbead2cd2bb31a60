"""Paces: what is told at once, what later and together, what never; in memory and reopened in the middle."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidings as td

SCHEMA = {"price": td.Number(), "sku": td.Category()}
HOUR = 3600


def told(notes) -> list[tuple]:
    return [(n.event, n.why, n.at.timestamp()) for n in notes]


@pytest.fixture(params=["in memory", "reopened"])
def reopened(request, tmp_path):
    """Opens a topic, and gives it anew between any two steps."""

    def open_anew(topic=None, **form):
        if request.param == "in memory":
            return td.Topic("t", SCHEMA, **form) if topic is None else topic
        if topic is None:
            return td.open(tmp_path, "t", SCHEMA, **form)
        topic.abandon()
        return td.open(tmp_path)

    return open_anew


def test_a_digest_lists_the_best_of_its_period(reopened):
    topic = reopened()
    topic.subscribe("s", k=2, by="-price", per="sku", digest="day", time=0)
    for n, (sku, price) in enumerate([("a", 5), ("a", 3), ("b", 4), ("c", 9)], 1):
        assert topic.publish({"id": f"e{n}", "sku": sku, "price": price}, time=n) == []
        topic = reopened(topic)
    [note] = topic.advance(86_400)
    assert told([note]) == [("e2", "digest", 86_400.0)]
    assert [(one["event"], one["score"]) for one in note.digest] == [("e2", -3.0), ("e3", -4.0)]
    assert topic.advance(3 * 86_400) == []
    topic.close()


def test_a_digest_in_the_outbox_has_its_list(tmp_path):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("s", digest="day", time=0)
        topic.publish({"id": "e", "price": 1}, time=5)
        topic.advance(86_400, bodies=True)
        [(_, note)] = topic.outbox()
        assert (note.why, [one["event"] for one in note.digest]) == ("digest", ["e"])


def test_what_is_published_at_the_end_of_a_period_belongs_to_the_next(reopened):
    topic = reopened()
    topic.subscribe("s", digest="at 01:00", time=0)
    topic.publish({"id": "a", "price": 1}, time=5)
    topic = reopened(topic)
    [note] = topic.publish({"id": "b", "price": 1}, time=HOUR)
    assert [one["event"] for one in note.digest] == ["a"]
    assert [[one["event"] for one in note.digest] for note in topic.advance(25 * HOUR)] == [["b"]]
    topic.close()


def test_a_stay_counts_though_it_ends_at_that_instant(reopened):
    topic = reopened(key="id")
    topic.subscribe("s", "price < 5", dwell="10 s", time=0)
    topic.publish({"id": "o", "price": 1}, time=0)
    topic = reopened(topic)
    assert told(topic.publish({"id": "o", "price": 9}, time=10)) == [("o", "dwelt", 10.0), ("o", "left", 10.0)]
    topic.publish({"id": "o", "price": 1}, time=20)
    topic = reopened(topic)
    assert told(topic.publish({"id": "o", "price": 9}, time=29)) == [("o", "left", 29.0)]
    assert topic.advance(100) == []
    topic.close()


def test_a_stay_is_told_once_however_often_the_object_changes(reopened):
    topic = reopened(key="id")
    topic.subscribe("s", dwell="10 s", time=0)
    whys = []
    for second in range(0, 60, 4):
        whys += [note.why for note in topic.publish({"id": "o", "price": second}, time=second)]
        topic = reopened(topic)
    assert whys.count("dwelt") == 1
    topic.close()


def test_budget_and_cooldown_withhold_and_count(reopened):
    topic = reopened()
    topic.subscribe("s", budget="2 per hour", cooldown="10 s", time=0)
    heard = []
    for second in (1, 5, 11, 40, HOUR + 1):
        heard += [note.event for note in topic.publish({"id": f"e{second}", "price": 1}, time=second)]
        topic = reopened(topic)
    assert heard == ["e1", "e11", f"e{HOUR + 1}"]
    assert topic.withheld("s") == 2
    topic.update("s", budget=None, cooldown=None, time=HOUR + 2)
    assert len(topic.publish({"id": "x", "price": 1}, time=HOUR + 2)) == 1
    topic.close()


def test_tables_have_paces_too(reopened):
    topic = reopened()
    table = pa.table(
        {"id": ["a", "b", "c"], "budget": ["1 per day", None, None], "digest": [None, "day", None], "k": [None, 1, None]}
    )
    topic.subscribe_many(table, time=0)
    first = topic.publish({"id": "e1", "price": 1}, time=1)
    topic = reopened(topic)
    topic.flush()
    second = topic.publish({"id": "e2", "price": 1}, time=2)
    assert [sorted(note.subscription for note in notes) for notes in (first, second)] == [["a", "c"], ["c"]]
    assert [note.subscription for note in topic.advance(86_400)] == ["b"]
    topic.close()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"budget": "ten a day"}, "budget is 'ten a day': so many as '10 per day'"),
        ({"cooldown": "soon"}, "cooldown is 'soon': a duration above 0"),
        ({"digest": "at 25:00"}, "digest is 'at 25:00': 'day', 'week', 'month' or a time of day"),
        ({"digest": "day", "window": "1 day"}, "beside a window: a digest is the best of its own period"),
        ({"digest": "day", "budget": "1 per day"}, "beside a budget"),
        ({"dwell": "1 hour"}, "only objects of a keyed topic stay"),
        ({"per": "colour"}, "per is 'colour': a Category, Number, Bool, Time or Date attribute"),
        ({"per": "sku", "error": 0.1, "k": 1}, "a list of one per value is exact"),
        ({"filter": "price < PREV(price)"}, r"asks for PREV\(price\): only objects of a keyed topic"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_sentence(fields, sentence):
    topic = td.Topic("t", SCHEMA)
    with pytest.raises(td.errors.SubscriptionError, match=sentence):
        topic.subscribe("s", **fields)
    assert len(topic) == 0
