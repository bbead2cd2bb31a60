"""From names to slots: a hash table with open addressing, for structures whose items are named by their callers.

`table[place]` (uint64, a power of two of them, at most half in use) is name << 32 | slot, or VACANT. A name (0 to 2^31 - 1) stands
in the run of entries that begins at `scatter(name)`. Removal moves later entries of the run back, so there are no tombstones.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import borrowing_kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Uint64

Table = Uint64
VACANT = np.uint64(0xFFFFFFFFFFFFFFFF)


def new_table(items: int) -> Table:
    """An empty table with room for `items`, or up to twice as many."""
    return np.full(1 << (2 * items).bit_length(), VACANT, np.uint64)


@borrowing_kernel
def scatter(name: int, size: int) -> int:
    """A name's first place in a table of `size` (a power of two)."""
    return wide(((np.uint64(name) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & np.uint64(size - 1))


@borrowing_kernel
def find(table: Table, name: int) -> int:
    """The slot of a name, or NONE."""
    at = scatter(name, table.size)
    while table[at] != VACANT:
        if table[at] >> np.uint64(32) == np.uint64(name):
            return wide(table[at] & np.uint64(0xFFFFFFFF))
        at = (at + 1) & (table.size - 1)
    return NONE


@borrowing_kernel
def enter(table: Table, entry: np.uint64) -> None:
    at = scatter(wide(entry >> np.uint64(32)), table.size)
    while table[at] != VACANT:
        at = (at + 1) & (table.size - 1)
    table[at] = entry


@borrowing_kernel
def rename(old: Table, new: Table) -> None:
    """All entries of one table into a larger, empty one."""
    for entry in old:
        if entry != VACANT:
            enter(new, entry)


@borrowing_kernel
def forget(table: Table, name: int) -> None:
    """Remove a name; later entries of its run move back, so that there are no tombstones."""
    last = table.size - 1
    hole = scatter(name, table.size)
    while table[hole] >> np.uint64(32) != np.uint64(name):
        hole = (hole + 1) & last
    at = (hole + 1) & last
    while table[at] != VACANT:
        wanted = scatter(wide(table[at] >> np.uint64(32)), table.size)
        if ((at - wanted) & last) >= ((at - hole) & last):
            table[hole] = table[at]
            hole = at
        at = (at + 1) & last
    table[hole] = VACANT
