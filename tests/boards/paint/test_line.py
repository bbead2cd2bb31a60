"""Objects on a line against plain loops, with enough of them that groups are left out; and batches over so many."""

import numpy as np
import pytest

from tidings.boards.paint.batch import coalesce, paint_batch
from tidings.boards.paint.line import NOW, WAS, beside, draw_line, mark_exposed, places_above, places_above_twice
from tidings.boards.paint.paint import PaintDense
from tidings.boards.paint.watch_lists import WatchLists
from tidings.index.points.objects import ObjectIndex, move_all
from tidings.index.points.watchers import WatchIndex

OBJECTS = 3000


def drawn(draw, count):
    """Many equal x, and heights of which few are low."""
    return draw.integers(0, 700, count) / 8, np.round(draw.random(count) ** 0.2 * 4000) / 8


def batch_of(draw, objects, count):
    """New heights, new places, and objects that go."""
    numbers = draw.integers(0, OBJECTS, count)
    x, y = drawn(draw, count)
    stays = draw.random(count) < 0.5
    x[stays] = objects.arrays.x[numbers[stays]]
    y[draw.random(count) < 0.1] = np.inf
    return coalesce(numbers, x, y)


@pytest.fixture
def line():
    draw, objects = np.random.default_rng(5), ObjectIndex(OBJECTS)
    objects.insert_many(np.arange(OBJECTS), *drawn(draw, OBJECTS))
    numbers, x, y = batch_of(draw, objects, 300)
    a = objects.arrays
    before = {n: (a.x[n], a.y[n]) for n in range(OBJECTS)}
    old_x, old_y = a.x[numbers], a.y[numbers]
    move_all(a, numbers, x, y)
    after = {n: (a.x[n], a.y[n]) for n in range(OBJECTS) if n in objects}
    return draw_line(a, numbers, old_x, old_y), before, after


def test_the_line_has_every_object_where_it_was_and_where_it_is(line):
    line, before, after = line
    assert (np.diff(line.x) >= 0).all()
    for time, state in ((WAS, before), (NOW, after)):
        there = np.flatnonzero(line.y[time] < np.inf)
        assert {line.number[q]: (line.x[q], line.y[time, q]) for q in there} == state
        assert all(line.place[time, line.number[q]] == q for q in there)
    assert (line.tie == line.number).all()


@pytest.mark.parametrize("k", [1, 20])
def test_a_walk_finds_the_nearest_that_rank_above(line, k):
    line, _, _ = line
    found = np.zeros(k, np.int32)
    for place in range(0, len(line.x), 199):
        for time in (WAS, NOW):
            for height in (line.y[:, place].min(), 3.0):
                for side in (-1, 1):
                    count = places_above(line, time, place, side, height, line.tie[place], 40, k, found)
                    start = beside(line, place, side)
                    walk = range(start, -1, -1) if side < 0 else range(start, len(line.x))
                    better = [q for q in walk if (line.y[time, q], line.tie[q]) < (height, line.tie[place]) and q != 40]
                    assert found[:count].tolist() == better[:k]


def test_one_walk_finds_what_two_would(line):
    line, _, _ = line
    was, now, one = (np.zeros(9, np.int32) for _ in range(3))
    for place in range(0, len(line.x), 61):
        for side in (-1, 1):
            height, mark = line.y[:, place].min(), line.tie[place]
            counts = places_above_twice(line, place, side, height, mark, 9, was, now)
            for time, count, both in zip((WAS, NOW), counts, (was, now), strict=True):
                assert count == places_above(line, time, place, side, height, mark, -1, 9, one)
                assert both[:count].tolist() == one[:count].tolist()


@pytest.mark.parametrize("k", [1, 7])
def test_exposed_is_who_is_among_the_best_of_a_range_with_the_place(line, k):
    line, _, _ = line
    y = line.y[NOW]
    for place in range(0, len(line.x), 997):
        height, limit = sorted((y[place] if y[place] < np.inf else 9.0, 100.0 + place % 400))
        exposed = np.zeros(OBJECTS, np.int64)
        count = mark_exposed(line, place, height, limit, k, np.empty(k), exposed)
        expected = []
        for side in (-1, 1):
            start = beside(line, place, side)
            walk = list(range(start, -1, -1) if side < 0 else range(start, len(line.x)))
            for at, q in enumerate(walk):
                if height <= y[q] <= limit and (y[walk[:at]] < y[q]).sum() < k:
                    expected.append(line.number[q])
        assert set(np.flatnonzero(exposed)) == set(expected)
        assert count == len(expected)


def test_batches_over_many_objects_leave_the_lists_of_the_definition():
    draw, objects = np.random.default_rng(6), ObjectIndex(OBJECTS)
    objects.insert_many(np.arange(OBJECTS), *drawn(draw, OBJECTS))
    points = np.sort(draw.integers(-8, 708, (60, 2)) / 8, 1)
    points[0] = -np.inf, np.inf
    index, a, k = WatchIndex.build(np.arange(60, dtype=np.int32), points), objects.arrays, 12
    lists = WatchLists(k)

    def top(l, r):
        there = np.flatnonzero((a.block_of >= 0) & (l <= a.x) & (a.x <= r)).tolist()
        return sorted(((n, a.y[n]) for n in there), key=lambda pair: (pair[1], pair[0]))[:k]

    for watcher, (l, r) in enumerate(points):
        best = top(l, r)
        lists.reset(watcher, l, r, [n for n, _ in best], [y for _, y in best])
    for _ in range(4):
        lists.apply(paint_batch(PaintDense(objects, k), *batch_of(draw, objects, 400)), index, a.tie)
        assert [lists.top(watcher) for watcher in range(60)] == [top(l, r) for l, r in points]


def test_who_comes_to_a_place_where_nobody_hears_of_it_leaves_the_old_one():
    """It gets no region at the new place, so that nothing is cut out of what it gives up."""
    objects = ObjectIndex(2)
    objects.insert(0, 0.875, 0.0)
    index = WatchIndex.build(np.zeros(1, np.int32), np.array([[0.625, 1.0]]))
    lists = WatchLists(1)
    lists.reset(0, 0.625, 1.0, [0], [0.0])
    objects.arrays.tie[1] = 1.0
    lists.apply(paint_batch(PaintDense(objects, 1), np.arange(2), np.ones(2), np.array([1.875, 0.0])), index, objects.arrays.tie)
    assert lists.top(0) == [(1, 0.0)]
