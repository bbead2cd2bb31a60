"""An SOPT order: scored intervals as `constraint_graph` arranges them, its edges, and a query that reads them best first."""

from __future__ import annotations

import numpy as np

from docs.figures.canvas import BLUE, GROUND, INK, ORANGE, SOFT, sheet, svg
from tidings.index.packed.sentinels import NONE
from tidings.index.scored.constraint_graph import arrangement, build_graph, end_positions
from tidings.index.scored.sopt_rtree import SOPTRTree, best_first

LO = np.array([1.0, 0.5, 4.0, 6.5, 2.5, 7.5, 5.0, 0.0, 8.5, 3.0])
HI = np.array([3.5, 2.0, 7.0, 8.0, 5.5, 9.5, 6.0, 9.0, 10.0, 4.5])
SCORE = np.array([9.0, 4.0, 8.0, 6.0, 7.0, 5.0, 3.0, 1.0, 2.0, 6.5])
QUERY, K = 4.25, 3


def draw() -> str:
    start, end = end_positions(LO, HI)
    graph = build_graph(start, end, best_first(SCORE, np.empty(0, np.int64)))
    held = [(i, int(graph.edge_to[e])) for i in range(len(LO)) for e in edges_of(graph.head, graph.edge_next, i)]
    order = arrangement(start, graph)
    place = np.argsort(order)
    found = SOPTRTree.build(LO, HI, SCORE).topk(QUERY, K).tolist()
    figure, (axes,) = sheet(7.2, 3.9)
    for before, after in held:
        axes.annotate(
            "",
            (middle(after), place[after] - 0.12),
            (middle(before), place[before] + 0.12),
            arrowprops={"arrowstyle": "->", "color": SOFT, "lw": 0.8, "shrinkA": 0, "shrinkB": 0},
            zorder=1,
        )
    for interval in order.tolist():
        colour = ORANGE if interval in found else BLUE
        axes.plot([LO[interval], HI[interval]], [place[interval]] * 2, color=colour, lw=5, solid_capstyle="round", zorder=2)
        rank = f"   #{found.index(interval) + 1} for the query" if interval in found else ""
        label = axes.text(HI[interval] + 0.18, place[interval], f"score {SCORE[interval]:g}{rank}", va="center", fontsize=8.5)
        label.set_bbox({"facecolor": GROUND, "edgecolor": "none", "pad": 0.8})
    axes.axvline(QUERY, color=INK, lw=1, ls=(0, (3, 3)), zorder=1)
    axes.set(
        xlim=(-0.3, 12.4), ylim=(len(LO) - 0.5, -0.7), xlabel="value", ylabel="place in the arrangement", yticks=range(len(LO))
    )
    return svg(figure)


def edges_of(head: np.ndarray, following: np.ndarray, interval: int) -> list[int]:
    found, edge = [], int(head[interval])
    while edge != NONE:
        found.append(edge)
        edge = int(following[edge])
    return found


def middle(interval: int) -> float:
    return float(LO[interval] + HI[interval]) / 2
