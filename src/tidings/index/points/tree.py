"""Points in a few dimensions, coming and going: the tight box around those inside a box, one least along an axis, and a report.

A k-d tree with tight bounding boxes. Every question is a box, closed, whose ends may be infinite, as may be the points'; the
questions' kernels are in `point_questions`.

| array    | shape, dtype       | meaning                                                                                   |
|----------|--------------------|-------------------------------------------------------------------------------------------|
| `child`  | nodes, int32       | the children are child and child + 1; -1 at a leaf. Node 0 is the root                     |
| `parent` | nodes, int32       | -1 at the root                                                                             |
| `cut`    | nodes, float64     | an insert goes to the first child if its coordinate on axis (depth modulo d) is <= cut     |
| `box`    | nodes x 2 x d, float64 | the tight box of the points below; (inf, -inf) when there are none                     |
| `block`  | nodes, int32       | a leaf's block; -1 at inner nodes and at the leaves of a sketch, which stand for their box |
| `size`   | blocks, int32      | points of a block                                                                          |
| `point`  | blocks x d x 64, float64 | coordinates, so that a box is tested against a whole leaf at once                    |
| `number` | blocks x 64, int32 | the caller's numbers                                                                       |
| `home`   | numbers, int32     | a number's leaf node; -1 absent                                                            |
| `edge`   | 2 x d x 64, float64 | of a frontier: its leaves' boxes; (inf, -inf) where there is no leaf                      |
| `stack`  | int32              | room for the nodes that a question has yet to visit                                        |
| `meta`   | 5, int64           | nodes in use, blocks in use, points, questions asked, leaves of a frontier or TREE         |

A *frontier* is at most FRONTIER leaves of another tree, those that meet a box, as nodes 1, 2, ... over the other's blocks. Whoever
asks many questions inside that box asks the frontier, which lies in the cache and tests its leaves all at once.

The cut only steers inserts: answers rest on the boxes, so equal points may lie on both sides and a leaf of equal points splits too.

Cost. The questions skip a node whose box cannot change the answer, so they follow the rim of the question: about
O(log m) nodes on spread points, O(sqrt m) at worst. An insert or delete tightens one path. The tree is rebuilt when a path grows
past DEEPEST or fewer than a quarter of the built points remain.

Paper: range-topk, section II-B, snap. Deviation: the paper asks for O(log m) from balanced trees, without naming them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.points import tree_questions as point_questions
from tidings.index.points.tree_questions import BLOCKS, FRONTIER, LEAF, NODES, POINTS, QUESTIONS, TREE

DEEPEST = 60


class TreeArrays(NamedTuple):
    child: NDArray[np.int32]
    parent: NDArray[np.int32]
    cut: NDArray[np.float64]
    box: NDArray[np.float64]
    block: NDArray[np.int32]
    size: NDArray[np.int32]
    point: NDArray[np.float64]
    number: NDArray[np.int32]
    home: NDArray[np.int32]
    edge: NDArray[np.float64]
    stack: NDArray[np.int32]
    meta: NDArray[np.int64]


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
    def build(cls, numbers: NDArray[np.int32], points: NDArray[np.float64]) -> Self:
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

    def points(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """All numbers and their points, in the tree's order."""
        a = self.arrays
        held = np.arange(LEAF) < a.size[: a.meta[BLOCKS], None]
        return a.number[: a.meta[BLOCKS]][held], a.point[: a.meta[BLOCKS]].transpose(0, 2, 1)[held]

    def snap(self, lo: tuple[float, ...], hi: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """The smallest box around the points inside [lo, hi]; None if there is none."""
        box = np.empty((2, self.dimensions))
        if not point_questions.snap(self.arrays, np.array([lo, hi], np.float64), box):
            return None
        return tuple(map(float, box[0])), tuple(map(float, box[1]))

    def report(self, lo: tuple[float, ...], hi: tuple[float, ...]) -> NDArray[np.int32]:
        """Numbers of the points inside [lo, hi], in any order."""
        return point_questions.report(self.arrays, np.array([lo, hi], np.float64))

    def least(self, lo: tuple[float, ...], hi: tuple[float, ...], axis: int) -> int:
        """The number inside [lo, hi] of least coordinate on `axis`, ties by least number; -1 if none."""
        return int(point_questions.least(self.arrays, np.array([lo, hi], np.float64), axis))

    def _reserve(self, number: int) -> None:
        a = self.arrays
        nodes, blocks, numbers = len(a.parent), len(a.size), len(a.home)
        if a.meta[NODES] + 2 > nodes or a.meta[BLOCKS] + 1 > blocks or number >= numbers:
            wide = allocate(self.dimensions, 2 * nodes, 2 * blocks, max(2 * numbers, number + 1))
            copy_arrays(a, wide)
            self.arrays = wide

    def _rebuild(self, numbers: NDArray[np.int32], points: NDArray[np.float64]) -> None:
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
                assert a.child[node] == -1
                assert (a.home[a.number[block, : a.size[block]]] == node).all()
                seen += len(below)
            else:
                sisters = slice(a.child[node], a.child[node] + 2)
                assert (a.parent[sisters] == node).all()
                below, above = a.box[sisters, 0], a.box[sisters, 1]
            assert (a.box[node, 0] == below.min(0, initial=np.inf)).all()
            assert (a.box[node, 1] == above.max(0, initial=-np.inf)).all()
        assert seen == a.meta[POINTS] == (a.home >= 0).sum()


def copy_arrays(narrow: Iterable[NDArray[Any]], wide: Iterable[NDArray[Any]]) -> None:
    """Copy arrays into the beginnings of longer ones, pair by pair."""
    for old, new in zip(narrow, wide, strict=True):
        new[: len(old)] = old


def allocate(dimensions: int, nodes: int, blocks: int, numbers: int) -> TreeArrays:
    meta = np.array([1, 1, 0, 0, TREE])
    block = np.full(nodes, -1, np.int32)
    block[0] = 0
    box = np.full((nodes, 2, dimensions), np.inf)
    box[:, 1] = -np.inf
    return TreeArrays(
        child=np.full(nodes, -1, np.int32),
        parent=np.full(nodes, -1, np.int32),
        cut=np.zeros(nodes),
        box=box,
        block=block,
        size=np.zeros(blocks, np.int32),
        point=np.zeros((blocks, dimensions, LEAF)),
        number=np.zeros((blocks, LEAF), np.int32),
        home=np.full(numbers, -1, np.int32),
        edge=np.zeros((2, dimensions, FRONTIER)),
        stack=np.zeros(2 * DEEPEST + 8, np.int32),
        meta=meta,
    )


def frontier(a: TreeArrays) -> TreeArrays:
    """An empty frontier over the tree's blocks, for `gather` to fill."""
    leaves = allocate(a.box.shape[2], FRONTIER + 1, 0, 0)
    return leaves._replace(size=a.size, point=a.point, number=a.number, home=a.home)


@kernel
def select(index: NDArray[np.int64], key: NDArray[np.float64], start: int, stop: int, middle: int) -> None:
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
def build_tree(a: TreeArrays, numbers: NDArray[np.int32], points: NDArray[np.float64]) -> None:
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
    a.block[node] = -1
    a.child[node] = fresh
    a.parent[fresh], a.parent[fresh + 1] = node, node


@kernel
def stretch(a: TreeArrays, node: int, point: NDArray[np.float64]) -> None:
    for d in range(len(point)):
        a.box[node, 0, d] = min(a.box[node, 0, d], point[d])
        a.box[node, 1, d] = max(a.box[node, 1, d], point[d])


@kernel
def place_point(a: TreeArrays, leaf: int, number: int, point: NDArray[np.float64]) -> None:
    block = a.block[leaf]
    a.point[block, :, a.size[block]] = point
    a.number[block, a.size[block]] = number
    a.size[block] += 1
    a.home[number] = leaf


@kernel
def insert_point(a: TreeArrays, number: int, point: NDArray[np.float64]) -> int:
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
    a.home[number] = -1
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
