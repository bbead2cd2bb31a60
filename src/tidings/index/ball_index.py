"""Which balls does a point touch? Balls whose radii change all the time, as thresholds of top-k/w subscriptions do.

A ball holds the points whose weighted distance sqrt(sum w (x - c)^2) to its centre is at most its radius. Radii belong to the
caller, who passes them with every question; the index keeps upper bounds of them.

Layout, n balls of d dimensions (numbered by the caller), b blocks of 32 balls, g groups of 32 blocks:

| array           | shape, dtype | meaning                                                                             |
|-----------------|--------------|-------------------------------------------------------------------------------------|
| `centre`        | n x d, f8    | the ideal point                                                                     |
| `weight`        | n x d, f8    | of each dimension, above 0                                                          |
| `stretch`       | n, f8        | 1 / sqrt(least weight): radius * stretch is the radius of a plain ball around the weighted one |
| `order`         | 32 b, int32  | the balls, neighbours together; NONE fills the last block                           |
| `place`         | n, int32     | a ball's position in `order`; NONE when it is in the tail or deleted                |
| `box`           | 2 x b x d    | least and greatest centres of a block; `group_box` 2 x g x d of a group             |
| `reach`         | b, f8        | at least the plain radius of each ball in the block; `group_reach` of each block in a group |
| `tail`          | dict as set  | balls inserted since the last packing, looked at one by one                         |

Invariants: every ball is in `order` or in `tail`, once; `reach` bounds the radii after `raise_reach` was told of every ball
whose radius has grown. A radius that shrinks needs no word: a visit recomputes the bounds of the blocks and groups it enters.

Cost of a touch: the groups, and the blocks and balls of those that the point's neighbourhood meets; packing is O(n log n) and
happens when the tail outgrows an eighth of the balls.

Deviations: the paper announces an index of subscriptions and does not describe it. A grid of cells was rejected: a ball would
have to be entered in every cell it covers, again whenever its radius changes, and the number of cells explodes with
dimensions.

[topkw, Sections 4 and 6]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidings._jit import kernel

NONE = -1
WIDTH = 32
Floats = NDArray[np.float64]


class BallIndex:
    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.centre = np.zeros((8, dimensions))
        self.weight = np.ones((8, dimensions))
        self.stretch = np.ones(8)
        self.place = np.full(8, NONE, np.int32)
        self.tail: dict[int, None] = {}
        self.visited = np.zeros(3, np.int64)
        self._pack(np.empty(0, np.int32))

    def insert(self, ball: int, centre: ArrayLike, weight: ArrayLike | None = None) -> None:
        """Add a ball, or move one; until the next packing it is looked at by every touch."""
        if ball >= len(self.stretch):
            self._widen(max(ball + 1, 2 * len(self.stretch)))
        self.delete(ball)
        self.centre[ball] = centre
        self.weight[ball] = 1.0 if weight is None else weight
        assert (self.weight[ball] > 0.0).all()
        self.stretch[ball] = 1.0 / np.sqrt(self.weight[ball].min())
        self.tail[ball] = None

    def delete(self, ball: int) -> None:
        if self.place[ball] != NONE:
            self.order[self.place[ball]] = NONE
            self.place[ball] = NONE
        self.tail.pop(ball, None)

    def raise_reach(self, balls: NDArray[np.int32], radius: Floats) -> None:
        """Must be told of every ball whose radius has grown since the last touch."""
        raise_bounds(balls, radius, self.stretch, self.place, self.reach, self.group_reach)

    def touch(self, point: Floats, radius: Floats) -> tuple[NDArray[np.int32], Floats]:
        """The balls that hold the point, each once, with their weighted distances, in any order."""
        if len(self.tail) > 64 + len(self.order) // 8:
            self._pack(np.array([*self.order[self.order != NONE].tolist(), *self.tail], np.int32), radius)
        balls, distances = self._out
        found = touch_balls(
            point,
            radius,
            np.fromiter(self.tail, np.int32, len(self.tail)),
            (self.centre, self.weight, self.stretch),
            (self.order, self.box, self.reach, self.group_box, self.group_reach),
            balls,
            distances,
            self.visited,
        )
        return balls[:found].copy(), distances[:found].copy()

    @property
    def nbytes(self) -> int:
        packed = (self.order, self.box, self.reach, self.group_box, self.group_reach)
        return sum(array.nbytes for array in (self.centre, self.weight, self.stretch, self.place, *packed))

    @property
    def stats(self) -> dict[str, int]:
        """Groups, blocks and balls that touches have looked at."""
        return dict(zip(("groups", "blocks", "balls"), self.visited.tolist(), strict=True))

    def check(self, radius: Floats) -> None:
        packed = self.order[self.order != NONE]
        assert len(np.unique(packed)) == len(packed)
        assert not set(packed.tolist()) & set(self.tail)
        assert (self.order[self.place[packed]] == packed).all()
        assert (np.flatnonzero(self.place != NONE) == np.sort(packed)).all()
        block, group = self.place[packed] // WIDTH, self.place[packed] // WIDTH**2
        for box, of in ((self.box, block), (self.group_box, group)):
            assert (box[0, of] <= self.centre[packed]).all()
            assert (box[1, of] >= self.centre[packed]).all()
        assert (self.reach[block] >= radius[packed] * self.stretch[packed]).all()
        assert (self.group_reach[group] >= self.reach[block]).all()

    def _widen(self, length: int) -> None:
        old = len(self.stretch)
        for name, fill in (("centre", 0.0), ("weight", 1.0), ("stretch", 1.0), ("place", NONE)):
            array = getattr(self, name)
            wider = np.full((length, *array.shape[1:]), fill, array.dtype)
            wider[:old] = array
            setattr(self, name, wider)
        self._out = np.empty(length, np.int32), np.empty(length)

    def _pack(self, balls: NDArray[np.int32], radius: Floats | None = None) -> None:
        """Order all balls so that neighbours share blocks, and bound them."""
        blocks, groups = -(-len(balls) // WIDTH), -(-len(balls) // WIDTH**2)
        self.order = np.full(blocks * WIDTH, NONE, np.int32)
        self.order[: len(balls)] = balls[near_order(self.centre[balls])]
        self.place[:] = NONE
        self.place[self.order[: len(balls)]] = np.arange(len(balls))
        self.box = _bounds(self.centre[self.order[: len(balls)]], WIDTH)
        self.group_box = _bounds(self.centre[self.order[: len(balls)]], WIDTH**2)
        self.reach, self.group_reach = np.full(blocks, -np.inf), np.full(groups, -np.inf)
        self.tail = {}
        self._out = np.empty(len(self.stretch), np.int32), np.empty(len(self.stretch))
        if radius is not None:
            self.raise_reach(balls, radius)


def near_order(points: Floats) -> NDArray[np.int64]:
    """Halve along the widest side until a block is left: runs of WIDTH points lie close together."""
    todo, runs = [np.arange(len(points))], []
    while todo:
        rows = todo.pop()
        if len(rows) <= WIDTH:
            runs.append(rows)
            continue
        blocks = -(-len(rows) // WIDTH)
        half = (blocks // 2) * WIDTH
        widest = int(np.argmax(np.ptp(points[rows], axis=0)))
        rows = rows[np.argpartition(points[rows, widest], half)]
        todo += [rows[half:], rows[:half]]
    return np.concatenate(runs) if runs else np.empty(0, np.int64)


def _bounds(points: Floats, width: int) -> Floats:
    if not len(points):
        return np.empty((2, 0, points.shape[1]))
    starts = np.arange(0, len(points), width)
    return np.stack([np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)])


@kernel
def raise_bounds(balls: Any, radius: Any, stretch: Any, place: Any, reach: Any, group_reach: Any) -> None:
    for ball in balls:
        if place[ball] != NONE:
            block = place[ball] // WIDTH
            reach[block] = max(reach[block], radius[ball] * stretch[ball])
            group_reach[block // WIDTH] = max(group_reach[block // WIDTH], reach[block])


@kernel
def touch_balls(point: Any, radius: Any, tail: Any, balls: Any, tree: Any, found: Any, distances: Any, visited: Any) -> int:
    """Descend into the groups and blocks near enough, and tighten their bounds on the way."""
    order, box, reach, group_box, group_reach = tree
    n = 0
    for ball in tail:
        n = try_ball(point, ball, radius, balls, found, distances, n)
    visited[0] += group_reach.size
    visited[2] += tail.size
    for group in range(group_reach.size):
        if gap(point, group_box, group) > group_reach[group]:
            continue
        farthest = -np.inf
        for block in range(group * WIDTH, min((group + 1) * WIDTH, reach.size)):
            visited[1] += 1
            if gap(point, box, block) <= reach[block]:
                visited[2] += WIDTH
                reach[block] = -np.inf
                for ball in order[block * WIDTH : (block + 1) * WIDTH]:
                    if ball != NONE:
                        reach[block] = max(reach[block], radius[ball] * balls[2][ball])
                        n = try_ball(point, ball, radius, balls, found, distances, n)
            farthest = max(farthest, reach[block])
        group_reach[group] = farthest
    return n


@kernel
def gap(point: Any, box: Any, i: int) -> float:
    """The distance from the point to a box, rounded down a little so that rounding never hides a ball."""
    total = 0.0
    for d in range(point.size):
        out = max(box[0, i, d] - point[d], point[d] - box[1, i, d], 0.0)
        total += out * out
    return float(np.sqrt(total)) * (1.0 - 1e-12)


@kernel
def try_ball(point: Any, ball: int, radius: Any, balls: Any, found: Any, distances: Any, n: int) -> int:
    centre, weight, _ = balls
    total = 0.0
    for d in range(point.size):
        off = point[d] - centre[ball, d]
        total += weight[ball, d] * (off * off)
    distance = np.sqrt(total)
    if distance <= radius[ball]:
        found[n], distances[n] = ball, distance
        n += 1
    return n
