"""Every structure that answers "which intervals containing q are best?", under one state machine, judged by one oracle."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from experiments.baselines.interval_tree import IntervalTree
from experiments.baselines.score_sorted_interval_tree import ScoreSortedIntervalTree
from experiments.baselines.scored_rtree import ScoredRTree
from experiments.baselines.scored_segment_tree import ScoredSegmentTree
from tidings.index.ir_tree import IRTree
from tidings.index.oracle.intervals import IntervalOracle
from tidings.index.sopt_rtree import SOPTRTree


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
    "IntervalTree": lambda: Rebuilt(IntervalTree),
    "ScoreSortedIntervalTree": lambda: Rebuilt(ScoreSortedIntervalTree),
    "ScoredSegmentTree": lambda: Rebuilt(ScoredSegmentTree),
    "ScoredRTree": lambda: Rebuilt(ScoredRTree),
}
RANGES = {"SOPTRTree", "IRTree"}

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
