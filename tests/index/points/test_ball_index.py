"""The ball index against looking at every ball, while balls come, go, move, shrink and grow; and the grid of points."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.index.points.ball_index import WIDTH, BallIndex, near_order
from tidings.index.points.grid import grid_of

EIGHTHS = st.integers(-8, 8).map(lambda n: n / 8)


def touched(balls, point):
    """By the definition: {ball: distance} of the balls that hold the point."""
    result = {}
    for ball, (centre, weight, radius) in balls.items():
        total = 0.0
        for c, w, x in zip(centre, weight, point, strict=True):
            total += w * ((x - c) * (x - c))
        if math.sqrt(total) <= radius:
            result[ball] = math.sqrt(total)
    return result


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda d: st.lists(
            st.one_of(
                st.tuples(
                    st.just("insert"),
                    st.integers(0, 200),
                    st.lists(EIGHTHS, min_size=d, max_size=d),
                    st.lists(st.sampled_from([0.25, 1.0, 4.0]), min_size=d, max_size=d),
                    st.sampled_from([0.0, 0.125, 0.5, 1.0, math.inf]),
                ),
                st.tuples(st.just("delete"), st.integers(0, 200)),
                st.tuples(st.just("radius"), st.integers(0, 200), st.sampled_from([0.0, 0.25, 0.75, math.inf])),
                st.tuples(st.just("settle")),
                st.tuples(st.just("touch"), st.lists(EIGHTHS, min_size=d, max_size=d)),
            ),
            min_size=1,
            max_size=60,
        )
    )
)
def test_against_every_ball(steps):
    dimensions = next((len(step[-2]) for step in steps if step[0] == "insert"), None)
    dimensions = dimensions or next((len(step[1]) for step in steps if step[0] == "touch"), 1)
    index, balls = BallIndex(dimensions), {}
    for action, *rest in steps:
        match action:
            case "insert":
                ball, centre, weight, radius = rest
                index.insert(ball, centre, weight, radius)
                balls[ball] = (centre, weight, radius)
            case "delete" if rest[0] in balls:
                index.delete(rest[0])
                del balls[rest[0]]
            case "radius" if rest[0] in balls:
                ball, radius = rest
                balls[ball] = (*balls[ball][:2], radius)
                index.set_radius(ball, radius)
            case "touch":
                found = index.touch(rest[0])
                assert dict(zip(*(array.tolist() for array in found), strict=True)) == touched(balls, rest[0])
            case "settle":
                index.settle()
        index.check()


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_many_balls_with_changing_radii(dimensions):
    random = np.random.default_rng(3)
    n = 40 * WIDTH
    index, radius = BallIndex(dimensions), random.random(n) * 0.2
    centre = random.integers(0, 64, (n, dimensions)) / 64
    for ball in range(n):
        index.insert(ball, centre[ball], None, radius[ball])
    weight = [1.0] * dimensions
    for _ in range(30):
        for ball in random.integers(0, n, 50).tolist():
            radius[ball] = random.random() * 0.2
            index.set_radius(ball, radius[ball])
        index.settle()
        point = random.integers(0, 64, dimensions) / 64
        found = index.touch(point)
        expected = touched({ball: (centre[ball], weight, radius[ball]) for ball in range(n)}, point)
        assert dict(zip(*(array.tolist() for array in found), strict=True)) == expected
        index.check()
    assert index.packed == index.used
    assert dimensions > 2 or index.stats["balls"] < 30 * n / 2


def test_blocks_hold_neighbours():
    points = np.random.default_rng(1).random((1000, 2))
    order = near_order(points)
    assert sorted(order.tolist()) == list(range(1000))
    sides = [np.ptp(points[order[i : i + WIDTH]], axis=0).max() for i in range(0, 1000, WIDTH)]
    assert np.mean(sides) < 0.3


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 300])
def test_a_grid_holds_each_whole_point_once(dimensions, count):
    random = np.random.default_rng(2)
    points = random.integers(0, 8, (dimensions, count + 10)) / 8
    points[0, 5::7] = np.nan
    grid_of(points, 5, 5 + count).check(points, 5, 5 + count)
