"""Watchers as points of the subscription space: (l, r) for a range [l, r], (l, r, c) for a range with a second, one-sided one.

An object at x lies in the range of the watchers in the quadrant l <= x <= r. `snap` and `report` are the tree's, and its layout and
cost those of `tree`. `sketch(limit)` is the cover of all watchers by at most `limit` rectangles, with which Paint-Sparse
can work in place of the watchers themselves: it answers as if every point of the cover were a watcher.

Paper: range-topk, section II-B (snap) and the remark that closes section III-B (sketch).
"""

from __future__ import annotations

import heapq

import numpy as np

from tidings.index.packed.sentinels import NONE
from tidings.index.points.tree import PointTree
from tidings.index.points.tree_arrays import NODES


class WatchIndex(PointTree):
    def __init__(self, dimensions: int = 2) -> None:
        super().__init__(dimensions)

    def sketch(self, limit: int) -> WatchIndex:
        """A cover by at most `limit` rectangles: the top of the tree, widest boxes opened first."""
        a = self.arrays
        cover = [(-np.inf, 0)]
        done: list[int] = []
        while cover and len(cover) + len(done) < limit:
            _, node = heapq.heappop(cover)
            if a.block[node] >= 0:
                done.append(node)
            else:
                for child in (int(a.child[node]), int(a.child[node]) + 1):
                    heapq.heappush(cover, (-_spread(*a.box[child]), child))
        return self._truncated([*done, *(node for _, node in cover)])

    def _truncated(self, leaves: list[int]) -> WatchIndex:
        a, top = self.arrays, WatchIndex(self.dimensions)
        kept = set(leaves)
        for leaf in leaves:
            while (leaf := int(a.parent[leaf])) >= 0:
                kept.add(leaf)
        nodes = sorted(kept)  # sisters stay neighbours
        rename = {node: i for i, node in enumerate(nodes)}
        meta = a.meta.copy()
        meta[NODES] = len(nodes)
        top.arrays = a._replace(
            child=np.array([rename.get(int(a.child[node]), NONE) for node in nodes], np.int32),
            parent=np.array([rename.get(int(a.parent[node]), NONE) for node in nodes], np.int32),
            cut=a.cut[nodes],
            box=a.box[nodes],
            block=np.full(len(nodes), NONE, np.int32),
            meta=meta,
        )
        return top


def _spread(lo: np.ndarray, hi: np.ndarray) -> float:
    """The half perimeter of a box, infinite ends cut to the largest number; an empty box spreads over nothing."""
    largest = np.finfo(np.float64).max / 8
    width = np.clip(hi, -largest, largest) - np.clip(lo, -largest, largest)
    return float(width.sum()) if (hi >= lo).all() else -1.0
