"""The R-tree at a node of the IR-tree: entries in the order of (score desc, number asc), extents above them, both updatable.

A B+-tree whose order is the score and whose inner entries also carry the extent of what lies below, so that one left-first search
gives the stabbed intervals best first. All trees share one pool of blocks of 64 entries; entry e of block b lies at 64 b + e.

| array   | shape, dtype      | meaning                                                                                 |
|---------|-------------------|-----------------------------------------------------------------------------------------|
| `lo32`  | 64 blocks, float32| leaf: rounded lower end; inner: least lower end below. Unused entries: NaN               |
| `hi32`  | 64 blocks, float32| the same of the upper end, and the greatest. Unused entries: NaN                         |
| `item`  | 64 blocks, int32  | leaf: the interval's number; inner: the child block                                      |
| `score` | 64 blocks, float64| leaf: the score; inner: the score of the first entry below                               |
| `used`  | blocks, int32     | used entries, the first of the block; 0 for a free block                                 |
| `free`  | blocks, int32     | stack of free blocks, used up to state[FREE]                                             |
| `state` | 1, int64          | how many blocks are free                                                                 |

A tree is (root, height): the root block (NONE: the tree is empty), and how many levels lie above the leaves. Blocks have at least
one entry; a block that shrinks below a quarter is merged with a neighbour when the two fit in three quarters of one. Callers see
to it that enough blocks are free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.groups import copy_into
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float32, Float64, Int32, Int64

WIDTH = 64
FILL = 56
MAX_HEIGHT = 8
FREE = 0


class Pool(NamedTuple):
    lo32: Float32
    hi32: Float32
    item: Int32
    score: Float64
    used: Int32
    free: Int32
    state: Int64


def new_pool(blocks: int) -> Pool:
    return Pool(
        np.full(blocks * WIDTH, np.nan, np.float32),
        np.full(blocks * WIDTH, np.nan, np.float32),
        np.full(blocks * WIDTH, NONE, np.int32),
        np.zeros(blocks * WIDTH, np.float64),
        np.zeros(blocks, np.int32),
        np.arange(blocks - 1, -1, -1, dtype=np.int32),
        np.asarray([blocks], np.int64),
    )


def grown_pool(pool: Pool, blocks: int) -> Pool:
    """The same pool with `blocks` blocks in all; the new ones are free."""
    grown = new_pool(blocks)
    copy_into(pool, grown)
    grown.state[FREE] = grown_free(pool.free, int(pool.state[FREE]), pool.used.size, grown.free)
    return grown


def grown_free(old: Int32, spare: int, had: int, new: Int32) -> int:
    """Fill the free stack of a pool that had `had` members and `spare` of them free; how many are free now. Low ones go first."""
    more = new.size - had
    new[:more] = np.arange(new.size - 1, had - 1, -1)
    new[more : more + spare] = old[:spare]
    return more + spare


@kernel
def take_block(pool: Pool) -> int:
    free, state = pool.free, pool.state
    assert state[FREE] > 0
    state[FREE] -= 1
    return int(free[state[FREE]])


@kernel
def drop_block(pool: Pool, block: int) -> None:
    lo32, hi32, count, free, state = pool.lo32, pool.hi32, pool.used, pool.free, pool.state
    lo32[block * WIDTH : block * WIDTH + WIDTH] = np.nan
    hi32[block * WIDTH : block * WIDTH + WIDTH] = np.nan
    count[block] = 0
    free[state[FREE]] = block
    state[FREE] += 1


@kernel
def rank_in_block(pool: Pool, block: int, level: int, score: float, number: int) -> int:
    """How many entries of the block stand before (score, number); an inner entry stands where its first interval does."""
    items, scores, count = pool.item, pool.score, pool.used
    low, high = 0, count[block]
    while low < high:
        middle = (low + high) >> 1
        entry = block * WIDTH + middle
        before = scores[entry] > score
        if scores[entry] == score:
            first = items[entry]
            for _ in range(level):
                first = items[first * WIDTH]
            before = first < number
        if before:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def put_entry(pool: Pool, block: int, slot: int, item: int, lo: np.float32, hi: np.float32, score: float) -> None:
    """Insert an entry into a block that has room."""
    lo32, hi32, items, scores, count = pool.lo32, pool.hi32, pool.item, pool.score, pool.used
    end = block * WIDTH + count[block]
    at = block * WIDTH + slot
    for entry in range(end, at, -1):
        lo32[entry], hi32[entry] = lo32[entry - 1], hi32[entry - 1]
        items[entry], scores[entry] = items[entry - 1], scores[entry - 1]
    lo32[at], hi32[at], items[at], scores[at] = lo, hi, item, score
    count[block] += 1


@kernel
def remove_entry(pool: Pool, block: int, slot: int) -> None:
    lo32, hi32, items, scores, count = pool.lo32, pool.hi32, pool.item, pool.score, pool.used
    last = block * WIDTH + count[block] - 1
    for entry in range(block * WIDTH + slot, last):
        lo32[entry], hi32[entry] = lo32[entry + 1], hi32[entry + 1]
        items[entry], scores[entry] = items[entry + 1], scores[entry + 1]
    lo32[last], hi32[last] = np.nan, np.nan
    count[block] -= 1


@kernel
def move_tail(pool: Pool, source: int, first: int, target: int) -> None:
    """Append the entries of `source` from slot `first` on to `target`."""
    lo32, hi32, items, scores, count = pool.lo32, pool.hi32, pool.item, pool.score, pool.used
    for entry in range(source * WIDTH + first, source * WIDTH + count[source]):
        to = target * WIDTH + count[target]
        lo32[to], hi32[to], items[to], scores[to] = lo32[entry], hi32[entry], items[entry], scores[entry]
        lo32[entry], hi32[entry] = np.nan, np.nan
        count[target] += 1
    count[source] = first


@kernel
def put_or_split(pool: Pool, block: int, slot: int, item: int, lo: np.float32, hi: np.float32, score: float) -> int:
    """Insert an entry; the new right half when the block had to be split, else NONE."""
    if pool.used[block] < WIDTH:
        put_entry(pool, block, slot, item, lo, hi, score)
        return NONE
    right = take_block(pool)
    move_tail(pool, block, WIDTH // 2, right)
    if slot <= WIDTH // 2:
        put_entry(pool, block, slot, item, lo, hi, score)
    else:
        put_entry(pool, right, slot - WIDTH // 2, item, lo, hi, score)
    return right


@kernel
def extent(pool: Pool, block: int) -> tuple[np.float32, np.float32]:
    lo32, hi32, count = pool.lo32, pool.hi32, pool.used
    used = slice(block * WIDTH, block * WIDTH + count[block])
    return lo32[used].min(), hi32[used].max()


@kernel
def put_child(pool: Pool, parent: int, slot: int, child: int) -> int:
    """Insert a child's entry; the parent's new right half when it had to be split, else NONE."""
    low, high = extent(pool, child)
    return put_or_split(pool, parent, slot, child, low, high, pool.score[child * WIDTH])


@kernel
def refresh(pool: Pool, parent: int, slot: int) -> None:
    """Make an inner entry say what its child holds."""
    lo32, hi32, items, scores = pool.lo32, pool.hi32, pool.item, pool.score
    entry = parent * WIDTH + slot
    lo32[entry], hi32[entry] = extent(pool, items[entry])
    scores[entry] = scores[items[entry] * WIDTH]


@kernel
def descend(pool: Pool, root: int, height: int, score: float, number: int, blocks: Int64, slots: Int64) -> None:
    """The way to (score, number): `blocks[level]` and `slots[level]`; at level 0 the slot where it stands or belongs."""
    block = root
    for level in range(height, 0, -1):
        blocks[level] = block
        # The last child that does not begin after it; what stands before all children goes into the first.
        slots[level] = max(0, rank_in_block(pool, block, level, score, number + 1) - 1)
        block = pool.item[block * WIDTH + slots[level]]
    blocks[0] = block
    slots[0] = rank_in_block(pool, block, 0, score, number)


@kernel
def tree_insert(pool: Pool, root: int, height: int, number: int, lo: np.float32, hi: np.float32, score: float) -> tuple[int, int]:
    """The tree (root, height) with one interval more."""
    if root < 0:
        block = take_block(pool)
        put_entry(pool, block, 0, number, lo, hi, score)
        return block, 0
    blocks, slots = np.empty(MAX_HEIGHT, np.int64), np.empty(MAX_HEIGHT, np.int64)
    descend(pool, root, height, score, number, blocks, slots)
    right = put_or_split(pool, blocks[0], slots[0], number, lo, hi, score)
    for level in range(1, height + 1):
        refresh(pool, blocks[level], slots[level])
        if right >= 0:
            right = put_child(pool, blocks[level], slots[level] + 1, right)
    if right < 0:
        return root, height
    top = take_block(pool)
    put_child(pool, top, 0, root)
    put_child(pool, top, 1, right)
    return top, height + 1


@kernel
def tree_delete(pool: Pool, root: int, height: int, number: int, score: float) -> tuple[int, int]:
    """The tree (root, height) without the interval, which it holds."""
    items, count = pool.item, pool.used
    blocks, slots = np.empty(MAX_HEIGHT, np.int64), np.empty(MAX_HEIGHT, np.int64)
    descend(pool, root, height, score, number, blocks, slots)
    assert items[blocks[0] * WIDTH + slots[0]] == number
    remove_entry(pool, blocks[0], slots[0])
    for level in range(1, height + 1):
        parent, slot = blocks[level], slots[level]
        child = items[parent * WIDTH + slot]
        if count[child] == 0:
            drop_block(pool, child)
            remove_entry(pool, parent, slot)
            continue
        refresh(pool, parent, slot)
        if count[child] < WIDTH // 4:
            merge_child(pool, parent, slot)
    while height > 0 and count[root] == 1:
        child = items[root * WIDTH]
        drop_block(pool, root)
        root, height = child, height - 1
    if count[root] == 0:
        drop_block(pool, root)
        return NONE, 0
    return root, height


@kernel
def merge_child(pool: Pool, parent: int, slot: int) -> None:
    """Join a small child with its right or left neighbour when they fit into three quarters of a block."""
    items, count = pool.item, pool.used
    for left in (slot, slot - 1):
        if left < 0 or left + 1 >= count[parent]:
            continue
        first, second = items[parent * WIDTH + left], items[parent * WIDTH + left + 1]
        if count[first] + count[second] <= WIDTH * 3 // 4:
            move_tail(pool, second, 0, first)
            drop_block(pool, second)
            remove_entry(pool, parent, left + 1)
            refresh(pool, parent, left)
            return


@kernel
def tree_build(pool: Pool, numbers: Int32, lo: Float64, hi: Float64, score: Float64) -> tuple[int, int]:
    """The tree of `numbers`, which stand in their order already; `lo`, `hi` and `score` are indexed by number."""
    if numbers.size == 0:
        return NONE, 0
    level = np.empty((numbers.size + FILL - 1) // FILL, np.int64)
    for index in range(level.size):
        level[index] = take_block(pool)
        for slot, number in enumerate(numbers[index * FILL : (index + 1) * FILL]):
            put_entry(pool, level[index], slot, number, np.float32(lo[number]), np.float32(hi[number]), score[number])
    height = 0
    while level.size > 1:
        above = np.empty((level.size + FILL - 1) // FILL, np.int64)
        for index in range(above.size):
            above[index] = take_block(pool)
            for slot, child in enumerate(level[index * FILL : (index + 1) * FILL]):
                put_child(pool, above[index], slot, child)
        level = above
        height += 1
    return level[0], height


@kernel
def tree_take(pool: Pool, root: int, height: int, numbers: Int32, at: int) -> int:
    """Empty the tree: its intervals go to numbers[at:], in their order, and its blocks are free again. The new end."""
    if root < 0:
        return at
    items, count = pool.item, pool.used
    blocks, slots = np.empty(MAX_HEIGHT, np.int64), np.zeros(MAX_HEIGHT, np.int64)
    level = height
    blocks[level] = root
    while level <= height:
        block = blocks[level]
        if level == 0:
            for entry in range(block * WIDTH, block * WIDTH + count[block]):
                numbers[at] = items[entry]
                at += 1
        if level == 0 or slots[level] == count[block]:
            drop_block(pool, block)
            level += 1
            continue
        slots[level] += 1
        blocks[level - 1] = items[block * WIDTH + slots[level] - 1]
        slots[level - 1] = 0
        level -= 1
    return at
