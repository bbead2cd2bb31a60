"""The R-tree body under the R^t trees: nodes, entries, packing. It knows boxes, not tokens.

| array       | shape, dtype           | meaning                                                                          |
|-------------|------------------------|----------------------------------------------------------------------------------|
| `state`     | 3, int64               | ROOT node, NODES ever used, FREE head of the chain of free nodes (-1: none)       |
| `child`     | node x (B + 1), int32  | child nodes, or entries in a leaf; the last column is used only until a split     |
| `degree`    | node, int32            | how many children                                                                |
| `parent`    | node, int32            | -1 for the root; the next free node in the chain of free ones                     |
| `height`    | node, int8             | 0 for a leaf                                                                     |
| `size`      | node, int32            | entries below                                                                    |
| `box`       | node x 4, float64      | bounding box (xmin, ymin, xmax, ymax); NOWHERE for an empty node                  |
| `entry_box` | entry x 4, float64     | the box of each entry                                                            |
| `leaf`      | entry, int32           | the leaf that holds it, -1 for a free entry                                       |

Invariants: the root is never a leaf; all leaves have one depth; every other node has b..B children, except the only leaf of a
small tree; `box` is exactly the union of the children's boxes. The *level* of a node is its distance from the root, so a leaf's
level is the root's height. [rttree, section 3.1: b = 25, B = 50]

Deviation: a packed level is given a fan-out that spreads its nodes evenly over the tree's height, so the top does not end in two or
three huge nodes. How the tree changes is in `reshape`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.index.packed.groups import copy_into
from tidings.index.packed.hilbert import extent_of, hilbert_codes
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Float64, Int8, Int32, Int64

LEAST, MOST = 25, 50
"""b and B of the paper."""
ROOT, NODES, FREE = 0, 1, 2
NOWHERE = (math.inf, math.inf, -math.inf, -math.inf)


class Body(NamedTuple):
    state: Int64
    child: Int32
    degree: Int32
    parent: Int32
    height: Int8
    size: Int32
    box: Float64
    entry_box: Float64
    leaf: Int32

    @property
    def root(self) -> int:
        return int(self.state[ROOT])

    @property
    def levels(self) -> int:
        """The level of the leaves; the root's is 0."""
        return int(self.height[self.root])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


def empty_body() -> Body:
    """A root above one empty leaf."""
    body = _nodes(2, np.empty((0, 4)))
    body.state[:] = (0, 2, NONE)
    body.height[:] = (1, 0)
    body.parent[:] = (NONE, 0)
    body.child[0, 0], body.degree[0] = 1, 1
    return body


def _nodes(nodes: int, entry_box: Float64) -> Body:
    return Body(
        state=np.zeros(3, np.int64),
        child=np.full((nodes, MOST + 1), NONE, np.int32),
        degree=np.zeros(nodes, np.int32),
        parent=np.full(nodes, NONE, np.int32),
        height=np.zeros(nodes, np.int8),
        size=np.zeros(nodes, np.int32),
        box=np.tile(np.array(NOWHERE), (nodes, 1)),
        entry_box=entry_box,
        leaf=np.full(len(entry_box), NONE, np.int32),
    )


def hilbert_order(box: Float64) -> Int64:
    """The order in which `pack` wants its boxes."""
    return np.argsort(hilbert_codes(box, extent_of(box)), kind="stable")


def pack(entry_box: Float64) -> Body:
    """A tree of entries 0..n-1, whose boxes are given in Hilbert order: consecutive entries share a leaf, leaves a parent."""
    if not len(entry_box):
        return empty_body()
    sizes = [len(entry_box), *level_sizes(len(entry_box))]
    body = _nodes(sum(sizes[1:]), entry_box)
    first_child, first_node = 0, 0
    for height, (children, nodes) in enumerate(pairwise(sizes)):
        cut = first_child + np.arange(nodes + 1, dtype=np.int64) * children // nodes
        body.height[first_node : first_node + nodes] = height
        pack_level(body, first_node, cut)
        first_child, first_node = first_node, first_node + nodes
    body.state[:] = (first_node - 1, first_node, NONE)
    return body


def level_sizes(entries: int) -> list[int]:
    """The number of nodes of each level, leaves first, the root last."""
    levels = max(2, math.ceil(math.log(max(entries, 2)) / math.log(MOST) - 1e-9))
    fan_out = min(max(math.ceil(entries ** (1 / levels)), LEAST), MOST)
    sizes: list[int] = []
    below = entries
    while below > MOST or not sizes:
        below = max(-(-below // MOST), min(below // LEAST, -(-below // fan_out)), 1)
        sizes.append(below)
    return [*sizes, 1]


@kernel
def pack_level(body: Body, first: int, cut: Int64) -> None:
    """Node first + i gets the children cut[i]:cut[i + 1]."""
    for i in range(len(cut) - 1):
        node = first + i
        for child in range(cut[i], cut[i + 1]):
            attach(body, node, child)


@borrowing_kernel
def attach(body: Body, node: int, child: int) -> None:
    """Make `child` the node's last child; boxes and sizes above the node are the caller's."""
    body.child[node, body.degree[node]] = child
    body.degree[node] += 1
    if body.height[node] == 0:
        body.leaf[child] = node
        body.size[node] += 1
        enlarge(body.box[node], body.entry_box[child])
    else:
        body.parent[child] = node
        body.size[node] += body.size[child]
        enlarge(body.box[node], body.box[child])


@borrowing_kernel
def detach(body: Body, node: int, child: int) -> None:
    """Undo `attach`, but for the box."""
    at = 0
    while body.child[node, at] != child:
        at += 1
    body.degree[node] -= 1
    body.child[node, at] = body.child[node, body.degree[node]]
    body.size[node] -= 1 if body.height[node] == 0 else body.size[child]


@borrowing_kernel
def touch(a: Float64, b: Float64) -> bool:
    """Whether the boxes share a point. All four tests are made: which one fails is hard to guess, and a wrong guess costs more."""
    shared: bool = (a[0] <= b[2]) & (b[0] <= a[2]) & (a[1] <= b[3]) & (b[1] <= a[3])
    return shared


@borrowing_kernel
def enlarge(box: Float64, other: Float64) -> None:
    box[0] = min(box[0], other[0])
    box[1] = min(box[1], other[1])
    box[2] = max(box[2], other[2])
    box[3] = max(box[3], other[3])


@kernel
def child_box(body: Body, node: int, at: int) -> Float64:
    child = body.child[node, at]
    box: Float64 = body.entry_box[child] if body.height[node] == 0 else body.box[child]
    return box


@kernel
def refit(body: Body, node: int) -> None:
    """Recompute the node's box from its children."""
    body.box[node, :2] = np.inf
    body.box[node, 2:] = -np.inf
    for at in range(body.degree[node]):
        enlarge(body.box[node], child_box(body, node, at))


@kernel
def entries_below(body: Body, node: int) -> Int32:
    """All entries below the node."""
    entries = np.empty(body.size[node], np.int32)
    stack = np.empty((body.height[node] + 1) * (MOST + 1) + 1, np.int32)
    stack[0], depth, found = node, 1, 0
    while depth > 0:
        depth -= 1
        node = wide(stack[depth])
        for at in range(body.degree[node]):
            if body.height[node] == 0:
                entries[found] = body.child[node, at]
                found += 1
            else:
                stack[depth] = body.child[node, at]
                depth += 1
    return entries


def with_nodes(body: Body, more: int) -> Body:
    """`body` if it has space for `more` nodes, else a copy with twice the space."""
    if body.state[NODES] + more <= len(body.degree):
        return body
    bigger = _nodes(2 * len(body.degree) + more, body.entry_box)
    copy_into(body, bigger)
    return bigger._replace(state=body.state, leaf=body.leaf)


def with_entries(body: Body, entries: int) -> Body:
    """`body` if it has space for so many entries, else a copy with half as much again."""
    if entries <= len(body.leaf):
        return body
    spare = entries - len(body.leaf) + len(body.leaf) // 2
    box = np.concatenate([body.entry_box, np.empty((spare, 4))])
    return body._replace(entry_box=box, leaf=np.concatenate([body.leaf, np.full(spare, NONE, np.int32)]))


def check_body(body: Body) -> None:
    """Every invariant of the header, from the root down."""
    root = body.root
    assert body.parent[root] == NONE
    assert body.height[root] >= 1
    assert body.size[root] == np.count_nonzero(body.leaf >= 0)
    single_leaf = body.degree[root] == 1 and body.height[root] == 1
    seen, stack = 0, [root]
    while stack:
        node = stack.pop()
        children = body.child[node, : body.degree[node]]
        assert len(set(children.tolist())) == len(children)
        least = 1 if node == root or single_leaf else LEAST
        assert least <= len(children) <= MOST or (single_leaf and not len(children)), (node, len(children))
        boxes = body.entry_box[children] if body.height[node] == 0 else body.box[children]
        union = (*boxes[:, :2].min(0, initial=math.inf), *boxes[:, 2:].max(0, initial=-math.inf))
        assert body.box[node].tolist() == list(map(float, union))
        if body.height[node] == 0:
            assert (body.leaf[children] == node).all()
            assert body.size[node] == len(children)
            seen += len(children)
        else:
            assert (body.parent[children] == node).all()
            assert (body.height[children] == body.height[node] - 1).all()
            assert body.size[node] == body.size[children].sum()
            stack += children.tolist()
    assert seen == body.size[root]
