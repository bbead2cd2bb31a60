"""What enters a segment comes out of it again: clauses one at a time, and memtables without a detour over objects."""

from __future__ import annotations

import dataclasses
import random
import warnings

import numpy as np
import pytest

from tests.model.filter.samples import SCHEMA, random_filter
from tidings.errors import NeverMatchesWarning
from tidings.index.blocks.bitmaps import BlockBitmaps
from tidings.index.blocks.words import WordBlocks
from tidings.match.store.memtable import FEWEST, Memtable
from tidings.match.store.subscription_rows import rows_of
from tidings.model.columns.arrays import Vocabularies, encode_clauses
from tidings.model.columns.gather import clause_of, decode_clause
from tidings.model.door.subscription import make_subscription
from tidings.model.filter.clause import Clause
from tidings.model.filter.compile import compile_filter

SEED = 20261118
NUMBERS = (0.0, 1 / 8, 0.1, 1 / 3, -2.5, 1e300, 12345.6789012345)
RANKINGS = ({}, {}, {"score": 2.5}, {"k": 3, "window": "1 day"}, {"weights": {"price": 2.0}}, {"similarity": (0.5, 0.5)})
RANKINGS += ({"by": {"near": {"price": 1.0}}, "window": "10 events"}, {"owner": "ann", "expires": 10}, {"tags": ["x", "y"]})
RANKINGS += ({"score": "2 * price + 1"},)


def some_clauses(r, count):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        clauses = [clause for _ in range(count) for clause in compile_filter(SCHEMA, random_filter(r), limit=256)]
    # A range without ends reads back as the presence that it means.
    return [dataclasses.replace(clause, residue=()) for clause in clauses if (-np.inf, np.inf) not in clause.ranges.values()]


def odd_clause(r):
    """Ranges on values that no common codec holds, beside all other kinds of predicates."""
    low, high = sorted(r.choices(NUMBERS, k=2))
    return Clause(
        ranges={"price": (low, high), **({"stars": (-np.inf, high)} if r.random() < 0.5 else {})},
        within={"brand": frozenset(r.sample(["Acme", "Beta", "zürich"], r.randrange(1, 4)))} if r.random() < 0.5 else {},
        nulls=frozenset({"made"}) if r.random() < 0.3 else frozenset(),
        present=frozenset({"place"}) if r.random() < 0.3 else frozenset(),
        box=(-1.0, low % 1, 1.5, 2.0) if r.random() < 0.5 else None,
        words=frozenset(r.sample(["red", "blue", "new"], r.randrange(3))),
    )


@pytest.mark.parametrize("odd", [False, True])
def test_each_clause_of_a_structure_reads_back(odd):
    r = random.Random(SEED)
    clauses = [odd_clause(r) for _ in range(300)] if odd else some_clauses(r, 150)
    vocabularies = Vocabularies(SCHEMA)
    columns = encode_clauses(SCHEMA, vocabularies, clauses, range(len(clauses)))
    rows = np.arange(len(clauses), dtype=np.int32)
    worded = np.diff(columns.word_start) > 0
    bitmaps = BlockBitmaps.build(columns, rows)
    read = {row: bitmaps.clause(slot) for slot, row in enumerate(bitmaps.packed.row.tolist())}
    for row, clause in enumerate(clauses):
        assert clause_of(SCHEMA, vocabularies, read[row]) == decode_clause(SCHEMA, vocabularies, columns, row) == clause
    only = encode_clauses(SCHEMA, vocabularies, [c for c in clauses if c.words], range(int(worded.sum())))
    lists = WordBlocks.build(only, np.flatnonzero(worded).astype(np.int32))
    for slot, row in enumerate(lists.packed.row.tolist()):
        assert clause_of(SCHEMA, vocabularies, lists.clause(slot)) == clauses[row]


def subscription(r, number):
    ranking = r.choice(RANKINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        return make_subscription(SCHEMA, f"s{number}", None if "by" in ranking else random_filter(r), **ranking)


def same_rows(got, want):
    got, want = got.by_id(), want.by_id()
    assert got.residues == want.residues
    assert {name: got.table[name].to_pylist() for name in got.table.column_names} == want.table.to_pydict()
    for part in dataclasses.fields(want.clauses):
        ours, theirs = getattr(got.clauses, part.name), getattr(want.clauses, part.name)
        assert ours.dtype == theirs.dtype, part.name
        assert np.array_equal(ours, theirs), part.name


def test_a_memtable_packs_as_its_subscriptions_do():
    r = random.Random(SEED)
    vocabularies = Vocabularies(SCHEMA)
    memtable = Memtable(SCHEMA, vocabularies)
    same_rows(memtable.rows(), rows_of(SCHEMA, vocabularies, []))
    for step in range(600):
        if r.random() < 0.75:
            memtable.put(step, subscription(r, r.randrange(120)))
        else:
            memtable.remove(step, f"s{r.randrange(120)}")
        if step % 40 == 0 or step > 590:
            same_rows(memtable.rows(), rows_of(SCHEMA, vocabularies, [*memtable.subscriptions.values()]))
            memtable.check()


def test_one_who_changes_for_ever_leaves_no_trail():
    vocabularies = Vocabularies(SCHEMA)
    memtable = Memtable(SCHEMA, vocabularies)
    for turn in range(2 * FEWEST + 300):
        memtable.put(turn, make_subscription(SCHEMA, f"s{turn % 300}", f"price < {turn}"))
    assert len(memtable.owner) <= FEWEST + 300
    memtable.check()
    same_rows(memtable.rows(), rows_of(SCHEMA, vocabularies, [*memtable.subscriptions.values()]))
