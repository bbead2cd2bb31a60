"""How the R-tree body of the R^t trees changes: where an entry goes, what a full node gives away, what a small one takes.

Nothing here knows tokens: the tree moves those along (`policy.move_children`).

Deviations: a full node is cut in the middle of its children's order along the axis on which their centres spread most (the paper
says only "as in the standard R-tree"). A node that falls below b takes children from the nearest sibling or is merged into it,
instead of being dissolved and reinserted: only the two siblings' token sets change. [rttree, section 3.1: updates]
"""

from __future__ import annotations

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.rttree.body import FREE, NODES, ROOT, Body, attach, child_box, detach, enlarge, refit

_FAR = 1e150
"""Infinite ends count as this far when areas are compared."""


@borrowing_kernel
def _near(x: float) -> float:
    return min(max(x, -_FAR), _FAR)


@borrowing_kernel
def growth(box: Float64, other: Float64) -> tuple[float, float]:
    """How much the box's area and half perimeter grow if it must hold the other too."""
    width, depth = _near(box[2]) - _near(box[0]), _near(box[3]) - _near(box[1])
    wider = _near(max(box[2], other[2])) - _near(min(box[0], other[0]))
    deeper = _near(max(box[3], other[3])) - _near(min(box[1], other[1]))
    return wider * deeper - width * depth, (wider - width) + (deeper - depth)


@kernel
def choose_leaf(body: Body, box: Float64) -> int:
    """From the root, always into the child that grows least."""
    node: int = body.state[ROOT]
    while body.height[node] > 0:
        best, best_area, best_margin = 0, np.inf, np.inf
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            area, margin = growth(body.box[child], box)
            if area < best_area or (area == best_area and margin < best_margin):
                best, best_area, best_margin = at, area, margin
        node = wide(body.child[node, best])
    return node


@kernel
def place(body: Body, entry: int) -> int:
    """Put the entry into the leaf that fits it best, growing what is above; the leaf may then be overfull."""
    leaf = choose_leaf(body, body.entry_box[entry])
    attach(body, leaf, entry)
    node = wide(body.parent[leaf])
    while node >= 0:
        body.size[node] += 1
        enlarge(body.box[node], body.entry_box[entry])
        node = wide(body.parent[node])
    return leaf


@kernel
def displace(body: Body, entry: int) -> int:
    """Take the entry out of its leaf and shrink what is above; the leaf may then be underfull."""
    leaf: int = wide(body.leaf[entry])
    detach(body, leaf, entry)
    body.leaf[entry] = NONE
    refit(body, leaf)
    node = wide(body.parent[leaf])
    while node >= 0:
        body.size[node] -= 1
        refit(body, node)
        node = wide(body.parent[node])
    return leaf


@kernel
def take_node(body: Body, height: int) -> int:
    """A new, empty node; there must be a free one or space for one."""
    node: int = body.state[FREE]
    if node >= 0:
        body.state[FREE] = body.parent[node]
    else:
        node = body.state[NODES]
        body.state[NODES] += 1
    body.degree[node] = 0
    body.size[node] = 0
    body.height[node] = height
    body.parent[node] = NONE
    refit(body, node)
    return node


@kernel
def drop_node(body: Body, node: int) -> None:
    body.degree[node] = 0
    body.size[node] = 0
    body.parent[node] = body.state[FREE]
    body.state[FREE] = node


@kernel
def order_children(body: Body, node: int, axis: int) -> Int64:
    """Positions of the node's children, ascending by centre on the axis (0 or 1), by insertion: they are few."""
    order = np.arange(body.degree[node])
    centre = np.empty(len(order))
    for at in range(len(order)):
        box = child_box(body, node, at)
        centre[at] = _near(box[axis]) + _near(box[axis + 2])
        to = at
        while to > 0 and centre[order[to - 1]] > centre[at]:
            order[to] = order[to - 1]
            to -= 1
        order[to] = at
    return order


@kernel
def widest_axis(body: Body, node: int) -> int:
    """The axis on which the children's centres spread most."""
    spread = np.empty(2)
    for axis in range(2):
        lowest, highest = np.inf, -np.inf
        for at in range(body.degree[node]):
            box = child_box(body, node, at)
            centre = _near(box[axis]) + _near(box[axis + 2])
            lowest, highest = min(lowest, centre), max(highest, centre)
        spread[axis] = highest - lowest
    return 0 if spread[0] >= spread[1] else 1


@kernel
def upper_half(body: Body, node: int) -> Int32:
    """The children that leave an overfull node for its new sibling."""
    order = order_children(body, node, widest_axis(body, node))
    upper: Int32 = body.child[node][order[len(order) // 2 :]]
    return upper


@kernel
def nearest_sibling(body: Body, node: int) -> int:
    """The other child of the parent that grows least by taking the node; -1 for an only child."""
    parent = body.parent[node]
    best, best_area, best_margin = -1, np.inf, np.inf
    for at in range(body.degree[parent]):
        other = body.child[parent, at]
        if other != node:
            area, margin = growth(body.box[other], body.box[node])
            if best < 0 or area < best_area or (area == best_area and margin < best_margin):
                best, best_area, best_margin = other, area, margin
    return best


@kernel
def nearest_children(body: Body, giver: int, taker: int) -> Int32:
    """The giver's children that even the two counts out: those that lie towards the taker."""
    moved = (body.degree[giver] - body.degree[taker]) // 2
    axis = widest_axis(body, giver)
    order = order_children(body, giver, axis)
    centre = np.empty(2)
    for i, node in enumerate((giver, taker)):
        centre[i] = _near(body.box[node, axis]) + _near(body.box[node, axis + 2])
    chosen = order[len(order) - moved :] if centre[0] <= centre[1] else order[:moved]
    children: Int32 = body.child[giver][chosen]
    return children
