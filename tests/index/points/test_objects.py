"""ObjectIndex, PointTree and WatchIndex against plain loops over the same objects, points and watchers."""

import math

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidings.index.points.object_questions import EAST, WEST
from tidings.index.points.objects import ObjectIndex
from tidings.index.points.tree_arrays import LEAF
from tidings.index.points.watchers import WatchIndex

eighths = st.integers(-2, 34).map(lambda i: i / 8)
numbers = st.integers(0, 120)
ends = eighths | st.sampled_from([-math.inf, math.inf])


class ObjectIndexMachine(RuleBasedStateMachine):
    """Ties are broken by a number that runs against the object's own."""

    @initialize(count=st.integers(0, 90), seed=st.integers(0, 9))
    def build(self, count, seed):
        rng = np.random.default_rng(seed)
        self.objects = {n: (float(rng.integers(0, 30)) / 8, float(rng.integers(0, 30)) / 8) for n in range(count)}
        self.index = ObjectIndex(1)
        keys = np.array(list(self.objects), np.int64)
        values = np.array(list(self.objects.values())).reshape(-1, 2)
        self.index.insert_many(keys, values[:, 0].copy(), values[:, 1].copy(), -keys.astype(float))

    @rule(number=numbers, x=eighths, y=eighths)
    def insert_or_move(self, number, x, y):
        if number in self.objects:
            self.index.delete(number)
        self.objects[number] = (x, y)
        self.index.insert(number, x, y, -number)

    @rule(first=st.integers(0, 60), x=eighths)
    def insert_many_at_one_x(self, first, x):
        for number in range(first, first + 40):
            self.insert_or_move(number, x, number / 8)

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def delete(self, data):
        number = data.draw(st.sampled_from(sorted(self.objects)))
        del self.objects[number]
        self.index.delete(number)

    @rule(x=eighths, y=eighths, tie=numbers, side=st.sampled_from([WEST, EAST]), k=st.integers(1, 9))
    def first_k(self, x, y, tie, side, k):
        better = [o[0] for n, o in self.objects.items() if (o[1], -n) < (y, -tie) and (o[0] <= x if side == WEST else o[0] > x)]
        assert self.index.first_k(x, y, side, k, -tie) == sorted(better, reverse=side == WEST)[:k]

    @rule(lo=ends, hi=ends, y=eighths, tie=numbers)
    def min_y(self, lo, hi, y, tie):
        later = [(o[1], -n) for n, o in self.objects.items() if lo <= o[0] <= hi and (o[1], -n) > (y, -tie)]
        assert self.index.min_y(lo, hi, y, -tie) == (-min(later)[1] if later else -1)

    @rule()
    def copy(self):
        twin = self.index.copy()
        twin.check()
        assert len(twin) == len(self.index)
        assert twin.nbytes == self.index.nbytes

    @invariant()
    def sound(self):
        if hasattr(self, "index"):
            self.index.check()
            assert len(self.index) == len(self.objects)


class WatchIndexMachine(RuleBasedStateMachine):
    @initialize(count=st.sampled_from([0, 5, 3 * LEAF]), seed=st.integers(0, 9))
    def build(self, count, seed):
        rng = np.random.default_rng(seed)
        points = rng.integers(0, 30, (count, 2)) / 8
        self.points = {n: tuple(map(float, p)) for n, p in enumerate(points)}
        self.index = WatchIndex.build(np.arange(count, dtype=np.int32), points)

    @rule(number=st.integers(0, 400), l=ends, r=ends)
    def insert_or_move(self, number, l, r):
        if number in self.points:
            self.index.delete(number)
        self.points[number] = (l, r)
        self.index.insert(number, (l, r))

    @rule(first=st.integers(0, 300), l=eighths)
    def insert_many_at_one_point(self, first, l):
        for number in range(first, first + LEAF + 2):
            self.insert_or_move(number, l, 1.0)

    @rule(keep=st.integers(0, 20))
    def delete_most(self, keep):
        for number in sorted(self.points)[keep:]:
            del self.points[number]
            self.index.delete(number)

    def inside(self, lo, hi):
        return sorted(n for n, p in self.points.items() if lo[0] <= p[0] <= hi[0] and lo[1] <= p[1] <= hi[1])

    @rule(lo=st.tuples(ends, ends), hi=st.tuples(ends, ends), limit=st.integers(1, 12))
    def ask(self, lo, hi, limit):
        inside = self.inside(lo, hi)
        assert sorted(self.index.report(lo, hi)) == inside
        assert self.index.least(lo, hi, 1) == min(inside, key=lambda n: (self.points[n][1], n), default=-1)
        tight = self.index.snap(lo, hi)
        cover = self.index.sketch(limit).snap(lo, hi)
        if not inside:
            assert tight is None
            return
        corners = [[self.points[n][d] for n in inside] for d in (0, 1)]
        assert tight == (tuple(map(min, corners)), tuple(map(max, corners)))
        assert all(c <= t for c, t in zip(cover[0], tight[0], strict=True))
        assert all(t <= c for c, t in zip(cover[1], tight[1], strict=True))

    @invariant()
    def sound(self):
        if hasattr(self, "index"):
            self.index.check()
            assert len(self.index) == len(self.points)


TestObjectIndex = ObjectIndexMachine.TestCase
TestObjectIndex.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestWatchIndex = WatchIndexMachine.TestCase
TestWatchIndex.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
