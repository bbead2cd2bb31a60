"""Objects as points (x, y), changing: the first k better ones beside a place, and the best one of an interval above a height.

`first_k(x, y, side)` walks from x to the west or east over objects that rank before (y, tie); `min_y(lo, hi, y)` finds the object
of least rank in [lo, hi] that ranks after (y, tie). Rank is ascending (y, tie); ties in y are settled by `tie`, which the caller
gives and which is distinct among objects.

Objects are numbers of the caller's choice, kept in blocks in x order under a tournament tree: `object_arrays` has the layout.

Cost. An update is O(log n) plus a move inside one block; a full block splits, which rebuilds the tree in O(n / 16), at most once in
16 inserts. `first_k` is O(k log n). `min_y` is O((c + 1) log n), where c counts objects in [lo, hi] that rank before (y, tie).

Paper: range-topk, section II-B (firstk, miny).

Deviations. The paper's t(n) = log^2 n range tree takes O(n log n) space. Here min_y descends only to the c objects below: in every
call that painting makes, c < 2k, because inside an influence interval fewer than 2k objects rank before its owner (Lemma 2). So a
call is O(k log n) in O(n) space. Equal x are allowed (the paper assumes them distinct): an object at x itself is to the west of x.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.groups import copy_into
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.points.object_arrays import BLOCK, BLOCKS, FIRST_K_CALLS, MIN_Y_CALLS, OBJECTS, ObjectArrays, allocate
from tidings.index.points.object_questions import first_k, locate, min_y, precedes


class ObjectIndex:
    """Objects are added with `insert`, moved by `delete` and `insert`; numbers are small non-negative integers."""

    def __init__(self, capacity: int = 64) -> None:
        self.arrays = allocate(max(capacity, 1))

    def __len__(self) -> int:
        return int(self.arrays.meta[OBJECTS])

    def __contains__(self, number: int) -> bool:
        return number < len(self.arrays.x) and bool(self.arrays.block_of[number] >= 0)

    def insert(self, number: int, x: float, y: float, tie: float | None = None) -> None:
        """Without `tie` an object's number breaks its ties."""
        self.reserve(number + 1)
        assert number not in self, f"object {number} is already in the index"
        self.arrays.tie[number] = number if tie is None else tie
        insert_object(self.arrays, number, x, y)

    def insert_many(self, numbers: Int64, x: Float64, y: Float64, tie: Float64 | None = None) -> None:
        if len(numbers):
            self.reserve(int(numbers.max()) + 1)
            self.arrays.tie[numbers] = numbers if tie is None else tie
            insert_objects(self.arrays, np.asarray(numbers, np.int64), x, y)

    def delete(self, number: int) -> None:
        delete_object(self.arrays, number)

    def reserve(self, capacity: int) -> None:
        """Room for object numbers below `capacity`; kernels that insert rely on it."""
        have = len(self.arrays.x)
        if capacity > have:
            old, self.arrays = self.arrays, allocate(max(capacity, 2 * have))
            copy_into(old, self.arrays)
            rebuild_tree(self.arrays)

    def retie(self, tie: Float64) -> None:
        """New tie-breaks for objects 0, 1, ..., in the same order as the old ones: nothing else changes."""
        self.arrays.tie[: len(tie)] = tie

    def copy(self) -> ObjectIndex:
        twin = ObjectIndex.__new__(ObjectIndex)
        twin.arrays = ObjectArrays._make(array.copy() for array in self.arrays)
        return twin

    def first_k(self, x: float, y: float, side: int, k: int, tie: float = -np.inf) -> list[float]:
        """x of the first k objects WEST (<= x) or EAST (> x) of x that rank before (y, tie), in the order met."""
        found = np.empty(k)
        count = first_k(self.arrays, x, y, tie, side, k, found)
        return [float(value) for value in found[:count]]

    def min_y(self, lo: float, hi: float, y: float, tie: float = np.inf) -> int:
        """The object of least rank after (y, tie) in [lo, hi]; -1 if there is none."""
        return int(min_y(self.arrays, lo, hi, y, tie))

    def best(self, lo: float, hi: float, k: int) -> list[int]:
        """The k objects of least rank in [lo, hi], best first."""
        found: list[int] = []
        y, tie = -np.inf, -np.inf
        while len(found) < k and (number := self.min_y(lo, hi, y, tie)) >= 0:
            found.append(number)
            y, tie = float(self.arrays.y[number]), float(self.arrays.tie[number])
        return found

    @property
    def stats(self) -> dict[str, int]:
        meta = self.arrays.meta
        return {"first_k": int(meta[FIRST_K_CALLS]), "min_y": int(meta[MIN_Y_CALLS]), "blocks": int(meta[BLOCKS])}

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def check(self) -> None:
        a = self.arrays
        blocks = int(a.meta[BLOCKS])
        assert sorted(a.order[:blocks]) == list(range(blocks))
        seen = 0
        before = -np.inf
        for position in range(blocks):
            block = a.order[position]
            assert a.place[block] == position
            members = a.member[block, : a.size[block]]
            xs = a.x[members]
            assert before <= a.low[block]
            assert (np.diff(xs) >= 0).all()
            assert (xs >= a.low[block]).all()
            assert (a.block_of[members] == block).all()
            before = max(before, a.low[block], *xs)
            seen += len(members)
            assert a.tree[len(a.tree) // 2 + position] == _least_of(a, members)
        assert seen == a.meta[OBJECTS] == (a.block_of >= 0).sum()
        for node in range(1, len(a.tree) // 2):
            assert a.tree[node] == _least_of(a, [n for n in a.tree[2 * node : 2 * node + 2] if n >= 0])


def _least_of(a: ObjectArrays, members: Int32 | list[int]) -> int:
    return min((int(n) for n in members), key=lambda n: (a.y[n], a.tie[n]), default=NONE)


@inlined
def best_member(a: ObjectArrays, block: int) -> int:
    y, tie, member = a.y, a.tie, a.member[block]
    best = NONE
    for j in range(a.size[block]):
        if precedes(y, tie, member[j], best):
            best = member[j]
    return best


@borrowing_kernel
def raise_winner(a: ObjectArrays, position: int) -> None:
    """Recompute one leaf of the tree and its ancestors."""
    y, tie, tree = a.y, a.tie, a.tree
    node = (len(tree) >> 1) + position
    tree[node] = best_member(a, a.order[position])
    node >>= 1
    while node:
        one, other = tree[2 * node], tree[2 * node + 1]
        tree[node] = one if precedes(y, tie, one, other) else other
        node >>= 1


@kernel
def rebuild_tree(a: ObjectArrays) -> None:
    y, tie, tree = a.y, a.tie, a.tree
    leaves = len(tree) >> 1
    tree[:] = NONE
    for position in range(a.meta[BLOCKS]):
        tree[leaves + position] = best_member(a, a.order[position])
    for node in range(leaves - 1, 0, -1):
        one, other = tree[2 * node], tree[2 * node + 1]
        tree[node] = one if precedes(y, tie, one, other) else other


@kernel
def split_block(a: ObjectArrays, position: int) -> None:
    """Give the upper half of a full block to a new one; if no block is free, first refill all blocks to one half."""
    if a.meta[BLOCKS] == len(a.order):
        refill_blocks(a)
        return
    old, new = a.order[position], a.meta[BLOCKS]
    half = BLOCK // 2
    a.size[old], a.size[new] = half, BLOCK - half
    for j in range(half, BLOCK):
        a.member[new, j - half] = a.member[old, j]
        a.block_of[a.member[old, j]] = new
    a.low[new] = a.x[a.member[new, 0]]
    for q in range(a.meta[BLOCKS], position + 1, -1):
        a.order[q] = a.order[q - 1]
        a.place[a.order[q]] = q
    a.order[position + 1] = new
    a.place[new] = position + 1
    a.meta[BLOCKS] += 1
    rebuild_tree(a)


@kernel
def refill_blocks(a: ObjectArrays) -> None:
    numbers = np.empty(a.meta[OBJECTS], np.int32)
    count = 0
    for position in range(a.meta[BLOCKS]):
        block = a.order[position]
        for j in range(a.size[block]):
            numbers[count] = a.member[block, j]
            count += 1
    fill_blocks(a, numbers)


@kernel
def fill_blocks(a: ObjectArrays, numbers: Int32) -> None:
    """Blocks of 16 from objects given in x order."""
    half = BLOCK // 2
    a.size[:] = 0
    for i in range(len(numbers)):
        block, j = i // half, i % half
        a.member[block, j] = numbers[i]
        a.block_of[numbers[i]] = block
        a.size[block] = j + 1
        if j == 0:
            a.low[block] = a.x[numbers[i]] if block else -np.inf
    a.meta[BLOCKS] = max(1, (len(numbers) + half - 1) // half)
    for block in range(a.meta[BLOCKS]):
        a.order[block] = block
        a.place[block] = block
    rebuild_tree(a)


@kernel
def insert_object(a: ObjectArrays, number: int, x: float, y: float) -> None:
    a.x[number] = x
    a.y[number] = y
    position = locate(a, x, False)
    while a.size[a.order[position]] == BLOCK:
        split_block(a, position)
        position = locate(a, x, False)
    block = a.order[position]
    j = a.size[block]
    while j > 0 and a.x[a.member[block, j - 1]] > x:
        a.member[block, j] = a.member[block, j - 1]
        j -= 1
    a.member[block, j] = number
    a.size[block] += 1
    a.block_of[number] = block
    a.meta[OBJECTS] += 1
    raise_winner(a, position)


@kernel
def insert_objects(a: ObjectArrays, numbers: Int64, x: Float64, y: Float64) -> None:
    if a.meta[OBJECTS]:
        for i in range(len(numbers)):
            insert_object(a, numbers[i], x[i], y[i])
        return
    for i in range(len(numbers)):
        a.x[numbers[i]] = x[i]
        a.y[numbers[i]] = y[i]
    a.meta[OBJECTS] = len(numbers)
    fill_blocks(a, numbers[np.argsort(x)].astype(np.int32))


@borrowing_kernel
def delete_object(a: ObjectArrays, number: int) -> None:
    block = a.block_of[number]
    j = 0
    while a.member[block, j] != number:
        j += 1
    a.size[block] -= 1
    for q in range(j, a.size[block]):
        a.member[block, q] = a.member[block, q + 1]
    a.block_of[number] = NONE
    a.meta[OBJECTS] -= 1
    raise_winner(a, a.place[block])


@kernel
def move_all(a: ObjectArrays, numbers: Int64, x: Float64, y: Float64) -> None:
    """Each object to its new place; y = inf takes it out."""
    for i in range(len(numbers)):
        if a.block_of[numbers[i]] >= 0:
            delete_object(a, numbers[i])
        if y[i] < np.inf:
            insert_object(a, numbers[i], x[i], y[i])
