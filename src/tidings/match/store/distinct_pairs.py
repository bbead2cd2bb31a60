"""Pairs of an event's row and an ordinal, in order and each once: a subscription of several clauses may match by more than one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.match.store.hits import Pairs


def distinct(event: NDArray[np.int32], owner: NDArray[np.int32]) -> Pairs:
    """Pairs in order, each once: a subscription of several clauses may have matched by more than one."""
    if (event[1:] >= event[:-1]).all():
        kept = distinct_runs(event, owner)
        return event[:kept], owner[:kept]
    key = event.astype(np.int64) << 32
    key |= owner
    key.sort()
    if not (key[1:] > key[:-1]).all():
        key = key[np.concatenate(([True], key[1:] > key[:-1]))]
    return (key >> 32).astype(np.int32), key.astype(np.int32)


@kernel
def distinct_runs(event: NDArray[np.int32], owner: NDArray[np.int32]) -> int:
    """Sort the owners of each run of equal events, in place, and drop those that repeat; how many pairs are left."""
    kept = first = 0
    while first < event.size:
        end = first + 1
        while end < event.size and event[end] == event[first]:
            end += 1
        if end - first > 1:
            owner[first:end].sort()
        here = event[first]
        for i in range(first, end):
            if i == first or owner[i] != owner[i - 1]:
                event[kept], owner[kept] = here, owner[i]
                kept += 1
        first = end
    return kept
