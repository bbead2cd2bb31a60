"""A columnar scan: the place columns of all items in one vectorised pass, then exact verification of what is left.

Rows are dense, as in `experiments.motree_workload`: one column an attribute, the place in the last two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.posting_lists import holds
from tidings._jit import kernel

Dense = NDArray[np.float64]


@kernel
def scan_clauses(place: Dense, lo: Dense, hi: Dense, values: Dense) -> int:
    """How many (event, clause) pairs match; place[side] are xmin, ymin, xmax, ymax of all clauses."""
    xmin, ymin, xmax, ymax = place[0], place[1], place[2], place[3]
    touched = np.empty(xmin.size, np.bool_)
    matches = 0
    for e in range(values.shape[0]):
        x, y = values[e, -2], values[e, -1]
        for i in range(xmin.size):
            touched[i] = (xmin[i] <= x) & (x <= xmax[i]) & (ymin[i] <= y) & (y <= ymax[i])
        for i in range(touched.size):
            if touched[i] and holds(lo[i], hi[i], values[e]):
                matches += 1
    return matches


@kernel
def scan_events(place: Dense, values: Dense, lo: Dense, hi: Dense) -> int:
    """How many (clause, event) pairs match; place[side] are x and y of all events."""
    x, y = place[0], place[1]
    touched = np.empty(x.size, np.bool_)
    matches = 0
    for c in range(lo.shape[0]):
        xmin, ymin, xmax, ymax = lo[c, -2], lo[c, -1], hi[c, -2], hi[c, -1]
        for i in range(x.size):
            touched[i] = (xmin <= x[i]) & (x[i] <= xmax) & (ymin <= y[i]) & (y[i] <= ymax)
        for i in range(touched.size):
            if touched[i] and holds(lo[c], hi[c], values[i]):
                matches += 1
    return matches
