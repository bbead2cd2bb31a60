"""A preview is what a topic of that one subscription would have told, had the events been published to it: so it is judged."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidings as td
from tests.topic.test_topic import FILTERS, SCHEMA, TIMES, events
from tidings.errors import SubscriptionError
from tidings.model.columns.tables import events_to_arrow
from tidings.model.door.event import read_events

pytestmark = pytest.mark.filterwarnings("ignore::tidings.errors.NeverMatchesWarning")
SECOND = 1_000_000
RANKINGS = st.sampled_from(
    [
        {},
        {"score": "1 + 0.5 * price"},
        {"k": 1, "by": "-price"},
        {"k": 2, "window": "4 seconds", "by": "size"},
        {"k": 1, "window": "3 events"},
        {"k": 2, "window": "6 seconds", "by": {"near": {"price": 3}}},
        {"within": ((2.0, 2.0), 3.0)},
    ]
)
NARROW = st.sampled_from([None, "price < 4", "brand = 'a' OR size > 3", "price < size", "A_OVERLAPS(about, ('red', 'p30'))"])


def by_definition(past, filter, ranking, over, now, key=None):
    """(subscription, event, ...) of everything told, in order; and how many events there were."""
    topic = td.Topic("alone", SCHEMA, key=key)
    since = now - over
    topic.advance(since)
    topic.subscribe("preview", filter, time=since, **ranking)
    within = sorted(((time, event) for time, event in past if since < time <= now), key=lambda pair: pair[0])
    if key is None:
        told = [note for time, event in within for note in topic.publish(event, time=time)]
    else:
        told = [*topic.publish_batch([{**event, "time": time} for time, event in within])] if within else []
    return [*told, *topic.advance(now)], len(within)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(TIMES, events()), max_size=12, unique_by=lambda pair: pair[1]["id"]),
    NARROW | FILTERS,
    RANKINGS,
    st.integers(1, 30),
    st.integers(30, 45),
    st.booleans(),
)
def test_over_live_events(published, filter, ranking, over, now, batched):
    if "within" in ranking and "BBOX" in (filter or ""):
        ranking = {}
    published = sorted(published, key=lambda pair: pair[0])
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("other", "price > 1", k=1, window="5 seconds", time=0)
    if batched:
        topic.publish_batch([{**event, "time": time} for time, event in published])
    else:
        for time, event in published:
            topic.publish(event, time=time)
    live = set(topic.search(time=-1)["id"].to_pylist())
    expected, looked_at = by_definition([(t, e) for t, e in published if e["id"] in live], filter, ranking, over, now)
    seen = topic.preview(filter, **ranking, over=f"{over} seconds", time=now)
    assert (seen.told, seen.events) == (len(expected), looked_at)
    assert list(seen.first) == expected[:10]
    assert len(topic) == 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(TIMES, events()), max_size=12, unique_by=lambda pair: pair[1]["id"]), NARROW | FILTERS, RANKINGS)
def test_over_a_table_in_any_order(published, filter, ranking):
    if "within" in ranking and "BBOX" in (filter or ""):
        ranking = {}
    table = events_to_arrow(SCHEMA, read_events(SCHEMA, [event for _, event in published]))
    time_of = {event["id"]: time for time, event in published}
    times = pa.array([time_of[id] * SECOND for id in table["id"].to_pylist()], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = table.set_column(table.column_names.index("time"), "time", times)
    kept = {event["id"]: event for _, event in published}
    expected, _ = by_definition([(time_of[id], kept[id]) for id in table["id"].to_pylist()], filter, ranking, 100, 45)
    seen = td.Topic("t", SCHEMA).preview(filter, **ranking, over=None, events=table, time=45)
    assert seen.told == len(expected)
    assert list(seen.first) == expected[:10]
    assert seen.by_day == Counter(str(note.at.date()) for note in expected)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(TIMES, events()), max_size=12),
    NARROW,
    st.sampled_from([{}, {"k": 1, "by": "-price"}, {"k": 2, "by": "size"}]),
)
def test_of_a_keyed_topic(published, filter, ranking):
    """Its live objects are the last that was said of each."""
    topic = td.Topic("t", SCHEMA, key="id")
    published = sorted(published, key=lambda pair: pair[0])
    for time, event in published:
        topic.publish(event, time=time)
    last = {}
    for time, event in published:
        last.pop(event["id"], None)
        last[event["id"]] = (time, event)
    live = set(topic.search(time=-1)["id"].to_pylist())
    past = [last[id] for id in last if id in live]
    seen = topic.preview(filter, **ranking, over="100 seconds", time=45)
    expected, _ = by_definition(past, filter, ranking, 100, 45, key="id")
    assert seen.told == len(expected)
    assert list(seen.first) == expected[:10]


def test_a_preview_says_how_many_a_day_and_why():
    topic = td.Topic("deals", {"price": td.Number(), "about": td.Words(), "place": td.Place()})
    n = 3000
    table = pa.table({"id": [f"e{i:04d}" for i in range(n)], "price": np.arange(n) % 100, "about": ["red shoes"] * n})
    topic.publish_batch(table.append_column("time", pa.array(np.arange(n) * 86)), time=None)
    seen = topic.preview("price < 10", over="3 days", time=3 * 86_400)
    assert seen.events == n - 1, "what came at the very beginning is not within three days"
    assert seen.told == sum(i % 100 < 10 for i in range(1, n))
    assert seen.a_day == seen.told / 3
    assert sum(seen.by_day.values()) == seen.told
    assert seen.first[0].body == {"id": "e0001", "price": 1.0, "about": ["red", "shoes"], "time": "1970-01-01T00:01:26+00:00"}
    assert seen.reasons[0].startswith("matched: 'preview' matches event 'e0001', score 1 = 1 ")
    assert seen.to_dict()["first"][0]["reason"] == seen.reasons[0]
    assert seen.to_dict()["since"] == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"over": "soon"}, "over is 'soon'"),
        ({"over": 5}, "over is 5: a duration above 0"),
        ({"over": "5 events"}, "over is '5 events': a duration above 0"),
        ({"filter": "prize < 3"}, ".*prize"),
        ({"first": -1}, "k is -1"),
    ],
)
def test_what_cannot_be_previewed_is_said(asked, sentence):
    with pytest.raises(SubscriptionError, match=f"^{sentence}"):
        td.Topic("t", SCHEMA).preview(**asked)
