"""The walk of every invariant of an IR-tree, in plain Python on its arrays."""

from __future__ import annotations

import numpy as np

from tidings.index.scored.interval_skeleton import LEAF, TOP, Intervals, Skeleton
from tidings.index.scored.scored_blocks import FREE, WIDTH, Pool


class Walk:
    """The walk of all invariants of an IR-tree."""

    def __init__(self, pool: Pool, skeleton: Skeleton, intervals: Intervals) -> None:
        self.lo32, self.hi32, self.item, self.block_score, self.count, self.free_blocks, self.pool_state = pool
        self.centre, self.left, self.right, self.weight, self.root, self.height, self.best, self.free, self.state = skeleton
        self.lo, self.hi, self.score = intervals
        self.blocks: list[int] = []
        self.nodes: list[int] = []

    def check(self, size: int) -> None:
        top = int(self.state[TOP])
        found = self._node(top, -np.inf, np.inf) if top >= 0 else []
        assert len(found) == size
        assert sorted(found) == np.flatnonzero(~np.isnan(self.score)).tolist()
        for used, free in ((self.blocks, self.free_blocks[: self.pool_state[FREE]]), (self.nodes, self.free[: self.state[FREE]])):
            assert sorted([*used, *free.tolist()]) == list(range(len(self.count if used is self.blocks else self.centre)))
        free = self.free_blocks[: self.pool_state[FREE]]
        assert np.all(np.isnan(self.lo32.reshape(-1, WIDTH)[free]))
        assert np.all(np.isnan(self.hi32.reshape(-1, WIDTH)[free]))

    def _node(self, node: int, after: float, before: float) -> list[int]:
        self.nodes.append(node)
        root, centre = int(self.root[node]), float(self.centre[node])
        own = self._tree(root, int(self.height[node])) if root >= 0 else []
        keys = [(-self.score[number], number) for number in own]
        assert keys == sorted(keys)
        below = list[int]()
        for child, first, last in ((self.left[node], after, centre), (self.right[node], centre, before)):
            if child >= 0:
                assert 4 * self.weight[child] <= 3 * self.weight[node] + 4 * (LEAF // 2)
                below += self._node(int(child), first, last)
        for number in [*own, *below]:
            assert self.hi[number] >= after
            assert self.lo[number] <= before
        if np.isnan(centre):
            assert 0 < len(own) <= LEAF
            assert not below
        else:
            assert all(self.lo[number] <= centre <= self.hi[number] for number in own)
            assert self.weight[node] > LEAF // 2
        assert self.weight[node] == len(own) + len(below)
        assert self.best[node] == max(self.score[number] for number in [*own, *below])
        return own + below

    def _tree(self, block: int, level: int) -> list[int]:
        """The numbers below a block, in order."""
        self.blocks.append(block)
        used = slice(block * WIDTH, block * WIDTH + int(self.count[block]))
        unused = slice(used.stop, (block + 1) * WIDTH)
        assert self.count[block] > 0
        assert np.all(np.isnan(self.lo32[unused]))
        assert np.all(np.isnan(self.hi32[unused]))
        result = list[int]()
        for entry in range(used.start, used.stop):
            child = int(self.item[entry])
            below = self._tree(child, level - 1) if level else [child]
            assert self.block_score[entry] == self.score[below[0]]
            with np.errstate(over="ignore"):
                assert self.lo32[entry] == np.float32(min(self.lo[number] for number in below))
                assert self.hi32[entry] == np.float32(max(self.hi[number] for number in below))
            result += below
        return result
