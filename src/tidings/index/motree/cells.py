"""Cells of an MO-Tree: where an interval or a value lives on each indexing attribute, and which cells a query must visit.

An *axis* is an indexing attribute: a dimension of `model.columns.arrays`, or one of the two sides of the place. Its domain is cut
into GRAIN *steps* by 119 ascending edges; a value outside the declared domain falls into the first or last step, and ABSENT is
the step of a missing value. Everything after that is integers: an item or a query covers the steps [first, last] of each axis, and
a cell is a range of steps too. An item lives in the narrowest cell that contains it; a query visits the cells it meets.

| item or query                         | steps on an axis                    |
|---------------------------------------|-------------------------------------|
| an event's value v                    | [step(v), step(v)]                  |
| an event's box, one side              | [step(min), step(max)]              |
| an event without the attribute        | [ABSENT, ABSENT]                    |
| a clause's interval, IN set, box side | [step(lo), step(hi)]                |
| a clause that only asks for presence  | [0, GRAIN - 1]                      |
| a clause without a predicate there    | [0, ABSENT]                         |
| a clause that asks for NULL           | [ABSENT, ABSENT]                    |

A clause can hold on an event only if their steps meet on every axis, because `step` never decreases. So both trees filter by one
rule, and the steps of up to eight axes fit in two words, `near` for axes 0 to 3 and `far` for 4 to 7. In a word, byte i is `first`
of its axis i and byte i + 4 is 127 - `last`. A query asks with the mirrored word, 127 - `first` against 127 - `last`, so that one
subtraction compares four axes at both ends (`meet`).

Two partitions of the steps into cells (at most 64 cells an axis, so that a set of cells is one word):
- `interval_cells`, for subscriptions: levels of overlapping cells, the last covering everything, ABSENT too. [motree, 4.3.2]
- `value_cells`, for events: disjoint cells, the null cell (ABSENT alone), and one *wide* cell for boxes that span cells. [motree,
  4.3.1]

Arrays of `Cells`, H axes:

| array     | shape, dtype         | meaning                                                                      |
|-----------|----------------------|------------------------------------------------------------------------------|
| `source`  | H, int64             | dimension, or PLACE_X, PLACE_Y                                                |
| `axis_of` | -, int64             | axis of a dimension, NO_AXIS of others; dimensions beyond have none          |
| `edge`    | H x 127, float64     | ascending step edges; NaN from GRAIN - 1 on, which no value reaches           |
| `home`    | H x 128 x 128, uint8 | home[axis, first, last]: the cell of an item; only first <= last is used      |
| `begun`   | H x 128, uint64      | cells whose first step is <= the step                                         |
| `open`    | H x 128, uint64      | cells whose last step is >= the step; a query visits begun[last] & open[first] |
| `prefix`  | -, float64           | string axes: the number of each code's prefix                                 |
| `strings` | H + 1, int64         | axis a's prefixes are prefix[strings[a]:strings[a + 1]]; none for other axes   |

Deviations
- Steps. The paper compares real bounds; cells here begin and end at multiples of 1/120 of the domain, which moves a rim by at most
  half a step. In exchange edges may follow the data (`measured_axis`), which the paper's uniformity guideline only hopes for.
- A clause on NULL, IN, NOT IN and an event with a box do not exist in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel
from tidings.index.motree import partition
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Bool, Float64, Int64, Uint8, Uint64
from tidings.model.columns.vocabulary import Vocabulary

Ranges = list[list[tuple[int, int]]]
"""Cells as closed ranges of steps, level by level, the narrowest level first."""

GRAIN = 120
ABSENT = 127
PLACE_X, PLACE_Y = -1, -2
NO_AXIS = -1
MAX_AXES, MAX_CELLS = 8, 64


@dataclass(frozen=True, slots=True)
class Axis:
    """An indexing attribute: what it reads, its inner step edges (119, ascending), and the overlapping cells of its levels.

    `counts` and `widths` are those of the levels, widths as shares of the domain. With a `vocabulary` the dimension is a category
    and its strings are ordered by their first `letters` letters, not by their codes.
    """

    source: int
    edges: Float64
    counts: tuple[int, ...]
    widths: tuple[float, ...]
    vocabulary: Vocabulary | None = None
    letters: int = 2


def paper_levels(levels: int = 4, stab_limit: float = 6.5) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Counts and widths of Theorem 1 for uniform data; the defaults are those of the paper's experiments."""
    return tuple(partition.cell_counts(levels).tolist()), tuple(partition.optimal_widths(levels, stab_limit).tolist())


def narrow_levels() -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Geometric levels for small areas in a large domain: from 40 cells of 1/20 to one of 1. A value stabs 7.5 of 63."""
    counts = (40, 14, 6, 2, 1)
    return counts, (0.05, 0.125, 0.25, 0.625, 1.0)


def uniform_axis(source: int, lo: float, hi: float, levels: tuple[tuple[int, ...], tuple[float, ...]] | None = None) -> Axis:
    """Steps of equal width over [lo, hi]."""
    counts, widths = levels or paper_levels()
    return Axis(source, np.linspace(lo, hi, GRAIN + 1)[1:-1], counts, widths)


def measured_axis(source: int, sample: Float64, levels: tuple[tuple[int, ...], tuple[float, ...]] | None = None) -> Axis:
    """Steps that hold equally many of a sample of finite values, so that the cells do."""
    counts, widths = levels or paper_levels()
    return Axis(source, np.quantile(sample, np.arange(1, GRAIN) / GRAIN), counts, widths)


def prefix_axis(dimension: int, vocabulary: Vocabulary, letters: int = 2) -> Axis:
    """Steps over the first letters of a category's strings; strings without vocabulary yet fall between those that are there."""
    known = [prefix_number(string, letters) for string in vocabulary.strings] or [0.0, 1.0]
    counts, widths = paper_levels()
    return Axis(dimension, np.quantile(known, np.arange(1, GRAIN) / GRAIN), counts, widths, vocabulary, letters)


def prefix_number(string: str, letters: int) -> float:
    """The first letters as a number in [0, 1), in the order of the strings. [motree, 4.2]"""
    return float(sum(byte / 256.0 ** (place + 1) for place, byte in enumerate(string.encode()[:letters])))


def interval_cells(axis: Axis) -> Ranges:
    """The overlapping cells of an axis. [motree, 4.3.2]"""
    ranges: Ranges = []
    for count, width in zip(axis.counts[:-1], axis.widths[:-1], strict=True):
        starts = partition.cell_starts(count, width)
        ranges.append([(round(a * GRAIN), round((a + width) * GRAIN) - 1) for a in starts.tolist()])
    return [*ranges, [(0, ABSENT)]]


def value_cells(count: int) -> Ranges:
    """`count` disjoint cells and the null cell, then the wide cell. [motree, 4.3.1]"""
    rims = [round(GRAIN * i / count) for i in range(count + 1)]
    return [[(a, b - 1) for a, b in pairwise(rims)] + [(ABSENT, ABSENT)], [(0, ABSENT)]]


class Cells(NamedTuple):
    source: Int64
    axis_of: Int64
    edge: Float64
    home: Uint8
    begun: Uint64
    open: Uint64
    prefix: Float64
    strings: Int64


def make_cells(axes: Sequence[Axis], ranges: Sequence[Ranges]) -> Cells:
    """The tables of `axes`, whose cells are `ranges`; the prefixes are still to come from `with_prefixes`."""
    if not 1 <= len(axes) <= MAX_AXES:
        raise ValueError(f"{len(axes)} indexing attributes: an MO-Tree stacks 1 to {MAX_AXES}")
    edge = np.full((len(axes), ABSENT), np.nan)
    for row, axis in zip(edge, axes, strict=True):
        row[: GRAIN - 1] = axis.edges
    first, last, home = zip(*(_tables(tuple(map(tuple, levels))) for levels in ranges), strict=True)
    steps = np.arange(ABSENT + 1)
    source = np.array([axis.source for axis in axes], np.int64)
    axis_of = np.full(max(source.max() + 1, 0), NO_AXIS, np.int64)
    axis_of[source[source >= 0]] = np.flatnonzero(source >= 0)
    return Cells(
        source=source,
        axis_of=axis_of,
        edge=edge,
        home=np.stack(home),
        begun=np.stack([_mask(starts[:, None] <= steps) for starts in first]),
        open=np.stack([_mask(ends[:, None] >= steps) for ends in last]),
        prefix=np.zeros(0),
        strings=np.zeros(len(axes) + 1, np.int64),
    )


def _mask(member: Bool) -> Uint64:
    """One word a column, bit c set where member[c]."""
    bits: Uint64 = member.astype(np.uint64) << np.arange(len(member), dtype=np.uint64)[:, None]
    return np.asarray(np.bitwise_or.reduce(bits, axis=0))


@lru_cache(64)
def _tables(levels: tuple[tuple[tuple[int, int], ...], ...]) -> tuple[Int64, Int64, Uint8]:
    """First and last step of each cell, and home[first, last]: the narrowest level that contains it, there the nearest centre.

    A memtable's tree mostly has the cells of the one before it, and they take longer to make than the tree does to fill.
    """
    cells = [cell for level in levels for cell in level]
    if len(cells) > MAX_CELLS:
        raise ValueError(f"{len(cells)} cells on one attribute: at most {MAX_CELLS} are possible")
    starts, ends = (np.array(side, np.int64) for side in zip(*cells, strict=True))
    rank = np.repeat(np.arange(len(levels)), [len(level) for level in levels])
    first, last = np.mgrid[: ABSENT + 1, : ABSENT + 1]
    contains = (starts[:, None, None] <= first) & (last <= ends[:, None, None])
    off_centre = np.abs((starts + ends)[:, None, None] - (first + last))
    home = np.where(contains, rank[:, None, None] * 1000 + off_centre, 1 << 30).argmin(axis=0)
    return starts, ends, home.astype(np.uint8)


def with_prefixes(cells: Cells, axes: Sequence[Axis]) -> Cells:
    """The same cells, knowing every string that the axes' vocabularies hold now."""
    known = [[prefix_number(s, a.letters) for s in a.vocabulary.strings] if a.vocabulary else [] for a in axes]
    return cells._replace(
        prefix=np.array([number for numbers in known for number in numbers]),
        strings=np.cumsum([0, *map(len, known)], dtype=np.int64),
    )


@borrowing_kernel
def step(cells: Cells, axis: int, value: float) -> int:
    """How many edges lie at or below the value: seven halvings, without a branch. Never decreasing in the value."""
    at = 0
    for halving in range(7):
        half = 64 >> halving
        at += half * (cells.edge[axis, at + half - 1] <= value)
    return at


@borrowing_kernel
def code_step(cells: Cells, axis: int, code: float) -> int:
    """The step of a category's code: by its prefix on a string axis, else by the code itself."""
    base = cells.strings[axis]
    if cells.strings[axis + 1] == base:
        return step(cells, axis, code)
    return step(cells, axis, cells.prefix[base + np.int64(code)]) if code >= 0 else 0


@borrowing_kernel
def range_steps(cells: Cells, axis: int, lo: float, hi: float) -> tuple[int, int]:
    """The steps of a closed interval. Codes of a string axis are not in prefix order, so only equality narrows there."""
    if cells.strings[axis + 1] == cells.strings[axis]:
        return step(cells, axis, lo), step(cells, axis, hi)
    if lo == hi:
        return code_step(cells, axis, lo), code_step(cells, axis, lo)
    return 0, GRAIN - 1


@borrowing_kernel
def packed(first: int, last: int, axis: int) -> np.uint64:
    """The two bytes of an axis in its word."""
    shift = np.uint64(8 * (axis & 3))
    return (np.uint64(first) << shift) | (np.uint64(ABSENT - last) << (shift + np.uint64(32)))


@borrowing_kernel
def unpacked(near: np.uint64, far: np.uint64, axis: int) -> tuple[np.uint64, np.uint64]:
    """The steps (first, last) of an axis."""
    word = (near if axis < 4 else far) >> np.uint64(8 * (axis & 3))
    return word & np.uint64(0x7F), np.uint64(ABSENT) - ((word >> np.uint64(32)) & np.uint64(0x7F))


@borrowing_kernel
def narrowed(near: np.uint64, far: np.uint64, axis: int, first: int, last: int) -> tuple[np.uint64, np.uint64]:
    """The words after a further condition on an axis; 0 is the word of no condition. What cannot be is kept as one step."""
    old_first, old_last = unpacked(near, far, axis)
    first, last = max(first, wide(old_first)), min(last, wide(old_last))
    bytes_of_axis = packed(ABSENT, 0, axis)
    word = packed(first, max(first, last), axis)
    if axis < 4:
        return (near & ~bytes_of_axis) | word, far
    return near, (far & ~bytes_of_axis) | word


@borrowing_kernel
def asking(word: np.uint64) -> np.uint64:
    """The word of a query, made from its word as an item."""
    return np.uint64(0x7F7F7F7F7F7F7F7F) - ((word << np.uint64(32)) | (word >> np.uint64(32)))


@borrowing_kernel
def meet(question: np.uint64, item: np.uint64) -> bool:
    """Whether steps meet on all four axes of a word: bit 7 of each byte of the difference is a verdict."""
    verdict = np.uint64(0x8080808080808080)
    return bool((((question | verdict) - item) & verdict) == verdict)


@borrowing_kernel
def event_steps(cells: Cells, value: Float64, box: Float64) -> tuple[np.uint64, np.uint64]:
    """The steps of an event on every axis, as words near and far."""
    near = np.uint64(0)
    far = np.uint64(0)
    for axis in range(cells.source.size):
        source = cells.source[axis]
        first = last = ABSENT
        if source >= 0:
            if not np.isnan(value[source]):
                first = last = code_step(cells, axis, value[source])
        else:
            side = -1 - source
            if box[side] <= box[side + 2]:
                first, last = step(cells, axis, box[side]), step(cells, axis, box[side + 2])
        if axis < 4:
            near |= packed(first, last, axis)
        else:
            far |= packed(first, last, axis)
    return near, far


@borrowing_kernel
def key_of(cells: Cells, near: np.uint64, far: np.uint64, height: int) -> np.uint64:
    """The home cell of an item on each stacked axis, six bits an axis: the name of its bucket."""
    key = np.uint64(0)
    for axis in range(height):
        first, last = unpacked(near, far, axis)
        key |= np.uint64(cells.home[axis, first, last]) << np.uint64(6 * axis)
    return key


@borrowing_kernel
def reach(cells: Cells, near: np.uint64, far: np.uint64, visit: Uint64) -> None:
    """The cells that a query must visit, one word an axis. [motree, Alg. 1, lines 2-9; Alg. 2, lines 2-7]"""
    for axis in range(cells.source.size):
        first, last = unpacked(near, far, axis)
        visit[axis] = cells.begun[axis, last] & cells.open[axis, first]
