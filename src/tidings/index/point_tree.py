"""Points in a few dimensions, coming and going: the tight box around those inside a box, one least along an axis, and a report.

A k-d tree with tight bounding boxes. Every question is a box, closed, whose ends may be infinite, as may be the points'.

| array    | shape, dtype       | meaning                                                                                   |
|----------|--------------------|-------------------------------------------------------------------------------------------|
| `child`  | nodes, int32       | the children are child and child + 1; -1 at a leaf. Node 0 is the root                     |
| `parent` | nodes, int32       | -1 at the root                                                                             |
| `cut`    | nodes, float64     | an insert goes to the first child if its coordinate on axis (depth modulo d) is <= cut     |
| `box`    | nodes x 2 x d, float64 | the tight box of the points below; (inf, -inf) when there are none                     |
| `block`  | nodes, int32       | a leaf's block; -1 at inner nodes and at the leaves of a sketch, which stand for their box |
| `size`   | blocks, int32      | points of a block                                                                          |
| `point`  | blocks x 64 x d, float64 | coordinates                                                                          |
| `number` | blocks x 64, int32 | the caller's numbers                                                                       |
| `home`   | numbers, int32     | a number's leaf node; -1 absent                                                            |
| `meta`   | 5, int64           | nodes in use, blocks in use, points, questions asked, children of an inner node: 2         |

A *frontier* is a tree of one root and at most FRONTIER leaves that shares the blocks of another tree: the leaves that meet a box.
Whoever asks many questions inside that box asks the frontier, which lies in the cache and has no path to walk.

The cut only steers inserts: answers rest on the boxes, so equal points may lie on both sides and a leaf of equal points splits too.

Cost. `snap`, `crowded` and `least` skip a node whose box cannot change the answer, so they follow the rim of the question: about
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

LEAF = 64
DEEPEST = 60
FRONTIER = 64
NODES, BLOCKS, POINTS, QUESTIONS, FAN = 0, 1, 2, 3, 4
Box = tuple[NDArray[np.float64], NDArray[np.float64]]


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
        return a.number[: a.meta[BLOCKS]][held], a.point[: a.meta[BLOCKS]][held]

    def snap(self, lo: tuple[float, ...], hi: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """The smallest box around the points inside [lo, hi]; None if there is none."""
        box = np.empty((2, self.dimensions))
        if not snap(self.arrays, np.array([lo, hi], np.float64), box):
            return None
        return tuple(map(float, box[0])), tuple(map(float, box[1]))

    def report(self, lo: tuple[float, ...], hi: tuple[float, ...]) -> NDArray[np.int32]:
        """Numbers of the points inside [lo, hi], in any order."""
        return report(self.arrays, np.array([lo, hi], np.float64))

    def least(self, lo: tuple[float, ...], hi: tuple[float, ...], axis: int) -> int:
        """The number inside [lo, hi] of least coordinate on `axis`, ties by least number; -1 if none."""
        return int(least(self.arrays, np.array([lo, hi], np.float64), axis))

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
                below = above = a.point[block, : a.size[block]]
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
    meta = np.array([1, 1, 0, 0, 2])
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
        point=np.zeros((blocks, LEAF, dimensions)),
        number=np.zeros((blocks, LEAF), np.int32),
        home=np.full(numbers, -1, np.int32),
        meta=meta,
    )


def frontier(a: TreeArrays) -> TreeArrays:
    """An empty frontier over the tree's blocks, for `gather` to fill."""
    leaves = allocate(a.box.shape[2], FRONTIER + 1, 0, 0)
    leaves.block[0] = -1
    leaves.child[0] = 1
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
    a.point[block, a.size[block]] = point
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
    select(index, a.point[block, :, axis], 0, LEAF, LEAF // 2)
    points, numbers = a.point[block].copy(), a.number[block].copy()
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
    a.point[block, j] = a.point[block, last]
    a.size[block] = last
    a.home[number] = -1
    a.meta[POINTS] -= 1
    a.box[node, 0] = np.inf
    a.box[node, 1] = -np.inf
    for j in range(last):
        stretch(a, node, a.point[block, j])
    node = a.parent[node]
    while node >= 0:
        one = a.child[node]
        for d in range(a.box.shape[2]):
            a.box[node, 0, d] = min(a.box[one, 0, d], a.box[one + 1, 0, d])
            a.box[node, 1, d] = max(a.box[one, 1, d], a.box[one + 1, 1, d])
        node = a.parent[node]


@kernel
def apart(boxes: NDArray[np.float64], node: int, box: NDArray[np.float64]) -> bool:
    result = False
    for d in range(box.shape[1]):
        result |= boxes[node, 0, d] > box[1, d] or boxes[node, 1, d] < box[0, d]
    return result


@kernel
def within(boxes: NDArray[np.float64], node: int, box: NDArray[np.float64]) -> bool:
    result = True
    for d in range(box.shape[1]):
        result &= boxes[node, 0, d] >= box[0, d] and boxes[node, 1, d] <= box[1, d]
    return result


@kernel
def covered(boxes: NDArray[np.float64], node: int, box: NDArray[np.float64], cover: NDArray[np.float64]) -> bool:
    """Whether the node's box, as far as it lies in `box`, lies in `cover`."""
    result = True
    for d in range(box.shape[1]):
        result &= max(boxes[node, 0, d], box[0, d]) >= cover[0, d] and min(boxes[node, 1, d], box[1, d]) <= cover[1, d]
    return result


@kernel
def holds(box: NDArray[np.float64], point: NDArray[np.float64], block: int, j: int) -> bool:
    result = True
    for d in range(box.shape[1]):
        result &= point[block, j, d] >= box[0, d] and point[block, j, d] <= box[1, d]
    return result


@kernel
def snap(a: TreeArrays, box: NDArray[np.float64], tight: NDArray[np.float64]) -> bool:
    """Whether any point lies in `box` (2 x d); `tight` becomes the smallest box around those. [range-topk, section II-B, snap]"""
    a.meta[QUESTIONS] += 1
    boxes, child, blocks, size, point = a.box, a.child, a.block, a.size, a.point
    dimensions = box.shape[1]
    for d in range(dimensions):
        tight[0, d], tight[1, d] = np.inf, -np.inf
    fan = a.meta[FAN]
    stack = np.empty(2 * DEEPEST + 8, np.int32)
    stack[0] = 0
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(boxes, node, box) or covered(boxes, node, box, tight):
            continue
        block = blocks[node]
        if block >= 0 and not within(boxes, node, box):
            for j in range(size[block]):
                if holds(box, point, block, j):
                    for d in range(dimensions):
                        tight[0, d] = min(tight[0, d], point[block, j, d])
                        tight[1, d] = max(tight[1, d], point[block, j, d])
        elif child[node] < 0 or (node and within(boxes, node, box)):
            for d in range(dimensions):
                tight[0, d] = min(tight[0, d], max(boxes[node, 0, d], box[0, d]))
                tight[1, d] = max(tight[1, d], min(boxes[node, 1, d], box[1, d]))
        else:
            for c in range(fan):
                stack[depth] = child[node] + c
                depth += 1
    return bool(tight[0, 0] <= tight[1, 0])


@kernel
def vacant(a: TreeArrays, box: NDArray[np.float64]) -> bool:
    """Whether no point lies in `box`."""
    for d in range(box.shape[1]):
        if box[0, d] > box[1, d]:
            return True
    boxes, child, blocks, size, point = a.box, a.child, a.block, a.size, a.point
    fan = a.meta[FAN]
    stack = np.empty(2 * DEEPEST + 8, np.int32)
    stack[0] = 0
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(boxes, node, box):
            continue
        block = blocks[node]
        if block >= 0:
            for j in range(size[block]):
                if holds(box, point, block, j):
                    return False
        elif child[node] < 0 or (node and within(boxes, node, box)):
            return False
        else:
            for c in range(fan):
                stack[depth] = child[node] + c
                depth += 1
    return True


@kernel
def crowded(a: TreeArrays, box: NDArray[np.float64], one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether `box` holds a point in neither of `one` and `other`, boxes inside it. True, unasked, if these two are not apart on
    the first axis."""
    a.meta[QUESTIONS] += 1
    west, east = (one, other) if one[1, 0] < other[0, 0] else (other, one)
    if west[1, 0] >= east[0, 0]:
        return True
    part = box.copy()
    part[0, 0], part[1, 0] = np.nextafter(west[1, 0], np.inf), np.nextafter(east[0, 0], -np.inf)
    if not vacant(a, part):
        return True
    for inner in (west, east):
        part[:, 0] = inner[:, 0]
        for d in range(1, box.shape[1]):  # beside the inner box on axis d, within it on the axes before
            part[0, d], part[1, d] = box[0, d], np.nextafter(inner[0, d], -np.inf)
            if not vacant(a, part):
                return True
            part[0, d], part[1, d] = np.nextafter(inner[1, d], np.inf), box[1, d]
            if not vacant(a, part):
                return True
            part[:, d] = inner[:, d]
        part[:] = box
    return False


@kernel
def report(a: TreeArrays, box: NDArray[np.float64]) -> NDArray[np.int32]:
    boxes, child, blocks, size, point, number = a.box, a.child, a.block, a.size, a.point, a.number
    found = np.empty(64, np.int32)
    count = 0
    stack = np.empty(2 * DEEPEST + 8, np.int32)
    stack[0] = 0
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(boxes, node, box):
            continue
        block = blocks[node]
        if block < 0:
            stack[depth] = child[node]
            stack[depth + 1] = child[node] + 1
            depth += 2
            continue
        if count + LEAF > len(found):
            wider = np.empty(2 * len(found) + LEAF, np.int32)
            wider[:count] = found[:count]
            found = wider
        whole = within(boxes, node, box)
        for j in range(size[block]):
            if whole or holds(box, point, block, j):
                found[count] = number[block, j]
                count += 1
    return found[:count]


@kernel
def gather(a: TreeArrays, box: NDArray[np.float64], leaves: TreeArrays) -> bool:
    """Make `leaves` the frontier of `box`; False, and it is void, if that has more than FRONTIER leaves."""
    boxes, child, blocks = a.box, a.child, a.block
    count = 0
    stack = np.empty(2 * DEEPEST + 8, np.int32)
    stack[0] = 0
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(boxes, node, box):
            continue
        if child[node] >= 0:
            stack[depth] = child[node]
            stack[depth + 1] = child[node] + 1
            depth += 2
            continue
        if count == FRONTIER:
            return False
        count += 1
        leaves.block[count] = blocks[node]
        for d in range(box.shape[1]):
            leaves.box[count, 0, d], leaves.box[count, 1, d] = boxes[node, 0, d], boxes[node, 1, d]
    for d in range(box.shape[1]):
        leaves.box[0, 0, d], leaves.box[0, 1, d] = box[0, d], box[1, d]
    leaves.meta[FAN] = count
    return True


@kernel
def least(a: TreeArrays, box: NDArray[np.float64], axis: int) -> int:
    a.meta[QUESTIONS] += 1
    boxes, child, blocks, size, point, number = a.box, a.child, a.block, a.size, a.point, a.number
    best, bound = -1, np.inf
    stack = np.empty(2 * DEEPEST + 8, np.int32)
    stack[0] = 0
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(boxes, node, box) or (best >= 0 and boxes[node, 0, axis] > bound):
            continue
        block = blocks[node]
        if block >= 0:
            for j in range(size[block]):
                value, name = point[block, j, axis], number[block, j]
                if holds(box, point, block, j) and (best < 0 or value < bound or (value == bound and name < best)):
                    best, bound = name, value
        else:
            near = 0 if boxes[child[node], 0, axis] <= boxes[child[node] + 1, 0, axis] else 1
            stack[depth] = child[node] + 1 - near
            stack[depth + 1] = child[node] + near
            depth += 2
    return best
