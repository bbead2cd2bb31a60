"""Holes: nodes of a scored R-tree that a query touches and that hold nothing it stabs. [ranked, section 2.2.3]"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.baselines.scored_rtree import ScoredRTree
from experiments.ranked_data import Parameters, generate
from tidings.index.scored.packed_rtree import next_stabbed
from tidings.index.scored.sopt_rtree import SOPTRTree


def holes(parameters: Parameters, skews: list[float]):
    rows = []
    for skew in skews:
        load = generate(replace(parameters, dimensions=1, skew_length=skew))
        column = load.lo[0], load.hi[0], load.score[0]
        row = {"skew": skew}
        for name, index in (("scored R", ScoredRTree(*column)), ("SOPT-R", SOPTRTree.build(*column))):
            out = np.empty(parameters.k, np.int64)
            row[name] = round(float(np.mean([next_stabbed(index.tree, q, 0, out)[2] for q in load.query[:, 0]])), 1)
        rows.append(row)
    return rows


def holes_met(indexes, queries, most: int) -> str:
    """Why the scored R-tree does not fall behind: where its holes lie."""
    nodes = {}
    for name in ("R", "SOPT-R"):
        for count in (20, most):
            out = np.empty(count, np.int64)
            nodes[name, count] = float(np.mean([next_stabbed(indexes[name].tree, q, 0, out)[2] for q in queries[:200]]))
    return (
        "its holes lie among the best scores, which are the shortest intervals in the paper's data (score = 1 - length): nodes "
        f"read for 20 calls {nodes['R', 20]:.0f}, SOPT-R {nodes['SOPT-R', 20]:.0f}; for {most} calls {nodes['R', most]:.0f} and "
        f"{nodes['SOPT-R', most]:.0f}. Later calls meet longer intervals, and no more holes"
    )
