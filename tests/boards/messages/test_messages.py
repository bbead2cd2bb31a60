"""Lists rebuilt from messages alone, and what watchers are told, against the definition; every table goes through bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tidings as td
from tests.oracle.boards import BoardsOracle
from tidings.boards.messages.family import Family, parse_family, read_family
from tidings.boards.messages.followers import Followers
from tidings.boards.messages.objects import FamilyObjects
from tidings.boards.messages.painter import FamilyPainter
from tidings.boards.messages.table import MESSAGE
from tidings.errors import SchemaError, SubscriptionError
from tidings.model.filter.clause import Clause
from tidings.model.filter.compile import compile_filter
from tidings.model.filter.operands import compile_number

SCHEMA = td.Schema({"price": td.Number(), "stars": td.Number(), "about": td.Words()})
INF = math.inf
eighths = st.integers(0, 15).map(lambda i: i / 8)
objects = st.fixed_dictionaries({}, optional={"price": eighths, "stars": eighths})
changes = st.dictionaries(st.sampled_from("abcdefgh"), st.none() | objects, max_size=6)
ranges = st.tuples(eighths | st.just(-INF), eighths | st.just(INF)).filter(lambda p: p[0] <= p[1])


class MessagesMachine(RuleBasedStateMachine):
    """One family painted in every way; watchers come, also with lists of a sequence that messages have yet to reach, and go."""

    @initialize(k=st.integers(1, 4))
    def build(self, k):
        self.k, self.sequence, self.names = k, 0, 0
        self.oracle = BoardsOracle(SCHEMA)
        self.kinds = {
            "dense": Family("price", "-stars", k),
            "coarse": Family("price", "-stars", k, 0.5),
            "sparse": Family("price", "-stars", k),
        }
        self.painters = {kind: FamilyPainter(SCHEMA, "t", family) for kind, family in self.kinds.items()}
        self.followers = {kind: Followers(k) for kind in self.kinds}
        self.replica = FamilyObjects()
        self.behind, self.state, self.heard = [], [], {}

    def paint(self, change):
        """One sequence, which followers hear of later."""
        self.sequence += 1
        made = {kind: painter.change(change, self.sequence, self.sequence - 1, 0) for kind, painter in self.painters.items()}
        keys, x, y = self.painters["dense"].places(change)
        self.replica.apply(self.replica.moves(keys, x, y))
        told = self.oracle.publish_batch([(key, None if values is None else dict(values)) for key, values in change.items()])
        self.behind.append(made)
        self.state.append((self.sequence, told))

    @rule(change=changes)
    def publish(self, change):
        self.catch_up()
        self.paint(change)
        self.catch_up()

    @rule(before=st.lists(changes, max_size=3), watchers=st.lists(st.tuples(ranges, st.integers(1, 4), st.booleans()), max_size=3))
    def begin_ahead(self, before, watchers):
        """Lists are of objects that messages under way have yet to tell of."""
        self.catch_up()
        for change in before:
            self.paint(change)
        for (l, r), k, told in watchers:
            self.names += 1
            self.watch(f"w{self.names}", l, r, min(k, self.k), told)
        self.cover()
        self.catch_up()

    def watch(self, name, l, r, k, told):
        self.oracle.watch(name, [Clause(ranges={"price": (l, r)})], k, compile_number(SCHEMA, "-stars").value)
        self.heard[name] = self.sequence if told else INF
        for followers in self.followers.values():
            followers.begin([name], np.array([[l, r]]), [k], [told], self.replica, self.sequence)

    def cover(self):
        points = self.followers["sparse"].points()
        self.painters["sparse"].cover(np.stack([points, points], 1) if len(points) else np.array([[[9.0, 9.0], [9.0, 9.0]]]))

    @rule(which=st.integers(0, 9))
    def end(self, which):
        self.catch_up()
        names = sorted(self.oracle.watchers)
        if names:
            name = names[which % len(names)]
            self.oracle.unwatch(name)
            for followers in self.followers.values():
                followers.end(name)
            self.cover()

    def catch_up(self):
        for tables, (sequence, expected) in zip(self.behind, self.state, strict=True):
            wanted = sorted((w, key, score, rank or 0, why) for w, key, score, rank, why in expected if self.heard[w] < sequence)
            for kind, followers in self.followers.items():
                told = [(n.watcher, n.key, n.score, n.rank or 0, n.why) for n in followers.follow(tables[kind], sequence)]
                assert sorted(told) == wanted, kind
        self.behind, self.state = [], []

    @invariant()
    def lists_are_the_oracles(self):
        if hasattr(self, "oracle") and not self.behind:
            for followers in self.followers.values():
                followers.check()
                assert {w: followers.top(w) for w in followers.row} == {w: self.oracle.top(w) for w in self.oracle.watchers}


TestMessages = pytest.mark.deep(MessagesMachine.TestCase)


def test_a_table_says_its_version():
    painter = FamilyPainter(SCHEMA, "flats", Family("price", "-stars", 2))
    table = painter.change({"a": {"price": 1.0, "stars": 2.0}}, 7, 6, 1_000_000)
    assert table.schema.equals(MESSAGE, check_metadata=True)
    assert table.schema.metadata == {b"tidings.messages": b"1"}
    row = {
        "topic": "flats",
        "family": "price:-stars:2",
        "sequence": 7,
        "snapshot": 6,
        "at": 1_000_000,
        "object": "a",
        "x": 1.0,
        "y": 2.0,
    }
    assert row.items() <= table.to_pylist()[0].items()


def test_a_family_knows_its_watchers():
    family = parse_family(SCHEMA, "price:-stars:20")
    assert family.name == "price:-stars:20"
    between = compile_filter(SCHEMA, "price BETWEEN 1 AND 2")
    assert family.range_of(SCHEMA, between, "-stars", 20) == (1.0, 2.0)
    assert family.range_of(SCHEMA, compile_filter(SCHEMA, "price >= 1"), "0 - stars", 1) == (1.0, INF)
    for clauses, by, k in [(between, "stars", 5), (between, "-stars", 21), (between, None, 5), (between, "-stars", None)]:
        assert family.range_of(SCHEMA, clauses, by, k) is None
    for filter in ("stars > 1", "price > 1 AND stars > 1", "price < 1 OR price > 2", "price > 1 AND A_CONTAINS(about, ('x'))"):
        assert family.range_of(SCHEMA, compile_filter(SCHEMA, filter), "-stars", 5) is None
    for text in ("price", "price:5", "price:-stars:", "price:-stars:x"):
        with pytest.raises(SubscriptionError, match="attribute:by:k is accepted"):
            parse_family(SCHEMA, text)
    with pytest.raises(SchemaError, match="the name of a number is accepted"):
        read_family(SCHEMA, "about", "-stars", 5)
    with pytest.raises(SubscriptionError, match="epsilon is 2"):
        read_family(SCHEMA, "price", "-stars", 5, 2)
