"""Walks over the directory of an MO-Tree: from the cells that a query visits to the items whose steps meet the query's.

A walk stands at depth d on node path[d], whose children todo[d] (a word of cells) are still to come. It hands out buckets in lots,
as the paper's BucketList, so that the memory of the buckets ahead can be fetched while one is scanned: a bucket holds few items,
and a walk's cost is that of reaching them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.index.motree.cells import Cells, meet, reach
from tidings.index.motree.directory import Directory
from tidings.index.packed.groups import grown
from tidings.index.packed.simd import popcount, prefetch, wide
from tidings.index.packed.types import Int32, Int64, Uint64

Slots = Int32
QUERIES, BUCKETS, CANDIDATES, VERIFIED, MATCHES = range(5)
"""Counters of the work done: queries, buckets visited, members in them, those verified exactly, those that matched."""
COUNTERS = ("queries", "buckets", "candidates", "verified", "matches")
LOT = 256
AHEAD = 8


class Tree(NamedTuple):
    """What a question goes through: the first `height` axes of the cells are stacked in the directory."""

    cells: Cells
    directory: Directory
    height: int
    counter: Int64


class Walk(NamedTuple):
    visit: Uint64
    todo: Uint64
    path: Int64
    bucket: Int32


@kernel
def new_walk(height: int) -> Walk:
    return Walk(np.zeros(8, np.uint64), np.zeros(height, np.uint64), np.zeros(height, np.int64), np.empty(LOT, np.int32))


@borrowing_kernel
def start_walk(walk: Walk, cells: Cells, directory: Directory, near: np.uint64, far: np.uint64) -> None:
    reach(cells, near, far, walk.visit)
    walk.path[0] = 0
    for depth in range(walk.todo.size):
        walk.todo[depth] = np.uint64(0)
    walk.todo[0] = directory.node[0].cells & walk.visit[0]


@borrowing_kernel
def next_buckets(walk: Walk, directory: Directory) -> int:
    """Walk on, depth first, and list the next buckets all of whose cells are visited; how many, 0 at the end.

    A bucket is always the child of a node at the deepest inner depth, so the walk resumes there. [motree, Alg. 1, line 10]
    """
    todo, path = walk.todo, walk.path
    deepest = todo.size - 1
    depth = deepest
    count = 0
    while depth >= 0 and count < LOT:
        if todo[depth] == 0:
            depth -= 1
            continue
        # The lowest cell still to visit; how many cells in use lie below it is its place among the children.
        bit = todo[depth] & (~todo[depth] + np.uint64(1))
        todo[depth] ^= bit
        node = directory.node[path[depth]]
        number = directory.child[node.start + popcount(node.cells & (bit - np.uint64(1)))]
        if depth == deepest:
            prefetch(directory.node, number)
            walk.bucket[count] = number
            count += 1
        else:
            depth += 1
            path[depth] = number
            todo[depth] = directory.node[number].cells & walk.visit[depth]
    return count


@kernel
def listed(
    directory: Directory, met: Slots, kept: int, query: int, out: Slots, name: Slots, matches: int
) -> tuple[Slots, Slots, int]:
    """Append (query, name) of the first `kept` slots met to (out, name), longer if need be; how many matches there are then."""
    out, name = grown(out, matches, kept), grown(name, matches, kept)
    for i in range(kept):
        out[matches + i], name[matches + i] = query, directory.slot[met[i]].name
    return out, name, matches + kept


@borrowing_kernel
def count_work(counter: Int64, buckets: int, candidates: int, verified: int) -> None:
    counter[BUCKETS] += buckets
    counter[CANDIDATES] += candidates
    counter[VERIFIED] += verified


@borrowing_kernel
def members_in(walk: Walk, directory: Directory, count: int) -> int:
    """How many members the buckets of a lot hold."""
    node, bucket = directory.node, walk.bucket
    total = 0
    for i in range(count):
        total += node[bucket[i]].size
    return total


@borrowing_kernel
def scan(walk: Walk, directory: Directory, count: int, near: np.uint64, far: np.uint64, met: Int32) -> int:
    """The slots of a lot's items that meet a question (`asking`); how many."""
    node, bucket, near_word, far_word, member = directory.node, walk.bucket, directory.near, directory.far, directory.member
    found = 0
    for i in range(count):
        if i + AHEAD < count:
            prefetch(near_word, node[bucket[i + AHEAD]].start)
        start = wide(node[bucket[i]].start)
        for at in range(start, start + node[bucket[i]].size):
            if meet(near, near_word[at]) and meet(far, far_word[at]):
                met[found] = member[at]
                found += 1
    return found


@borrowing_kernel
def scan_live(
    walk: Walk, directory: Directory, count: int, near: np.uint64, far: np.uint64, now: int, met: Int32, expired: Int32
) -> tuple[int, int]:
    """The same, but for items not expired at `now`; the expired ones apart, all of them. [motree, Alg. 1, lines 11-14]"""
    node, bucket, near_word, until, member = directory.node, walk.bucket, directory.near, directory.until, directory.member
    found = old = 0
    for i in range(count):
        if i + AHEAD < count:
            start = node[bucket[i + AHEAD]].start
            prefetch(near_word, start)
            prefetch(until, start)
        start = wide(node[bucket[i]].start)
        for at in range(start, start + node[bucket[i]].size):
            if until[at] <= now:
                expired[old] = member[at]
                old += 1
            elif meet(near, near_word[at]) and meet(far, directory.far[at]):
                met[found] = member[at]
                found += 1
    return found, old
