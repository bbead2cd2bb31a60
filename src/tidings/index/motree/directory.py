"""The tree of an MO-Tree: a radix directory of the buckets in use, and the buckets.

A bucket is named by the home cell of its items on each of the H stacked axes (`cells.key_of`). The paper reserves a pointer for
every possible bucket, (sum of cells)^H of them; here a node knows its children by a word of cells in use, and only they exist.

Layout of `Directory`; a pool is cut into blocks of 1 << grade, free blocks of a grade are linked by their first element:

| array         | element                                        | meaning                                                        |
|---------------|------------------------------------------------|----------------------------------------------------------------|
| `node`        | cells u64, start, size, up i32, cell, grade u8 | cells in use, the block, the parent (or the next free node)    |
| `child`       | i32                                            | pool: an inner node's children, node numbers in cell order     |
| `member`      | i32                                            | pool: a bucket's (a node at depth H) members, slots, unordered |
| `near`, `far` | u64                                            | along `member`: the item's steps on all axes                   |
| `until`       | i64                                            | along `member`: when it expires; or of length 0                |
| `slot`        | leaf, place, name i32                          | an item's bucket and place; free: leaf NONE, linked by `place` |
| `table`       | u64                                            | from name to slot, see `slots`                                 |
| `tally`       | i64                                            | counters and heads of free lists, see the constants            |

Invariants: node 0 is the root; only the root may be empty; every other inner node has a child and every bucket a member.
Cost: insert O(H); delete O(1) amortised: a slot knows its member, and the bucket's last member takes its place. Memory: 20 bytes
an item for the member (28 with expiry), 12 for the slot, 16 to 32 for the name, 28 for each bucket and inner node; blocks may be
half empty and arrays a third.

Arrays are of fixed size inside kernels. `has_room` says whether any one item more can be inserted; if not, the owner calls
`roomier`, which copies the tree in the order of a walk (`lay_out`).

Deviations
- A radix directory instead of an array of all buckets: memory follows use.
- Empty buckets and nodes are given back; the paper never merges. It costs O(1) a deletion and keeps walks short.
- A member carries its item's steps: verification starts with one comparison of words and touches the item itself only when all
  axes meet, including axes that are not stacked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, kernel
from tidings.index.motree.slots import enter, forget, new_table, rename
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import popcount, prefetch, wide
from tidings.index.packed.types import Int32, Int64, Uint64

NODE = np.dtype([("cells", "u8"), ("start", "i4"), ("size", "i4"), ("up", "i4"), ("cell", "u1"), ("grade", "u1")], align=True)
SLOT = np.dtype([("leaf", "i4"), ("place", "i4"), ("name", "i4")])

NODES, CHILDREN, MEMBERS, SLOTS = 0, 1, 2, 3
"""`tally`: how far each array is in use."""
ITEMS, FREE_NODE, FREE_SLOT, LARGEST = 4, 5, 6, 7
"""`tally`: items held, heads of free lists (NONE ends one), the largest bucket grade so far."""
FREE_CHILD, FREE_MEMBER = 8, 16
"""`tally`: heads of free blocks, one a grade: 7 and 32 of them."""
TALLIES = 48
BUCKET_GRADE = 1
"""A new bucket has room for two."""


class Directory(NamedTuple):
    node: NDArray[Any]
    child: Int32
    near: Uint64
    far: Uint64
    member: Int32
    until: Int64
    slot: NDArray[Any]
    table: Uint64
    tally: Int64


def new_tally() -> Int64:
    tally = np.full(TALLIES, NONE, np.int64)
    tally[[NODES, CHILDREN, MEMBERS, SLOTS, ITEMS, LARGEST]] = 1, 1, 0, 0, 0, BUCKET_GRADE
    return tally


def new_directory(*, expiring: bool) -> Directory:
    return Directory(
        node=np.zeros(64, NODE),
        child=np.zeros(256, np.int32),
        near=np.zeros(64, np.uint64),
        far=np.zeros(64, np.uint64),
        member=np.zeros(64, np.int32),
        until=np.zeros(64 if expiring else 0, np.int64),
        slot=np.zeros(64, SLOT),
        table=new_table(32),
        tally=new_tally(),
    )


def with_slots(directory: Directory, items: int) -> Directory:
    """Room for `items` more slots and names; growth is geometric."""
    wanted = int(directory.tally[ITEMS]) + items
    if wanted > len(directory.slot):
        directory = directory._replace(slot=longer(directory.slot, wanted))
    if 2 * wanted > len(directory.table):
        table = new_table(wanted)
        rename(directory.table, table)
        directory = directory._replace(table=table)
    return directory


def roomier(directory: Directory, height: int) -> Directory:
    """A larger copy, laid out in the order of a walk; `has_room` for an item more."""
    tally = directory.tally
    nodes, children = 3 * int(tally[NODES]) // 2 + height, 3 * int(tally[CHILDREN]) // 2 + 64 + height
    members = 3 * int(tally[MEMBERS]) // 2 + (2 << int(tally[LARGEST]))
    larger = directory._replace(
        node=np.zeros(nodes, NODE),
        child=np.zeros(children, np.int32),
        near=np.zeros(members, np.uint64),
        far=np.zeros(members, np.uint64),
        member=np.zeros(members, np.int32),
        until=np.zeros(members if len(directory.until) else 0, np.int64),
        tally=new_tally(),
    )
    lay_out(directory, larger, height)
    return larger


def longer(array: NDArray[Any], wanted: int) -> NDArray[Any]:
    """The array with at least `wanted` rows; at least half as many again if it must grow."""
    if wanted <= len(array):
        return array
    grown = np.zeros((max(wanted, len(array) * 3 // 2), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


@borrowing_kernel
def has_room(directory: Directory, height: int) -> bool:
    """Whether any one item can be inserted: a new path, one moved block of children, one moved bucket."""
    tally = directory.tally
    return bool(
        tally[NODES] + height <= directory.node.size
        and tally[CHILDREN] + 64 + height <= directory.child.size
        and tally[MEMBERS] + (2 << tally[LARGEST]) <= directory.member.size
    )


@kernel
def lay_out(old: Directory, new: Directory, height: int) -> None:
    """Copy the tree so that siblings, and the members of neighbouring buckets, lie side by side; slots are shared and follow."""
    stack = np.zeros((64 * height + 1, 3), np.int64)
    top = 1
    while top:
        top -= 1
        number, depth, moved = stack[top]
        node, copy = old.node[number], new.node[moved]
        copy.cells, copy.size, copy.cell = node.cells, node.size, node.cell
        grade = BUCKET_GRADE if depth == height else 0
        while (1 << grade) < node.size:
            grade += 1
        copy.grade = grade
        if depth == height:
            copy.start = take_block(new.member, new.tally, grade, FREE_MEMBER, MEMBERS)
            new.tally[LARGEST] = max(new.tally[LARGEST], grade)
            copy_members(old, node.start, new, copy.start, node.size)
            for at in range(copy.start, copy.start + copy.size):
                new.slot[new.member[at]].leaf = moved
            continue
        copy.start = take_block(new.child, new.tally, grade, FREE_CHILD, CHILDREN)
        for i in range(node.size - 1, -1, -1):
            below = new.tally[NODES] + i
            new.child[copy.start + i] = below
            new.node[below].up = moved
            stack[top] = wide(old.child[node.start + i]), depth + 1, below
            top += 1
        new.tally[NODES] += node.size
    for counter in (SLOTS, ITEMS, FREE_SLOT):
        new.tally[counter] = old.tally[counter]


@borrowing_kernel
def copy_members(old: Directory, begin: int, new: Directory, start: int, count: int) -> None:
    for i in range(count):
        new.near[start + i] = old.near[begin + i]
        new.far[start + i] = old.far[begin + i]
        new.member[start + i] = old.member[begin + i]
    if new.until.size:
        for i in range(count):
            new.until[start + i] = old.until[begin + i]


@borrowing_kernel
def take_slot(directory: Directory, name: int) -> int:
    tally = directory.tally
    slot: int = tally[FREE_SLOT]
    if slot >= 0:
        tally[FREE_SLOT] = directory.slot[slot].place
    else:
        slot = tally[SLOTS]
        tally[SLOTS] += 1
    tally[ITEMS] += 1
    directory.slot[slot].name, directory.slot[slot].leaf = name, NONE
    enter(directory.table, (np.uint64(name) << np.uint64(32)) | np.uint64(slot))
    return slot


@borrowing_kernel
def next_slot(directory: Directory) -> int:
    """The slot that the next new name will take."""
    slot: int = directory.tally[FREE_SLOT]
    return slot if slot >= 0 else directory.tally[SLOTS]


@borrowing_kernel
def leave_slot(directory: Directory, slot: int) -> None:
    forget(directory.table, directory.slot[slot].name)
    directory.slot[slot].leaf = NONE
    directory.slot[slot].place = directory.tally[FREE_SLOT]
    directory.tally[FREE_SLOT] = slot
    directory.tally[ITEMS] -= 1


@borrowing_kernel
def position(directory: Directory, slot: int) -> int:
    """Where an item's member lies."""
    at: int = directory.node[directory.slot[slot].leaf].start + directory.slot[slot].place
    return at


@borrowing_kernel
def take_block(pool: Int32, tally: Int64, grade: int, free: int, end: int) -> int:
    """A block of 1 << grade: a free one, or new at the end of the pool."""
    start: int = tally[free + grade]
    if start >= 0:
        tally[free + grade] = pool[start]
        return start
    start = tally[end]
    tally[end] += 1 << grade
    return start


@borrowing_kernel
def give_block(pool: Int32, tally: Int64, start: int, grade: int, free: int) -> None:
    pool[start] = tally[free + grade]
    tally[free + grade] = start


@borrowing_kernel
def new_node(directory: Directory, up: int, cell: int, grade: int) -> int:
    """An empty node without a block."""
    tally = directory.tally
    number: int = tally[FREE_NODE]
    if number >= 0:
        tally[FREE_NODE] = directory.node[number].up
    else:
        number = tally[NODES]
        tally[NODES] += 1
    node = directory.node[number]
    node.cells = np.uint64(0)
    node.size, node.up, node.cell, node.grade = 0, up, cell, grade
    return number


@borrowing_kernel
def add_child(directory: Directory, parent: int, cell: int, leaf: bool) -> int:
    """A new node for `cell` of `parent`, put among its children in cell order."""
    node, child, tally = directory.node[parent], directory.child, directory.tally
    if node.size == 1 << node.grade:
        start = take_block(child, tally, node.grade + 1, FREE_CHILD, CHILDREN)
        for i in range(node.size):
            child[start + i] = child[node.start + i]
        give_block(child, tally, node.start, node.grade, FREE_CHILD)
        node.start = start
        node.grade += 1
    bit = np.uint64(1) << np.uint64(cell)
    place = node.start + popcount(node.cells & (bit - np.uint64(1)))
    for i in range(node.start + node.size, place, -1):
        child[i] = child[i - 1]
    number = new_node(directory, parent, cell, BUCKET_GRADE if leaf else 0)
    child[place] = number
    node.cells |= bit
    node.size += 1
    if leaf:
        directory.node[number].start = take_block(directory.member, tally, BUCKET_GRADE, FREE_MEMBER, MEMBERS)
    else:
        directory.node[number].start = take_block(child, tally, 0, FREE_CHILD, CHILDREN)
    return number


@borrowing_kernel
def bucket_of(directory: Directory, key: np.uint64, height: int) -> int:
    """The bucket with this key, made if it is not there."""
    number = 0
    for depth in range(height):
        cell = (key >> np.uint64(6 * depth)) & np.uint64(63)
        node = directory.node[number]
        bit = np.uint64(1) << cell
        if node.cells & bit:
            number = wide(directory.child[node.start + popcount(node.cells & (bit - np.uint64(1)))])
        else:
            number = add_child(directory, number, wide(cell), depth == height - 1)
    return number


@borrowing_kernel
def look_ahead(directory: Directory, keys: Uint64, at: Uint64, count: int, height: int) -> None:
    """Fetch into the cache what `insert` will read for these keys, level by level; a path that ends is left. `at` is scratch."""
    at[:count] = 0
    for depth in range(height):
        for i in range(count):
            node = directory.node[at[i]]
            bit = np.uint64(1) << ((keys[i] >> np.uint64(6 * depth)) & np.uint64(63))
            if node.cells & bit:
                at[i] = directory.child[node.start + popcount(node.cells & (bit - np.uint64(1)))]
                prefetch(directory.node, wide(at[i]))
            else:
                at[i] = 0
    for i in range(count):
        end = directory.node[at[i]].start + directory.node[at[i]].size
        prefetch(directory.near, end)
        prefetch(directory.far, end)
        prefetch(directory.member, end)


@borrowing_kernel
def insert(directory: Directory, slot: int, key: np.uint64, near: np.uint64, far: np.uint64, until: int, height: int) -> None:
    """Put an item that has a slot into its bucket. [motree, 4.6]"""
    leaf = bucket_of(directory, key, height)
    node = directory.node[leaf]
    if node.size == 1 << node.grade:
        widen(directory, leaf)
    at = node.start + node.size
    directory.near[at], directory.far[at] = near, far
    directory.member[at] = slot
    if directory.until.size:
        directory.until[at] = until
    directory.slot[slot].leaf, directory.slot[slot].place = leaf, node.size
    node.size += 1


@borrowing_kernel
def widen(directory: Directory, leaf: int) -> None:
    """Move a full bucket to a block of twice the room. Seats count from the bucket's start, so they stay as they are."""
    node = directory.node[leaf]
    grade = wide(node.grade) + 1
    start = take_block(directory.member, directory.tally, grade, FREE_MEMBER, MEMBERS)
    copy_members(directory, node.start, directory, start, node.size)
    give_block(directory.member, directory.tally, node.start, node.grade, FREE_MEMBER)
    directory.tally[LARGEST] = max(directory.tally[LARGEST], grade)
    node.start, node.grade = start, grade


@borrowing_kernel
def remove(directory: Directory, slot: int) -> None:
    """Take an item out of its bucket; it keeps its slot. Buckets and nodes left empty are given back. [motree, 4.6]"""
    number = wide(directory.slot[slot].leaf)
    node = directory.node[number]
    at = position(directory, slot)
    node.size -= 1
    end = node.start + node.size
    # The last member takes the free place: members are unordered, and a bucket has no holes.
    if at != end:
        directory.near[at], directory.far[at] = directory.near[end], directory.far[end]
        directory.member[at] = directory.member[end]
        if directory.until.size:
            directory.until[at] = directory.until[end]
        directory.slot[directory.member[at]].place = at - node.start
    if node.size == 0:
        give_block(directory.member, directory.tally, node.start, node.grade, FREE_MEMBER)
        drop(directory, number)


@borrowing_kernel
def drop(directory: Directory, number: int) -> None:
    """Give an empty node back, and its parents as far as they become empty; the root stays, with its block."""
    size = 0
    while size == 0 and number:
        bit = np.uint64(1) << np.uint64(directory.node[number].cell)
        up = wide(directory.node[number].up)
        directory.node[number].up = directory.tally[FREE_NODE]
        directory.tally[FREE_NODE] = number
        parent = directory.node[up]
        parent.size -= 1
        for i in range(parent.start + popcount(parent.cells & (bit - np.uint64(1))), parent.start + parent.size):
            directory.child[i] = directory.child[i + 1]
        parent.cells &= ~bit
        size = parent.size
        if size == 0 and up:
            give_block(directory.child, directory.tally, parent.start, parent.grade, FREE_CHILD)
        number = up
