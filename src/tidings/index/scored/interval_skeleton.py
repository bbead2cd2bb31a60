"""The interval tree inside an IR-tree: which node an interval belongs to, and how the tree stays balanced.

| array    | shape, dtype    | meaning                                                                                    |
|----------|-----------------|--------------------------------------------------------------------------------------------|
| `centre` | nodes, float64  | the point that all intervals of the node contain; NaN: a leaf                               |
| `left`   | nodes, int32    | the child whose intervals end before the centre; NONE: none                                |
| `right`  | nodes, int32    | the child whose intervals start after the centre; NONE: none                               |
| `weight` | nodes, int32    | intervals at the node and below                                                            |
| `root`   | nodes, int32    | root block of the node's R-tree; NONE: it is empty                                          |
| `height` | nodes, int32    | height of the node's R-tree                                                                |
| `best`   | nodes, float64  | greatest score at the node and below; -inf when there is none                              |
| `free`   | nodes, int32    | stack of free nodes, used up to state[FREE]                                                |
| `state`  | 2, int64        | how many nodes are free, the top node (NONE: the tree is empty)                              |
| `lo`, `hi`, `score` | numbers, float64 | the intervals by number; a score of NaN means that the number is not in use       |

A number's row of the last three arrays is its own; they are as long as the greatest number in use.

Balance. `child weight <= 3/4 weight + 32` at every inner node, and a leaf has at most 64 intervals; where an update breaks this the
highest such subtree is rebuilt around medians of its ends, after which a child has at most half. A subtree of weight w is rebuilt
at most once in w / 4 updates, so updates cost O(log² n) amortised.

[ranked, sections 2.1.1 and 3.1]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.groups import copy_into
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.scored.scored_blocks import FREE, WIDTH, Pool, grown_free, tree_build, tree_delete, tree_insert, tree_take

LEAF = 64
TOP = 1
MAX_PATH = 96


class Skeleton(NamedTuple):
    centre: Float64
    left: Int32
    right: Int32
    weight: Int32
    root: Int32
    height: Int32
    best: Float64
    free: Int32
    state: Int64


class Intervals(NamedTuple):
    lo: Float64
    hi: Float64
    score: Float64


def new_skeleton(nodes: int) -> Skeleton:
    return Skeleton(
        np.full(nodes, np.nan),
        np.full(nodes, NONE, np.int32),
        np.full(nodes, NONE, np.int32),
        np.zeros(nodes, np.int32),
        np.full(nodes, NONE, np.int32),
        np.zeros(nodes, np.int32),
        np.full(nodes, -np.inf),
        np.arange(nodes - 1, -1, -1, dtype=np.int32),
        np.asarray([nodes, NONE], np.int64),
    )


def grown_skeleton(skeleton: Skeleton, nodes: int) -> Skeleton:
    grown = new_skeleton(nodes)
    copy_into(skeleton, grown)
    spare = grown_free(skeleton.free, int(skeleton.state[FREE]), skeleton.centre.size, grown.free)
    grown.state[:] = (spare, skeleton.state[TOP])
    return grown


def longer(intervals: Intervals, size: int) -> Intervals:
    return Intervals._make(np.concatenate([column, np.full(size - column.size, np.nan)]) for column in intervals)


@kernel
def take_node(skeleton: Skeleton) -> int:
    free, state = skeleton.free, skeleton.state
    assert state[FREE] > 0
    state[FREE] -= 1
    return int(free[state[FREE]])


@kernel
def drop_node(skeleton: Skeleton, node: int) -> None:
    centre, left, right, weight, root, height, best, free, state = skeleton
    centre[node], left[node], right[node], weight[node] = np.nan, NONE, NONE, 0
    root[node], height[node], best[node] = NONE, 0, -np.inf
    free[state[FREE]] = node
    state[FREE] += 1


@kernel
def find_path(skeleton: Skeleton, lo: float, hi: float, nodes: Int64) -> int:
    """The nodes from the top to where [lo, hi] belongs; how many. The last may be a new empty leaf."""
    centre, left, right, state = skeleton.centre, skeleton.left, skeleton.right, skeleton.state
    if state[TOP] < 0:
        state[TOP] = take_node(skeleton)
    nodes[0] = state[TOP]
    length = 1
    while True:
        node = nodes[length - 1]
        if hi < centre[node]:
            if left[node] < 0:
                left[node] = take_node(skeleton)
            nodes[length] = left[node]
        elif lo > centre[node]:
            if right[node] < 0:
                right[node] = take_node(skeleton)
            nodes[length] = right[node]
        else:
            return length
        length += 1


@kernel
def settle(pool: Pool, skeleton: Skeleton, nodes: Int64, length: int) -> int:
    """After a change at the end of a path: drop empty leaves, renew `best`. The highest node out of balance, or NONE."""
    centre, left, right, weight = skeleton.centre, skeleton.left, skeleton.right, skeleton.weight
    root, best, state = skeleton.root, skeleton.best, skeleton.state
    broken = NONE
    for step in range(length - 1, -1, -1):
        node = nodes[step]
        if weight[node] == 0:
            if step == 0:
                state[TOP] = NONE
            elif left[nodes[step - 1]] == node:
                left[nodes[step - 1]] = NONE
            else:
                right[nodes[step - 1]] = NONE
            drop_node(skeleton, node)
            broken = NONE
            continue
        best[node] = pool.score[root[node] * WIDTH] if root[node] >= 0 else -np.inf
        heaviest = 0
        for child in (left[node], right[node]):
            if child >= 0:
                best[node] = max(best[node], best[child])
                heaviest = max(heaviest, weight[child])
        if np.isnan(centre[node]):
            if weight[node] > LEAF:
                broken = node
        elif weight[node] <= LEAF // 2 or 4 * heaviest > 3 * weight[node] + 4 * (LEAF // 2):
            broken = node
    return broken


@kernel
def insert(pool: Pool, skeleton: Skeleton, intervals: Intervals, number: int) -> int:
    """Add the interval of that number; the node to rebuild, or NONE."""
    lo, hi, score = intervals
    weight, root, height = skeleton.weight, skeleton.root, skeleton.height
    nodes = np.empty(MAX_PATH, np.int64)
    length = find_path(skeleton, lo[number], hi[number], nodes)
    for node in nodes[:length]:
        weight[node] += 1
    node = nodes[length - 1]
    root[node], height[node] = tree_insert(
        pool, root[node], height[node], number, np.float32(lo[number]), np.float32(hi[number]), score[number]
    )
    return settle(pool, skeleton, nodes, length)


@kernel
def delete(pool: Pool, skeleton: Skeleton, intervals: Intervals, number: int) -> int:
    """Remove the interval of that number; the node to rebuild, or NONE."""
    lo, hi, score = intervals
    weight, root, height = skeleton.weight, skeleton.root, skeleton.height
    nodes = np.empty(MAX_PATH, np.int64)
    length = find_path(skeleton, lo[number], hi[number], nodes)
    for node in nodes[:length]:
        weight[node] -= 1
    node = nodes[length - 1]
    root[node], height[node] = tree_delete(pool, root[node], height[node], number, score[number])
    return settle(pool, skeleton, nodes, length)


@kernel
def rescore(pool: Pool, skeleton: Skeleton, intervals: Intervals, number: int, score: float) -> None:
    lo, hi, scores = intervals
    root, height = skeleton.root, skeleton.height
    nodes = np.empty(MAX_PATH, np.int64)
    length = find_path(skeleton, lo[number], hi[number], nodes)
    node = nodes[length - 1]
    kept, levels = tree_delete(pool, root[node], height[node], number, scores[number])
    scores[number] = score
    root[node], height[node] = tree_insert(pool, kept, levels, number, np.float32(lo[number]), np.float32(hi[number]), score)
    settle(pool, skeleton, nodes, length)


@kernel
def build_all(pool: Pool, skeleton: Skeleton, intervals: Intervals) -> None:
    """Build an empty tree from all intervals."""
    skeleton.state[TOP] = take_node(skeleton)
    grow_subtree(pool, skeleton, intervals, skeleton.state[TOP], np.arange(intervals.lo.size).astype(np.int32))


@kernel
def rebuild(pool: Pool, skeleton: Skeleton, intervals: Intervals, top: int) -> None:
    """Build the subtree of a node anew."""
    left, right, weight, root, height = skeleton.left, skeleton.right, skeleton.weight, skeleton.root, skeleton.height
    numbers = np.empty(weight[top], np.int32)
    todo = [top]
    found = 0
    while len(todo) > 0:
        node = todo.pop()
        found = tree_take(pool, root[node], height[node], numbers, found)
        for child in (left[node], right[node]):
            if child >= 0:
                todo.append(child)
        if node != top:
            drop_node(skeleton, node)
    assert found == numbers.size
    grow_subtree(pool, skeleton, intervals, top, np.sort(numbers))


@kernel
def grow_subtree(pool: Pool, skeleton: Skeleton, intervals: Intervals, top: int, ascending: Int32) -> None:
    """Hang the intervals of these numbers (ascending) below and into `top`, which may hold no blocks.

    [ranked, sections 2.1.1 and 3.1]
    """
    lo, hi, score = intervals
    centre, left, right, weight = skeleton.centre, skeleton.left, skeleton.right, skeleton.weight
    root, height, best = skeleton.root, skeleton.height, skeleton.best
    numbers = ascending[np.argsort(-score[ascending], kind="mergesort")]
    todo = [(top, 0, numbers.size)]
    while len(todo) > 0:
        node, first, last = todo.pop()
        part = numbers[first:last]
        weight[node], best[node] = part.size, score[part[0]]
        left[node], right[node], centre[node] = NONE, NONE, np.nan
        if part.size <= LEAF:
            root[node], height[node] = tree_build(pool, part, lo, hi, score)
            continue
        centre[node] = middle_end(part, lo, hi)
        here, before = split(part, lo, hi, centre[node])
        root[node], height[node] = tree_build(pool, part[:here], lo, hi, score)
        if before > here:
            left[node] = take_node(skeleton)
            todo.append((left[node], first + here, first + before))
        if before < part.size:
            right[node] = take_node(skeleton)
            todo.append((right[node], first + before, last))


@kernel
def middle_end(numbers: Int32, lo: Float64, hi: Float64) -> float:
    """The median of the intervals' ends."""
    ends = np.empty(2 * numbers.size)
    for index, number in enumerate(numbers):
        ends[2 * index], ends[2 * index + 1] = lo[number], hi[number]
    return float(np.partition(ends, numbers.size)[numbers.size])


@kernel
def split(numbers: Int32, lo: Float64, hi: Float64, centre: float) -> tuple[int, int]:
    """Reorder `numbers` in place to (containing the centre, before it, after it), each in its old order; the two cuts."""
    old = numbers.copy()
    end = 0
    cuts = np.zeros(3, np.int64)
    for turn in range(3):
        for number in old:
            side = 1 if hi[number] < centre else (2 if lo[number] > centre else 0)
            if side == turn:
                numbers[end] = number
                end += 1
        cuts[turn] = end
    return cuts[0], cuts[1]
