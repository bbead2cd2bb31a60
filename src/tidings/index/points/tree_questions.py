"""What is asked of a `PointTree` or of a frontier: kernels over the arrays that `tree_arrays` describes.

A leaf is tested whole: a mask of its 64 points that lie in the box. So are the at most 64 leaves of a frontier.

Paper: range-topk, section II-B, snap, and section III-B, what the greedy merge asks.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import overlap64, trailing_zeros
from tidings.index.packed.types import Float64, Int32
from tidings.index.points.tree_arrays import FRONTIER, LEAF, LEAVES, QUESTIONS, TREE, TreeArrays

Box = Float64
"""2 x d, the lower and the upper ends; `boxes` are nodes x 2 x d."""


@inlined
def apart(boxes: Box, node: int, box: Box) -> bool:
    result = False
    for d in range(box.shape[1]):
        result |= boxes[node, 0, d] > box[1, d] or boxes[node, 1, d] < box[0, d]
    return result


@inlined
def within(boxes: Box, node: int, box: Box) -> bool:
    result = True
    for d in range(box.shape[1]):
        result &= boxes[node, 0, d] >= box[0, d] and boxes[node, 1, d] <= box[1, d]
    return result


@inlined
def covered(boxes: Box, node: int, box: Box, cover: Box) -> bool:
    """Whether the node's box, as far as it lies in `box`, lies in `cover`."""
    result = True
    for d in range(box.shape[1]):
        result &= max(boxes[node, 0, d], box[0, d]) >= cover[0, d] and min(boxes[node, 1, d], box[1, d]) <= cover[1, d]
    return result


@inlined
def inside(a: TreeArrays, block: int, box: Box) -> np.uint64:
    """The mask of the block's points that lie in `box`."""
    size = a.size[block]
    if size == 0:
        return np.uint64(0)
    mask = ~np.uint64(0) >> np.uint64(LEAF - size)
    for d in range(box.shape[1]):
        mask &= overlap64(a.point[block, d], a.point[block, d], 0, box[0, d], box[1, d])
    return mask


@inlined
def meeting(a: TreeArrays, box: Box) -> np.uint64:
    """The mask of a frontier's leaves that meet `box`."""
    mask = ~np.uint64(0)
    for d in range(box.shape[1]):
        mask &= overlap64(a.edge[0, d], a.edge[1, d], 0, box[0, d], box[1, d])
    return mask


@borrowing_kernel
def snap(a: TreeArrays, box: Box, tight: Box) -> bool:
    """Whether any point lies in `box` (2 x d); `tight` becomes the smallest box around those. [range-topk, section II-B, snap]"""
    a.meta[QUESTIONS] += 1
    for d in range(box.shape[1]):
        tight[0, d], tight[1, d] = np.inf, -np.inf
    if a.meta[LEAVES] != TREE:
        mask = meeting(a, box)
        while mask:
            node = trailing_zeros(mask) + 1
            mask &= mask - np.uint64(1)
            if not covered(a.box, node, box, tight):
                snap_leaf(a, node, box, tight)
        return bool(tight[0, 0] <= tight[1, 0])
    stack, depth = a.stack, 1
    stack[0] = 0
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(a.box, node, box) or covered(a.box, node, box, tight):
            continue
        if a.child[node] < 0 or (node and within(a.box, node, box)):
            snap_leaf(a, node, box, tight)
        else:
            stack[depth], stack[depth + 1] = a.child[node], a.child[node] + 1
            depth += 2
    return bool(tight[0, 0] <= tight[1, 0])


@inlined
def snap_leaf(a: TreeArrays, node: int, box: Box, tight: Box) -> None:
    """Stretch `tight` around what lies in `box` of a leaf, of a node inside it, or of a sketch's leaf, which stands for its box."""
    block = a.block[node]
    if block < 0 or within(a.box, node, box):
        for d in range(box.shape[1]):
            tight[0, d] = min(tight[0, d], max(a.box[node, 0, d], box[0, d]))
            tight[1, d] = max(tight[1, d], min(a.box[node, 1, d], box[1, d]))
        return
    mask = inside(a, block, box)
    while mask:
        j = trailing_zeros(mask)
        mask &= mask - np.uint64(1)
        for d in range(box.shape[1]):
            tight[0, d] = min(tight[0, d], a.point[block, d, j])
            tight[1, d] = max(tight[1, d], a.point[block, d, j])


@borrowing_kernel
def vacant(a: TreeArrays, box: Box) -> bool:
    """Whether no point lies in `box`."""
    for d in range(box.shape[1]):
        if box[0, d] > box[1, d]:
            return True
    if a.meta[LEAVES] != TREE:
        mask = meeting(a, box)
        while mask:
            block = a.block[trailing_zeros(mask) + 1]
            mask &= mask - np.uint64(1)
            if block < 0 or inside(a, block, box):
                return False
        return True
    stack, depth = a.stack, 1
    stack[0] = 0
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(a.box, node, box):
            continue
        block = a.block[node]
        if block >= 0:
            if inside(a, block, box):
                return False
        elif a.child[node] < 0 or (node and within(a.box, node, box)):
            return False
        else:
            stack[depth], stack[depth + 1] = a.child[node], a.child[node] + 1
            depth += 2
    return True


@kernel
def crowded(a: TreeArrays, box: Box, one: Box, other: Box) -> bool:
    """Whether `box` holds a point in neither of `one` and `other`, boxes inside it. True, unasked, if these two are not apart on
    the first axis."""
    a.meta[QUESTIONS] += 1
    west, east = (one, other) if one[1, 0] < other[0, 0] else (other, one)
    if west[1, 0] >= east[0, 0]:
        return True
    # What is neither is cut into boxes: between the two, then beside each of them, axis by axis. Any point there is enough.
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
def report(a: TreeArrays, box: Box) -> Int32:
    """The numbers of a tree's points in `box`."""
    found = np.empty(LEAF, np.int32)
    count, depth = 0, 1
    stack = np.empty(a.stack.size, np.int32)
    stack[0] = 0
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(a.box, node, box):
            continue
        block = a.block[node]
        if block < 0:
            stack[depth], stack[depth + 1] = a.child[node], a.child[node] + 1
            depth += 2
            continue
        if count + LEAF > len(found):
            wider = np.empty(2 * len(found) + LEAF, np.int32)
            wider[:count] = found[:count]
            found = wider
        mask = inside(a, block, box)
        while mask:
            found[count] = a.number[block, trailing_zeros(mask)]
            mask &= mask - np.uint64(1)
            count += 1
    return found[:count]


@borrowing_kernel
def gather(a: TreeArrays, box: Box, leaves: TreeArrays) -> bool:
    """Make `leaves` the frontier of `box`; False, and it is void, if that has more than FRONTIER leaves."""
    count, depth, stack = 0, 1, a.stack
    stack[0] = 0
    leaves.edge[0], leaves.edge[1] = np.inf, -np.inf
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(a.box, node, box):
            continue
        if a.child[node] >= 0:
            stack[depth], stack[depth + 1] = a.child[node], a.child[node] + 1
            depth += 2
            continue
        if count == FRONTIER:
            return False
        for d in range(box.shape[1]):
            for end in range(2):
                leaves.edge[end, d, count] = leaves.box[count + 1, end, d] = a.box[node, end, d]
        count += 1
        leaves.block[count] = a.block[node]
    leaves.meta[LEAVES] = count
    return True


@borrowing_kernel
def least(a: TreeArrays, box: Box, axis: int) -> int:
    """The number in `box` of least coordinate on `axis`, ties by least number; -1 if none."""
    a.meta[QUESTIONS] += 1
    best, bound, depth, stack = NONE, np.inf, 1, a.stack
    stack[0] = 0
    while depth:
        depth -= 1
        node = stack[depth]
        if apart(a.box, node, box) or (best >= 0 and a.box[node, 0, axis] > bound):
            continue
        block = a.block[node]
        if block < 0:
            near = 0 if a.box[a.child[node], 0, axis] <= a.box[a.child[node] + 1, 0, axis] else 1
            stack[depth], stack[depth + 1] = a.child[node] + 1 - near, a.child[node] + near
            depth += 2
            continue
        mask = inside(a, block, box)
        while mask:
            j = trailing_zeros(mask)
            mask &= mask - np.uint64(1)
            value, name = a.point[block, axis, j], a.number[block, j]
            if best < 0 or value < bound or (value == bound and name < best):
                best, bound = name, value
    return best
