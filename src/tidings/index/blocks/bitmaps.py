"""BlockBitmaps: which clauses does each event satisfy, for clauses of intervals, codes and boxes.

Clauses that resemble each other stand in blocks of up to 512 (`layout`). For each dimension that a block's clauses test there
is a line of 512 bits a cell (`lines`): bit i says that clause i of the block may hold for a value in that cell. An event
finds the blocks whose extent along their key it touches, ANDs the lines of its cells, the most selective first, while a bit is
left, and what is left in the end is verified exactly (`record`).

Layout, besides `Packed` (see `record`), `Entries` and the lines (see `lines`); B blocks, G groups of neighbouring
blocks with one kind of key, P positions (a group's blocks, padded to whole 64s):

| array         | shape, dtype      | meaning                                                                                  |
|---------------|-------------------|------------------------------------------------------------------------------------------|
| `start`       | B + 1, int32      | block b holds the slots [start[b], start[b + 1])                                          |
| `alive`       | B x 8, uint64     | a bit for each slot of the block                                                          |
| `best`        | B, float64        | the highest score in the block; inf when built without scores                             |
| `key`         | B, int16          | the dimension that all clauses of the block have as their key, PLACE, or NO_KEY           |
| `group_key`   | G, int16          | the key of the group's blocks; NO_KEY: always visited                                     |
| `group_block` | G + 1, int32      | the group's blocks                                                                        |
| `group_at`    | G, int32          | the position of its first block, a multiple of 64                                         |
| `group_best`  | G, float64        | the highest `best` in the group                                                           |
| `bound`       | 4 x P, float32    | extent along the key: lo, hi, and for a place ylo, yhi; padding is (inf, -inf, inf, -inf) |
| `span`        | 4 x P/64, float32 | the same for 64 positions together                                                        |
| `edges`       | (w + 2) x 31, f32 | where the cells of the w dimensions, of x and of y begin; padded with inf                  |
| `cell_count`  | w + 2, uint8      | how many cells they have                                                                  |
| `residue`     | n/8 or 0, uint8   | bits by slot: the clause has a residue                                                    |

Bounds and cells are float32, rounded to nearest. Rounding is monotone: lo <= x implies float32(lo) <= float32(x), so a match is
never lost, and what rounding lets through falls in verification.

Cost: an event tests P/64 spans, 64 bounds for each span it touches, at most 24 lines of 64 bytes for each block it touches.
Batches are walked block by block (`match_pairs`, `topk_events`), which keeps a block's lines in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.index.blocks.bitmap_match import Bitmaps, Blocks, match_event, match_pairs, reach_events
from tidings.index.blocks.bitmap_topk import topk_event, topk_events
from tidings.index.blocks.layout import BLOCK, NO_KEY, PLACE, Layout, lay_out
from tidings.index.blocks.lines import WORDS, Entries, draw_lines
from tidings.index.packed.clauses import PackedClauses, deaths_of, joined, packed_in_order, packed_part
from tidings.index.packed.groups import named, taken
from tidings.index.packed.packing import as_events, readonly
from tidings.index.packed.protocol import Matches
from tidings.index.packed.record import Events, Packed, Ranking
from tidings.index.packed.types import Float32, Float64, Int16, Int32, Int64, Uint8, Uint32, Uint64
from tidings.model.columns.arrays import ClauseColumns, EventColumns

PAIRS = 1 << 23
"""(event, block) pairs that a chunk of a batch may need, all blocks reached."""
PLACES = 1 << 20
"""Places among the k best of all events of a chunk together, 20 bytes each."""


class Stats(NamedTuple):
    """Counted since the structure was made: the papers' own measures of pruning."""

    blocks: int
    candidates: int
    matches: int


class BlockBitmaps(PackedClauses):
    def __init__(self, packed: Packed, residue: Uint8, blocks: Blocks, entries: Entries, lines: Uint64) -> None:
        super().__init__(packed, residue)
        self.blocks, self.entries, self.lines = blocks, entries, lines
        self._counters = np.zeros(3, np.int64)

    @cached_property
    def _pinned(self) -> Pinned[Bitmaps]:
        return Pinned(Bitmaps(self.packed, self.blocks, self.entries, self.lines, self._counters))

    @classmethod
    def build(
        cls, clauses: ClauseColumns, rows: Int32 | None = None, score: Float64 | None = None, posted: Int32 | None = None
    ) -> Self:
        """`score` puts the best into the first blocks, and without it `topk_batch` reads them all."""
        layout = lay_out(clauses, score)
        bound, key = block_bounds(clauses, layout)
        entries, lines = draw_lines(clauses, layout, bound)
        blocks = _group(layout, bound, key, np.full(len(clauses), np.inf) if score is None else score)
        return cls(
            *packed_in_order(clauses, rows, layout.order),
            Blocks(*(readonly(array) for array in blocks)),
            Entries(*(readonly(array) for array in entries)),
            readonly(lines),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), **named("blocks.", self.blocks), **named("entries.", self.entries), "lines": self.lines}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        blocks, entries = taken(Blocks, arrays, "blocks."), taken(Entries, arrays, "entries.")
        return cls(*packed_part(arrays), blocks, entries, readonly(arrays["lines"]))

    def reached(self, events: EventColumns, row: int, slot: int) -> bool:
        """It touches the extent of the slot's block."""
        block = int(self.blocks.start.searchsorted(np.int32(slot), "right")) - 1
        start, _ = reach_events(self.blocks, as_events(events), row, row + 1)
        return bool(start[block + 1] > start[block])

    def match_batch(self, events: EventColumns, died: Uint32 | None = None, snapshot: int = 0) -> Matches:
        deaths = deaths_of(died, snapshot)
        chunk = max(64, min(8192, PAIRS // max(1, len(self.blocks.best))))
        whole, parts = as_events(events), []
        for first in range(0, len(events), chunk):
            last = min(first + chunk, len(events))
            args = (self.packed, self.blocks, self.entries, self.lines, whole, first, last, deaths)
            parts.append(match_pairs(*args, self._counters))
        return joined(parts)

    def match_one(self, events: Pinned[Events], row: int, died: Uint32, snapshot: int) -> Int32:
        return match_event(self._pinned, events, row, died, snapshot)

    def topk_batch(
        self, events: EventColumns, k: int, score: Float64, tie: Int64, died: Uint32 | None = None, snapshot: int = 0
    ) -> Matches:
        chunk = max(1, min(8192, PLACES // max(1, k)))
        whole, ranking, deaths = as_events(events), Ranking(readonly(score), readonly(tie)), deaths_of(died, snapshot)
        parts = []
        for first in range(0, len(events) if k else 0, chunk):
            args = (self.packed, self.blocks, self.entries, self.lines, whole, first, min(first + chunk, len(events)))
            parts.append(topk_events(*args, k, ranking, deaths, self._counters))
        return joined(parts)

    def topk_one(self, event: Pinned[Events], k: int, ranking: Pinned[Ranking], died: Uint32, snapshot: int) -> Int32:
        return topk_event(self._pinned, event, k, ranking, died, snapshot)

    def blocks_reached(self, events: Events, probed: int) -> float:
        return int(reach_events(self.blocks, events, 0, probed)[0][-1]) / probed if probed else 0.0

    @property
    def stats(self) -> Stats:
        return Stats(*map(int, self._counters))

    def check(self) -> None:
        super().check()
        n, blocks, entries = len(self), self.blocks, self.entries
        size = np.diff(blocks.start)
        assert blocks.start[0] == 0
        assert blocks.start[-1] == n
        assert ((size > 0) & (size <= BLOCK)).all()
        assert (np.bitwise_count(blocks.alive).sum(axis=1) == size).all()
        assert entries.start[0] == 0
        assert entries.start[-1] == len(entries.line)
        assert (entries.line < len(self.lines)).all() if len(entries.line) else not len(self.lines)
        assert (blocks.group_at % 64 == 0).all()
        assert blocks.group_block[-1] == len(size)
        owning = np.repeat(np.arange(len(size)), np.diff(entries.start))
        assert not (self.lines[entries.line] & ~blocks.alive[owning]).any()
        for group, key in enumerate(blocks.group_key):
            assert key == NO_KEY or self._group_within_bounds(group)

    def _group_within_bounds(self, group: int) -> bool:
        blocks = self.blocks
        first, last = blocks.group_block[group : group + 2]
        at = blocks.group_at[group] + np.arange(last - first)
        bound, span = blocks.bound[:, at], blocks.span[:, at // 64]
        return bool(((span[::2] <= bound[::2]) & (bound[1::2] <= span[1::2])).all())


def block_bounds(clauses: ClauseColumns, layout: Layout) -> tuple[Float32, Int16]:
    """(extent, key) of each block; a block whose clauses differ in their key has NO_KEY and no extent."""
    blocks = len(layout.tier)
    bound = np.empty((4, blocks), np.float64)
    bound[::2], bound[1::2] = -np.inf, np.inf
    if not blocks:
        return bound.astype(np.float32), np.empty(0, np.int16)
    first = layout.block_start[:-1]
    keys = layout.keys.dim[layout.order]
    key = np.where(np.minimum.reduceat(keys, first) == np.maximum.reduceat(keys, first), keys[first], NO_KEY)
    box = clauses.box[layout.order]
    along_key = (layout.keys.lo[layout.order], layout.keys.hi[layout.order])
    for placed in (False, True):
        sides = (box[:, 0], box[:, 2], box[:, 1], box[:, 3]) if placed else along_key
        chosen = key == PLACE if placed else key >= 0
        for side, values in enumerate(sides):
            reduce = np.maximum if side % 2 else np.minimum
            bound[side, chosen] = reduce.reduceat(values, first)[chosen]
    with np.errstate(over="ignore"):
        return bound.astype(np.float32), key.astype(np.int16)


def _group(layout: Layout, bound: Float32, key: Int16, score: Float64) -> Blocks:
    size = np.diff(layout.block_start)
    changes = (key[1:] != key[:-1]) | (layout.tier[1:] != layout.tier[:-1])
    first = np.flatnonzero(np.concatenate((np.ones(min(1, len(key)), np.bool_), changes)))
    group_block = np.append(first, len(key)).astype(np.int32)
    padded = -(-np.diff(group_block) // 64) * 64
    group_at = np.cumsum(padded) - padded
    positions = np.empty((4, int(padded.sum())), np.float32)
    positions[::2], positions[1::2] = np.inf, -np.inf
    positions[:, np.arange(len(key)) + np.repeat(group_at - first, np.diff(group_block))] = bound
    parts = positions.reshape(4, -1, 64)
    span = np.stack([parts[side].max(axis=1) if side % 2 else parts[side].min(axis=1) for side in range(4)])
    best = np.maximum.reduceat(score[layout.order], layout.block_start[:-1]) if len(key) else np.empty(0)
    group_best = np.maximum.reduceat(best, first) if len(key) else np.empty(0)
    alive = np.arange(BLOCK) < size[:, None]
    words = np.packbits(alive, axis=1, bitorder="little").view(np.uint64).reshape(-1, WORDS)
    arrays = (layout.block_start, words, best, key, key[first], group_block, group_at.astype(np.int32), group_best, positions, span)
    return Blocks(*arrays, layout.edges, layout.cell_count)
