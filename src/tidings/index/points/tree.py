"""Points in a few dimensions, coming and going: the tight box around those inside a box, one least along an axis, and a report.

A k-d tree with tight bounding boxes. Every question is a box, closed, whose ends may be infinite, as may be the points'; the
questions' kernels are in `tree_questions`, the layout is in `tree_arrays`.

The cut only steers inserts: answers rest on the boxes, so equal points may lie on both sides and a leaf of equal points splits too.

Cost. The questions skip a node whose box cannot change the answer, so they follow the rim of the question: about
O(log m) nodes on spread points, O(sqrt m) at worst. An insert or delete tightens one path. The tree is rebuilt when a path grows
past DEEPEST or fewer than a quarter of the built points remain.

Paper: range-topk, section II-B, snap. Deviation: the paper asks for O(log m) from balanced trees, without naming them.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.groups import copy_into
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.points import tree_questions
from tidings.index.points.tree_arrays import BLOCKS, DEEPEST, LEAF, NODES, POINTS, QUESTIONS, TreeArrays, allocate


class PointTree:
    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.arrays = allocate(dimensions, 4, 2, 64)
        self._built = 0

    def __len__(self) -> int:
        return int(self.arrays.meta[POINTS])

    def __contains__(self, number: int) -> bool:
        return number < len(self.arrays.home) and bool(self.arrays.home[number] >= 0)

    @classmethod
    def build(cls, numbers: Int32, points: Float64) -> Self:
        """A balanced tree of `points` (m x d)."""
        tree = cls(points.shape[1])
        tree._rebuild(np.asarray(numbers, np.int32), np.ascontiguousarray(points, np.float64))
        return tree

    def insert(self, number: int, point: tuple[float, ...]) -> None:
        assert number not in self, f"number {number} is already in the tree"
        self._reserve(number)
        if insert_point(self.arrays, number, np.asarray(point, np.float64)) > DEEPEST:
            self._rebuild(*self.points())

    def delete(self, number: int) -> None:
        delete_point(self.arrays, number)
        if len(self) > LEAF and len(self) < self._built // 4:
            self._rebuild(*self.points())

    def points(self) -> tuple[Int32, Float64]:
        """All numbers and their points, in the tree's order."""
        a = self.arrays
        held = np.arange(LEAF) < a.size[: a.meta[BLOCKS], None]
        return a.number[: a.meta[BLOCKS]][held], a.point[: a.meta[BLOCKS]].transpose(0, 2, 1)[held]

    def snap(self, lo: tuple[float, ...], hi: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """The smallest box around the points inside [lo, hi]; None if there is none."""
        box = np.empty((2, self.dimensions))
        if not tree_questions.snap(self.arrays, np.array([lo, hi], np.float64), box):
            return None
        return tuple(map(float, box[0])), tuple(map(float, box[1]))

    def report(self, lo: tuple[float, ...], hi: tuple[float, ...]) -> Int32:
        """Numbers of the points inside [lo, hi], in any order."""
        return tree_questions.report(self.arrays, np.array([lo, hi], np.float64))

    def least(self, lo: tuple[float, ...], hi: tuple[float, ...], axis: int) -> int:
        """The number inside [lo, hi] of least coordinate on `axis`, ties by least number; -1 if none."""
        return int(tree_questions.least(self.arrays, np.array([lo, hi], np.float64), axis))

    def _reserve(self, number: int) -> None:
        a = self.arrays
        nodes, blocks, numbers = len(a.parent), len(a.size), len(a.home)
        if a.meta[NODES] + 2 > nodes or a.meta[BLOCKS] + 1 > blocks or number >= numbers:
            wide = allocate(self.dimensions, 2 * nodes, 2 * blocks, max(2 * numbers, number + 1))
            copy_into(a, wide)
            self.arrays = wide

    def _rebuild(self, numbers: Int32, points: Float64) -> None:
        blocks = max(1, (2 * len(numbers)) // LEAF * 2)
        highest = int(numbers.max()) + 1 if len(numbers) else 1
        self.arrays = allocate(self.dimensions, 2 * blocks + 4, blocks + 2, max(highest, len(self.arrays.home)))
        build_tree(self.arrays, numbers, points)
        self._built = len(numbers)

    @property
    def stats(self) -> dict[str, int]:
        meta = self.arrays.meta
        return {"questions": int(meta[QUESTIONS]), "nodes": int(meta[NODES])}

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def check(self) -> None:
        a = self.arrays
        seen = 0
        for node in range(int(a.meta[NODES])):
            block = a.block[node]
            if block >= 0:
                below = above = a.point[block, :, : a.size[block]].T
                assert a.child[node] == NONE
                assert (a.home[a.number[block, : a.size[block]]] == node).all()
                seen += len(below)
            else:
                sisters = slice(a.child[node], a.child[node] + 2)
                assert (a.parent[sisters] == node).all()
                below, above = a.box[sisters, 0], a.box[sisters, 1]
            assert (a.box[node, 0] == below.min(0, initial=np.inf)).all()
            assert (a.box[node, 1] == above.max(0, initial=-np.inf)).all()
        assert seen == a.meta[POINTS] == (a.home >= 0).sum()


@kernel
def select(index: Int64, key: Float64, start: int, stop: int, middle: int) -> None:
    """Permute index[start:stop] so that index[middle] has its sorted place by key, smaller ones before it."""
    while stop - start > 1:
        pivot = key[index[(start + stop) >> 1]]
        i, j = start, stop - 1
        while i <= j:
            while key[index[i]] < pivot:
                i += 1
            while key[index[j]] > pivot:
                j -= 1
            if i <= j:
                index[i], index[j] = index[j], index[i]
                i += 1
                j -= 1
        if middle <= j:
            stop = j + 1
        elif middle >= i:
            start = i
        else:
            return


@kernel
def build_tree(a: TreeArrays, numbers: Int32, points: Float64) -> None:
    """Halve by the median along alternating axes until three quarters of a leaf are left."""
    dimensions = points.shape[1]
    index = np.arange(len(numbers))
    a.meta[NODES], a.meta[BLOCKS], a.meta[POINTS] = 1, 0, len(numbers)
    todo = np.zeros((128, 4), np.int64)
    todo[0, 1] = len(numbers)
    waiting = 1
    while waiting:
        waiting -= 1
        start, stop, node, axis = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3]
        for i in range(start, stop):
            stretch(a, node, points[index[i]])
        if stop - start <= LEAF * 3 // 4:
            a.block[node] = a.meta[BLOCKS]
            for i in range(start, stop):
                place_point(a, node, numbers[index[i]], points[index[i]])
            a.meta[BLOCKS] += 1
            continue
        middle = (start + stop) >> 1
        select(index, points[:, axis], start, stop, middle)
        a.cut[node] = points[index[middle], axis]
        bear_children(a, node)
        for side in range(2):
            fresh = a.child[node] + side
            todo[waiting, 0] = start if side == 0 else middle
            todo[waiting, 1] = middle if side == 0 else stop
            todo[waiting, 2] = fresh
            todo[waiting, 3] = (axis + 1) % dimensions
            waiting += 1


@kernel
def bear_children(a: TreeArrays, node: int) -> None:
    fresh = a.meta[NODES]
    a.meta[NODES] += 2
    a.block[node] = NONE
    a.child[node] = fresh
    a.parent[fresh], a.parent[fresh + 1] = node, node


@kernel
def stretch(a: TreeArrays, node: int, point: Float64) -> None:
    for d in range(len(point)):
        a.box[node, 0, d] = min(a.box[node, 0, d], point[d])
        a.box[node, 1, d] = max(a.box[node, 1, d], point[d])


@kernel
def place_point(a: TreeArrays, leaf: int, number: int, point: Float64) -> None:
    block = a.block[leaf]
    a.point[block, :, a.size[block]] = point
    a.number[block, a.size[block]] = number
    a.size[block] += 1
    a.home[number] = leaf


@kernel
def insert_point(a: TreeArrays, number: int, point: Float64) -> int:
    """The depth of the leaf that took it."""
    node, depth = 0, 0
    while True:
        stretch(a, node, point)
        axis = depth % len(point)
        if a.block[node] >= 0:
            if a.size[a.block[node]] < LEAF:
                break
            split_leaf(a, node, axis)
        node = a.child[node] + (0 if point[axis] <= a.cut[node] else 1)
        depth += 1
    place_point(a, node, number, point)
    a.meta[POINTS] += 1
    return depth


@kernel
def split_leaf(a: TreeArrays, node: int, axis: int) -> None:
    block = a.block[node]
    index = np.arange(LEAF)
    select(index, a.point[block, axis], 0, LEAF, LEAF // 2)
    points, numbers = a.point[block].T.copy(), a.number[block].copy()
    a.cut[node] = points[index[LEAF // 2], axis]
    bear_children(a, node)
    for side in range(2):
        fresh = a.child[node] + side
        a.block[fresh] = block if side == 0 else a.meta[BLOCKS]
        a.size[a.block[fresh]] = 0
        for i in range(side * LEAF // 2, (side + 1) * LEAF // 2):
            stretch(a, fresh, points[index[i]])
            place_point(a, fresh, numbers[index[i]], points[index[i]])
    a.meta[BLOCKS] += 1


@kernel
def delete_point(a: TreeArrays, number: int) -> None:
    node = a.home[number]
    block = a.block[node]
    j = 0
    while a.number[block, j] != number:
        j += 1
    last = a.size[block] - 1
    a.number[block, j] = a.number[block, last]
    a.point[block, :, j] = a.point[block, :, last]
    a.size[block] = last
    a.home[number] = NONE
    a.meta[POINTS] -= 1
    a.box[node, 0] = np.inf
    a.box[node, 1] = -np.inf
    for j in range(last):
        stretch(a, node, a.point[block, :, j])
    node = a.parent[node]
    while node >= 0:
        one = a.child[node]
        for d in range(a.box.shape[2]):
            a.box[node, 0, d] = min(a.box[one, 0, d], a.box[one + 1, 0, d])
            a.box[node, 1, d] = max(a.box[one, 1, d], a.box[one + 1, 1, d])
        node = a.parent[node]
