"""Zones tile the plane, hold about as many watchers each, and a rectangle meets exactly the zones of the points in it."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.boards.paint.zones import Zones

INF = math.inf
ends = st.integers(0, 15).map(lambda i: i / 8)
points = st.lists(st.tuples(ends | st.just(-INF), ends | st.just(INF)), max_size=40).map(
    lambda p: np.array(p, float).reshape(-1, 2)
)
boxes = st.tuples(ends, ends, ends, ends).map(lambda b: np.sort(np.array(b).reshape(2, 2), 0))


@given(points, st.integers(1, 9), boxes, st.integers(0, 8))
def test_zones_tile_and_rectangles_meet_those_of_their_points(sample, count, box, which):
    zones = Zones.balanced(sample, count)
    split = zones.split(which % len(zones), sample[zones.owners(sample) == which % len(zones)])
    for cut in (zones, split, Zones.from_json(split.to_json())):
        cut.check()
        every = np.array([(l / 8, r / 8) for l in range(-1, 17) for r in range(-1, 17)] + [(-INF, INF)])
        inside = ((cut.low[:, None] <= every) & ((every < cut.high[:, None]) | np.isposinf(cut.high[:, None]))).all(2)
        assert (inside.sum(0) == 1).all()
        owners = cut.owners(every)
        assert inside[owners, np.arange(len(every))].all()
        within = ((box[0] <= every) & (every <= box[1])).all(1)
        assert set(owners[within].tolist()) <= set(cut.meeting(box).tolist())
    assert len(zones) <= count
    assert len(split) in (len(zones), len(zones) + 1)


def test_watchers_are_spread_evenly_over_zones_and_halves():
    draw = np.random.default_rng(5)
    watchers = np.sort(draw.random((4000, 2)) ** 2, 1)
    zones = Zones.balanced(watchers[:1000], 16)
    counts = np.bincount(zones.owners(watchers), minlength=16)
    assert len(zones) == 16
    assert counts.max() < 2 * 4000 / 16
    mine = watchers[zones.owners(watchers) == 3]
    halves = np.bincount(zones.split(3, mine).owners(watchers), minlength=17)
    assert abs(halves[3] - halves[16]) <= 1
    assert (np.delete(halves, [3, 16]) == np.delete(counts, 3)).all()
