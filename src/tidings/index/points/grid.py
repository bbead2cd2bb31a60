"""Which of many points lie near a centre? A grid over a snapshot of points, rebuilt from scratch whenever it is wanted fresh.

Layout, r points (a range of columns of the caller's d x e array), c cells over the first two dimensions:

| array    | shape, dtype | meaning                                                                |
|----------|--------------|------------------------------------------------------------------------|
| `origin` | 2, f8        | the least coordinates in the first two dimensions                      |
| `scale`  | 2, f8        | cells per unit; cell = floor((x - origin) * scale), clipped to the grid |
| `sides`  | 2, int64     | cells along each of the two                                            |
| `start`  | c + 1, int64 | cell x * sides[1] + y holds the positions [start, next start)           |
| `row`    | r, int32     | the column at each position, ascending within a cell                   |
| `points` | d x r, f8    | coordinates by position                                                |

Points with a NaN are in no cell. Cost: a counting sort to build, O(r); a question looks at the cells under the ball's square, a
run of positions for each x. More dimensions than two only thin out what is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64

CELL_POINTS = 2


class PointGrid(NamedTuple):
    origin: Float64
    scale: Float64
    sides: Int64
    start: Int64
    row: Int32
    points: Float64

    def check(self, points: Float64, first: int, last: int) -> None:
        whole = np.flatnonzero(~np.isnan(points[:, first:last]).any(axis=0)) + first
        assert np.array_equal(np.sort(self.row[: self.start[-1]]), whole)
        assert np.array_equal(self.points[:, : self.start[-1]], points[:, self.row[: self.start[-1]]])


def empty_grid(dimensions: int) -> PointGrid:
    return grid_of(np.zeros((dimensions, 0)), 0, 0)


def grid_of(points: Float64, first: int, last: int) -> PointGrid:
    """The grid of the columns [first, last)."""
    count = last - first
    cells = max(1, count // CELL_POINTS)
    sides = np.array([max(1, int(cells**0.5))] * 2 if len(points) > 1 else [cells, 1], np.int64)
    low, high = bounds(points, first, last)
    extent = high - low
    scale = np.divide(sides, extent, out=np.zeros(2), where=extent > 0.0)
    start = np.zeros(int(sides.prod()) + 1, np.int64)
    grid = PointGrid(low, scale, sides, start, np.empty(count, np.int32), np.empty((len(points), count)))
    fill_grid(grid, points, first, last)
    return grid


@kernel
def bounds(points: Float64, first: int, last: int) -> tuple[Float64, Float64]:
    """The least and greatest coordinates in the first two dimensions; NaN does not count, and nothing gives 0."""
    low, high = np.zeros(2), np.zeros(2)
    for d in range(min(2, points.shape[0])):
        values = points[d, first:last]
        least, most = np.inf, -np.inf
        for value in values:
            least = value if value < least else least
            most = value if value > most else most
        if least <= most:
            low[d], high[d] = least, most
    return low, high


@kernel
def fill_grid(grid: PointGrid, points: Float64, first: int, last: int) -> None:
    """Count, sum up, and put each point at its place."""
    cells = np.empty(last - first, np.int32)
    start = grid.start
    for column in range(first, last):
        cell = cell_of(grid, points, column)
        cells[column - first] = cell
        if cell >= 0:
            start[cell + 1] += 1
    for cell in range(start.size - 1):
        start[cell + 1] += start[cell]
    free = start.copy()
    for column in range(first, last):
        cell = cells[column - first]
        if cell >= 0:
            at = free[cell]
            free[cell] += 1
            grid.row[at] = column
            for d in range(points.shape[0]):
                grid.points[d, at] = points[d, column]


@inlined
def cell_of(grid: PointGrid, points: Float64, column: int) -> int:
    """NONE where a coordinate is NaN."""
    cell = 0
    for d in range(points.shape[0]):
        value = points[d, column]
        if np.isnan(value):
            return NONE
        if d < 2:
            step = min(int((value - grid.origin[d]) * grid.scale[d]), grid.sides[d] - 1)
            cell = cell * grid.sides[1] + step if d == 1 else step
    return cell * grid.sides[1] if points.shape[0] == 1 else cell


@inlined
def cell_range(grid: PointGrid, d: int, centre: float, half: float) -> tuple[int, int]:
    """The first and last cell along dimension d, of those there are, that can hold a point within `half` of the centre."""
    last_cell = float(grid.sides[d] - 1)
    low = (centre - half - grid.origin[d]) * grid.scale[d]
    high = (centre + half - grid.origin[d]) * grid.scale[d]
    # Endless reach over no extent is NaN: from the first to the last.
    return int(min(low, last_cell)) if low > 0.0 else 0, int(max(high, 0.0)) if high < last_cell else int(last_cell)
