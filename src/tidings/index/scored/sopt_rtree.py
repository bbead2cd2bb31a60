"""SOPT-R-tree: the best k of the scored intervals that contain a point, from a static and very small structure.

The intervals stand in the arrangement of `constraint_graph`, in which any two that intersect stand best first, under the R-tree
of `packed_rtree`. A left-first search then meets the stabbed intervals in the order of their scores and stops at the k-th; at
every level at least one of two visited nodes leads to a stabbed interval, so a query costs O(64 k log64 n).

| array     | shape, dtype         | meaning                                                                               |
|-----------|----------------------|---------------------------------------------------------------------------------------|
| the tree  | see `packed_rtree`   | intervals in arrangement order                                                         |
| the bounds| see `packed_rtree`   | of the scores, for events that are ranges and for scores that depend on the event     |
| `number`  | n or 0, int64        | the interval's number by row (size 0: the row is the number)                          |
| `edges`   | 1, int64             | edges of the constraint graph, at most 3n                                             |

`nbytes` counts what the structure adds to the caller's columns (lo, hi, score, coefficients): 12.3 bytes an interval.

[ranked, section 3.2]

Deviations. b is 64, one machine word of hits for each node, where the paper has 50; nodes carry no child pointers. Live marks let
one delete from a static tree. Events that are ranges and scores that depend on the event are asked for in the paper's section 6;
two intervals that meet a range need not intersect, so their order in the arrangement says nothing, and these questions are
answered by a search with bounds instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.index.packed.groups import part_of
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.scored.constraint_graph import arrangement, build_graph, end_positions
from tidings.index.scored.packed_rtree import Bounds, Tree, bounded_search, bounds_of, next_stabbed, pack, stab_batch

NO_NUMBERS = np.empty(0, np.int64)


class SOPTRTree:
    """Answers `ScoredIntervals`. Build it from columns; it does not change, except that rows may die."""

    def __init__(self, tree: Tree, bounds: Bounds, number: Int64, edges: int) -> None:
        self.tree, self.bounds, self.number, self.edges = tree, bounds, number, edges

    @classmethod
    def build(
        cls, lo: Float64, hi: Float64, score: Float64, number: Int64 = NO_NUMBERS, coefficient: Float64 | None = None
    ) -> SOPTRTree:
        """Closed intervals [lo, hi] (ends may be infinite) with scores; equal scores are ordered by number.

        `coefficient` (n x j) makes `topk_event` rank by `score + sum of coefficient * attribute`.
        """
        lo, hi, score = (np.ascontiguousarray(column, np.float64) for column in (lo, hi, score))
        start, end = end_positions(lo, hi)
        graph = build_graph(start, end, best_first(score, number))
        row = arrangement(start, graph)
        tree = Tree(*pack(lo[row], hi[row]), row, lo, hi, np.empty(0, np.bool_))
        columns = np.empty((len(lo), 0)) if coefficient is None else np.ascontiguousarray(coefficient, np.float64)
        return cls(tree, bounds_of(tree, score, columns), number, graph.edge_to.size)

    def __len__(self) -> int:
        return len(self.tree.row)

    def topk(self, q: float, k: int) -> Int64:
        out = np.empty(max(k, 0), np.int64)
        found, _, _ = next_stabbed(self.tree, float(q), 0, out)
        return self._numbers(out[:found])

    def topk_batch(self, q: Float64, k: int) -> Int64:
        """One row for each query, padded with NONE."""
        out = np.empty((len(q), k), np.int64)
        stab_batch(self.tree, np.ascontiguousarray(q, np.float64), out)
        return np.where(out >= 0, self.number[out], NONE) if self.number.size else out

    def topk_range(self, qlo: float, qhi: float, k: int) -> Int64:
        """The best k of the intervals that share a point with [qlo, qhi]."""
        return self._search(qlo, qhi, np.empty(0), k)[0]

    def topk_event(self, qlo: float, qhi: float, attribute: Float64, k: int) -> tuple[Int64, Float64]:
        """The same by the score that this event's attributes (one for each coefficient) give: (numbers, scores)."""
        return self._search(qlo, qhi, np.ascontiguousarray(attribute, np.float64), k)

    def getnext(self, q: float) -> Iterator[int]:
        """Fetches ahead in growing portions, so a long iteration costs little more than one `topk`."""
        at, portion = 0, 16
        while at >= 0:
            out = np.empty(portion, np.int64)
            found, at, _ = next_stabbed(self.tree, float(q), at, out)
            yield from self._numbers(out[:found]).tolist()
            portion = min(2 * portion, 4096)

    def delete_row(self, row: int) -> None:
        """Mark a row dead; the arrangement of the others stays right."""
        if not self.tree.alive.size:
            self.tree = self.tree._replace(alive=np.ones(len(self), np.bool_))
        self.tree.alive[row] = False

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, by name, for a memory-mapped segment."""
        edges = np.asarray([self.edges], np.int64)
        return {**self.tree._asdict(), **self.bounds._asdict(), "number": self.number, "edges": edges}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SOPTRTree:
        tree, bounds = part_of(Tree, arrays), part_of(Bounds, arrays)
        return cls(tree, bounds, arrays["number"], int(arrays["edges"][0]))

    def check(self) -> None:
        """Layout, extents, bounds, the bound on edges, and that the arrangement respects the constraint graph."""
        lo32, hi32, offset, row, lo, hi, alive = self.tree
        n = len(row)
        assert np.array_equal(np.sort(row), np.arange(n))
        assert alive.size in (0, n)
        made = [*pack(lo[row], hi[row]), *bounds_of(self.tree, self.bounds.score, self.bounds.coefficient)]
        for stored, wanted in zip([lo32, hi32, offset, *self.bounds], made, strict=True):
            assert np.array_equal(np.asarray(stored), np.asarray(wanted), equal_nan=True)
        place = np.empty(n, np.int64)
        place[row] = np.arange(n)
        graph = build_graph(*end_positions(lo, hi), best_first(self.bounds.score, self.number))
        assert self.edges == graph.edge_to.size <= 3 * n
        for interval in range(n):
            edge = graph.head[interval]
            while edge != NONE:
                assert place[interval] < place[graph.edge_to[edge]]
                edge = graph.edge_next[edge]

    def visits(self, q: float, k: int) -> int:
        """Nodes that `topk(q, k)` reads, the paper's counter."""
        return int(next_stabbed(self.tree, float(q), 0, np.empty(k, np.int64))[2])

    @property
    def nbytes(self) -> int:
        callers = {"lo", "hi", "score", "coefficient"}
        own = {**self.tree._asdict(), **self.bounds._asdict()}
        return sum(array.nbytes for name, array in own.items() if name not in callers)

    def _numbers(self, rows: Int64) -> Int64:
        return self.number[rows] if self.number.size else rows

    def _search(self, qlo: float, qhi: float, attribute: Float64, k: int) -> tuple[Int64, Float64]:
        scores, numbers = np.empty(max(k, 0)), np.empty(max(k, 0), np.int64)
        size, _ = bounded_search(self.tree, self.bounds, self.number, attribute, float(qlo), float(qhi), scores, numbers)
        return numbers[:size], scores[:size]


def best_first(score: Float64, number: Int64) -> Int32:
    """Rows by (score desc, number asc)."""
    order = np.lexsort((number, -score)) if number.size else np.argsort(-score, kind="stable")
    return order.astype(np.int32)
