"""Painting in 1.5 dimensions, and over objects split among servers, against the definition."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.structures.one_and_a_half import Objects15, Paint15
from experiments.structures.split_painting import PaintSplit, SplitObjects
from tidings.boards.paint.paint import PaintDense, paint_each
from tidings.boards.paint.watch_lists import WatchLists
from tidings.index.points.objects import ObjectIndex
from tidings.index.points.watchers import WatchIndex

INF = math.inf
eighths = st.integers(0, 15).map(lambda i: i / 8)
numbers = st.integers(0, 15)
watchers = st.lists(
    st.tuples(eighths | st.just(-INF), eighths | st.just(INF), eighths | st.just(INF)).filter(lambda w: w[0] <= w[1]), max_size=25
)
updates = st.lists(st.tuples(numbers, st.none() | st.tuples(eighths, eighths), eighths | st.just(INF)), min_size=1, max_size=40)


def top(objects, watcher, k):
    l, r, c = watcher
    return sorted((y, -n) for n, (x, z, y) in objects.items() if l <= x <= r and z <= c)[:k]


@settings(max_examples=40, deadline=None)
@given(watchers=watchers, updates=updates, k=st.integers(1, 4), sparse=st.booleans())
def test_lists_follow_and_only_the_affected_hear_once(watchers, updates, k, sparse):
    index = WatchIndex.build(np.arange(len(watchers), dtype=np.int32), np.array(watchers, float).reshape(-1, 3))
    objects, state, ties = Objects15(), {}, -np.arange(16.0)
    lists = WatchLists(k)
    for w, (l, r, _) in enumerate(watchers):
        lists.reset(w, l, r, [], [])
    painter = Paint15(objects, k, index if sparse else None)
    for number, at, y in updates:
        before, old = dict(state), state.get(number)
        if (old is None and (at is None or y == INF)) or (old is not None and y == INF and at is not None):
            continue
        new = (*(at or old[:2]), y)
        state.pop(number, None)
        if old is not None:
            objects.delete(number)
        boxes, messages = painter.paint(number, old or (*new[:2], INF), new, ties[number])
        if y < INF:
            state[number] = new
            objects.insert(number, new, ties[number])
        heard = [[w for w, p in enumerate(watchers) if (box[0] <= p).all() and (p <= box[1]).all()] for box in boxes]
        assert all(heard) or not sparse
        lists.apply(messages, index, ties, boxes)
        objects.check()
        for w, watcher in enumerate(watchers):
            best = top(state, watcher, k)
            assert [(y, -o) for o, y in lists.top(w)] == best
            if old is None or new[:2] == old[:2]:
                affected = top(before, watcher, k) != best or -number in [tie for _, tie in best]
                assert sum(w in h for h in heard) == affected


@settings(max_examples=40, deadline=None)
@given(updates=updates, cuts=st.lists(eighths, max_size=5).map(sorted), k=st.integers(1, 4))
def test_servers_along_x_paint_what_one_server_paints(updates, cuts, k):
    one, many = ObjectIndex(), SplitObjects(cuts)
    dense, split = PaintDense(one, k), PaintSplit(many, k)
    state = {}
    for number, at, y in updates:
        old = state.pop(number, None)
        x = at[0] if old is None and at is not None else old and old[0]
        if x is None or (old is None and y == INF):
            continue
        if old is not None:
            many.delete(number)
        messages = split.paint(number, old or (x, INF), (x, y), float(number))
        if y < INF:
            state[number] = (x, y)
            many.insert(number, x, y, float(number))
        many.check()
        expected = paint_each(one, [dense], number, x, y)[0]
        assert messages.tolist() == expected.tolist()
    assert len(many) == len(state)
    assert many.hops == 0 or cuts


def test_a_move_between_servers_is_a_deletion_and_an_insertion():
    many = SplitObjects([1.0, 2.0])
    many.insert(1, 0.5, 3.0, 1.0)
    messages = PaintSplit(many, 2).paint(0, (0.25, 1.0), (2.5, 1.0), 0.0)
    assert {(m[4], m[5], m[6]) for m in messages} == {(0.0, 0.25, INF), (0.0, 2.5, 1.0)}
