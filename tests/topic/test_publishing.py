"""Publishing in columns: a batch tells what its events tell one by one, as a table and as objects."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidings as td
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import batch_of
from tidings.model.door.event import EventReader
from tidings.rank.relevance import column_relevance, relevance_of

SCHEMA = td.Schema({"price": td.Number(), "size": td.Number(), "made": td.Time()})
EIGHTHS = st.integers(-2, 18).map(lambda n: n / 8)
HUGE = st.sampled_from([0.0, -0.0, 1e308, -1e308, 1e-308, 3.3])
BY = (
    "-price",
    "price",
    "2 * price - size / 3",
    "price / size",
    "price * size * 7 - 1 / 3",
    "made",
    "price - made / 1000000",
    "made - made",
    "price ^ 2",
    "5 + 0 * price",
    "7",
    json.dumps({"near": {"price": 1, "size": 0.5}, "weights": {"size": 3.1}}),
    json.dumps({"near": {"price": 1, "size": 0.5}, "weights": {"size": 0}}),
    json.dumps({"near": {"made": 3}, "decay": "7 s"}),
    json.dumps({"by": "price - 0.1 * size", "decay": "3 s"}),
)


@st.composite
def event(draw: st.DrawFn, numbers: st.SearchStrategy[float] = EIGHTHS) -> dict[str, object]:
    made = {name: draw(numbers) for name in ("price", "size") if draw(st.integers(0, 5))}
    return made | ({"made": draw(st.integers(0, 9))} if draw(st.integers(0, 5)) else {})


@settings(deadline=None)
@given(st.lists(event(st.one_of(EIGHTHS, HUGE)), min_size=1, max_size=6), st.sampled_from(BY))
def test_relevance_of_columns_is_that_of_one_event_after_the_other(values, by) -> None:
    read = [EventReader(SCHEMA)({"id": str(i), **one}) for i, one in enumerate(values)]
    batch = batch_of(SCHEMA, Vocabularies(SCHEMA), read)
    column = column_relevance(SCHEMA, by)
    if column is None:
        assert "^" in by or "/ size" in by or by == "made - made"
        return
    times = [1_000_000 * i for i in range(len(read))]
    found = column({name: batch.numbers(name) for name in column.attributes}, pa.array(times).to_numpy()).tolist()
    one = [relevance_of(SCHEMA, by)(event.values, time) for event, time in zip(read, times, strict=True)]
    expected = [math.nan if value is None or not math.isfinite(value) else float(value) for value in one]
    assert list(map(repr, found)) == list(map(repr, expected))


RANKINGS = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(0, 3),
        "window": st.sampled_from(["2 s", "3 events", "20 s"]),
        "by": st.sampled_from(BY),
        "expires": st.integers(0, 30),
        "error": st.just(0.1),
    },
)
SUBSCRIPTIONS = st.lists(st.tuples(st.sampled_from([None, "price >= 0.5", "size < 1 OR price = 1"]), RANKINGS), max_size=9)
BATCHES = st.lists(
    st.lists(st.tuples(event(), st.integers(0, 12), st.one_of(st.none(), st.integers(0, 30))), max_size=12), max_size=4
)


@settings(deadline=None)
@given(SUBSCRIPTIONS, BATCHES, st.integers(0, 9), st.booleans())
def test_a_batch_tells_what_its_events_tell_one_by_one(subscriptions, batches, packed, table) -> None:
    """With ties, late events, promotions on the way, and subscriptions in segments and in the memtable."""
    together, apart = td.Topic("t", SCHEMA), td.Topic("t", SCHEMA)
    for topic in (together, apart):
        for number, (filter, ranking) in enumerate(subscriptions):
            if number == packed:
                topic.flush()
            ranking = {name: value for name, value in ranking.items() if name != "error" or "k" in ranking}
            topic.subscribe(f"s{number}", filter, time=0, **ranking)
    published = 0
    for number, batch in enumerate(batches):
        begin = 10 * number
        events = [
            {"id": f"e{published + i:03}", "time": begin + time, **values} | ({} if expires is None else {"expires": expires})
            for i, (values, time, expires) in enumerate(batch)
        ]
        published += len(batch)
        given = events
        if table and events:
            given = arrow(events)
        told = together.publish_batch(given)
        expected = [apart.publish(one) for one in events]
        start = 0
        for notes in expected:
            assert sorted(told[start : start + len(notes)], key=repr) == sorted(notes, key=repr)
            start += len(notes)
        assert start == len(told)
        rows = [td.Notification(**row) for row in told.table().to_pylist()]
        assert rows == list(told)
        assert told.table().schema.names == ["subscription", "event", "score", "rank", "why", "at"]
    for number in range(len(subscriptions)):
        assert lists(together, f"s{number}") == lists(apart, f"s{number}")
    assert together.search(time=0).equals(apart.search(time=0))


def arrow(events: list[dict[str, object]]) -> pa.Table:
    columns = {"id": pa.array([one["id"] for one in events])}
    columns |= {name: pa.array([one.get(name) for one in events], pa.float64()) for name in ("price", "size")}
    for name in ("made", "time", "expires"):
        seconds = pa.array([None if one.get(name) is None else 1_000_000 * one[name] for one in events], pa.int64())
        columns[name] = seconds.cast(pa.timestamp("us", "UTC"))
    return pa.table(columns)


def lists(topic: td.Topic, id: str) -> object:
    if topic.subscription(id).k is None:
        return None
    return topic.top(id, time=0)


def test_notifications_are_a_sequence() -> None:
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("a", "price > 0", time=0)
    topic.subscribe("b", "price > 1", k=1, window="1 day", by="price", time=0)
    notes = topic.publish_batch([{"id": "x", "price": 1}, {"id": "y", "price": 2}], time=1)
    assert [(note.subscription, note.event, note.why, note.rank) for note in notes] == [
        ("a", "x", "matched", None),
        ("a", "y", "matched", None),
        ("b", "y", "entered", 1),
    ]
    assert notes == list(notes)
    assert list(notes) == notes
    assert notes != list(notes)[:2]
    assert notes[-1].subscription == "b"
    assert notes[1:] == list(notes)[1:]
    assert repr(notes) == repr(list(notes))
    assert [*notes, *notes] == notes + notes == list(notes) + notes
    assert notes.table()["rank"].to_pylist() == [None, None, 1]
    assert topic.publish_batch([], time=2) == []
    assert topic.publish_batch([], time=2).table().num_rows == 0
    with pytest.raises(TypeError):
        hash(notes)


def test_names_stay_when_a_slot_has_another_owner() -> None:
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("a", "price > 0", k=1, window="1 day", time=0)
    notes = topic.publish({"id": "x", "price": 1}, time=1)
    topic.unsubscribe("a")
    topic.subscribe("b", "price > 0", k=1, window="1 day", time=1)
    topic.publish({"id": "y", "price": 1}, time=2)
    assert [note.subscription for note in notes] == ["a"]


def test_a_relevance_that_fails_is_counted_and_tells_nobody() -> None:
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("a", "price >= 0", k=1, window="1 day", by="1 / price", time=0)
    events = [{"id": f"e{i}", "price": i % 2, "size": 1} for i in range(40)]
    assert [note.event for note in topic.publish_batch(events, time=1)] == ["e1"]
    assert topic.publisher.ranked.failures.total() >= 20
