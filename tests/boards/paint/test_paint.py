"""Painting against the definition: lists built only from messages, who hears what, and how few messages there could be."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from experiments.baselines.smallest_cover import fewest_messages, hearers
from tidings.boards.paint.batch import coalesce, paint_batch
from tidings.boards.paint.paint import PaintDense, PaintSparse, paint_each
from tidings.boards.paint.tiles import OBJECT
from tidings.boards.paint.watch_lists import WatchLists
from tidings.index.points.objects import ObjectIndex
from tidings.index.points.watchers import WatchIndex

INF = math.inf
eighths = st.integers(0, 23).map(lambda i: i / 8)
numbers = st.integers(0, 17)
updates = st.tuples(numbers, st.none() | eighths, eighths | st.just(INF))
ranges = st.tuples(eighths | st.just(-INF), eighths | st.just(INF)).filter(lambda p: p[0] <= p[1])


def top(objects, watcher, k):
    """The definition: the k best by (y, tie) of the objects in range; a tie is broken by the greater number."""
    l, r = watcher
    return sorted((y, -n) for n, (x, y) in objects.items() if l <= x <= r)[:k]


class Side:
    """One painter with the lists of its watchers."""

    def __init__(self, name, painter, watchers, index, epsilon=None):
        self.name, self.painter, self.index, self.epsilon, self.k = name, painter, index, epsilon, painter.k
        self.lists = WatchLists(self.k)
        for number, watcher in enumerate(watchers):
            self.lists.reset(number, *watcher, [], [])


class PaintMachine(RuleBasedStateMachine):
    """Every painter, for two k at once, over one changing set of objects."""

    @initialize(watchers=st.lists(ranges, max_size=25), ks=st.tuples(st.integers(1, 5), st.integers(1, 5)))
    def build(self, watchers, ks):
        self.watchers, self.state = watchers, {}
        self.objects = ObjectIndex(1)
        index = WatchIndex.build(np.arange(len(watchers), dtype=np.int32), np.array(watchers, float).reshape(-1, 2))
        self.sides = []
        for k in ks:
            for epsilon in (None, 1.0, 0.5):
                painters = {
                    "dense": PaintDense(self.objects, k, epsilon),
                    "sparse": PaintSparse(self.objects, k, index, epsilon),
                    "sketch": PaintSparse(self.objects, k, index.sketch(4), epsilon),
                }
                self.sides += [Side(name, p, watchers, index, epsilon) for name, p in painters.items()]

    def resolve(self, state, update):
        """An update without x keeps the object's place; one of an absent object without x, or its deletion, is void."""
        number, x, y = update
        if number in state:
            x = state[number][0] if x is None or y == INF else x
        elif x is None or y == INF:
            return None
        if y == INF:
            del state[number]
        else:
            state[number] = (x, y)
        return number, x, y

    def agree(self, side):
        for w, watcher in enumerate(self.watchers):
            assert [(y, -o) for o, y in side.lists.top(w)] == top(self.state, watcher, side.k)
        side.lists.check(self.objects.arrays.tie)

    @rule(update=updates)
    def publish(self, update):
        before = dict(self.state)
        update = self.resolve(self.state, update)
        if update is None:
            return
        number, x, y = update
        told = paint_each(self.objects, [side.painter for side in self.sides], number, x, y, -number)
        for side, messages in zip(self.sides, told, strict=True):
            heard = [hearers(m, self.watchers) for m in messages]
            if side.name == "sparse":
                assert all(heard), "a message that nobody hears"
            for w, watcher in enumerate(self.watchers):
                old, new = top(before, watcher, side.k), top(self.state, watcher, side.k)
                affected = old != new or -number in [tie for _, tie in new]
                times = sum(w in h for h in heard)
                if side.epsilon is None:
                    assert times == affected
                else:
                    assert times >= affected
            side.lists.apply(messages, side.index, self.objects.arrays.tie)
            self.agree(side)

    @rule(batch=st.lists(updates, max_size=30))
    def publish_batch(self, batch):
        before = dict(self.state)
        done = [u for u in (self.resolve(self.state, update) for update in batch) if u is not None]
        numbers, x, y = (np.array(column) for column in zip(*done, strict=True)) if done else (np.empty(0, int),) * 3
        self.objects.reserve(20)
        self.objects.arrays.tie[:20] = -np.arange(20)
        old, net = self.objects.copy(), coalesce(numbers.astype(np.int64), x.astype(float), y.astype(float))
        for side in self.sides:
            if side.epsilon is not None:
                continue
            self.objects.arrays = old.copy().arrays
            messages = paint_batch(side.painter, *net)
            heard = [hearers(m, self.watchers) for m in messages]
            side.lists.apply(messages, side.index, self.objects.arrays.tie)
            self.agree(side)
            if side.name == "sparse":
                assert all(heard)
            for w, watcher in enumerate(self.watchers):
                assert sum(w in h for h in heard) == self.needed(before, watcher, set(numbers), side.k)
        for side in self.sides:
            if side.epsilon is not None:  # they have no batches: start them anew
                for w, watcher in enumerate(self.watchers):
                    best = top(self.state, watcher, side.k)
                    side.lists.reset(w, *watcher, [-tie for _, tie in best], [y for y, _ in best])

    def needed(self, before, watcher, changed, k):
        """What the protocol must bring: every new or changed member, and every changed one that would stay by its old value."""
        old, new = top(before, watcher, k), top(self.state, watcher, k)
        members = {tie for _, tie in new}
        news = sum(-tie in changed or (y, tie) not in old for y, tie in new)
        stale = [(y, tie) for y, tie in old if -tie in changed and tie not in members]
        return news + sum(len(new) < k or entry < new[-1] for entry in stale)

    @rule()
    def sound(self):
        self.objects.check()


TestPaint = pytest.mark.deep(PaintMachine.TestCase)
TestPaint.settings = settings(max_examples=20, stateful_step_count=10, deadline=None)


@settings(max_examples=20, deadline=None)
@given(heights=st.permutations(range(7)), mover=st.integers(0, 6), to=st.integers(0, 14), k=st.integers(1, 3))
def test_paint_dense_sends_the_fewest_messages_possible_to_dense_watchers(heights, mover, to, k):
    """[range-topk, Theorem 2]: watchers of every interval of objects; the same objects must be told by anyone, in boxes."""
    objects = ObjectIndex(7)
    objects.insert_many(np.arange(7), np.arange(7.0), np.array(heights, float) * 2)
    watchers = [(l - 0.5, r + 0.5) for l in range(7) for r in range(l, 7)]
    messages = paint_each(objects, [PaintDense(objects, k)], mover, mover, to + 0.5)[0]
    best = fewest_messages(messages, watchers)
    assert len(messages) == best


@pytest.mark.deep
@settings(max_examples=25, deadline=None)
@given(
    heights=st.permutations(range(9)),
    mover=st.integers(0, 8),
    to=st.integers(0, 18),
    k=st.integers(1, 4),
    watchers=st.sets(st.tuples(st.integers(0, 17), st.integers(0, 17)).filter(lambda p: p[0] < p[1]), min_size=1, max_size=11),
)
def test_paint_sparse_sends_at_most_twice_the_fewest(heights, mover, to, k, watchers):
    """[range-topk, Theorem 4]"""
    objects = ObjectIndex(9)
    objects.insert_many(np.arange(9), np.arange(9.0), np.array(heights, float) * 2)
    watchers = [(l / 2 - 0.25, r / 2 + 0.25) for l, r in sorted(watchers)]
    index = WatchIndex.build(np.arange(len(watchers), dtype=np.int32), np.array(watchers))
    messages = paint_each(objects, [PaintSparse(objects, k, index)], mover, mover, to + 0.5)[0]
    best = fewest_messages(messages, watchers)
    assert best <= len(messages) <= 2 * best


@settings(max_examples=40, deadline=None)
@given(
    heights=st.permutations(range(14)),
    mover=st.integers(0, 13),
    to=st.integers(0, 28),
    k=st.integers(2, 6),
    parts=st.integers(1, 5),
)
def test_false_positives_rank_within_epsilon_of_k(heights, mover, to, k, parts):
    """[range-topk, Theorem 7]: at most 1 / epsilon messages an object, and none to a watcher for whom it ranks far from the kth."""
    objects = ObjectIndex(14)
    objects.insert_many(np.arange(14), np.arange(14.0), np.array(heights, float) * 2)
    watchers = [(l - 0.5, r + 0.5) for l in range(14) for r in range(l, 14)]
    epsilon = 1 / parts
    messages = paint_each(objects, [PaintDense(objects, k, epsilon)], mover, mover, to + 0.5)[0]
    state = {n: (n, y * 2.0) for n, y in enumerate(heights)} | {mover: (mover, to + 0.5)}
    lowest = {n: y * 2.0 for n, y in enumerate(heights)}[mover]
    for number, count in zip(*np.unique(messages[:, OBJECT], return_counts=True), strict=True):
        assert count <= parts
        for message in messages[messages[:, OBJECT] == number]:
            for w in hearers(message, watchers):
                l, r = watchers[w]
                ahead = [n for n, (x, y) in state.items() if l <= x <= r and y < state[int(number)][1]]
                rank = 1 + len(ahead)
                if number == mover:
                    if to + 0.5 > lowest:  # it sank: told of where it stood, too
                        rank = 1 + sum(state[n][1] < lowest for n in ahead)
                    assert rank <= (1 + epsilon) * k
                else:
                    assert (1 - epsilon) * k <= rank <= (1 + epsilon) * k


def test_the_batch_of_the_header_that_the_printed_algorithm_gets_wrong():
    objects = ObjectIndex(4)
    a, i, d, h = range(4)
    objects.insert_many(np.arange(4), np.arange(4.0), np.array([4.0, 5.0, 100.0, 7.0]))
    index = WatchIndex.build(np.zeros(1, np.int32), np.array([[0.0, 3.0]]))
    lists = WatchLists(2)
    lists.reset(0, 0.0, 3.0, [a, i], [4.0, 5.0])
    numbers = np.array([d, a, i])
    messages = paint_batch(PaintDense(objects, 2), numbers, numbers.astype(float), np.array([1.0, 30.0, 50.0]))
    lists.apply(messages, index, objects.arrays.tie)
    assert lists.top(0) == [(d, 1.0), (h, 7.0)]


def test_painters_refuse_what_cannot_be():
    with pytest.raises(AssertionError, match="k = 0"):
        PaintDense(ObjectIndex(), 0)
    with pytest.raises(AssertionError, match="epsilon = 2"):
        PaintDense(ObjectIndex(), 3, 2)
