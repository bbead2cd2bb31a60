"""The arrays of a `PointTree`: a k-d tree with tight bounding boxes.

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64

LEAF = 64
"""Points of a leaf."""
FRONTIER = 64
"""Leaves of a frontier."""
DEEPEST = 60
"""The longest path before the tree is rebuilt."""
NODES, BLOCKS, POINTS, QUESTIONS, LEAVES = 0, 1, 2, 3, 4
"""Places in `meta`."""
TREE = -1
"""In place of a frontier's leaves."""


class TreeArrays(NamedTuple):
    child: Int32
    parent: Int32
    cut: Float64
    box: Float64
    block: Int32
    """These by node."""
    size: Int32
    point: Float64
    number: Int32
    """These by block."""
    home: Int32
    """By number."""
    edge: Float64
    stack: Int32
    meta: Int64


def allocate(dimensions: int, nodes: int, blocks: int, numbers: int) -> TreeArrays:
    meta = np.array([1, 1, 0, 0, TREE])
    block = np.full(nodes, NONE, np.int32)
    block[0] = 0
    box = np.full((nodes, 2, dimensions), np.inf)
    box[:, 1] = -np.inf
    return TreeArrays(
        child=np.full(nodes, NONE, np.int32),
        parent=np.full(nodes, NONE, np.int32),
        cut=np.zeros(nodes),
        box=box,
        block=block,
        size=np.zeros(blocks, np.int32),
        point=np.zeros((blocks, dimensions, LEAF)),
        number=np.zeros((blocks, LEAF), np.int32),
        home=np.full(numbers, NONE, np.int32),
        edge=np.zeros((2, dimensions, FRONTIER)),
        stack=np.zeros(2 * DEEPEST + 8, np.int32),
        meta=meta,
    )


def frontier(a: TreeArrays) -> TreeArrays:
    """An empty frontier over the tree's blocks, for `gather` to fill."""
    leaves = allocate(a.box.shape[2], FRONTIER + 1, 0, 0)
    return leaves._replace(size=a.size, point=a.point, number=a.number, home=a.home)
