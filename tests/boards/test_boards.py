"""Boards against the oracle: painted and plain watchers, publications and batches, one state machine."""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.oracle.boards import BoardsOracle
from tidings.boards.boards import Boards
from tidings.boards.key_order import KeyOrder
from tidings.errors import SubscriptionError
from tidings.model.filter.clause import Clause
from tidings.model.filter.operands import compile_number
from tidings.model.values.schema import Category, Number, Schema

SCHEMA = Schema({"price": Number(0, 4), "risk": Number(0, 4), "stars": Number(), "brand": Category()})
eighths = st.integers(0, 20).map(lambda i: i / 8)
keys = st.integers(0, 14).map(lambda i: f"key{i}")
values = st.fixed_dictionaries({}, optional={"price": eighths, "risk": eighths, "stars": eighths, "brand": st.sampled_from("ab")})
ends = st.tuples(eighths | st.just(-math.inf), eighths | st.just(math.inf)).map(lambda p: (min(p), max(p)))
one_range = st.builds(lambda name, span: [Clause(ranges={name: span})], st.sampled_from(["price", "risk", "stars"]), ends)
two_ranges = st.builds(lambda a, b: [Clause(ranges={"price": a, "risk": b})], ends, ends)
one_sided = st.builds(lambda a, hi: [Clause(ranges={"price": a, "risk": (-math.inf, hi)})], ends, eighths)
other_sided = st.builds(lambda a, lo: [Clause(ranges={"price": a, "risk": (lo, math.inf)})], ends, eighths)
other = st.sampled_from(
    [
        [Clause()],
        [Clause(within={"brand": frozenset("a")})],
        [],
        [Clause(ranges={"price": (0, 1)}), Clause(ranges={"risk": (2, 9)})],
    ]
)
filters = one_range | one_range | one_sided | other_sided | two_ranges | other
BY = ["-stars", "stars", "-price", "risk", "stars + price", "-2 * stars", "stars / price", "stars * 1e308"]
K = [0, 1, 2, 2, 3, 5, 40, 2**31 - 1, None]


class BoardsMachine(RuleBasedStateMachine):
    @initialize(indexed=st.booleans())
    def build(self, indexed):
        self.oracle = BoardsOracle(SCHEMA)
        self.boards = Boards(SCHEMA, self.matching if indexed else None)
        self.count = self.time = 0
        self.ends = {}

    def matching(self, values):
        return [id for id, w in self.oracle.watchers.items() if any(c.holds(SCHEMA, values) for c in w.clauses)]

    @rule(
        clauses=filters,
        k=st.sampled_from(K),
        by=st.sampled_from(BY),
        lives=st.sampled_from([None, None, None, 1, 2, 5]),
        times=st.sampled_from([1, 1, 1, 300]),
    )
    def watch(self, clauses, k, by, lives, times):
        """`times` such watchers: more than a block, so that rows are arranged anew."""
        for _ in range(times):
            id = f"s{self.count}"
            self.count += 1
            expected = self.oracle.watch(id, clauses, k, compile_number(SCHEMA, by).value)
            if lives is not None:
                self.ends[id] = self.time + lives
            assert list(self.boards.watch(id, clauses, k, by, expires=self.ends.get(id))) == expected

    @precondition(lambda self: self.oracle.watchers)
    @rule(data=st.data())
    def unwatch(self, data):
        id = data.draw(st.sampled_from(sorted(self.oracle.watchers)))
        self.oracle.unwatch(id)
        self.ends.pop(id, None)
        self.boards.unwatch(id)
        assert id not in self.boards

    def pass_time(self, later):
        """Watchers whose time has come are told of nothing more."""
        self.time += later
        for id in [id for id, expires in self.ends.items() if expires <= self.time]:
            del self.ends[id]
            self.oracle.unwatch(id)

    @rule(key=keys, values=values | st.none(), later=st.integers(0, 1))
    def publish(self, key, values, later):
        self.pass_time(later)
        expected = self.oracle.publish_batch([(key, values)])
        told = self.boards.publish(key, values, self.time)
        assert set(told) == expected
        assert len(told) == len(expected)

    @rule(changes=st.lists(st.tuples(keys, values | st.none()), max_size=20), later=st.integers(0, 1))
    def publish_batch(self, changes, later):
        self.pass_time(later)
        expected = self.oracle.publish_batch(changes)
        told = self.boards.publish_batch(changes, self.time)
        assert set(told) == expected
        assert len(told) == len(expected)

    @invariant()
    def same_lists(self):
        if hasattr(self, "boards"):
            self.boards.check()
            for id in self.oracle.watchers:
                assert self.boards.top(id) == self.oracle.top(id)

    @precondition(lambda self: self.oracle.objects)
    @rule(data=st.data())
    def lists_as_if_objects_were_gone(self, data):
        gone = data.draw(st.sets(st.sampled_from(sorted(self.oracle.objects))))
        held = self.oracle.objects
        self.oracle.objects = {key: values for key, values in held.items() if key not in gone}
        for id in self.oracle.watchers:
            assert self.boards.top(id, gone) == self.oracle.top(id)
        self.oracle.objects = held


TestBoards = BoardsMachine.TestCase
TestBoards.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


def test_ties_in_relevance_go_by_key_also_when_keys_come_in_the_worst_order():
    boards = Boards(SCHEMA)
    boards.watch("all", [Clause(ranges={"price": (0, 1)})], 3, "-stars")
    names = ["b", "a"] + ["a" + "z" * i + "m" for i in range(70)]  # each new key falls just before b
    for name in names:
        boards.publish(name, {"price": 0.5, "stars": 1.0}, 0)
        boards.check()
    assert [key for key, _ in boards.top("all")] == sorted(names)[:3]


def test_ties_are_spread_anew_when_no_number_is_left_between_two():
    order = KeyOrder()
    order.add("a")
    order.add("b")
    for i in range(80):
        order.add("a" + "z" * i + "m")
    order.check()
    assert order.version > 0


def test_watching_twice_or_without_by_is_refused():
    boards = Boards(SCHEMA)
    boards.watch("s", [Clause()], 3, "-stars")
    with pytest.raises(SubscriptionError, match="already watches"):
        boards.watch("s", [Clause()], 3, "-stars")
    with pytest.raises(SubscriptionError, match="needs by"):
        boards.watch("t", [Clause()], 3, None)
