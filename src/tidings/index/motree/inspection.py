"""Looking into a MO-Tree's directory from outside: its invariants, and how its items are spread. Plain Python."""

from __future__ import annotations

import numpy as np

from tidings.index.motree.cells import Cells, key_of
from tidings.index.motree.directory import ITEMS, SLOTS, Directory
from tidings.index.motree.slots import VACANT, find
from tidings.index.packed.types import Int64


def check(directory: Directory, cells: Cells, height: int) -> None:
    """Every invariant of the header, and that each item lies in the bucket of its steps."""
    node, slot = directory.node, directory.slot
    seen = 0
    stack = [(0, 0, 0)]
    while stack:
        number, depth, key = stack.pop()
        start, size, grade = (int(node[number][field]) for field in ("start", "size", "grade"))
        assert size <= 1 << grade
        assert size > 0 or number == 0
        if depth == height:
            for at in range(start, start + size):
                own = slot[directory.member[at]]
                assert (own["leaf"], own["place"]) == (number, at - start)
                assert find(directory.table, int(own["name"])) == directory.member[at]
                assert key_of(cells, directory.near[at], directory.far[at], height) == key
            seen += size
            continue
        used = [cell for cell in range(64) if int(node[number]["cells"]) >> cell & 1]
        assert len(used) == size
        for cell, below in zip(used, directory.child[start : start + size].tolist(), strict=True):
            assert (node[below]["up"], node[below]["cell"]) == (number, cell)
            stack.append((below, depth + 1, key | cell << 6 * depth))
    assert seen == directory.tally[ITEMS] == len(held_slots(directory)) == int((directory.table != VACANT).sum())


def held_slots(directory: Directory) -> Int64:
    return np.flatnonzero(directory.slot["leaf"][: directory.tally[SLOTS]] >= 0)


def bucket_sizes(directory: Directory) -> Int64:
    """How many items each bucket in use holds."""
    counts = np.bincount(directory.slot["leaf"][held_slots(directory)])
    return counts[counts > 0]


def cell_totals(directory: Directory, height: int, axis: int) -> Int64:
    """How many items live in each cell of a stacked axis."""
    node = directory.node
    leaf = directory.slot["leaf"][held_slots(directory)]
    for _ in range(height - 1 - axis):
        leaf = node["up"][leaf]
    return np.bincount(node["cell"][leaf], minlength=64)
