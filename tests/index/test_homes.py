"""Every home keeps the contract of `index.packed.protocol.Home`, judged by `Clause.holds`.

A home joins by a line in `HOMES`: how to make of any clause one that it takes. All are built and then mapped back from their
arrays, with rows that are not 0, 1, ..., owners of several clauses, scores that tie, and one owner dead.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drawing import at_most
from tests.index.test_clause_index import SCHEMA, clauses, events
from tests.index.test_clause_index_topk import best, described
from tidings.compiling.pinned import Pinned
from tidings.index.blocks.bitmaps import BlockBitmaps
from tidings.index.blocks.places import PlaceBlocks
from tidings.index.blocks.words import WordBlocks
from tidings.index.packed.clauses import PackedClauses
from tidings.index.packed.packing import as_events, readonly
from tidings.index.packed.protocol import Home
from tidings.index.packed.record import Ranking
from tidings.index.rttree.home import RtHome
from tidings.model.columns.arrays import NO_BOX, RANGE, ClauseColumns, EventColumns, Vocabularies, encode_clauses, encode_events
from tidings.model.columns.gather import clause_of
from tidings.model.filter.clause import Clause

BOX = (0.0, 0.0, 4.0, 4.0)
DEAD, SNAPSHOT, ALIVE = 3, 3, 7


def with_word(clause: Clause) -> Clause:
    return dataclasses.replace(clause, words=clause.words | {"red"})


def finite_box(clause: Clause) -> tuple[float, float, float, float]:
    return clause.box if clause.box is not None and all(map(math.isfinite, clause.box)) else BOX


def with_box(clause: Clause) -> Clause:
    return dataclasses.replace(clause, box=finite_box(clause))


def box_and_words(clause: Clause) -> Clause:
    return Clause(box=finite_box(clause), words=clause.words | {"red"})


HOMES: dict[str, tuple[type[Home], Callable[[Clause], Clause]]] = {
    "block bitmaps": (BlockBitmaps, lambda clause: clause),
    "place blocks": (PlaceBlocks, with_box),
    "word blocks": (WordBlocks, with_word),
    "R^t++ home": (RtHome, box_and_words),
}
every_home = pytest.mark.parametrize("name", HOMES)


class Case(NamedTuple):
    home: Home
    batch: list[Clause]
    rows: list[int]
    owner: list[int]
    columns: ClauseColumns
    score: np.ndarray
    tie: np.ndarray
    died: np.ndarray
    stream: list[dict]
    events: EventColumns
    vocabularies: Vocabularies

    def topk_one(self, event: int, k: int) -> np.ndarray:
        """The same of one event by itself."""
        one = encode_events(SCHEMA, self.vocabularies, [self.stream[event]])
        ranking = Pinned(Ranking(readonly(self.score), readonly(self.tie)))
        return self.home.topk_one(Pinned(as_events(one)), k, ranking, readonly(self.died), SNAPSHOT)

    def held(self) -> list[tuple[int, int]]:
        """(event, row) of the living, from the definition."""
        return sorted(
            (e, row)
            for e, values in enumerate(self.stream)
            for row, owner, clause in zip(self.rows, self.owner, self.batch, strict=True)
            if self.died[owner] > SNAPSHOT and clause.holds(SCHEMA, values)
        )


@st.composite
def cases(draw: st.DrawFn, name: str) -> Case:
    kind, fitting = HOMES[name]
    batch = [fitting(clause) for clause in draw(st.lists(clauses, max_size=8))] * draw(st.sampled_from([1, 1, 90]))
    owners = max(1, len(batch) // 2)
    owner = [i % owners for i in range(len(batch))]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    score, tie = rng.integers(0, 4, owners) / 4, rng.permutation(owners)
    died = np.full(owners, ALIVE, np.uint32)
    died[draw(st.integers(0, owners - 1))] = DEAD
    rows = np.sort(rng.permutation(2 * len(batch))[: len(batch)]).astype(np.int32)
    vocabularies = Vocabularies(SCHEMA)
    columns = encode_clauses(SCHEMA, vocabularies, batch, owner)
    columns.residue[:] = rng.random(len(batch)) < draw(st.sampled_from([0.0, 0.3]))
    scored = score[columns.owner] if draw(st.booleans()) else None
    home = kind.build(columns, rows, scored)
    if draw(st.booleans()):
        home = kind.from_arrays({part: readonly(array) for part, array in home.arrays().items()})
    stream = draw(st.lists(events, min_size=1, max_size=4))
    encoded = encode_events(SCHEMA, vocabularies, stream)
    return Case(home, batch, rows.tolist(), owner, columns, score, tie, died, stream, encoded, vocabularies)


def judged(check: Callable[[Case], None]) -> Callable[[str], None]:
    """A test of each home over drawn cases."""

    @every_home
    def test(name: str) -> None:
        settings(max_examples=at_most(40), deadline=None)(given(cases(name))(check))()

    return test


@judged
def test_pairs_of_a_batch(case: Case) -> None:
    event, row = case.home.match_batch(case.events, case.died, SNAPSHOT)
    assert sorted(zip(event.tolist(), row.tolist(), strict=True)) == case.held()


@judged
def test_one_event(case: Case) -> None:
    one, died = Pinned(as_events(case.events)), readonly(case.died)
    found = [(e, row) for e in range(len(case.stream)) for row in case.home.match_one(one, e, died, SNAPSHOT).tolist()]
    assert sorted(found) == case.held()


@judged
def test_without_deaths_all_live(case: Case) -> None:
    everybody = case._replace(died=np.full_like(case.died, ALIVE)).held()
    for died in (None, np.empty(0, np.uint32)):
        event, row = case.home.match_batch(case.events, died)
        assert sorted(zip(event.tolist(), row.tolist(), strict=True)) == everybody


@judged
def test_the_k_best_in_order(case: Case) -> None:
    owner_of = dict(zip(case.rows, case.owner, strict=True))
    never = Clause(ranges={"a": (1.0, 0.0)})
    living = [c if case.died[o] > SNAPSHOT else never for c, o in zip(case.batch, case.owner, strict=True)]
    held = set(case.held())
    for k in (0, 1, 3, len(case.batch) + 1):
        event, row = case.home.topk_batch(case.events, k, case.score, case.tie, case.died, SNAPSHOT)
        assert (np.diff(event) >= 0).all()
        for e in range(len(case.stream) if k else 0):
            assert case.topk_one(e, k).tolist() == row[event == e].tolist()
        assert set(zip(event.tolist(), row.tolist(), strict=True)) <= held
        for e, values in enumerate(case.stream):
            owners = [owner_of[r] for r in row[event == e].tolist()]
            assert owners == best(living, case.owner, case.score, case.tie, values, k)


@judged
def test_what_a_price_is_reckoned_from(case: Case) -> None:
    """Up to `sampling.SIZE` clauses are the sample themselves, so that the estimate is the truth."""
    one, probed = as_events(case.events), len(case.stream)
    held = len(case._replace(died=np.full_like(case.died, ALIVE)).held())
    assert case.home.expected_matches(one, probed) == (max(held, 0.5) / probed if case.batch else 0.0)
    assert case.home.expected_matches(one, 0) == case.home.blocks_reached(one, 0) == 0.0
    assert 0.0 <= case.home.blocks_reached(one, probed) <= len(case.batch)


@judged
def test_what_matches_is_reached(case: Case) -> None:
    slot_of = {row: slot for slot, row in enumerate(case.home.rows.tolist())}
    for e, row in case.held():
        assert case.home.reached(case.events, e, slot_of[row])


@judged
def test_clauses_come_back(case: Case) -> None:
    rows, back = case.home.columns()
    assert rows.tolist() == sorted(case.home.rows.tolist()) == case.rows
    assert described(back) == described(case.columns)
    clause_at = dict(zip(case.rows, case.batch, strict=True))
    for slot, row in enumerate(case.home.rows.tolist()[:16]):
        back_again = clause_of(SCHEMA, case.vocabularies, case.home.clause(slot))
        assert all(clause_at[row].holds(SCHEMA, values) == back_again.holds(SCHEMA, values) for values in case.stream)


@judged
def test_the_one_range(case: Case) -> None:
    c = case.columns
    alone = (np.diff(c.pred_start) == 1) & (np.diff(c.word_start) == 0) & (c.box == NO_BOX).all(axis=1)
    one = len(c) > 0 and bool(alone.all()) and bool((c.pred_kind == RANGE).all()) and len(set(c.pred_dim.tolist())) == 1
    assert case.home.only_range() == (int(c.pred_dim[0]) if one else None)


@judged
def test_sound_and_counted(case: Case) -> None:
    case.home.check()
    before = case.home.stats
    event, _ = case.home.match_batch(case.events, case.died, SNAPSHOT)
    after = case.home.stats
    assert after.matches - before.matches == len(event) <= after.candidates - before.candidates
    assert [*after._asdict()][1:] == ["candidates", "matches"]
    assert case.home.nbytes == sum(array.nbytes for array in case.home.arrays().values())
    assert len(case.home) == len(case.batch)


@settings(max_examples=60, deadline=None)
@given(st.lists(clauses, max_size=8))
def test_clauses_that_are_merely_kept_come_back(batch: list[Clause]) -> None:
    columns = encode_clauses(SCHEMA, Vocabularies(SCHEMA), batch, range(len(batch)))
    columns.residue[::2] = True
    kept = PackedClauses.from_arrays(PackedClauses.build(columns).arrays())
    kept.check()
    assert described(kept.columns()[1]) == described(columns)


@given(st.sampled_from(["a", "b"]))
@settings(max_examples=4, deadline=None)
def test_a_clause_without_predicates_beside_one_range_is_not_one_range(name: str) -> None:
    for batch in ([Clause(ranges={name: (1.0, 2.0)}), Clause()], [Clause(), Clause(ranges={name: (1.0, 2.0)})], [Clause()]):
        home = BlockBitmaps.build(encode_clauses(SCHEMA, Vocabularies(SCHEMA), batch, range(len(batch))))
        assert home.only_range() is None
