"""Relaxed matching: the Threshold Algorithm in both forms, the intersection for exact matching, and the index with bounds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.structures.threshold import intersect, threshold_prefixes, threshold_topk
from tests.oracle.intervals import IntervalOracle
from tests.oracle.relaxed import expected_topk, relaxed_topk
from tidings.index.relaxed.relaxed_index import RelaxedIndex
from tidings.index.scored.sopt_rtree import SOPTRTree
from tidings.model.columns.arrays import Vocabularies, dimensions, encode_clauses, encode_events
from tidings.model.filter.clause import Clause
from tidings.model.values.schema import Category, Number, Place, Schema, Words
from tidings.rank.aggregates import AGGREGATES

seeds = st.integers(0, 2**32 - 1)
aggregates = st.sampled_from(sorted(AGGREGATES))
ks = st.sampled_from([0, 1, 3, 20, 1000])


def boxes(rng, d, n):
    """d x n columns lo, hi, weight: eighths, so that ends meet and weights tie."""
    lo = rng.integers(-8, 9, (d, n)) / 8
    return lo, lo + rng.integers(0, 9, (d, n)) / 8, rng.integers(0, 5, (d, n)) / 4


def by_definition(lo, hi, weight, q, k, aggregate):
    names = [f"x{j}" for j in range(len(lo))]
    clauses = [Clause(ranges={name: (lo[j, i], hi[j, i]) for j, name in enumerate(names)}) for i in range(lo.shape[1])]
    weights = [dict(zip(names, weight[:, i], strict=True)) for i in range(lo.shape[1])]
    schema = Schema({name: Number() for name in names})
    return relaxed_topk(schema, clauses, range(len(clauses)), weights, dict(zip(names, q, strict=True)), k, aggregate)


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 4), st.sampled_from([0, 1, 30, 150]), ks, aggregates)
def test_threshold_algorithm(seed, d, n, k, aggregate):
    rng = np.random.default_rng(seed)
    lo, hi, weight = boxes(rng, d, n)
    q = rng.integers(-8, 17, d) / 8
    trees = [SOPTRTree.build(lo[j], hi[j], weight[j]) for j in range(d)]
    held = np.where((lo <= q[:, None]) & (q[:, None] <= hi), weight, np.nan)
    expected = by_definition(lo, hi, weight, q, k, aggregate)
    found, reads = threshold_topk([tree.getnext(x) for tree, x in zip(trees, q, strict=True)], lambda i: held[:, i], k, aggregate)
    assert found == expected
    assert reads <= np.count_nonzero(~np.isnan(held))
    scores, numbers = np.empty(k), np.empty(k, np.int64)
    prefixes = np.stack([tree.topk_batch(q[j : j + 1], n + 1)[0] for j, tree in enumerate(trees)])
    size, _, done = threshold_prefixes(prefixes, lo, hi, weight, q, AGGREGATES[aggregate], scores, numbers)
    assert done
    assert sorted(zip(numbers[:size].tolist(), scores[:size].tolist(), strict=True), key=lambda e: (-e[1], e[0])) == expected


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(0, 4), st.sampled_from([0, 1, 30, 150]), ks)
def test_intersection_in_score_order(seed, d, n, k):
    rng = np.random.default_rng(seed)
    lo, hi, _ = boxes(rng, d, n)
    score, q = rng.integers(0, 9, n) / 8, rng.integers(-8, 17, d) / 8
    lists = [IntervalOracle(zip(range(n), lo[j], hi[j], score, strict=True)).getnext(q[j]) for j in range(d)]
    inside = [i for i in range(n) if d and all(lo[j, i] <= q[j] <= hi[j, i] for j in range(d))]
    assert intersect(lists, lambda i: (-score[i], i), k) == sorted(inside, key=lambda i: (-score[i], i))[:k]


def test_threshold_stops_early():
    rng = np.random.default_rng(3)
    weight = rng.random((3, 5000))
    lists = [iter(np.argsort(-row).tolist()) for row in weight]
    found, reads = threshold_topk(lists, lambda i: weight[:, i], 5)
    assert [number for number, _ in found] == np.argsort(-weight.sum(axis=0))[:5].tolist()
    assert reads < 3000


SCHEMA = Schema({"a": Number(), "brand": Category(), "b": Number(), "place": Place(plane=True), "about": Words(tokenizer="as-is")})
NAMES = tuple(dimensions(SCHEMA))
eighths = st.integers(-8, 8).map(lambda i: i / 8)
ends = st.one_of(eighths, st.sampled_from([-math.inf, math.inf]))
brands = st.sampled_from(["x", "y", "z", "w"])
tokens = st.frozensets(st.sampled_from(["red", "new", "old"]), max_size=3)
box = st.tuples(eighths, eighths, st.integers(0, 8), st.integers(0, 8)).map(
    lambda b: (b[0], b[1], b[0] + b[2] / 8, b[1] + b[3] / 8)
)


@st.composite
def clauses(draw):
    ranges = {name: tuple(sorted((draw(ends), draw(ends)))) for name in draw(st.sets(st.sampled_from(["a", "b"])))}
    sets = draw(st.sampled_from(["none", "within", "without", "both"]))
    within = {"brand": draw(st.frozensets(brands, min_size=1))} if sets in ("within", "both") else {}
    without = {"brand": draw(st.frozensets(brands, min_size=1))} if sets in ("without", "both") else {}
    missing = draw(st.sampled_from(["", "", "b", "place", "about"]))
    asked = draw(st.booleans()) and missing != "place"
    return Clause(
        ranges={name: ends for name, ends in ranges.items() if name != missing},
        within=within,
        without=without,
        nulls=frozenset({missing} - {""}),
        present=draw(st.sampled_from([frozenset(), frozenset({"a"}), frozenset({"place"} - {missing})])),
        box=draw(box) if asked else None,
        words=draw(tokens) if missing != "about" else frozenset(),
    )


@st.composite
def event_values(draw):
    makers = {"a": eighths, "b": eighths, "brand": st.sampled_from(["x", "y", "unknown"]), "place": box, "about": tokens}
    return {name: draw(makers[name]) for name in draw(st.sets(st.sampled_from(sorted(makers))))}


def index_of(some, owner, weights):
    vocabularies = Vocabularies(SCHEMA)
    columns = encode_clauses(SCHEMA, vocabularies, some, owner)
    clause = np.repeat(np.arange(len(some)), np.diff(columns.pred_start))
    weight = np.asarray([weights[c][NAMES[dim]] for c, dim in zip(clause, columns.pred_dim, strict=True)], np.float64)
    of = [np.asarray([w[name] for w in weights], np.float64) for name in ("place", "about")]
    return vocabularies, RelaxedIndex.build(columns, weight, len(SCHEMA.ranges), *of)


@settings(deadline=None, max_examples=80)
@given(st.data(), ks, aggregates)
def test_relaxed_index_on_every_kind_of_predicate(data, k, aggregate):
    some = data.draw(st.lists(clauses(), max_size=12)) * data.draw(st.sampled_from([1, 1, 20]))
    owner = [data.draw(st.integers(0, 8)) if len(some) < 20 else i // 2 for i in range(len(some))]
    weights = [{name: data.draw(st.sampled_from([0.0, 0.5, 1.0, 0.1, -1.0])) for name in NAMES} for _ in some[:12]]
    weights = [weights[i % len(weights)] for i in range(len(some))] if some else []
    vocabularies, index = index_of(some, owner, weights)
    index.check()
    index = RelaxedIndex.from_arrays(index.arrays())
    values = data.draw(st.lists(event_values(), min_size=1, max_size=4))
    events = encode_events(SCHEMA, vocabularies, values)
    rows, owners, scores = index.topk_batch(events, k, aggregate)
    found = list(zip(rows.tolist(), owners.tolist(), scores.tolist(), strict=True))
    assert found == [(row, *e) for row, v in enumerate(values) for e in relaxed_topk(SCHEMA, some, owner, weights, v, k, aggregate)]


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(1, 4), st.sampled_from([65, 700, 5000]), st.sampled_from([1, 20, 6000]), aggregates)
def test_relaxed_index_of_several_levels(seed, d, n, k, aggregate):
    rng = np.random.default_rng(seed)
    lo, hi, weight = boxes(rng, d, n)
    schema = Schema({f"x{j}": Number() for j in range(d)})
    some = [Clause(ranges={f"x{j}": (lo[j, i], hi[j, i]) for j in range(d)}) for i in range(n)]
    index = RelaxedIndex.build(encode_clauses(schema, Vocabularies(schema), some, range(n)), weight.T.ravel(), d)
    q = rng.integers(-8, 17, d) / 8
    owners, scores = index.topk(np.asarray([*q, np.nan, np.nan]), k, aggregate)
    assert list(zip(owners.tolist(), scores.tolist(), strict=True)) == by_definition(lo, hi, weight, q, k, aggregate)


def test_relaxed_index_of_many_dimensions():
    """Clauses of 12 to 30 dimensions, alike in the first twelve: more than a signature can tell apart."""
    rng = np.random.default_rng(8)
    schema = Schema({f"x{j}": Number() for j in range(30)})
    names = [[*range(12), *sorted(rng.permutation(np.arange(12, 30))[: rng.integers(0, 19)].tolist())] for _ in range(2000)]
    lo, hi, weight = boxes(rng, 30, 2000)
    some = [Clause(ranges={f"x{j}": (lo[j, i], hi[j, i]) for j in has}) for i, has in enumerate(names)]
    weights = np.concatenate([weight[has, i] for i, has in enumerate(names)])
    index = RelaxedIndex.build(encode_clauses(schema, Vocabularies(schema), some, range(2000)), weights, 30)
    index.check()
    by_name = [{f"x{j}": weight[j, i] for j in range(30)} for i in range(2000)]
    for q in rng.integers(-8, 17, (5, 30)) / 8:
        owners, scores = index.topk(np.asarray([*q, np.nan, np.nan]), 20)
        values = {f"x{j}": x for j, x in enumerate(q)}
        assert list(zip(owners.tolist(), scores.tolist(), strict=True)) == relaxed_topk(
            schema, some, range(2000), by_name, values, 20
        )


@settings(deadline=None, max_examples=40)
@given(st.data(), seeds, st.sampled_from([0, 1, 100]), ks)
def test_uncertain_events_and_events_that_are_ranges(data, seed, n, k):
    rng = np.random.default_rng(seed)
    lo, hi, weight = boxes(rng, 2, n)
    schema = Schema({"a": Number(), "b": Number()})
    some = [Clause(ranges={"a": (lo[0, i], hi[0, i]), "b": (lo[1, i], hi[1, i])}) for i in range(n)]
    weights = [{"a": weight[0, i], "b": weight[1, i]} for i in range(n)]
    alternative = st.tuples(eighths, st.integers(0, 3), st.sampled_from([0.25, 0.1, 1.0])).map(
        lambda t: (t[0], t[0] + t[1] / 8, t[2])
    )
    event = {name: data.draw(st.lists(alternative, max_size=3)) for name in ("a", "b")}
    index = RelaxedIndex.build(encode_clauses(schema, Vocabularies(schema), some, range(n)), weight.T.ravel(), 2)
    owners, scores = index.topk_alternatives([event["a"], event["b"]], k)
    assert list(zip(owners.tolist(), scores.tolist(), strict=True)) == expected_topk(some, range(n), weights, event, k)


def test_mistakes_get_one_sentence():
    columns = encode_clauses(SCHEMA, Vocabularies(SCHEMA), [Clause(ranges={"a": (0.0, 1.0)}, present=frozenset({"a"}))], [0])
    with pytest.raises(ValueError, match="one weight"):
        RelaxedIndex.build(columns, np.asarray([1.0, 2.0]), 3)
    with pytest.raises(ValueError, match="2 predicates"):
        RelaxedIndex.build(columns, np.ones(5), 3)
    index = RelaxedIndex.build(columns, np.ones(2), 3)
    with pytest.raises(ValueError, match="sum, max, min"):
        index.topk(np.zeros(5), 1, "mean")
    with pytest.raises(ValueError, match="the index has 3"):
        index.topk_alternatives([], 1)
