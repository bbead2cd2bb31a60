"""Which clauses does each event satisfy? One state machine over every structure that answers it.

The judge is `Clause.holds`, the definition. A structure joins by a line in `STRUCTURES`: a name and a function that makes an
`UpdatableClauseIndex`; immutable structures join as `Segments`, which builds one of them for each insertion and lets owners die.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.drawing import at_most
from tidings.index.blocks.bitmaps import BlockBitmaps
from tidings.index.blocks.places import PlaceBlocks
from tidings.index.blocks.words import WordBlocks
from tidings.index.motree.cells import PLACE_X, PLACE_Y, uniform_axis
from tidings.index.motree.tree import MOTree
from tidings.index.packed.protocol import UpdatableClauseIndex
from tidings.index.rttree.home import RtHome
from tidings.model.columns.arrays import ClauseColumns, EventColumns, Vocabularies, encode_clauses, encode_events, take_clauses
from tidings.model.filter.clause import Clause, above, below
from tidings.model.values.schema import Category, Number, Place, Schema, Words

SCHEMA = Schema({"a": Number(0, 8), "b": Number(), "brand": Category(), "place": Place(plane=True), "about": Words()})
WORDS = ["red", "blue", "green", "old", "new"]
BRANDS = ["x", "y", "z", "rare"]
LIVING = np.iinfo(np.uint32).max


class Segments:
    """Immutable structures as an updatable one: a structure for each insertion, and the moment each owner died."""

    def __init__(self, build: Callable[[np.ndarray, ClauseColumns], list]) -> None:
        self.build, self.parts = build, []
        self.died = np.full(1 << 12, LIVING, np.uint32)
        self.moment = 0

    def insert(self, names: np.ndarray, clauses: ClauseColumns) -> None:
        self.died[names] = LIVING
        self.parts += [type(part).from_arrays(part.arrays()) for part in self.build(names, clauses)]

    def delete(self, names: np.ndarray) -> None:
        self.moment += 1
        self.died[names] = self.moment

    def match_batch(self, events: EventColumns) -> tuple[np.ndarray, np.ndarray]:
        found = [part.match_batch(events, self.died, self.moment) for part in self.parts]
        event, clause = ([pair[i] for pair in found] for i in (0, 1))
        none = np.empty(0, np.int32)
        return np.concatenate([none, *event]), np.concatenate([none, *clause])

    def check(self) -> None:
        for part in self.parts:
            part.check()

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)


def by_home(names: np.ndarray, clauses: ClauseColumns) -> list:
    """Word blocks for clauses with words, block bitmaps for the rest."""
    worded = np.diff(clauses.word_start) > 0
    with_words, without = (take_clauses(clauses, np.flatnonzero(part), clauses.owner[part]) for part in (worded, ~worded))
    return [WordBlocks.build(with_words, names[worded]), BlockBitmaps.build(without, names[~worded])]


def by_place(names: np.ndarray, clauses: ClauseColumns) -> list:
    """Place blocks for clauses with a finite box, block bitmaps for the rest."""
    boxed = np.isfinite(clauses.box).all(axis=1)
    placed, rest = (take_clauses(clauses, np.flatnonzero(part), clauses.owner[part]) for part in (boxed, ~boxed))
    return [PlaceBlocks.build(placed, names[boxed]), BlockBitmaps.build(rest, names[~boxed])]


def in_a_tree(names: np.ndarray, clauses: ClauseColumns) -> list:
    """An R^t++ tree for clauses of a finite box and words alone, block bitmaps for the rest."""
    boxed = (np.diff(clauses.word_start) > 0) & (np.diff(clauses.pred_start) == 0) & np.isfinite(clauses.box).all(axis=1)
    inside, rest = (take_clauses(clauses, np.flatnonzero(part), clauses.owner[part]) for part in (boxed, ~boxed))
    return [RtHome.build(inside, names[boxed]), BlockBitmaps.build(rest, names[~boxed])]


STRUCTURES: dict[str, Callable[[], UpdatableClauseIndex]] = {
    "block bitmaps": lambda: Segments(lambda names, clauses: [BlockBitmaps.build(clauses, names)]),
    "place blocks": lambda: Segments(by_place),
    "word blocks": lambda: Segments(by_home),
    "R^t++ home": lambda: Segments(in_a_tree),
    "MO-Tree": lambda: MOTree(
        [uniform_axis(PLACE_X, 0, 8), uniform_axis(PLACE_Y, 0, 8), uniform_axis(0, 0, 8), uniform_axis(2, 0, 4)]
    ),
}

eighths = st.integers(-16, 80).map(lambda n: n / 8)
ends = st.one_of(eighths, eighths.map(above), eighths.map(below), st.sampled_from([-math.inf, math.inf, 5e-324, -5e-324, 1e300]))


def ordered(values: tuple[float, float]) -> tuple[float, float]:
    return min(values), max(values)


intervals = st.tuples(ends, ends).map(ordered)
boxes = st.tuples(intervals, intervals).map(lambda xy: (xy[0][0], xy[1][0], xy[0][1], xy[1][1]))
brands = st.frozensets(st.sampled_from(BRANDS), min_size=1)
mixed = st.builds(
    Clause,
    ranges=st.dictionaries(st.sampled_from(["a", "b"]), intervals),
    within=st.dictionaries(st.just("brand"), brands),
    without=st.dictionaries(st.just("brand"), brands),
    nulls=st.frozensets(st.sampled_from(["b", "place"]), max_size=1),
    present=st.frozensets(st.sampled_from(["a", "about"]), max_size=1),
    box=st.none() | boxes,
    words=st.frozensets(st.sampled_from(WORDS), max_size=3),
)
clauses = st.one_of(
    mixed,
    st.just(Clause()),
    st.builds(Clause, ranges=st.dictionaries(st.just("a"), intervals, min_size=1)),
    st.builds(Clause, words=st.frozensets(st.sampled_from(WORDS), min_size=1, max_size=3)),
    st.builds(Clause, box=boxes),
    st.builds(Clause, box=boxes, words=st.frozensets(st.sampled_from(WORDS), min_size=1, max_size=2)),
    st.builds(Clause, within=st.dictionaries(st.just("brand"), brands, min_size=1)),
)
"""Every shape, what matches everything among them; a residue is not an index's business."""
finite = eighths | eighths.map(above) | st.sampled_from([0.0, 5e-324, 1e300, -1e300])
points = st.tuples(finite, finite).map(lambda p: (*p, *p))
event_boxes = st.tuples(finite, finite, finite, finite).map(
    lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
)
events = st.fixed_dictionaries(
    {},
    optional={
        "a": finite,
        "b": finite,
        "brand": st.sampled_from([*BRANDS, "unknown"]),
        "place": points | event_boxes,
        "about": st.frozensets(st.sampled_from([*WORDS, "unheard"])),
    },
)


class ClauseIndexMachine(RuleBasedStateMachine):
    make: Callable[[], UpdatableClauseIndex]

    @initialize()
    def empty(self) -> None:
        self.index = type(self).make()
        self.vocabularies = Vocabularies(SCHEMA)
        self.living: dict[int, Clause] = {}
        self.next_name = 0

    def insert(self, batch: list[Clause]) -> None:
        names = np.arange(self.next_name, self.next_name + len(batch), dtype=np.int32)
        self.next_name += len(batch)
        self.living.update(zip(names.tolist(), batch, strict=True))
        self.index.insert(names, encode_clauses(SCHEMA, self.vocabularies, batch, names))

    def judge(self, batch: list[dict]) -> None:
        event, clause = self.index.match_batch(encode_events(SCHEMA, self.vocabularies, batch))
        found = sorted(zip(event.tolist(), clause.tolist(), strict=True))
        expected = [(e, c) for e, values in enumerate(batch) for c, clause in self.living.items() if clause.holds(SCHEMA, values)]
        assert found == sorted(expected)

    @rule(batch=st.lists(clauses, max_size=6))
    def insert_some(self, batch: list[Clause]) -> None:
        self.insert(batch)

    @rule(batch=st.lists(clauses, min_size=1, max_size=3))
    def insert_many(self, batch: list[Clause]) -> None:
        """One more than a block holds, most of them like each other."""
        if self.next_name < 2000:
            self.insert([batch[i % len(batch)] for i in range(513)])

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        names = data.draw(st.sets(st.sampled_from(sorted(self.living)), min_size=1, max_size=5))
        for name in names:
            del self.living[name]
        self.index.delete(np.array(sorted(names), np.int32))

    @rule(batch=st.lists(events, max_size=4))
    def match(self, batch: list[dict]) -> None:
        self.judge(batch)

    @precondition(lambda self: self.living)
    @rule(data=st.data(), step=st.sampled_from([-1, 0, 1]))
    def match_at_a_rim(self, data: st.DataObject, step: int) -> None:
        """An event that a living clause accepts, or refuses by the least step of a number."""
        clause = self.living[data.draw(st.sampled_from(sorted(self.living)))]
        values = {name: stepped(data.draw(st.sampled_from(interval)), step) for name, interval in clause.ranges.items()}
        if clause.box is not None:
            xmin, ymin, xmax, ymax = clause.box
            x, y = stepped(data.draw(st.sampled_from([xmin, xmax])), step), data.draw(st.sampled_from([ymin, ymax]))
            far = data.draw(st.sampled_from([0.0, 0.125, 100.0]))
            values["place"] = (x, y, x + far, y + far)
        for name, allowed in clause.within.items():
            values[name] = data.draw(st.sampled_from(sorted(allowed)))
        values["about"] = clause.words
        self.judge([{name: value for name, value in values.items() if name != "place" or all(map(math.isfinite, value))}])

    @invariant()
    def sane(self) -> None:
        self.index.check()


def stepped(value: float, step: int) -> float:
    finite = min(max(value, -1e308), 1e308)
    return finite if step == 0 else math.nextafter(finite, step * math.inf)


@pytest.mark.parametrize("name", STRUCTURES)
def test_conformance(name: str) -> None:
    _run(name, at_most(40), 12)


@pytest.mark.soak
@pytest.mark.parametrize("name", STRUCTURES)
def test_conformance_at_length(name: str) -> None:
    _run(name, 2000, 40)


def _run(name: str, examples: int, steps: int) -> None:
    machine = type("Machine", (ClauseIndexMachine,), {"make": staticmethod(STRUCTURES[name])})
    case = machine.TestCase
    case.settings = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    case().runTest()
