"""Where lists around ideal points find candidates: points of all stored events, balls of the lists, grids over the points.

| array                      | shape, dtype   | meaning |
|----------------------------|----------------|---------|
| `points`                   | d x e + 64, f8 | where each event lies; NaN for one that concerns nobody |
| `balls`                    | -              | `index.points.ball_index`: centres, weights, radii; a row is a ball's place |
| `grid`                     | -              | `index.points.grid` over the events up to handle meter[GRIDDED] |
| `batch`                    | -              | the same over the events of the batch that is turned round |
| `near_nth`, `near_points`  | NEAR, d x NEAR | those of them that a block of balls may hold, ascending; NaN after the last |
| `point`                    | d, f8          | room for the event that is being published |
| `squares`                  | -, f8          | room for the squared distances, then distances, of `hits` |
| `sought`, `sought_squares` | e + NEAR       | room for what a search of a grid finds, i4 and f8 |
| `visited`                  | 2, int64       | blocks and balls that events have looked at |

Invariant: a ball's radius says how far an event may lie and still change its list: the edge's distance, or that of the last in
a full bounded queue, or infinite while everything fits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import inlined
from tidings.index.packed.simd import LANES
from tidings.index.points.ball_index import ROUNDING, BallIndex, Balls
from tidings.index.points.grid import PointGrid, cell_range, empty_grid

NEAR = 256
"""As many events of a batch may the balls of a block share, a multiple of LANES."""
Floats = NDArray[np.float64]
Handles = NDArray[np.int32]


class Points(NamedTuple):
    points: Floats
    balls: Balls
    grid: PointGrid
    batch: PointGrid
    near_nth: Handles
    near_points: Floats
    point: Floats
    squares: Floats
    sought: Handles
    sought_squares: Floats
    visited: NDArray[np.int64]


def empty_points(index: BallIndex, events: int) -> Points:
    """For so many events."""
    dimensions = index.dimensions
    return Points(
        np.zeros((dimensions, events + LANES)),
        index.balls,
        empty_grid(dimensions),
        empty_grid(dimensions),
        np.zeros(NEAR, np.int32),
        np.zeros((dimensions, NEAR)),
        np.zeros(dimensions),
        np.zeros(NEAR),
        np.zeros(NEAR + LANES, np.int32),
        np.zeros(NEAR + LANES),
        index.visited,
    )


@inlined
def distance(near: Points, row: int, event: int) -> float:
    """Summed in the order of dimensions, as everywhere, so that equal is equal; NaN where it is beyond all numbers."""
    total = 0.0
    for d in range(near.points.shape[0]):
        off = near.points[d, event] - near.balls.centre[d, row]
        total += near.balls.weight[d, row] * (off * off)
    return float(np.sqrt(total)) if total < np.inf else np.nan


@inlined
def write_squares(balls: Balls, row: int, points: Floats, lo: int, hi: int, squares: Floats) -> None:
    """squares[:hi - lo] = squared distances of the positions [lo, hi), summed as in `distance`."""
    target = squares[: hi - lo]
    target[:] = 0.0
    for d in range(points.shape[0]):
        centre, weight = balls.centre[d, row], balls.weight[d, row]
        values = points[d, lo:hi]
        for i in range(target.size):
            off = values[i] - centre
            target[i] += weight * (off * off)


@inlined
def covered(grid: PointGrid, balls: Balls, row: int, reach: float) -> tuple[int, int, int, int]:
    """The first and last cell of the grid within reach, along x and y."""
    centre, weight = balls.centre, balls.weight
    half = reach / np.sqrt(weight[0, row]) * ROUNDING + 1e-300
    x_first, x_last = cell_range(grid, 0, centre[0, row], half)
    if centre.shape[0] == 1:
        return x_first, x_last, 0, 0
    half = reach / np.sqrt(weight[1, row]) * ROUNDING + 1e-300
    y_first, y_last = cell_range(grid, 1, centre[1, row], half)
    return x_first, x_last, y_first, y_last
