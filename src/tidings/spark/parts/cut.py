"""A topic in parts, for subscriptions that outgrow a worker: which part a subscription stands in, and which an event must visit.

A topic in parts is a lake (`durable.lake`), at a URL or in a folder; its manifest says how it is cut and which segments each part
has.

A subscription stands in exactly one part, so each match is found once. What cannot be said to lie within one cell (no predicate on
the attribute, an interval or box across cells, several clauses in different cells, similarity, which may match from outside its
box) stands in the last part, which every event visits. An event visits besides the cells that its value or box touches.

| cut     | cells                                                             | a subscription's cell                      |
|---------|-------------------------------------------------------------------|--------------------------------------------|
| `hash`  | none                                                              | hash of its id; an event visits all parts  |
| `range` | `edges` e: cell i is [e(i-1), e(i)), as `searchsorted(right)`      | that of both ends of its interval          |
| `place` | columns by `edges` of x, each cut by its own `rows` of y          | that of both corners of its box            |

Cells are numbered column by column. A cell that has come to hold more than `most` is split in two (`split`), which gives the
cells after it the next numbers. By a hash nothing is split.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from tidings.errors import SubscriptionError
from tidings.match.store.ranking_columns import column_of
from tidings.match.store.subscription_rows import Rows
from tidings.model.columns.arrays import RANGE, ClauseColumns, EventColumns
from tidings.model.values.schema import Number, Place, Schema, Time
from tidings.spark.frames.id_hash import spread

PART = "_part"
"""The column that says where a row goes."""
NOWHERE = -1
"""The cell of a clause that lies in none."""

Cells = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cut:
    """`parts` counts the last one, which every event visits. `attribute` is None for a hash."""

    attribute: str | None
    parts: int
    edges: list[float] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    most: int = 0
    """subscriptions of a cell beyond which it is split; 0 for never"""

    @property
    def everywhere(self) -> int:
        return self.parts - 1

    def subscriptions(self, schema: Schema, rows: Rows) -> Cells:
        """The part of each."""
        if self.attribute is None:
            return spread(rows.ids(), self.parts)
        ends = extents(schema, self.attribute, rows.clauses)
        first, last = self._cells(ends[:, 0], ends[:, 1]), self._cells(ends[:, 2], ends[:, 3])
        cell = np.where(np.isfinite(ends).all(axis=1) & (first == last), first, NOWHERE)
        low, high = np.full(len(rows), self.parts), np.full(len(rows), NOWHERE)
        np.minimum.at(low, rows.clauses.owner, cell)
        np.maximum.at(high, rows.clauses.owner, cell)
        apart = (low != high) | (low == NOWHERE) | ~np.isnan(column_of(rows.table, "alpha", np.nan))
        return np.where(apart, self.everywhere, low)

    def events(self, schema: Schema, events: EventColumns, everywhere: bool) -> tuple[Cells, Cells]:
        """(event row, part) of every visit."""
        count = len(events)
        if self.attribute is None or everywhere:
            return np.repeat(np.arange(count), self.parts), np.tile(np.arange(self.parts), count)
        ends = event_extents(schema, self.attribute, events)
        visits = np.zeros((count, self.parts), np.bool_)
        visits[:, self.everywhere] = True
        there = np.isfinite(ends).all(axis=1)
        for cell in range(self.everywhere):
            visits[:, cell] |= there & self._touches(cell, ends)
        row, part = np.nonzero(visits)
        return row, part

    def _firsts(self) -> Cells:
        """The number of each column's first cell, and of the cell after the last."""
        return np.cumsum([0, *(len(edges) + 1 for edges in self.rows)])

    def _cells(self, x: Floats, y: Floats) -> Cells:
        column = np.searchsorted(self.edges, x, side="right")
        if not self.rows:
            return column
        row = np.zeros(len(x), np.int64)
        for number, edges in enumerate(self.rows):
            here = column == number
            row[here] = np.searchsorted(edges, y[here], side="right")
        return self._firsts()[column] + row

    def place_of(self, cell: int) -> tuple[int, int]:
        """Column and row of a cell."""
        if not self.rows:
            return cell, 0
        column = int(np.searchsorted(self._firsts(), cell, side="right")) - 1
        return column, cell - int(self._firsts()[column])

    def _touches(self, cell: int, ends: Floats) -> NDArray[np.bool_]:
        """Whether each (xmin, ymin, xmax, ymax) meets the cell."""
        column, row = self.place_of(cell)
        touches = (np.searchsorted(self.edges, ends[:, 0], "right") <= column) & (
            column <= np.searchsorted(self.edges, ends[:, 2], "right")
        )
        if self.rows:
            edges = self.rows[column]
            touches &= (np.searchsorted(edges, ends[:, 1], "right") <= row) & (row <= np.searchsorted(edges, ends[:, 3], "right"))
        return touches

    def split(self, cell: int, ends: Floats) -> Cut | None:
        """The cut in which the middle of the intervals or boxes `ends` of a cell's clauses is an edge; None if it divides nothing.

        A Place's cell is split by y, so that its column stays one.
        """
        centres = (ends[:, 0] + ends[:, 2]) / 2 if not self.rows else (ends[:, 1] + ends[:, 3]) / 2
        centres = centres[np.isfinite(centres)]
        column, row = self.place_of(cell)
        if not len(centres) or (edge := float(np.median(centres))) == centres.min():
            return None
        if not self.rows:
            return replace(self, parts=self.parts + 1, edges=[*self.edges[:cell], edge, *self.edges[cell:]])
        rows = [list(edges) for edges in self.rows]
        rows[column].insert(row, edge)
        return replace(self, parts=self.parts + 1, rows=rows)


def cut_by(schema: Schema, by: str, parts: int, centres: Floats) -> Cut:
    """Cells with about as many of the `centres` (n x 2) each. A Place has columns x rows of them, no more than `parts`."""
    if by not in schema:
        return Cut(None, parts)
    if not isinstance(schema[by], Place):
        return Cut(by, parts + 1, quantiles(centres[:, 0], parts))
    columns = max(isqrt(parts), 1)
    edges = quantiles(centres[:, 0], columns)
    column = np.searchsorted(edges, centres[:, 0], side="right")
    rows = [quantiles(centres[column == number, 1], parts // columns) for number in range(columns)]
    return Cut(by, columns * (parts // columns) + 1, edges, rows)


def check_cut(schema: Schema, by: str, parts: int) -> None:
    if by in schema and not (isinstance(schema[by], Number | Time) or by == schema.place):
        kind = type(schema[by]).__name__
        raise SubscriptionError(
            f"part_by is {by!r}, a {kind}: a Number, a Time, the first Place or 'hash' is accepted, as these cut into cells"
        )
    if by not in schema and by != "hash":
        raise SubscriptionError(f"part_by is {by!r}: 'hash' or an attribute is accepted, of {', '.join(schema)}")
    if isinstance(parts, bool) or not isinstance(parts, int) or not 1 <= parts <= 9999:
        raise SubscriptionError(f"parts is {parts!r}: a whole number from 1 to 9999 is accepted")


def quantiles(values: Floats, parts: int) -> list[float]:
    """parts - 1 edges; without values, or with few distinct ones, some cells stay empty."""
    if not len(values):
        return [0.0] * (parts - 1)
    edges: list[float] = np.quantile(values, np.arange(1, parts) / parts).tolist()
    return edges


def extents(schema: Schema, attribute: str, clauses: ClauseColumns) -> Floats:
    """(xmin, ymin, xmax, ymax) of each clause on the attribute, y being 0 for an interval; not finite where it has none."""
    if attribute == schema.place:
        return clauses.box
    ends = np.full((len(clauses), 4), np.nan)
    clause = np.repeat(np.arange(len(clauses)), np.diff(clauses.pred_start))
    here = (clauses.pred_dim == schema.dimension[attribute]) & (clauses.pred_kind == RANGE)
    ends[clause[here], 0], ends[clause[here], 2] = clauses.pred_lo[here], clauses.pred_hi[here]
    ends[clause[here], 1] = ends[clause[here], 3] = 0.0
    return ends


def event_extents(schema: Schema, attribute: str, events: EventColumns) -> Floats:
    if attribute == schema.place:
        return events.box
    value = events.value[:, schema.dimension[attribute]]
    return np.stack([value, np.zeros(len(value)), value, np.zeros(len(value))], axis=1)
