"""Doing nothing clever: every watcher of a range (and of z <= c) tested against an object's old and new place, branch-free."""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel


@kernel
def scan(points, bound, old, new, attributes):
    """How many watchers hold the object at `old` or take it at `new` (x, z, y). `points` has rows l, r, c."""
    count = 0
    for row in range(len(bound)):
        l, r, c = points[0, row], points[1, row], points[2, row] if attributes == 2 else np.inf
        was = (l <= old[0]) & (old[0] <= r) & (old[1] <= c) & (old[2] <= bound[row])
        count += was | ((l <= new[0]) & (new[0] <= r) & (new[1] <= c) & (new[2] <= bound[row]))
    return count
