"""In which order may scored intervals stand, so that every query meets those it stabs best first?

An interval must stand before each worse interval that it intersects. The paper's graph keeps only the edges between intervals that
see each other: an edge runs from I to J if some point of both lies in no interval of a score between theirs. It has at most 3n
edges and is found in O(n log n); then the arrangement takes, again and again, the leftmost interval that nothing holds back.

Positions. The 2n ends are numbered 0..2n - 1 from left to right, a start before an end of equal value, so that closed intervals
that touch intersect. `start[i]` and `end[i]` are interval i's positions. A *visible block* is a run of positions whose worst
covering interval so far is the same; `owner[p]` is that interval for the block starting at p (NONE: none), and the set of block
starts is a `bitset`, which also serves as the paper's heap in the arrangement.

| array       | shape, dtype    | meaning                                                          |
|-------------|-----------------|------------------------------------------------------------------|
| `head`      | n, int32        | interval's first outgoing edge, NONE when it has none               |
| `edge_to`   | edges, int32    | the interval that an edge holds back                              |
| `edge_next` | edges, int32    | next edge of the same origin, NONE at the end                       |
| `indegree`  | n, int32        | edges that hold the interval back                                 |

[ranked, section 3.2]

Deviations. A balanced tree of visible ends and a heap of free intervals are replaced by bit sets over positions: the same
operations, several times faster. Equal scores are ordered by number, which makes the order of scores total.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64, Uint64
from tidings.index.scored.bitset import add, empty_set, next_member, previous_member, remove


class Graph(NamedTuple):
    head: Int32
    edge_to: Int32
    edge_next: Int32
    indegree: Int32


def end_positions(lo: Float64, hi: Float64) -> tuple[Int32, Int32]:
    """(start, end) of each interval; a stable sort of starts followed by ends puts starts first where values are equal."""
    order = np.argsort(np.concatenate([lo, hi]), kind="stable")
    position = np.empty(order.size, np.int32)
    position[order] = np.arange(order.size, dtype=np.int32)
    return position[: lo.size], position[lo.size :]


def build_graph(start: Int32, end: Int32, order: Int32) -> Graph:
    """The constraint graph of intervals given in `order`, best first."""
    edge_to, edge_next = np.empty(3 * start.size, np.int32), np.empty(3 * start.size, np.int32)
    graph = Graph(np.full(start.size, NONE, np.int32), edge_to, edge_next, np.zeros(start.size, np.int32))
    edges = constraint_graph(start, end, order, *empty_set(2 * start.size), graph)
    return graph._replace(edge_to=edge_to[:edges], edge_next=edge_next[:edges])


def arrangement(start: Int32, graph: Graph) -> Int32:
    """The intervals in the order in which the SOPT-R-tree stores them; `graph`'s indegrees are used up."""
    result = np.empty(start.size, np.int32)
    arrange(start, graph, *empty_set(2 * start.size), result)
    return result


@kernel
def constraint_graph(start: Int32, end: Int32, order: Int32, words: Uint64, offset: Int64, graph: Graph) -> int:
    """Fill the graph; the number of edges. (words, offset) is an empty set of positions.

    [ranked, Alg. 2]
    """
    head, edge_to, edge_next, indegree = graph
    positions = 2 * start.size
    owner = np.full(positions + 1, NONE, np.int32)
    edges = 0
    add(words, offset, 0)
    for interval in order:
        first, last = start[interval], end[interval]
        block = previous_member(words, offset, first)
        covering = owner[block]
        while block != NONE and block <= last:
            covering = owner[block]
            if covering >= 0:
                edge_to[edges] = interval
                edge_next[edges] = head[covering]
                head[covering] = edges
                indegree[interval] += 1
                edges += 1
            if block >= first:
                remove(words, offset, block)
            block = next_member(words, offset, block + 1)
        if last + 1 < positions and block != last + 1:
            add(words, offset, last + 1)
            owner[last + 1] = covering
        add(words, offset, first)
        owner[first] = interval
    return edges


@kernel
def arrange(start: Int32, graph: Graph, words: Uint64, offset: Int64, result: Int32) -> None:
    """Take the leftmost interval of indegree 0 until none is left. (words, offset) is an empty set of positions.

    [ranked, Alg. 1]
    """
    head, edge_to, edge_next, indegree = graph
    at = np.empty(2 * start.size, np.int32)
    for interval in range(start.size):
        at[start[interval]] = interval
        if indegree[interval] == 0:
            add(words, offset, start[interval])
    for place in range(start.size):
        position = next_member(words, offset, 0)
        remove(words, offset, position)
        interval = at[position]
        result[place] = interval
        edge = head[interval]
        while edge != NONE:
            held = edge_to[edge]
            indegree[held] -= 1
            if indegree[held] == 0:
                add(words, offset, start[held])
            edge = edge_next[edge]
