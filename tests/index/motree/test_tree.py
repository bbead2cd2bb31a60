"""MO-Tree in both directions against the definition of matching, `Clause.holds`, in plain Python."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from tidings.index.motree.axes import choose_axes
from tidings.index.motree.cells import (
    ABSENT,
    GRAIN,
    PLACE_X,
    PLACE_Y,
    interval_cells,
    make_cells,
    measured_axis,
    narrow_levels,
    paper_levels,
    prefix_axis,
    step,
    uniform_axis,
)
from tidings.index.motree.event_tree import MOEventTree
from tidings.index.motree.tree import MOTree
from tidings.index.packed.packing import as_events
from tidings.model.columns.arrays import Vocabularies, encode_clauses, encode_events
from tidings.model.filter.clause import Clause
from tidings.model.values.schema import Category, Number, Place, Schema, Words

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
        self.tree = self.make(axes, 2 if shape == "flat" else len(axes))
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
        arrays = as_events(columns)
        assert sorted((i, n) for i in range(len(batch)) for n in self.tree.match_one(arrays, i).tolist()) == sorted(wanted)


class LiveEvents(Base):
    """`held` maps a name to (event, expires); searches move time forward and may drop what has expired."""

    time = 0

    def make(self, axes, height):
        return MOEventTree(axes, len(SCHEMA.ranges) + 2, height)

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


TestSubscriptions = pytest.mark.deep(Subscriptions.TestCase)
TestLiveEvents = LiveEvents.TestCase
TestSubscriptions.settings = TestLiveEvents.settings = settings(max_examples=50, stateful_step_count=12, deadline=None)


@pytest.mark.soak
@pytest.mark.parametrize("machine", [Subscriptions, LiveEvents])
def test_soak(machine):
    run_state_machine_as_test(machine, settings=settings(max_examples=2000, stateful_step_count=50, deadline=None))


def random_clauses(rng, count):
    made = []
    for _ in range(count):
        lo, hi = np.sort(rng.integers(0, 9, 2)) / 8
        x, y = rng.integers(0, 33, 2) / 32
        box = (x, y, x + 0.125, y + 0.125) if rng.random() < 0.7 else None
        made.append(Clause(ranges={"price": (lo, hi)} if rng.random() < 0.8 else {}, box=box))
    return made


def random_events(rng, count):
    made = []
    for _ in range(count):
        x, y = rng.integers(0, 33, 2) / 32
        made.append({"price": rng.integers(0, 9) / 8, "place": (x, y, x, y)} if rng.random() < 0.9 else {"size": 1.0})
    return made


def pairs(answer):
    return sorted(zip(*(column.tolist() for column in answer), strict=True))


@pytest.mark.deep
def test_buckets_and_pools_grow_shrink_and_are_reused():
    rng = np.random.default_rng(11)
    vocabularies = Vocabularies(SCHEMA)
    tree = MOTree(make_axes(vocabularies, "paper"), 5)
    clauses, events = random_clauses(rng, 3000), random_events(rng, 40)
    for _ in range(3):
        names = rng.permutation(3000).astype(np.int32)
        tree.insert(names, encode_clauses(SCHEMA, vocabularies, [clauses[n] for n in names], names))
        wanted = [(i, n) for i, e in enumerate(events) for n in range(3000) if clauses[n].holds(SCHEMA, e)]
        assert pairs(tree.match_batch(encode_events(SCHEMA, vocabularies, events))) == wanted
        tree.check()
        assert tree.bucket_sizes().sum() == tree.cell_totals(0).sum() == tree.cell_totals(3).sum() == 3000
        tree.delete(names[:2500])
        tree.check()
        assert pairs(tree.match_batch(encode_events(SCHEMA, vocabularies, events))) == [
            (i, n) for i, n in wanted if n in names[2500:]
        ]
    assert tree.nbytes < 3000 * 2000


def test_searching_removes_what_expired_in_visited_buckets():
    rng = np.random.default_rng(12)
    vocabularies = Vocabularies(SCHEMA)
    tree = MOEventTree(make_axes(vocabularies, "paper"), len(SCHEMA.ranges) + 2)
    events = random_events(rng, 3000)
    expires = rng.integers(1, 100, 3000)
    tree.insert(np.arange(3000), encode_events(SCHEMA, vocabularies, events), expires)
    clauses = random_clauses(rng, 30)
    columns = encode_clauses(SCHEMA, vocabularies, clauses, range(30))
    held = 3000
    for time in (0, 30, 60, 100):
        wanted = [(i, n) for i, c in enumerate(clauses) for n in range(3000) if time < expires[n] and c.holds(SCHEMA, events[n])]
        assert pairs(tree.search_batch(columns, time)) == wanted
        tree.check()
        assert (expires > time).sum() <= len(tree) <= held
        held = len(tree)
    anything = encode_clauses(SCHEMA, vocabularies, [Clause()], [0])
    assert len(tree.search(anything, 100)) == 0
    assert len(tree) == 0, "a search that visits every bucket leaves nothing that expired"
    tree.check()


def test_an_event_is_live_before_its_expiry_and_not_at_it():
    vocabularies = Vocabularies(SCHEMA)
    tree = MOEventTree(make_axes(vocabularies, "paper"), len(SCHEMA.ranges) + 2)
    tree.insert(np.array([7]), encode_events(SCHEMA, vocabularies, [{"price": 0.5}]), np.array([1000]))
    anything = encode_clauses(SCHEMA, vocabularies, [Clause()], [0])
    assert tree.search(anything, 999).tolist() == [7]
    assert tree.expire(999).tolist() == []
    assert tree.search(anything, 1000).tolist() == []
    assert 7 not in tree


@pytest.mark.parametrize("levels", [paper_levels(), paper_levels(3, 4.0), narrow_levels()])
def test_an_item_lives_in_a_cell_that_contains_it_and_every_query_that_meets_it_visits_that_cell(levels):
    axis = uniform_axis(0, 0, 1, levels)
    ranges = interval_cells(axis)
    cells = make_cells([axis], [ranges])
    flat = [cell for level in ranges for cell in level]
    for first in [*range(GRAIN), ABSENT]:
        for last in [*range(first, GRAIN), ABSENT]:
            home = int(cells.home[0, first, last])
            assert flat[home][0] <= first
            assert last <= flat[home][1]
            narrowest = next(level for level in ranges if any(a <= first and last <= b for a, b in level))
            assert flat[home] in narrowest
            for question in {first, last, (first + last) // 2}:
                assert int(cells.begun[0, question] & cells.open[0, question]) >> home & 1


def test_the_papers_cells():
    """Fig. 2's shape with the paper's experiment: 10 cells in four levels, the last for everything."""
    axis = uniform_axis(0, 0, 1)
    ranges = interval_cells(axis)
    assert [len(level) for level in ranges] == [4, 3, 2, 1]
    assert ranges[-1] == [(0, ABSENT)]
    assert ranges[0][0][0] == 0
    assert ranges[0][-1][1] == GRAIN - 1


def test_steps_never_decrease_and_close_at_the_ends():
    cells = make_cells([uniform_axis(0, 0, 1)], [interval_cells(uniform_axis(0, 0, 1))])
    values = [-math.inf, -1e300, -1.0, 0.0, 5e-324, 1 / 120, math.nextafter(1 / 120, 0), 0.5, 1.0, 2.0, 1e300, math.inf]
    steps = [step(cells, 0, value) for value in sorted(values)]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, GRAIN - 1)


def test_choosing_axes_prefers_popular_narrow_and_even_attributes():
    rng = np.random.default_rng(5)
    schema = Schema({"wide": Number(0, 1), "rare": Number(0, 1), "narrow": Number(0, 1), "lumped": Number(0, 1), "place": Place()})
    made = []
    for i in range(500):
        lo = rng.random()
        ranges = {"wide": (0.01, 0.99), "narrow": (lo, lo + 0.05), "lumped": (0.5, 0.51)}
        x, y = 120 + rng.random(), 30 + rng.random()
        made.append(Clause(ranges=ranges | ({"rare": (lo, lo + 0.05)} if i % 20 == 0 else {}), box=(x, y, x + 0.01, y + 0.01)))
    vocabularies = Vocabularies(schema)
    axes = choose_axes(schema, vocabularies, encode_clauses(schema, vocabularies, made, range(500)))
    assert {axis.source for axis in axes[:3]} == {PLACE_X, PLACE_Y, schema.dimension["narrow"]}
    assert len(axes) == 6
    place = next(axis for axis in axes if axis.source == PLACE_X)
    assert 120 <= place.edges[0] <= place.edges[-1] <= 121.1, "steps follow a city, not the globe"


def test_axes_without_a_sample_cover_everything():
    vocabularies = Vocabularies(SCHEMA)
    axes = choose_axes(SCHEMA, vocabularies, encode_clauses(SCHEMA, vocabularies, [], []))
    assert [axis.source for axis in axes] == [PLACE_X, PLACE_Y, 0, 1, 2]
    tree = MOTree(axes)
    tree.insert(np.array([3]), encode_clauses(SCHEMA, vocabularies, [Clause(ranges={"size": (1e9, 2e9)})], [0]))
    assert tree.match_batch(encode_events(SCHEMA, vocabularies, [{"size": 1.5e9}]))[1].tolist() == [3]


def test_refusals():
    vocabularies = Vocabularies(SCHEMA)
    with pytest.raises(ValueError, match="stacks 1 to 8"):
        MOTree([])
    with pytest.raises(ValueError, match="at most 64"):
        MOTree([uniform_axis(0, 0, 1, ((90, 1), (0.1, 1.0)))])
    tree = MOTree(make_axes(vocabularies, "paper"))
    with pytest.raises(ValueError, match="0 or more"):
        tree.insert(np.array([-1]), encode_clauses(SCHEMA, vocabularies, [Clause()], [0]))
    with pytest.raises(KeyError, match="12"):
        tree.move(12, (0, 0, 1, 1))
    with pytest.raises(KeyError, match="5"):
        tree.update(5, encode_clauses(SCHEMA, vocabularies, [Clause()], [0]))
