"""MO-Tree in both directions against the definition of matching, `Clause.holds`, in plain Python."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidings.index.mo_cells import (
    PLACE_X,
    PLACE_Y,
    measured_axis,
    narrow_levels,
    paper_levels,
    prefix_axis,
    uniform_axis,
)
from tidings.index.mo_event_tree import MOEventTree
from tidings.index.mo_tree import MOTree
from tidings.model.arrays import Vocabularies, encode_clauses, encode_events
from tidings.model.clause import Clause
from tidings.model.schema import Category, Number, Place, Schema, Words

SCHEMA = Schema({"price": Number(0, 1), "size": Number(), "brand": Category(), "place": Place(plane=True), "about": Words("as-is")})
BRANDS, WORDS = ["ant", "bee", "cow", "cat", "dog"], ["red", "new", "old"]
NAMES = list(range(8))

eighths = st.integers(-4, 12).map(lambda i: i / 8)
"""Ties, cell edges (the paper's cells begin at multiples of 3/16), domain ends, and values outside [0, 1]."""
edges = st.sampled_from([0.0, 0.1875, 0.375, 0.4375, 0.5, 1.0, math.nextafter(0.4375, 1), math.nextafter(0.4375, 0), -1e300, 1e300])
coordinates = eighths | edges


@st.composite
def intervals(draw, ends=coordinates):
    a, b = sorted((draw(ends), draw(ends)))
    return draw(st.sampled_from([(a, b), (a, a), (-math.inf, b), (a, math.inf), (-math.inf, math.inf)]))


@st.composite
def boxes(draw):
    (x, x2), (y, y2) = (sorted((draw(coordinates), draw(coordinates))) for _ in range(2))
    return draw(st.sampled_from([(x, y, x2, y2), (x, y, x, y)]))


@st.composite
def clauses(draw):
    ranges, within, without, nulls, present = {}, {}, {}, set(), set()
    for name in ("price", "size"):
        match draw(st.sampled_from(["free", "range", "range", "range", "null", "present"])):
            case "range":
                ranges[name] = draw(intervals())
            case "null":
                nulls.add(name)
            case "present":
                present.add(name)
    match draw(st.sampled_from(["free", "in", "one", "not", "null"])):
        case "in":
            within["brand"] = draw(st.frozensets(st.sampled_from(BRANDS), min_size=1, max_size=3))
        case "one":
            within["brand"] = frozenset({draw(st.sampled_from(BRANDS))})
        case "not":
            without["brand"] = draw(st.frozensets(st.sampled_from(BRANDS), min_size=1, max_size=2))
        case "null":
            nulls.add("brand")
    match draw(st.sampled_from(["free", "free", "null", "present"])):
        case "null":
            nulls.add("place")
        case "present":
            present.add("place")
    return Clause(
        ranges=ranges,
        within=within,
        without=without,
        nulls=frozenset(nulls),
        present=frozenset(present),
        box=draw(st.none() | boxes()),
        words=draw(st.frozensets(st.sampled_from(WORDS), max_size=2)),
    )


events = st.fixed_dictionaries(
    {},
    optional={
        "price": coordinates,
        "size": coordinates,
        "brand": st.sampled_from([*BRANDS, "unheard"]),
        "place": boxes(),
        "about": st.frozensets(st.sampled_from(WORDS)),
    },
)


def make_axes(vocabularies, shape):
    levels = narrow_levels() if shape == "narrow" else paper_levels()
    brand = vocabularies.categories["brand"]
    return [
        uniform_axis(PLACE_X, 0, 1, levels),
        uniform_axis(PLACE_Y, 0, 1, levels),
        uniform_axis(0, 0, 1),
        prefix_axis(2, brand, 1) if shape == "paper" else uniform_axis(2, 0, 5),
        measured_axis(1, np.arange(-4, 13) / 8),
    ]


class Base(RuleBasedStateMachine):
    @initialize(shape=st.sampled_from(["paper", "narrow", "flat"]))
    def start(self, shape):
        self.vocabularies = Vocabularies(SCHEMA)
        axes = make_axes(self.vocabularies, shape)
        self.tree = self.make(axes, 2 if shape == "flat" else None)
        self.held = {}

    def clause_columns(self, several):
        return encode_clauses(SCHEMA, self.vocabularies, several, range(len(several)))

    def event_columns(self, several):
        for event in several:
            if "brand" in event:
                self.vocabularies.categories["brand"].add(event["brand"])
            for word in event.get("about", ()):
                self.vocabularies.words.add(word)
        return encode_events(SCHEMA, self.vocabularies, several)

    def teardown(self):
        if hasattr(self, "tree"):
            self.tree.check()

    @invariant()
    def sound(self):
        if hasattr(self, "tree"):
            assert len(self.tree) == len(self.held)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def delete(self, data):
        self.delete_held(data)

    def delete_held(self, data):
        names = data.draw(st.lists(st.sampled_from(sorted(self.held)), min_size=1, max_size=3))
        self.tree.delete(np.array(names, np.int32))
        for name in set(names):
            del self.held[name]

    @rule()
    def refuse_what_is_not_held(self):
        with pytest.raises(KeyError):
            self.tree.delete(np.array([*self.held, 99], np.int32))


class Subscriptions(Base):
    def make(self, axes, height):
        return MOTree(axes, height)

    @rule(batch=st.dictionaries(st.sampled_from(NAMES), clauses(), min_size=1, max_size=5))
    def insert(self, batch):
        self.tree.insert(np.array([*batch], np.int32), self.clause_columns([*batch.values()]))
        self.held |= batch

    @precondition(lambda self: self.held)
    @rule(data=st.data(), clause=clauses())
    def update(self, data, clause):
        name = data.draw(st.sampled_from(sorted(self.held)))
        self.tree.update(name, self.clause_columns([clause]))
        self.held[name] = clause

    @precondition(lambda self: self.held)
    @rule(data=st.data(), box=boxes())
    def move(self, data, box):
        name = data.draw(st.sampled_from(sorted(self.held)))
        self.tree.move(name, box)
        self.held[name] = replace(self.held[name], box=box)

    @rule(batch=st.lists(events, max_size=4))
    def match(self, batch):
        columns = encode_events(SCHEMA, self.vocabularies, batch)
        rows, names = self.tree.match_batch(columns)
        wanted = [(i, n) for i, e in enumerate(batch) for n, clause in self.held.items() if clause.holds(SCHEMA, e)]
        assert sorted(zip(rows.tolist(), names.tolist(), strict=True)) == sorted(wanted)


class LiveEvents(Base):
    """`held` maps a name to (event, expires); searches move time forward and may drop what has expired."""

    time = 0

    def make(self, axes, height):
        return MOEventTree(axes, len(SCHEMA.ranges) + 2, height, cells=10)

    @invariant()
    def sound(self):
        if hasattr(self, "tree"):
            live = [name for name, (_, expires) in self.held.items() if self.time < expires]
            assert len(live) <= len(self.tree) <= len(self.held)

    @rule(batch=st.dictionaries(st.sampled_from(NAMES), st.tuples(events, st.integers(0, 6)), min_size=1, max_size=5))
    def insert(self, batch):
        several, lives = zip(*batch.values(), strict=True)
        expires = self.time + np.array(lives, np.int64)
        self.tree.insert(np.array([*batch], np.int32), self.event_columns(several), expires)
        self.held |= {name: (event, t) for name, event, t in zip(batch, several, expires.tolist(), strict=True)}

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def delete(self, data):
        self.held = {name: item for name, item in self.held.items() if name in self.tree}
        if self.held:
            self.delete_held(data)

    @rule(seconds=st.integers(0, 3))
    def wait(self, seconds):
        self.time += seconds

    @rule()
    def expire(self):
        names = self.tree.expire(self.time).tolist()
        assert all(self.held[name][1] <= self.time for name in names)
        self.held = {name: item for name, item in self.held.items() if item[1] > self.time}
        assert len(self.tree) == len(self.held)

    @rule(batch=st.lists(clauses(), min_size=1, max_size=3))
    def search(self, batch):
        rows, names = self.tree.search_batch(self.clause_columns(batch), self.time)
        live = {name: event for name, (event, expires) in self.held.items() if self.time < expires}
        wanted = [(i, name) for i, clause in enumerate(batch) for name, event in live.items() if clause.holds(SCHEMA, event)]
        assert sorted(zip(rows.tolist(), names.tolist(), strict=True)) == sorted(wanted)


TestSubscriptions = Subscriptions.TestCase
TestLiveEvents = LiveEvents.TestCase
TestSubscriptions.settings = TestLiveEvents.settings = settings(max_examples=50, stateful_step_count=12, deadline=None)
