"""What is asked of an `ObjectIndex`: kernels over the arrays that `object_arrays` describes.

Paper: range-topk, section II-B (firstk, miny).
"""

from __future__ import annotations

from tidings._jit import borrowing_kernel, inlined
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64
from tidings.index.points.object_arrays import BLOCKS, FIRST_K_CALLS, MIN_Y_CALLS, ObjectArrays

WEST, EAST = -1, 1


@inlined
def precedes(y: Float64, tie: Float64, one: int, other: int) -> bool:
    """Whether object `one` ranks before `other`; -1 ranks after everything."""
    if one < 0 or other < 0:
        return one >= 0
    return bool(y[one] < y[other] or (y[one] == y[other] and tie[one] < tie[other]))


@inlined
def below(y: Float64, tie: Float64, number: int, height: float, mark: float) -> bool:
    """Whether an object ranks before (height, mark)."""
    return bool(y[number] < height or (y[number] == height and tie[number] < mark))


@inlined
def above(y: Float64, tie: Float64, number: int, height: float, mark: float) -> bool:
    return bool(y[number] > height or (y[number] == height and tie[number] > mark))


@borrowing_kernel
def locate(a: ObjectArrays, x: float, strictly: bool) -> int:
    """The last position whose block has low <= x (`strictly`: low < x); 0 if none."""
    order, lows = a.order, a.low
    lo, hi = 0, a.meta[BLOCKS]
    while hi - lo > 1:
        middle = (lo + hi) >> 1
        low = lows[order[middle]]
        if low < x or (low == x and not strictly):
            lo = middle
        else:
            hi = middle
    return lo


@borrowing_kernel
def next_position(a: ObjectArrays, position: int, height: float, mark: float, side: int) -> int:
    """The nearest position beyond `position` on `side` whose block holds an object that ranks before (height, mark); -1 if none."""
    y, tie, tree = a.y, a.tie, a.tree
    leaves = len(tree) >> 1
    node = leaves + position
    turn = 1 if side < 0 else 0  # a right child has a sibling to the west
    while node > 1:
        sibling = node ^ 1
        if (node & 1) == turn and tree[sibling] >= 0 and below(y, tie, tree[sibling], height, mark):
            node = sibling
            while node < leaves:
                node = 2 * node + turn
                if tree[node] < 0 or not below(y, tie, tree[node], height, mark):
                    node ^= 1
            return node - leaves
        node >>= 1
    return NONE


@borrowing_kernel
def first_k(a: ObjectArrays, place: float, height: float, mark: float, side: int, k: int, found: Float64) -> int:
    """How many objects beside `place` rank before (height, mark), at most k; their x are in `found`, nearest first.
    [range-topk, section II-B, firstk]"""
    a.meta[FIRST_K_CALLS] += 1
    x, y, tie, members, sizes, order = a.x, a.y, a.tie, a.member, a.size, a.order
    count = 0
    position = locate(a, place, False)
    while position >= 0 and count < k:
        block = order[position]
        size = sizes[block]
        for step in range(size):
            number = members[block, size - 1 - step if side < 0 else step]
            beside = x[number] <= place if side < 0 else x[number] > place
            if beside and below(y, tie, number, height, mark):
                found[count] = x[number]
                count += 1
                if count == k:
                    break
        position = next_position(a, position, height, mark, side)
    return count


@borrowing_kernel
def least_in_block(a: ObjectArrays, position: int, lo: float, hi: float, height: float, mark: float, best: int) -> int:
    x, y, tie = a.x, a.y, a.tie
    block = a.order[position]
    member = a.member[block]
    for j in range(a.size[block]):
        number = member[j]
        if lo <= x[number] <= hi and above(y, tie, number, height, mark) and precedes(y, tie, number, best):
            best = number
    return best


@borrowing_kernel
def min_y(a: ObjectArrays, lo: float, hi: float, height: float, mark: float) -> int:
    """The object of least rank after (height, mark) with x in [lo, hi]; -1 if none. [range-topk, section II-B, miny]"""
    a.meta[MIN_Y_CALLS] += 1
    y, tie, tree = a.y, a.tie, a.tree
    leaves = len(tree) >> 1
    first, last = locate(a, lo, True), locate(a, hi, False)
    best = least_in_block(a, first, lo, hi, height, mark, NONE)
    if last > first:
        best = least_in_block(a, last, lo, hi, height, mark, best)
    stack = a.stack
    west, east = leaves + first + 1, leaves + last
    while west < east:  # canonical nodes of the positions strictly between
        depth = 0
        if west & 1:
            stack[depth] = west
            depth += 1
            west += 1
        if east & 1:
            east -= 1
            stack[depth] = east
            depth += 1
        while depth:
            depth -= 1
            node = stack[depth]
            champion = tree[node]
            if not precedes(y, tie, champion, best):
                continue
            # A champion that ranks after the mark is its node's answer; one before it hides others, so the node is opened.
            if above(y, tie, champion, height, mark):
                best = champion
            elif node >= leaves:
                best = least_in_block(a, node - leaves, lo, hi, height, mark, best)
            else:
                stack[depth] = 2 * node
                stack[depth + 1] = 2 * node + 1
                depth += 2
        west >>= 1
        east >>= 1
    return best
