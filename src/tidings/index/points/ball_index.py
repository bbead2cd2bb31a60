"""Which balls does a point touch? Balls whose radii change all the time, as thresholds of top-k/w subscriptions do.

A ball holds the points whose weighted distance sqrt(sum w (x - c)^2) to its centre is at most its radius. Radii lie in the index,
and whoever changes one does so through `set_radius`.

Layout, n balls of d dimensions (numbered by the caller), p places in blocks of 64; neighbours lie together:

| array           | shape, dtype   | meaning                                                                           |
|-----------------|----------------|-----------------------------------------------------------------------------------|
| `ball`          | p, int32       | the ball at each place, NONE for nobody                                           |
| `place`         | n, int32       | a ball's place, NONE when it is not in the index                                  |
| `centre`        | d x p, f8      | the ideal points                                                                  |
| `weight`        | d x p, f8      | of each dimension, above 0                                                        |
| `radius`        | p, f8          | -inf for nobody                                                                   |
| `stretch`       | p, f8          | 1 / sqrt(least weight): radius * stretch is the radius of a plain ball around it  |
| `low`, `high`   | d x p / 64, f8 | least and greatest centres of a block                                             |
| `reach`         | p / 64, f8     | at least the plain radius of each ball in the block                               |
| `gaps`          | p / 64, f8     | room for the squared distances from a point to the blocks                         |

Invariants: the first `used` places are taken or deleted, the first `packed` of them in near order; later ones fill blocks in
order of insertion. `reach` bounds the radii: a growing radius raises it, a visit tightens it.

Cost of a touch: a vectorised test of all blocks, O(d n / 64), and of the 64 balls in each block that it cannot exclude. Packing
is O(n log n) and happens when one place in 64 is unordered or the room is used up. The more dimensions, the wider balls
and blocks are against the space, and the fewer blocks are excluded.

Deviations: the paper announces an index of subscriptions and does not describe it. A grid of cells was rejected: a ball would
have to be entered in every cell it covers, again whenever its radius changes, and the number of cells explodes with
dimensions. A second level over the blocks was rejected: testing all blocks of 100,000 balls takes a microsecond.

[topkw, Sections 4 and 6]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tidings._jit import borrowing_kernel, inlined
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64

WIDTH = 64
ROUNDING = 1.0 + 1e-12
"""A bound on a squared distance is widened by it, so that it never excludes what the distance itself would admit."""
Places = Int32


class Balls(NamedTuple):
    """The arrays, as kernels take them."""

    ball: Int32
    place: Int32
    centre: Float64
    weight: Float64
    radius: Float64
    stretch: Float64
    low: Float64
    high: Float64
    reach: Float64
    gaps: Float64


class BallIndex:
    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.visited = np.zeros(2, np.int64)
        self.balls = empty_balls(dimensions, WIDTH, 8)
        self.used = self.packed = 0

    def insert(self, ball: int, centre: ArrayLike, weight: ArrayLike | None = None, radius: float = np.inf) -> None:
        """Add a ball, or move one."""
        if ball >= len(self.balls.place):
            place = np.full(max(ball + 1, 2 * len(self.balls.place)), NONE, np.int32)
            place[: len(self.balls.place)] = self.balls.place
            self.balls = self.balls._replace(place=place)
        self.delete(ball)
        if self.used == len(self.balls.ball):
            self._pack()
        weights = np.ones(self.dimensions) if weight is None else np.asarray(weight, np.float64)
        assert (weights > 0.0).all()
        self._put(self.used, ball, np.asarray(centre, np.float64), weights, radius)
        self.used += 1

    def delete(self, ball: int) -> None:
        at = self.balls.place[ball]
        if at != NONE:
            self.balls.ball[at] = self.balls.place[ball] = NONE
            self.balls.radius[at] = -np.inf

    def set_radius(self, ball: int, radius: float) -> None:
        set_radius(self.balls.radius, self.balls.stretch, self.balls.reach, int(self.balls.place[ball]), radius)

    def settle(self) -> None:
        """Pack anew if many balls came since last time; worth calling before a touch."""
        if self.used - self.packed > WIDTH + self.used // 64:
            self._pack()

    def touch(self, point: ArrayLike) -> tuple[Int32, Float64]:
        """The balls that hold the point, each once, with their weighted distances, in any order."""
        found, squares = np.empty(self.used + WIDTH, np.int32), np.empty(self.used + WIDTH)
        n = touch_balls(np.asarray(point, np.float64), self.balls, self.used, found, squares, self.visited)
        return self.balls.ball[found[:n]], np.sqrt(squares[:n])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.balls)

    @property
    def stats(self) -> dict[str, int]:
        """Blocks and balls that touches have looked at."""
        return dict(zip(("blocks", "balls"), self.visited.tolist(), strict=True))

    def check(self) -> None:
        b = self.balls
        taken = np.flatnonzero(b.ball != NONE)
        assert (taken < self.used).all()
        assert (b.place[b.ball[taken]] == taken).all()
        assert np.count_nonzero(b.place != NONE) == len(taken)
        assert (b.radius[b.ball == NONE] == -np.inf).all()
        block = taken // WIDTH
        assert (b.low[:, block] <= b.centre[:, taken]).all()
        assert (b.high[:, block] >= b.centre[:, taken]).all()
        assert (b.reach[block] >= b.radius[taken] * b.stretch[taken]).all()

    def _put(self, at: int, ball: int, centre: Float64, weight: Float64, radius: float) -> None:
        b, block = self.balls, at // WIDTH
        b.ball[at], b.place[ball] = ball, at
        b.centre[:, at], b.weight[:, at] = centre, weight
        b.stretch[at] = 1.0 / np.sqrt(weight.min())
        b.low[:, block] = np.minimum(b.low[:, block], centre)
        b.high[:, block] = np.maximum(b.high[:, block], centre)
        set_radius(b.radius, b.stretch, b.reach, at, radius)

    def _pack(self) -> None:
        """Order all balls so that neighbours share blocks, with room for as many again."""
        old = self.balls
        taken = np.flatnonzero(old.ball != NONE)
        taken = taken[near_order(old.centre[:, taken].T)]
        n = len(taken)
        new = empty_balls(self.dimensions, WIDTH * (2 * n // WIDTH + 2), len(old.place))
        new.ball[:n], new.radius[:n], new.stretch[:n] = old.ball[taken], old.radius[taken], old.stretch[taken]
        new.centre[:, :n], new.weight[:, :n] = old.centre[:, taken], old.weight[:, taken]
        new.place[new.ball[:n]] = np.arange(n)
        if n:
            starts = np.arange(0, n, WIDTH)
            new.low[:, : len(starts)] = np.minimum.reduceat(new.centre[:, :n], starts, axis=1)
            new.high[:, : len(starts)] = np.maximum.reduceat(new.centre[:, :n], starts, axis=1)
            new.reach[: len(starts)] = np.maximum.reduceat(new.radius[:n] * new.stretch[:n], starts)
        self.balls, self.used, self.packed = new, n, n


def empty_balls(dimensions: int, places: int, balls: int) -> Balls:
    blocks = places // WIDTH
    return Balls(
        np.full(places, NONE, np.int32),
        np.full(balls, NONE, np.int32),
        np.zeros((dimensions, places)),
        np.ones((dimensions, places)),
        np.full(places, -np.inf),
        np.ones(places),
        np.full((dimensions, blocks), np.inf),
        np.full((dimensions, blocks), -np.inf),
        np.full(blocks, -np.inf),
        np.empty(blocks),
    )


def near_order(points: Float64) -> Int64:
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


@inlined
def set_radius(radii: Float64, stretch: Float64, reach: Float64, at: int, radius: float) -> None:
    """Change the radius of the ball at a place."""
    radii[at] = radius
    reach[at // WIDTH] = max(reach[at // WIDTH], radius * stretch[at])


@inlined
def tighten(balls: Balls, block: int) -> float:
    """Set the block's reach to the greatest plain radius in it."""
    begin, reach = block * WIDTH, -np.inf
    radius, stretch = balls.radius[begin : begin + WIDTH], balls.stretch[begin : begin + WIDTH]
    for i in range(WIDTH):
        plain = radius[i] * stretch[i]
        reach = plain if plain > reach else reach
    balls.reach[block] = reach
    return reach


@borrowing_kernel
def touch_balls(point: Float64, balls: Balls, used: int, found: Places, squares: Float64, visited: Int64) -> int:
    """Write the places of the balls that hold the point, and their squared distances; how many.

    `found` and `squares` need a block's width more places than there are balls.
    """
    blocks = (used + WIDTH - 1) // WIDTH
    gaps, reach = balls.gaps[:blocks], balls.reach
    box_gaps(point, balls.low, balls.high, gaps)
    n = near = 0
    for block in range(blocks):
        bound = max(reach[block], 0.0)
        if gaps[block] <= bound * bound * ROUNDING:
            near += 1
            n = touch_block(point, balls, block * WIDTH, found, squares, n)
    visited[0] += blocks
    visited[1] += near * WIDTH
    return n


@inlined
def box_gaps(point: Float64, low: Float64, high: Float64, gaps: Float64) -> None:
    """The squared distance from the point to each block's box."""
    gaps[:] = 0.0
    for d in range(point.size):
        x, least, most = point[d], low[d, : gaps.size], high[d, : gaps.size]
        for block in range(gaps.size):
            below, above = least[block] - x, x - most[block]
            out = below if below > above else above
            out = out if out > 0.0 else 0.0
            gaps[block] += out * out


@inlined
def touch_block(point: Float64, balls: Balls, begin: int, found: Places, squares: Float64, n: int) -> int:
    """The balls of one block: their squares behind what has been found, then those kept that hold the point. Tightens its reach."""
    here = squares[n : n + WIDTH]
    here[:] = 0.0
    for d in range(point.size):
        x, centre, weight = point[d], balls.centre[d, begin : begin + WIDTH], balls.weight[d, begin : begin + WIDTH]
        for i in range(WIDTH):
            off = x - centre[i]
            here[i] += weight[i] * (off * off)
    radius = balls.radius[begin : begin + WIDTH]
    tighten(balls, begin // WIDTH)
    for i in range(WIDTH):
        # Squares are compared first since roots are slow; a negative radius holds nothing, and its square excludes little.
        if here[i] <= radius[i] * radius[i] * ROUNDING and np.sqrt(here[i]) <= radius[i]:
            found[n], squares[n] = begin + i, here[i]
            n += 1
    return n
