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
from tidings.index.packed.types import Float64
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

    @classmethod
    def of_boxes(cls, boxes: Float64) -> WatchIndex:
        """A sketch that is given: a balanced tree whose leaves are these rectangles (n x 2 x d, at least one)."""
        parts, child, parent, box = [np.arange(len(boxes))], [NONE], [NONE], [_around(boxes)]
        for node in range(2 * len(boxes) - 1):
            rows = parts[node]
            if len(rows) > 1:
                spread = boxes[rows].sum(1)
                wide = int(np.argmax(_width(*_around(boxes[rows]))))
                order = rows[np.argsort(spread[:, wide], kind="stable")]
                child[node] = len(parts)
                for half in (order[: len(rows) // 2], order[len(rows) // 2 :]):
                    parts.append(half)
                    child.append(NONE)
                    parent.append(node)
                    box.append(_around(boxes[half]))
        made = cls(boxes.shape[2])
        meta = made.arrays.meta.copy()
        meta[NODES] = len(parts)
        made.arrays = made.arrays._replace(
            child=np.array(child, np.int32),
            parent=np.array(parent, np.int32),
            cut=np.zeros(len(parts)),
            box=np.array(box),
            block=np.full(len(parts), NONE, np.int32),
            meta=meta,
        )
        return made

    def cover(self) -> Float64:
        """The rectangles of a sketch's leaves, without empty ones."""
        a = self.arrays
        boxes = a.box[: a.meta[NODES]][a.child[: a.meta[NODES]] < 0]
        found: Float64 = boxes[(boxes[:, 0] <= boxes[:, 1]).all(1)]
        return found

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


def _around(boxes: Float64) -> Float64:
    return np.array([boxes[:, 0].min(0), boxes[:, 1].max(0)])


def _width(lo: Float64, hi: Float64) -> Float64:
    """Infinite ends are cut to the largest number."""
    largest = np.finfo(np.float64).max / 8
    return np.clip(hi, -largest, largest) - np.clip(lo, -largest, largest)


def _spread(lo: Float64, hi: Float64) -> float:
    """The half perimeter of a box; an empty box spreads over nothing."""
    return float(_width(lo, hi).sum()) if (hi >= lo).all() else -1.0
