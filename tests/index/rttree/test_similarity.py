"""Similarity on R^t, R^t+ and R^t++ against the definition, with ==: the same answers and the same scores to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.index.rttree.test_tree import ALL_WORDS, WORDS, boxes, event_columns, long_words, messages, points, ranges, words
from tests.oracle.similarity import similar
from tidings.index.rttree.filtering import FIRST_ROOM
from tidings.index.rttree.policy import POLICIES
from tidings.index.rttree.similarity import SimilarityIndex
from tidings.model.columns.arrays import MISSING_BOX, NO_BOX
from tidings.rank.similarity import FREE, NEVER, idf, least_textual, prefix_length

WEIGHTS = idf(np.array([40, 30, 20, 20, 10, 7, 7, 5, 3, 2, 1, 1, *([1, 2, 3, 4] * ALL_WORDS)])[:ALL_WORDS], 100)
shares = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.625, 0.75, 1.0])
thetas = st.one_of(shares, st.sampled_from([-0.5, 0.001, 0.3, 1.25]))
subscriptions = st.tuples(boxes, words, shares, thetas)


def build(rows, weights, policy):
    columns = event_columns([(box, wanted) for box, wanted, _, _ in rows])
    alpha, theta = (np.array([row[at] for row in rows], np.float64) for at in (2, 3))
    return SimilarityIndex.build(columns.box, columns.word_start, columns.word, alpha, theta, weights, policy)


def triples(matches):
    return sorted(zip(*(column.tolist() for column in matches), strict=True))


def compare(rows, events, weights=WEIGHTS):
    known = [(box, frozenset(code for code in has if code < len(weights))) for box, has in events]
    expected = sorted(similar(rows, known, weights.tolist()))
    for policy in POLICIES:
        index = build(rows, weights, policy)
        index.check()
        assert triples(index.match_batch(event_columns(events))) == expected
        again = SimilarityIndex.from_arrays(index.arrays())
        assert triples(again.match_batch(event_columns(events))) == expected
    return expected


def many(seed, count):
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 32, (count, 2)) / 8
    box = np.hstack([corner, corner + rng.integers(0, 6, (count, 2)) / 8]).tolist()
    wanted = [frozenset(rng.choice(WORDS, rng.integers(0, 6), replace=False).tolist()) for _ in range(count)]
    rare = rng.integers(-ALL_WORDS, ALL_WORDS, count).tolist()
    wanted = [has | {word} if word >= 0 else has for has, word in zip(wanted, rare, strict=True)]
    alpha, theta = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], count).tolist(), rng.choice([0.25, 0.5, 0.75, 1.0], count).tolist()
    return [(tuple(b), w, a, t) for b, w, a, t in zip(box, wanted, alpha, theta, strict=True)]


class Subscribers(RuleBasedStateMachine):
    """Subscriptions come and go; every question is asked of freshly built indexes of all three policies."""

    def __init__(self):
        super().__init__()
        self.rows = []

    @rule(rows=st.lists(subscriptions, min_size=1, max_size=4))
    def insert_few(self, rows):
        self.rows += rows

    @rule(seed=st.integers(0, 99), count=st.integers(40, 200))
    def insert_many(self, seed, count):
        self.rows += many(seed, count)

    @precondition(lambda self: self.rows)
    @rule(first=st.integers(0, 50), count=st.integers(1, 100))
    def delete(self, first, count):
        del self.rows[first : first + count]

    @rule(events=st.lists(messages, min_size=1, max_size=4))
    def match(self, events):
        compare(self.rows, events)

    @rule(box=st.one_of(ranges, points), has=long_words)
    def match_a_long_message(self, box, has):
        compare(self.rows, [(box, has)])

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), dropped=words)
    def match_near_one(self, data, dropped):
        """Messages on a subscription's corner, over half of it, edge to edge, with all of its words or some."""
        box, wanted, _, _ = data.draw(st.sampled_from(self.rows[:20]))
        xmin, ymin, xmax, ymax = (value if math.isfinite(value) else 1.0 for value in box)
        half = (xmin, ymin, (xmin + xmax) / 2, ymax)
        beside = (xmax, ymin, xmax + 1, ymax)
        compare(
            self.rows, [(half, wanted), (beside, wanted), ((xmax, ymax, xmax, ymax), wanted - dropped), (box, wanted - dropped)]
        )


Subscribers.TestCase.settings = settings(max_examples=30, stateful_step_count=8, deadline=None)
TestSubscribers = Subscribers.TestCase


@pytest.mark.soak
def test_subscribers_soak():
    run_state_machine_as_test(Subscribers, settings=settings(max_examples=400, stateful_step_count=20, deadline=None))


@given(st.lists(subscriptions, min_size=1, max_size=3), st.lists(messages, min_size=1, max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_theta_exactly_met(rows, events, data):
    """Each subscription's theta is its score for one of the messages, so that it is met to the last bit."""
    scored = {(row, number): value for row, number, value in similar([(*r[:3], -1.0) for r in rows], events, WEIGHTS.tolist())}
    aimed = [data.draw(st.integers(0, len(events) - 1)) for _ in rows]
    exact = [(*row[:3], scored[aimed[number], number]) for number, row in enumerate(rows)]
    found = {(row, number) for row, number, _ in compare(exact, events)}
    assert found >= {(row, number) for number, row in enumerate(aimed)}


def test_three_levels():
    rows = many(7, 3000)
    events = [
        ((1.0, 1.0, 1.0, 1.0), frozenset({1, 2, 3})),
        ((0.0, 0.0, 2.0, 2.0), frozenset(range(8))),
        (MISSING_BOX, frozenset({4})),
        ((0.5, 0.5, 0.5, 0.5), frozenset(range(5, ALL_WORDS))),
        ((0.0, 0.0, 4.0, 4.0), frozenset(range(5, ALL_WORDS))),
    ]
    assert build(rows, WEIGHTS, "R^t++").body.levels == 2
    assert len(compare(rows, events)) > 100


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@given(box=ranges, wanted=words, at=points, has=words)
@settings(max_examples=30, deadline=None)
def test_alpha_at_its_ends(alpha, box, wanted, at, has):
    """alpha 0 asks for words alone, alpha 1 for the place alone."""
    found = compare([(box, wanted, alpha, 1.0)], [(at, has)])
    inside = box[0] <= at[0] <= box[2] and box[1] <= at[1] <= box[3]
    assert bool(found) == (wanted <= has if alpha == 0.0 else inside)


def test_degenerate_places_and_words():
    point, line = (1.0, 1.0, 1.0, 1.0), (0.0, 1.0, 2.0, 1.0)
    rows = [(box, wanted, 0.5, 0.75) for box in (point, line, NO_BOX) for wanted in (frozenset(), frozenset({1}))]
    everywhere = (0.0, 0.0, 2.0, 2.0)
    for box, has, expected in (
        (everywhere, {1}, {0, 1, 2, 3, 4, 5}),
        (everywhere, set(), {0, 2, 4}),
        (point, {1}, {0, 1, 2, 3, 4, 5}),
        (MISSING_BOX, {1}, {4, 5}),
        ((2.0, 1.0, 3.0, 1.5), {1, 99}, {2, 3, 4, 5}),
    ):
        found = compare(rows, [(box, frozenset(has))])
        assert {number for _, number, _ in found} == expected
        assert all(value == 1.0 for _, _, value in found)


def test_an_edge_in_common_is_no_area():
    rows = [((0.0, 0.0, 1.0, 1.0), frozenset({1}), 0.5, 0.5)]
    assert compare(rows, [((1.0, 0.0, 2.0, 1.0), frozenset())]) == []
    assert compare(rows, [((0.5, 0.0, 2.0, 1.0), frozenset({1}))]) == [(0, 0, 0.75)]


def test_nothing_and_unknown_words():
    assert compare([], [((0.0, 0.0, 0.0, 0.0), frozenset({1}))]) == []
    assert compare([((0.0, 0.0, 1.0, 1.0), frozenset({1}), 0.5, 0.5)], []) == []
    unknown = [((0.0, 0.0, 0.0, 0.0), frozenset({ALL_WORDS, 999}))]
    assert compare([((0.0, 0.0, 1.0, 1.0), frozenset({1}), 0.0, 0.5)], unknown) == []
    assert compare([((0.0, 0.0, 1.0, 1.0), frozenset({1}), 0.5, 0.5)], unknown) == [(0, 0, 0.5)]


def test_more_matches_than_the_first_buffer_holds():
    count = FIRST_ROOM * 3 // 4
    index = build([((0.0, 0.0, 1.0, 1.0), frozenset(), 0.5, 0.5)] * count, WEIGHTS, "R^t++")
    event, number, score = index.match_batch(event_columns([((1, 1, 1, 1), {5}), ((2, 2, 2, 2), set())]))
    assert np.bincount(event).tolist() == [count, count]
    assert len(set(number.tolist())) == count
    assert set(score.tolist()) == {1.0, 0.5}


def test_prefixes_are_the_least_words_a_match_must_share():
    share = np.array([1.0, 0.5, 0.25])
    assert least_textual(0.5, 0.75, 1.0) == 0.5
    assert prefix_length(share, 0.5) == 2, "the last two words alone reach one half"
    assert prefix_length(share, 0.51) == 1
    assert prefix_length(share, 0.25) == 3
    assert prefix_length(share, 0.0) == FREE
    assert prefix_length(share, 1.1) == NEVER
    assert prefix_length(share[:0], 1.0) == FREE
