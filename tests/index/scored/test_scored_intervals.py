"""Every structure that answers "which intervals containing q are best?", under one state machine, judged by one oracle."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from experiments.baselines.interval_tree import IntervalTree
from experiments.baselines.score_sorted_interval_tree import ScoreSortedIntervalTree
from experiments.baselines.scored_rtree import ScoredRTree
from experiments.baselines.scored_segment_tree import ScoredSegmentTree
from experiments.structures.scored_segments import ScoredSegments
from tests.oracle.intervals import IntervalOracle, event_score
from tidings.index.scored.ir_tree import IRTree
from tidings.index.scored.sopt_rtree import SOPTRTree


class Rebuilt:
    """A static structure, built anew for each question after a change. Rows ascend by number, so ties keep their order."""

    def __init__(self, build):
        self.build, self.intervals, self.index = build, {}, None

    def insert(self, number, lo, hi, score):
        self.intervals[number], self.index = (lo, hi, score), None

    def delete(self, number):
        del self.intervals[number]
        self.index = None

    def update_score(self, number, score):
        self.insert(number, *self.intervals[number][:2], score)

    def built(self):
        if self.index is None:
            self.numbers = np.asarray(sorted(self.intervals), np.int64)
            columns = np.asarray([self.intervals[number] for number in self.numbers], np.float64).reshape(-1, 3)
            self.index = self.build(*np.ascontiguousarray(columns.T))
        return self.index

    def topk(self, q, k):
        rows = self.built().topk(q, k)
        return self.numbers[rows]

    def topk_batch(self, q, k):
        rows = self.built().topk_batch(q, k)
        return np.where(rows >= 0, self.numbers[rows] if len(self.numbers) else -1, -1)

    def topk_range(self, qlo, qhi, k):
        rows = self.built().topk_range(qlo, qhi, k)
        return self.numbers[rows]

    def getnext(self, q):
        index = self.built()
        return (self.numbers[row] for row in index.getnext(q))

    def check(self):
        self.built().check()


STRUCTURES = {
    "SOPTRTree": lambda: Rebuilt(SOPTRTree.build),
    "IRTree": IRTree,
    "ScoredSegments": lambda: ScoredSegments(memtable=32),
    "IntervalTree": lambda: Rebuilt(IntervalTree),
    "ScoreSortedIntervalTree": lambda: Rebuilt(ScoreSortedIntervalTree),
    "ScoredSegmentTree": lambda: Rebuilt(ScoredSegmentTree),
    "ScoredRTree": lambda: Rebuilt(ScoredRTree),
}
RANGES = {"SOPTRTree", "IRTree", "ScoredSegments"}

ends = st.one_of(st.integers(-16, 16).map(lambda i: i / 8), st.sampled_from([-np.inf, np.inf, 0.1, np.nextafter(0.1, 1), 1e300]))
scores = st.integers(0, 8).map(lambda i: i / 8)
ks = st.sampled_from([0, 1, 2, 5, 1000])


class Machine(RuleBasedStateMachine):
    make = None
    ranges = False

    def __init__(self):
        super().__init__()
        self.index, self.oracle, self.fresh = self.make(), IntervalOracle(), 0

    def _insert(self, lo, hi, score):
        for target in (self.index, self.oracle):
            target.insert(self.fresh, min(lo, hi), max(lo, hi), score)
        self.fresh += 1

    @rule(a=ends, b=ends, score=scores)
    def insert(self, a, b, score):
        self._insert(a, b, score)

    @rule(a=ends, score=scores)
    def insert_point(self, a, score):
        self._insert(a, a, score)

    @rule(
        at=st.integers(-8, 8), step=st.sampled_from([0.0, 0.125, 0.25]), width=st.integers(0, 4), score=scores, fall=st.booleans()
    )
    def insert_run(self, at, step, width, score, fall):
        """Nested (step 0, growing), chained (shared ends) or disjoint runs, of equal or of falling scores."""
        for i in range(70):
            lo = (at + i * step * 2) / 8
            self._insert(lo - (i / 8 if step == 0 else 0), lo + width * step, score - (i / 64 if fall else 0))

    @precondition(lambda self: self.oracle.intervals)
    @rule(data=st.data())
    def insert_touching(self, data):
        """An interval that shares an end with one that is there."""
        number = data.draw(st.sampled_from(sorted(self.oracle.intervals)))
        lo, hi, score = self.oracle.intervals[number]
        end = data.draw(st.sampled_from([lo, hi]))
        self._insert(end, data.draw(ends), score)

    @precondition(lambda self: self.oracle.intervals)
    @rule(data=st.data(), share=st.sampled_from([1, 1, 2, 4]))
    def delete(self, data, share):
        numbers = sorted(self.oracle.intervals)
        first = data.draw(st.sampled_from(numbers))
        for number in numbers[numbers.index(first) :: share][:60]:
            self.index.delete(number)
            self.oracle.delete(number)

    @precondition(lambda self: self.oracle.intervals)
    @rule(data=st.data(), score=scores)
    def update_score(self, data, score):
        number = data.draw(st.sampled_from(sorted(self.oracle.intervals)))
        self.index.update_score(number, score)
        self.oracle.update_score(number, score)

    @precondition(lambda self: self.oracle.intervals)
    @rule(data=st.data(), score=scores)
    def insert_same_number_again(self, data, score):
        number = data.draw(st.sampled_from(sorted(self.oracle.intervals)))
        lo, hi, _ = self.oracle.intervals[number]
        for target in (self.index, self.oracle):
            target.delete(number)
            target.insert(number, lo, hi, score)

    @rule(q=ends, k=ks)
    def ask(self, q, k):
        expected = self.oracle.topk(q, k)
        assert self.index.topk(q, k).tolist() == expected.tolist()
        assert list(islice(self.index.getnext(q), k)) == expected.tolist()

    @rule(data=st.data(), k=st.sampled_from([0, 3, 40]))
    def ask_batch(self, data, k):
        q = np.asarray(data.draw(st.lists(ends, max_size=5)), np.float64)
        expected = [[*self.oracle.topk(x, k), *[-1] * k][:k] for x in q]
        assert self.index.topk_batch(q, k).tolist() == expected

    @precondition(lambda self: self.ranges)
    @rule(a=ends, b=ends, k=ks)
    def ask_range(self, a, b, k):
        qlo, qhi = min(a, b), max(a, b)
        assert self.index.topk_range(qlo, qhi, k).tolist() == self.oracle.topk_range(qlo, qhi, k).tolist()

    @invariant()
    def sound(self):
        self.index.check()


@pytest.mark.deep
@pytest.mark.parametrize("name", STRUCTURES)
def test_state_machine(name):
    run_machine(name, 25, 12)


@pytest.mark.soak
@pytest.mark.parametrize("name", STRUCTURES)
def test_state_machine_at_length(name):
    run_machine(name, 500, 40)


def run_machine(name, examples, steps):
    machine = type(name, (Machine,), {"make": staticmethod(STRUCTURES[name]), "ranges": name in RANGES})
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None))


@pytest.mark.deep
@pytest.mark.parametrize("make", [IRTree, ScoredSegments])
def test_refuses_what_it_cannot_hold(make):
    index = make()
    index.insert(3, 0.0, 1.0, 0.5)
    with pytest.raises(ValueError, match="interval 3"):
        index.insert(3, 0.0, 1.0, 0.5)
    with pytest.raises(ValueError, match="lo <= hi"):
        index.insert(4, 1.0, 0.0, 0.5)
    for act in (lambda: index.delete(4), lambda: index.update_score(4, 1.0), lambda: index.delete(99)):
        with pytest.raises(KeyError):
            act()
    index.check()
    assert index.topk(0.5, 9).tolist() == [3]


def test_sopt_rtree_survives_its_arrays(tmp_path):
    rng = np.random.default_rng(5)
    lo = rng.random(5000)
    tree = SOPTRTree.build(lo, lo + rng.random(5000) / 9, rng.random(5000), number=np.arange(5000)[::-1].copy())
    tree.delete_row(7)
    for name, array in tree.arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = SOPTRTree.from_arrays(
        {path.stem: np.load(path, mmap_mode="r" if path.stat().st_size > 200 else None) for path in tmp_path.iterdir()}
    )
    mapped.check()
    q = rng.random(50)
    assert np.array_equal(mapped.topk_batch(q, 9), tree.topk_batch(q, 9))
    assert 4992 not in mapped.topk(lo[7], 5000)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 70, 300]), st.integers(0, 3), ends, ends, ks)
def test_scores_that_depend_on_the_event(seed, n, terms, a, b, k):
    rng = np.random.default_rng(seed)
    lo = rng.integers(-16, 17, n) / 8
    hi, base, coefficient = lo + rng.integers(0, 9, n) / 8, rng.random(n), rng.integers(-8, 9, (n, terms)) / 7
    attribute = rng.integers(-8, 9, terms) / 3
    tree = SOPTRTree.build(lo, hi, base, coefficient=coefficient)
    tree.check()
    numbers, found = tree.topk_event(min(a, b), max(a, b), attribute, k)
    score = [event_score(base[i], coefficient[i], attribute) for i in range(n)]
    expected = IntervalOracle(zip(range(n), lo, hi, score, strict=True)).topk_range(min(a, b), max(a, b), k)
    assert numbers.tolist() == expected.tolist()
    assert found.tolist() == [score[number] for number in expected]


@pytest.mark.deep
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 64, 65, 4096, 4097, 9000]), ks)
def test_static_trees_of_several_levels(seed, n, k):
    rng = np.random.default_rng(seed)
    lo, width = rng.integers(0, 800, n) / 8, rng.choice([0, 1, 8, 200], n) / 8
    score = rng.integers(0, 50, n) / 8
    q = rng.integers(0, 808, 5) / 8
    oracle = IntervalOracle(zip(range(n), lo, lo + width, score, strict=True))
    for index in (
        SOPTRTree.build(lo, lo + width, score),
        IRTree.build(lo, lo + width, score),
        ScoredSegmentTree(lo, lo + width, score),
    ):
        assert index.topk_batch(q, k).tolist() == [[*oracle.topk(x, k), *[-1] * k][:k] for x in q]


def test_sopt_visits_at_most_two_nodes_for_each_result():
    """Theorem 3.2: at every level at most one node in two holds no stabbed interval."""
    rng = np.random.default_rng(2)
    lo = rng.random(60_000)
    width = rng.random(60_000) ** 4
    tree = SOPTRTree.build(lo, lo + width, 1 - width)
    levels = len(tree.tree.offset) - 1
    for q in rng.random(200):
        for k in (1, 5, 50):
            assert tree.visits(q, k) <= levels * (2 * k + 1)
