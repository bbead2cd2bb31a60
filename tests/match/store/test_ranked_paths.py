"""The paths to the k best of an event: whichever is taken, the answer is the oracle's; and which one is taken."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

import tidings as td
from tests.oracle.topic import TopicOracle
from tidings.match.store.ranked_paths import Question, RankedPaths, plan_for

NUMBERS = {"hours": td.Number(0, 8), "pay": td.Number(), "age": td.Number()}
SCHEMA = td.Schema({**NUMBERS, "place": td.Place(plane=True), "about": td.Words("as-is")})
EIGHTHS = st.integers(-1, 17).map(lambda n: n / 8)
SCORES = st.one_of(st.integers(0, 2).map(float), st.sampled_from(["1 + 0.5 * pay", "2 - pay + 0.25 * age"]))
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NUMBERS, EIGHTHS),
        "place": st.sampled_from([(0.0, 0.0), (1.0, 1.0)]),
        "about": st.sampled_from([["red"], ["red", "old"], []]),
    },
)
SHAPES = [
    None,
    "pay <= 1",
    "hours < 1 OR hours > 1.5",
    "hours > 1 OR pay > 1",
    "pay IS NULL",
    "hours IS NOT NULL",
    "A_CONTAINS(about, ('red'))",
    "S_INTERSECTS(place, BBOX(0, 0, 1, 0.5))",
    "A_CONTAINS(about, ('red')) AND S_INTERSECTS(place, BBOX(0, 0, 1, 1)) AND hours < 2",
    "hours + pay > 1",
    "hours <= 1 AND pay * age < 2",
]
"""Filters of every shape but one range on hours: none at all, two clauses, nulls, words, a box, all of them, residues."""


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.tuples(EIGHTHS, EIGHTHS, SCORES), min_size=1, max_size=8),
    others=st.lists(st.sampled_from(SHAPES), max_size=3),
    removed=st.sets(st.integers(0, 7), max_size=2),
    stream=st.lists(EVENTS, min_size=1, max_size=3),
    k=st.integers(1, 5),
)
def test_every_path_gives_the_oracle_s_answer(rows, others, removed, stream, k):
    topic, oracle = td.Topic("jobs", SCHEMA), TopicOracle(SCHEMA)
    for one in (topic, oracle):
        for number, (a, b, score) in enumerate(rows):
            one.subscribe(f"s{number}", f"hours BETWEEN {min(a, b)} AND {max(a, b)}", score=score)
        for number, other in enumerate(others):
            one.subscribe(f"t{number}", other, score=1.0)
    topic.flush()
    for number in removed & {*range(len(rows))}:
        for one in (topic, oracle):
            one.unsubscribe(f"s{number}")
    [segment] = topic.store.snapshot.segments
    events = [topic._read({"id": f"e{i}", **values}) for i, values in enumerate(stream)]
    question = Question(topic.encode(events), lambda row: events[row].values, k, topic.store.snapshot.seq)
    for path in segment.aside(RankedPaths).paths:
        if path.refusal(segment, question) is not None:
            continue
        event, ordinal = path.best(segment, question)
        for row, read in enumerate(events):
            subscriptions = [segment.subscription(o) for o in ordinal[event == row].tolist()]
            scored = [(s.id, s.score_of(read.values)) for s in subscriptions]
            # A score that is not finite is no match: the reader drops it after the path, and it ranks last.
            found = [(id, score) for id, score in scored if math.isfinite(score)]
            found = found if path.ordered else sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]
            assert sorted(found) == sorted((m.subscription, m.score) for m in oracle.match({"id": "e", **read.values}, k))


class FreshMachine(RuleBasedStateMachine):
    """Mostly of one dimension, in the memtable and in segments."""

    def __init__(self):
        super().__init__()
        self.topic, self.oracle = td.Topic("jobs", SCHEMA), TopicOracle(SCHEMA)

    @rule(
        id=st.integers(0, 9),
        ends=st.tuples(EIGHTHS, EIGHTHS),
        score=st.integers(0, 2),
        form=st.sampled_from(["hours"] * 24 + ["pay", "two", "formula", *SHAPES]),
    )
    def subscribe(self, id, ends, score, form):
        range = f"BETWEEN {min(ends)} AND {max(ends)}"
        one_range = {"hours": f"hours {range}", "pay": f"pay {range}", "two": f"hours {range} AND age <= 1"}
        filter = form if form in SHAPES else one_range.get(form, one_range["hours"])
        for one in (self.topic, self.oracle):
            one.subscribe(f"s{id}", filter, score="1 + pay" if form == "formula" else float(score))

    @rule()
    def flush(self):
        self.topic.flush()

    @rule(id=st.integers(0, 9))
    def unsubscribe(self, id):
        if f"s{id}" in self.oracle.subscriptions:
            self.topic.unsubscribe(f"s{id}")
            self.oracle.unsubscribe(f"s{id}")

    @rule(event=EVENTS, k=st.integers(0, 11))
    def match(self, event, k):
        event = {"id": "e", **event}
        assert [tuple(m) for m in self.topic.match(event, k)] == [tuple(m) for m in self.oracle.match(event, k)]


TestFresh = FreshMachine.TestCase
TestFresh.settings = settings(max_examples=30, stateful_step_count=30, deadline=None, phases=[Phase.explicit, Phase.generate])


def topic_of(n, **columns):
    topic = td.Topic("t", SCHEMA)
    rng = np.random.default_rng(1)
    topic.subscribe_many(pa.table({"id": [f"s{i:05}" for i in range(n)], "score": rng.random(n), **columns}), time=0)
    return topic


def chosen(topic, events, k):
    [segment] = topic.store.snapshot.segments
    plan = plan_for(segment, Question(topic._batch(events).columns, lambda _: {}, k, topic.store.snapshot.seq))
    return plan.path.name


def test_the_cheapest_path_is_taken():
    n, rng = 20_000, np.random.default_rng(2)
    lo = rng.random(n)
    events = [{"id": f"e{i}", "hours": float(rng.random()), "pay": float(rng.random()), "age": 0.5} for i in range(200)]
    one = topic_of(n, **{"hours.lo": lo, "hours.hi": lo + 0.2})
    assert chosen(one, events, 10) == "SOPT-R-tree"
    wide = topic_of(n, **{"hours.lo": lo, "hours.hi": lo + 0.5, "pay.lo": lo, "pay.hi": lo + 0.5})
    assert chosen(wide, events, 10) == "blocks in order of score"
    assert chosen(wide, events[:1], 10) == "blocks in order of score"
    pay = rng.random(n)
    narrow = topic_of(n, **{"hours.lo": lo, "hours.hi": lo + 0.001, "pay.lo": pay, "pay.hi": pay + 0.001})
    assert chosen(narrow, events, 10) == "all matches, then the k best"
    told = str(wide.explain(events[0], k=3, time=0))
    assert "blocks in order of score, about" in told
    assert "not SOPT-R-tree: filters are more than one range on one attribute" in told


def test_the_memtable_says_how_it_goes_about_it():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("a", "hours > 1", score=1)
    assert topic.explain({"hours": 2}).plans == ("memtable: all matches, then the k best",)


def test_an_event_with_vague_values_is_not_published():
    topic = td.Topic("t", SCHEMA)
    with pytest.raises(td.errors.EventError, match=r"hours is Between\(1.0, 2.0\): ranges and uncertain values can be matched"):
        topic.publish({"hours": [1, 2]})
    with pytest.raises(td.errors.EventError, match="pay is Uncertain"):
        topic.publish_batch([{"id": "e", "pay": td.Uncertain({1: 2})}])


def test_forms_of_vague_values():
    topic = td.Topic("t", td.Schema({"hours": td.Number(), "made": td.Time(), "brand": td.Category()}))
    topic.subscribe("ann", "hours BETWEEN 10 AND 20 AND brand = 'a'", score=4.0)
    topic.subscribe("bob", "hours >= 25", score="2 * hours")
    for hours in ([20, 30], (20, 30), {"lo": 20, "hi": 30}, td.Between(20, 30)):
        assert [tuple(m)[1:] for m in topic.match({"hours": hours, "brand": "a"}, time=0)] == [("ann", 4.0), ("bob", 50.0)]
    for brand in (td.Uncertain({"a": 1, "b": 3}), {"values": ["a", "b"], "weights": [1, 3]}):
        assert [tuple(m)[1:] for m in topic.match({"hours": 15, "brand": brand}, k=5, time=0)] == [("ann", 1.0)]
    table = pa.table({"id": ["e"], "hours": [{"lo": 20.0, "hi": 30.0}], "brand": ["a"]})
    assert topic.match_batch(table, time=0)["subscription"].to_pylist() == ["ann", "bob"]
    told = topic.explain({"id": "e", "hours": 15, "brand": td.Uncertain({"a": 1, "b": 3})}, "ann", time=0)
    assert str(told) == "'ann' matches event 'e', score 1 = 1 (0.25: brand a); home "


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"hours": [2, 1]}, "hours is Between(2, 1): a range has lo <= hi"),
        ({"hours": [1, "x"]}, "hours.hi is 'x': a finite number is accepted"),
        ({"hours": [1, 2, 3]}, "hours is [1, 2, 3]: a finite number is accepted"),
        ({"hours": td.Uncertain({})}, "an uncertain value has at least one value, and each a weight above 0"),
        ({"hours": td.Uncertain({1: 0})}, "an uncertain value has at least one value, and each a weight above 0"),
        ({"hours": {"values": [1], "weights": [1, 2]}}, "values are distinct, and each has a weight"),
        ({name: td.Uncertain(dict.fromkeys(range(40), 1)) for name in ("hours", "pay")}, "make 1600 combinations"),
    ],
)
def test_vague_values_that_are_refused(values, sentence):
    with pytest.raises(td.errors.EventError) as error:
        td.Topic("t", SCHEMA).match(values)
    assert sentence in str(error.value)


@pytest.mark.parametrize("others", [[None], ["pay IS NULL"], [None, "hours > 2"], ["hours > 1 AND pay > 1", None]])
def test_filters_that_match_everything_stand_beside_one_range(others):
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("a", "hours > 1")
    for number, other in enumerate(others):
        topic.subscribe(f"b{number}", other)
    topic.flush()
    assert [m.subscription for m in topic.match({"hours": 5}, k=1)] == ["a"]
    assert {m.subscription for m in topic.match({"hours": 5}, k=9)} == {m.subscription for m in topic.match({"hours": 5})}
