"""PlaceBlocks: which clauses does each event satisfy, for clauses that have a box and are best found by it.

Clauses that are neighbours stand in blocks of up to 64 (`lanes`). For x, y and each dimension that a block's clauses test there are
two lanes of 64 bytes: the first and the last cell that each clause lets pass. An event finds the blocks whose extent it touches,
compares its cells with the lanes, 64 clauses at once, while any is left, and what is left is verified exactly (`record`).

Layout, besides `Packed` (see `record`); B blocks, T tiers by score, E entries, w dimensions:

| array        | shape, dtype      | meaning                                                                                      |
|--------------|-------------------|----------------------------------------------------------------------------------------------|
| `start`      | B + 1, int32      | block b holds the slots [start[b], start[b + 1])                                             |
| `best`       | B, float64        | the highest score in the block; inf when built without scores                                |
| `scale`      | 2 x B, float32    | cells a length along x and y of the block                                                    |
| `entry`      | B + 1, int32      | the block's entries                                                                          |
| `tier_block` | T + 1, int32      | the tier's blocks                                                                            |
| `tier_best`  | T, float64        | the highest score in the tier                                                                |
| `bound`      | 4 x B', float32   | extent of the block: xmin, xmax, ymin, ymax; B' is B in whole 64s, which nothing touches     |
| `span`       | 4 x S, float32    | the same for 64 blocks together, in whole 64s, too                                           |
| `column`     | E, int16          | the entry's dimension; w and w + 1 are x and y, the first two of every block                 |
| `lane`       | E x 2 x 64, int8  | by clause of the block: the first cell that passes, and the last                             |
| `edges`      | w x 127, float32  | where cells of a dimension begin; padded with inf                                            |
| `cell_count` | w, uint8          | how many it has                                                                              |
| `extent`     | 4, float64        | where nearly all boxes lie, which the grid of a batch covers                                 |
| `residue`    | n/8 or 0, uint8   | bits by slot: the clause has a residue                                                       |

Bounds and cells are float32, rounded to nearest. Rounding is monotone: lo <= x implies float32(lo) <= float32(x), so a match is
never lost, and what rounding lets through falls in verification.

Cost: an event of a batch pays for the blocks it touches, some 5 ns and 3 ns for each entry until none is left, and a batch some
10 ns for every block. One event alone tests S spans and 64 bounds of each that it touches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.index.blocks.lanes import NOTHING, Lanes, lay_lanes
from tidings.index.blocks.place_match import Placed, ask_all, binned, grid_of, match_each, match_event, match_points, sized_rows
from tidings.index.blocks.place_topk import count_reached, reach_blocks, topk_event, topk_events
from tidings.index.packed.clauses import PackedClauses, deaths_of, joined, packed_in_order, packed_part
from tidings.index.packed.groups import named, taken
from tidings.index.packed.packing import as_events, readonly
from tidings.index.packed.protocol import Matches
from tidings.index.packed.record import Events, Packed, Ranking
from tidings.index.packed.simd import LANES
from tidings.index.packed.types import Float64, Int32, Int64, Uint8, Uint32
from tidings.model.columns.arrays import ClauseColumns, EventColumns

CHUNK = 1 << 14
ROOM = 1 << 17
"""Pairs of a block and an event that are looked for before they are looked at."""
PLACES = 1 << 20
"""Places among the k best of all events of a chunk together, 20 bytes each."""
FINEST = 512
"""Columns of the finest grid."""
PRICE = 0.4
"""What a block costs, compared with one of bitmaps."""
EACH = 1 / 64
"""A batch with fewer events than this share of the blocks is asked one by one."""


class Stats(NamedTuple):
    """Counted since the structure was made: blocks that events touched, clauses verified, matches."""

    blocks: int
    candidates: int
    matches: int


class PlaceBlocks(PackedClauses):
    def __init__(self, packed: Packed, residue: Uint8, lanes: Lanes) -> None:
        super().__init__(packed, residue)
        self.lanes = lanes
        self._counters = np.zeros(3, np.int64)

    @cached_property
    def _pinned(self) -> Pinned[Placed]:
        return Pinned(Placed(self.packed, self.lanes, self._counters))

    @classmethod
    def build(
        cls, clauses: ClauseColumns, rows: Int32 | None = None, score: Float64 | None = None, posted: Int32 | None = None
    ) -> Self:
        """Every clause has a finite box. `score` puts the best into the first tiers; without it `topk_batch` reads all blocks."""
        assert np.isfinite(clauses.box).all()
        lanes, order = lay_lanes(clauses, score)
        return cls(*packed_in_order(clauses, rows, order), lanes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), **named("lanes.", self.lanes)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        return cls(*packed_part(arrays), taken(Lanes, arrays, "lanes."))

    def reached(self, events: EventColumns, row: int, slot: int) -> bool:
        """It touches the extent of the slot's block."""
        block = int(self.lanes.start.searchsorted(np.int32(slot), "right")) - 1
        return block in reach_blocks(self.lanes, as_events(events), row)

    def match_batch(self, events: EventColumns, died: Uint32 | None = None, snapshot: int = 0) -> Matches:
        whole, deaths, parts = as_events(events), deaths_of(died, snapshot), list[Matches]()
        for first in range(0, len(events), CHUNK):
            last = min(first + CHUNK, len(events))
            grid, start, order = self._in_cells(whole.box, first, last)
            asked = ask_all(self.packed, self.lanes, whole, order)
            given = (self.packed, self.lanes, whole, order, asked)
            few = last - first < EACH * len(self.lanes.best)
            if not few:
                parts.append(match_points(*given, grid, start, ROOM, deaths, self._counters))
            rows = np.arange(len(order), dtype=np.int32) if few else sized_rows(whole.box, order)
            parts.append(match_each(*given, rows, ROOM, deaths, self._counters))
        return joined(parts)

    def _in_cells(self, box: Float64, first: int, last: int) -> tuple[Float64, Int64, Int32]:
        side = int(min(FINEST, max(4, math.sqrt(last - first))))
        grid = grid_of(self.lanes.extent, side)
        return grid, *binned(grid, side, box, first, last)

    def match_one(self, events: Pinned[Events], row: int, died: Uint32, snapshot: int) -> Int32:
        return match_event(self._pinned, events, row, died, snapshot)

    def topk_one(self, event: Pinned[Events], k: int, ranking: Pinned[Ranking], died: Uint32, snapshot: int) -> Int32:
        return topk_event(self._pinned, event, k, ranking, died, snapshot)

    def topk_batch(
        self, events: EventColumns, k: int, score: Float64, tie: Int64, died: Uint32 | None = None, snapshot: int = 0
    ) -> Matches:
        chunk = max(1, min(CHUNK, PLACES // max(1, k)))
        whole, ranking, deaths = as_events(events), Ranking(readonly(score), readonly(tie)), deaths_of(died, snapshot)
        parts = []
        for first in range(0, len(events) if k else 0, chunk):
            last = min(first + chunk, len(events))
            _, _, order = self._in_cells(whole.box, first, last)
            parts.append(topk_events(self.packed, self.lanes, whole, first, order, k, ranking, deaths, self._counters))
        return joined(parts)

    def blocks_reached(self, events: Events, probed: int) -> float:
        """As dear as so many blocks of bitmaps."""
        return PRICE * count_reached(self.lanes, events, probed) / probed if probed else 0.0

    @property
    def stats(self) -> Stats:
        return Stats(*map(int, self._counters))

    def check(self) -> None:
        super().check()
        lanes, size = self.lanes, np.diff(self.lanes.start)
        assert lanes.start[0] == 0
        assert lanes.start[-1] == len(self)
        assert ((size > 0) & (size <= LANES)).all()
        assert lanes.entry[-1] == len(lanes.column) == len(lanes.lane)
        assert (np.diff(lanes.entry) >= 2).all()
        assert (np.diff(lanes.tier_block) > 0).all()
        width = len(lanes.edges)
        along_x = lanes.entry[:-1]
        assert (lanes.column[along_x] == width).all()
        assert (lanes.column[along_x + 1] == width + 1).all()
        unused = np.arange(LANES) >= size[:, None]
        assert ((lanes.lane[along_x, 1] == NOTHING) == unused).all()
        block = np.arange(len(size))
        assert (lanes.span[::2, block >> 6] <= lanes.bound[::2, block]).all()
        assert (lanes.bound[1::2, block] <= lanes.span[1::2, block >> 6]).all()
