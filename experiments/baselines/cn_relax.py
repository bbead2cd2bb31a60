"""CN-Relax: no server; an update goes to every watcher whose range holds the object, and each keeps all objects of its range.

As in range-topk, section V: Msg(x, x, -inf, inf, x, y) of 24 bytes reaches the quadrant l <= x <= r.
"""

from __future__ import annotations

import numpy as np

MESSAGE_BYTES = 24


class RelaxedWatchers:
    """Counts the watchers whose range holds x."""

    def __init__(self, points):
        self._l, self._r = np.sort(points[:, 0]), np.sort(points[:, 1])

    def heard(self, x):
        """For each x: as l <= r, those with l <= x less those with r < x."""
        return np.searchsorted(self._l, x, "right") - np.searchsorted(self._r, x, "left")


def rectangle(x):
    return np.array([[-np.inf, x], [x, np.inf]])
