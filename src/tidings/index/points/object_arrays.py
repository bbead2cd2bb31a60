"""The arrays of an `ObjectIndex`.

Objects are numbers of the caller's choice, kept in blocks in x order under a tournament tree.

| array      | shape, dtype   | meaning                                                                                |
|------------|----------------|----------------------------------------------------------------------------------------|
| `x`, `y`, `tie` | n, float64 | the object's place, height and tie-break                                              |
| `block_of` | n, int32       | its block; -1 absent                                                                    |
| `size`     | b, int32       | members of a block                                                                      |
| `member`   | b x 32, int32  | object numbers, ascending by x                                                          |
| `low`      | b, float64     | every member's x >= low; every member of an earlier block has x <= low                  |
| `order`    | b, int32       | blocks in x order                                                                       |
| `place`    | b, int32       | the inverse of `order`                                                                  |
| `tree`     | 2p, int32      | node v's best object is tree[v]; children 2v, 2v + 1; position q's leaf is p + q; -1 none |
| `stack`    | 64, int64      | room for the nodes that `min_y` has yet to visit                                        |
| `meta`     | 4, int64       | blocks in use, objects, calls of first_k, calls of min_y                                |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64

BLOCK = 32
"""Members that a block can hold."""
BLOCKS, OBJECTS, FIRST_K_CALLS, MIN_Y_CALLS = 0, 1, 2, 3
"""Places in `meta`."""


class ObjectArrays(NamedTuple):
    x: Float64
    y: Float64
    tie: Float64
    block_of: Int32
    """These by object."""
    size: Int32
    member: Int32
    low: Float64
    order: Int32
    place: Int32
    """These by block."""
    tree: Int32
    stack: Int64
    meta: Int64


def allocate(capacity: int) -> ObjectArrays:
    blocks = capacity // 8 + 2
    leaves = 1 << (blocks - 1).bit_length()
    meta = np.zeros(4, np.int64)
    meta[BLOCKS] = 1
    return ObjectArrays(
        x=np.zeros(capacity),
        y=np.zeros(capacity),
        tie=np.zeros(capacity),
        block_of=np.full(capacity, NONE, np.int32),
        size=np.zeros(blocks, np.int32),
        member=np.zeros((blocks, BLOCK), np.int32),
        low=np.full(blocks, -np.inf),
        order=np.zeros(blocks, np.int32),
        place=np.zeros(blocks, np.int32),
        tree=np.full(2 * leaves, NONE, np.int32),
        stack=np.zeros(64, np.int64),
        meta=meta,
    )
