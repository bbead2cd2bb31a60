"""The comparators of the MO-Tree experiments give the same answers as the definition, after insertions and deletions."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.baselines.beq_tree import BEQTree
from experiments.baselines.opindex import OpIndex
from experiments.baselines.rstar_tree import RStarTree, match_clause, match_event
from experiments.baselines.tama import Tama
from experiments.motree_workload import ATTRIBUTES, Workload, dense_clauses, dense_events

BASE, MORE, QUERIES = 400, 100, 30


@pytest.fixture(scope="module")
def data():
    """Few predicates and wide boxes, so that much matches."""
    work = Workload(predicates=4, alpha=0.5)
    clauses, events = work.clauses(BASE + MORE), work.events(BASE + MORE)
    lo, hi = dense_clauses(clauses)
    lo[:, -2:] -= 0.3
    hi[:, -2:] += 0.3
    return lo, hi, dense_events(events)


def wanted(lo, hi, values, clauses, events):
    """By the definition: every predicate holds; (-inf, inf) is no predicate."""
    free = np.isinf(lo) & np.isinf(hi)
    return sorted((e, c) for e in events for c in clauses if (((lo[c] <= values[e]) & (values[e] <= hi[c])) | free[c]).all())


def pairs(events, clauses):
    return sorted(zip(np.asarray(events).tolist(), np.asarray(clauses).tolist(), strict=True))


def test_opindex_and_tama(data):
    lo, hi, values = data
    everything = np.arange(BASE + MORE, dtype=np.int32)
    opindex = OpIndex((~np.isinf(lo)).sum(axis=0), BASE + MORE)
    tama = Tama(ATTRIBUTES, BASE + MORE)
    for matcher in (opindex, tama):
        matcher.insert(everything[:BASE], lo[:BASE], hi[:BASE])
        assert pairs(*matcher.match(values[:QUERIES])) == wanted(lo, hi, values, range(BASE), range(QUERIES))
        matcher.insert(everything[BASE:], lo[BASE:], hi[BASE:])
    opindex.delete(everything[:MORE], lo[:MORE], hi[:MORE])
    tama.delete(everything[:MORE])
    answer = wanted(lo, hi, values, range(MORE, BASE + MORE), range(QUERIES))
    assert answer
    assert pairs(*opindex.match(values[:QUERIES])) == answer
    assert pairs(*tama.match(values[:QUERIES])) == answer
    assert tama.reported >= len(answer)


def test_beq_tree(data):
    lo, hi, values = data
    tree = BEQTree(values[:BASE], BASE + MORE)
    numbers = np.arange(BASE, BASE + MORE, dtype=np.int32)
    tree.insert(numbers, values[BASE:])
    tree.delete(np.arange(MORE, dtype=np.int32))
    rows, events = tree.search(lo[:QUERIES], hi[:QUERIES])
    assert pairs(events, rows) == wanted(lo, hi, values, range(QUERIES), range(MORE, BASE + MORE))


def test_rstar_tree(data):
    lo, hi, values = data
    subscriptions, events = RStarTree(lo[:BASE], hi[:BASE]), RStarTree(values[:BASE], values[:BASE])
    for number in range(BASE, BASE + MORE):
        subscriptions.insert(number, lo[number], hi[number])
        events.insert(number, values[number], values[number])
    for number in range(MORE):
        subscriptions.delete(number, lo[number], hi[number])
        events.delete(number, values[number], values[number])
    matched = [(e, c) for e in range(QUERIES) for c in match_event(subscriptions, lo, hi, values[e])]
    assert sorted(matched) == wanted(lo, hi, values, range(MORE, BASE + MORE), range(QUERIES))
    matched = [(e, c) for c in range(QUERIES) for e in match_clause(events, values, lo[c], hi[c])]
    assert sorted(matched) == wanted(lo, hi, values, range(QUERIES), range(MORE, BASE + MORE))
