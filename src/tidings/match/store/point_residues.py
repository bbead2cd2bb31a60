"""Residues on the place of events that are points, judged many at once: a polygon is asked once for all points in its box.

Candidates are pairs (event, clause). Those of one clause, if they are FEW or more, are judged by one call of shapely for each of
its residues that can (`Residue.points`); every other pair is left to the clause or residue itself, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tidings.model.filter.clause import Residue

FEW = 4
"""Fewer than so many pairs are judged one by one in less time."""


def judge_points(
    event: NDArray[np.int32],
    clause: NDArray[np.int32],
    box: NDArray[np.float64],
    residues: Callable[[int], Sequence[Residue]],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which pairs fail, and which are settled: they fail, or all residues of the clause hold. `box` is that of each event."""
    failed, settled = np.zeros(len(event), np.bool_), np.zeros(len(event), np.bool_)
    order = np.argsort(clause, kind="stable")
    first = np.flatnonzero(np.diff(clause[order], prepend=-1))
    for pairs in np.split(order, first[1:]):
        tests = residues(int(clause[pairs[0]])) if len(pairs) >= FEW else ()
        if not any(residue.points for residue in tests):
            continue
        where = box[event[pairs]]
        points = (where[:, 0] == where[:, 2]) & (where[:, 1] == where[:, 3])
        pairs, x, y = pairs[points], where[points, 0], where[points, 1]
        held = np.ones(len(pairs), np.bool_)
        for residue in tests:
            if residue.points is not None and len(pairs):
                held &= residue.points(x, y)
        failed[pairs[~held]] = settled[pairs[~held]] = True
        if all(residue.points for residue in tests):
            settled[pairs] = True
    return failed, settled
