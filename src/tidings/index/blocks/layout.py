"""How block bitmaps lay clauses out: their order, the cut into blocks, the cells of each dimension.

A clause's *key* is what prunes best for it: its box, or its narrowest predicate on one dimension. Narrow is measured by *mass*, the
share of all interval ends of the dimension that lie within, so that dimensions with different units and skews compare. Clauses
are ordered by (tier, key, width level, position along the key); a run of one (tier, key, level) that fills half a block gets blocks
of its own, smaller runs share.

A *tier* is a rank range by score, four times the one before, the best first: top-k reads tiers until the k-th score beats what
follows. An event reaches one or two blocks of a tier whatever its size, so tiers that only double are twice the blocks.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from tidings._jit import inlined, kernel
from tidings.index.packed.hilbert import hilbert_codes
from tidings.index.packed.packing import as_clauses, readonly
from tidings.index.packed.record import Clauses
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Bool, Float32, Float64, Int16, Int32, Int64, Uint8
from tidings.model.columns.arrays import IN, RANGE, ClauseColumns, starts

BLOCK = 512
CELLS = 32
SAMPLE = 1024
SAMPLED_PREDICATES = 1 << 15
NO_KEY, PLACE = -1, -2


class Keys(NamedTuple):
    """By clause: the key's dimension, PLACE or NO_KEY; its mass; the ends of the key predicate."""

    dim: Int16
    mass: Float64
    lo: Float64
    hi: Float64


class Layout(NamedTuple):
    """`order[slot]` is a clause, blocks are `block_start`, `tier[block]`; keys by clause; `edges` by dimension, then x and y."""

    order: Int64
    block_start: Int32
    tier: Int32
    keys: Keys
    edges: Float32
    cell_count: Uint8


def lay_out(clauses: ClauseColumns, score: Float64 | None) -> Layout:
    ends = sample_ends(clauses)
    tier, rank = tiers(len(clauses), score)
    keys = choose_keys(clauses, ends, tier)
    lo, hi = (np.nan_to_num(end, posinf=np.nan, neginf=np.nan) for end in (keys.lo, keys.hi))
    position = np.nan_to_num(np.fmin(lo, hi) / 2 + np.fmax(lo, hi) / 2)
    placed = keys.dim == PLACE
    position[placed] = hilbert_codes(clauses.box[placed], usual_extent(clauses.box[placed]))
    level = mass_levels(keys.mass)
    level[placed] = size_levels(clauses.box[placed])
    run = run_of(tier, keys.dim, level)
    order = np.lexsort((position, run))
    block_start = cut(run[order])
    order = by_rank_within(order, block_start, rank)
    edges, cell_count = cell_edges(ends)
    block_tier = tier[order[block_start[:-1]]].astype(np.int32)
    return Layout(order, block_start, block_tier, keys, edges, cell_count)


def best_by_place(clauses: ClauseColumns, score: Float64) -> Bool:
    """Which clauses have their place for a key."""
    tier, _ = tiers(len(clauses), score)
    by_place: Bool = choose_keys(clauses, sample_ends(clauses), tier).dim == PLACE
    return by_place


def run_of(tier: Int64, key_dim: Int16, level: Int64) -> Int64:
    run: Int64 = (tier * (1 << 16) + (key_dim.astype(np.int64) - PLACE)) * 16 + level
    return run


def mass_levels(mass: Float64) -> Int64:
    return np.minimum(np.floor(-np.log2(np.maximum(mass, 2.0**-48))), 8).astype(np.int64)


def size_levels(box: Float64) -> Int64:
    """Eightfold lengths of the longer side, 0 ... 8, the median in the middle of 4: finer parts cost more blocks than they save."""
    with np.errstate(over="ignore"):
        side = np.clip((box[:, 2:] - box[:, :2]).max(axis=1, initial=0.0), np.finfo(float).tiny, np.finfo(float).max)
    length = np.log2(side)
    usual = float(np.median(length)) if len(length) else 0.0
    level: Int64 = np.clip(np.rint((length - usual) / 3), -4, 4).astype(np.int64) + 4
    return level


def usual_extent(box: Float64) -> Float64:
    """Around the 1st to 99th percentile of finite boxes, widened by their distance: an outlier does not flatten the rest."""
    sample = box[:: max(1, len(box) // 100_000)]
    if not len(sample):
        return np.array([0.0, 0.0, 1.0, 1.0])
    low, high = np.quantile(sample[:, :2], 0.01, axis=0), np.quantile(sample[:, 2:], 0.99, axis=0)
    with np.errstate(over="ignore"):
        spread = np.nan_to_num(high - low)
        first, last = np.nan_to_num(low - spread), np.nan_to_num(high + spread)
    return np.concatenate([np.maximum(box[:, :2].min(axis=0), first), np.minimum(box[:, 2:].max(axis=0), last)])


def tiers(n: int, score: Float64 | None) -> tuple[Int64, Int64]:
    """(tier, rank) of each clause: tier t holds the ranks from BLOCK * (4**t - 1) / 3; all are 0 without scores."""
    rank = np.zeros(n, np.int64)
    if score is not None and n and score.min() < score.max():
        rank[np.argsort(-score, kind="stable")] = np.arange(n)
    return (np.log2(3 * (rank // BLOCK) + 1) / 2).astype(np.int64), rank


def cut(run: Int64, block: int = BLOCK) -> Int32:
    """First slot of each block, and the end. Runs shorter than half a block share blocks with their neighbours in the same tier."""
    if not len(run):
        return np.zeros(1, np.int32)
    first = np.flatnonzero(np.concatenate(([True], run[1:] != run[:-1])))
    length = np.diff(np.append(first, len(run)))
    tier = run[first] >> 20
    own = length >= block // 2
    part = np.concatenate(([True], own[1:] | own[:-1] | (tier[1:] != tier[:-1])))
    begin = first[part]
    size = np.diff(np.append(begin, len(run)))
    blocks = -(-size // block)
    within = np.arange(blocks.sum()) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    starts = np.repeat(begin, blocks) + within * np.repeat(size, blocks) // np.repeat(blocks, blocks)
    return np.append(starts, len(run)).astype(np.int32)


def by_rank_within(order: Int64, block_start: Int32, rank: Int64) -> Int64:
    """Best score first inside every block."""
    if not rank.any():
        return order
    block = np.repeat(np.arange(len(block_start) - 1), np.diff(block_start))
    return order[np.argsort(block * len(order) + rank[order])]


def sample_ends(clauses: ClauseColumns) -> list[Float64]:
    """Sorted finite ends of each dimension's predicates, then of the boxes' x and y: at most SAMPLE each, evenly taken."""
    width = int(clauses.pred_dim.max(initial=-1)) + 1
    step = max(1, len(clauses.pred_dim) // SAMPLED_PREDICATES)
    dim, value = _predicate_ends(as_clauses(clauses), step)
    order = np.lexsort((value, dim))
    dim, value = dim[order], value[order]
    parts = np.searchsorted(dim, np.arange(width + 1))
    ends = [_thin(value[a:b]) for a, b in itertools.pairwise(parts)]
    box = clauses.box[:: max(1, len(clauses) // SAMPLED_PREDICATES)]
    for axis in (0, 1):
        corners = box[:, axis::2].ravel()
        ends.append(_thin(np.sort(corners[np.isfinite(corners)])))
    return ends


def _thin(values: Float64) -> Float64:
    return values[np.linspace(0, len(values) - 1, SAMPLE).astype(np.int64)] if len(values) > SAMPLE else values


@kernel
def _predicate_ends(clauses: Clauses, step: int) -> tuple[Int16, Float64]:
    """(dimension, value) of every finite end, and of every code of an IN, of each `step`-th clause.

    Of whole clauses: each so-many-th predicate is on the same dimension where clauses are alike.
    """
    start, dim, kind, lo, hi = clauses.pred_start, clauses.pred_dim, clauses.pred_kind, clauses.pred_lo, clauses.pred_hi
    size = 0
    for clause in range(0, start.size - 1, step):
        for p in range(start[clause], start[clause + 1]):
            size += 2 if kind[p] == RANGE else (wide(hi[p]) if kind[p] == IN else 0)
    out_dim, out = np.empty(size, np.int16), np.empty(size, np.float64)
    at = 0
    for clause in range(0, start.size - 1, step):
        for p in range(start[clause], start[clause + 1]):
            if kind[p] == RANGE:
                for end in (lo[p], hi[p]):
                    if np.isfinite(end):
                        out_dim[at], out[at] = dim[p], end
                        at += 1
            elif kind[p] == IN:
                for j in range(wide(lo[p]), wide(lo[p] + hi[p])):
                    out_dim[at], out[at] = dim[p], clauses.pool[j]
                    at += 1
    return out_dim[:at], out[:at]


def cell_edges(ends: list[Float64], cells: int = CELLS) -> tuple[Float32, Uint8]:
    """Where cells begin, at even shares of the ends: up to `cells` a dimension, the first without an edge; padded with inf."""
    edges = np.full((len(ends), cells - 1), np.inf, np.float32)
    count = np.ones(len(ends), np.uint8)
    for row, values in enumerate(ends):
        if len(values):
            shares = values[(np.arange(1, cells) * len(values)) // cells]
            with np.errstate(over="ignore"):
                distinct = np.unique(shares.astype(np.float32))
            distinct = distinct[np.isfinite(distinct)]
            edges[row, : len(distinct)] = distinct
            count[row] = len(distinct) + 1
    return edges, count


def choose_keys(clauses: ClauseColumns, ends: list[Float64], tier: Int64) -> Keys:
    n = len(clauses)
    keys = Keys(np.full(n, NO_KEY, np.int16), np.ones(n), np.full(n, -np.inf), np.full(n, np.inf))
    start = starts(np.array([len(values) for values in ends]))
    _narrowest(as_clauses(clauses), start, np.concatenate(ends), keys)
    placed = np.flatnonzero(np.isfinite(clauses.box).all(axis=1))
    area, mass = _areas(readonly(clauses.box), placed, *ends[-2:]), keys.mass[placed]
    better = (area <= mass) | drawn_to_place(area, mass, keys.dim[placed], tier[placed])
    chosen = placed[better]
    keys.dim[chosen], keys.mass[chosen] = PLACE, area[better]
    return keys


def drawn_to_place(area: Float64, mass: Float64, key_dim: Int16, tier: Int64) -> Bool:
    """Of the clauses with boxes, those that had better stand with the others by their place, though another key is narrower.

    A key is only as good as its blocks: a run of b blocks along a dimension is reached through a share of 1/b of it and the
    clauses' own mass, b blocks over the plane through squares of 1/sqrt(b) and their own sides.
    """
    blocks_by_place = np.maximum(np.bincount(tier[area <= mass], minlength=int(tier.max(initial=0)) + 1), 1) / BLOCK
    _, run, size = np.unique(run_of(tier, key_dim, mass_levels(mass)), return_inverse=True, return_counts=True)
    by_key = np.minimum(mass + BLOCK / size[run], 1.0)
    by_place = (np.sqrt(area) + np.sqrt(1 / blocks_by_place[tier])) ** 2
    drawn: Bool = by_place < by_key
    return drawn


@inlined
def _share(values: Float64, lo: float, hi: float) -> float:
    """Of ascending values, SAMPLE at most, the share in [lo, hi]: by halving, a third of what `searchsorted` takes."""
    below, upto, half = 0, 0, SAMPLE
    while half > 0:
        if below + half <= values.size and values[below + half - 1] < lo:
            below += half
        if upto + half <= values.size and values[upto + half - 1] <= hi:
            upto += half
        half >>= 1
    return (upto - below) / max(values.size, 1)


@kernel
def _areas(box: Float64, rows: Int64, xs: Float64, ys: Float64) -> Float64:
    """The share of all places that each of these boxes covers, x and y being taken apart."""
    area = np.empty(rows.size)
    for i in range(rows.size):
        xmin, ymin, xmax, ymax = box[rows[i]]
        area[i] = _share(xs, xmin, xmax) * _share(ys, ymin, ymax)
    return area


@kernel
def _narrowest(clauses: Clauses, start: Int64, ends: Float64, keys: Keys) -> None:
    """Keys among predicates; what passes nearly everything (mass above 0.9) is no key."""
    pred_start, pred_dim, pred_kind = clauses.pred_start, clauses.pred_dim, clauses.pred_kind
    for clause in range(keys.dim.size):
        keys.mass[clause] = 0.9
        for p in range(pred_start[clause], pred_start[clause + 1]):
            lo, hi = clauses.pred_lo[p], clauses.pred_hi[p]
            if pred_kind[p] == IN and hi > 0:
                first = wide(lo)
                lo, hi = np.float64(clauses.pool[first]), np.float64(clauses.pool[first + wide(hi) - 1])
            elif pred_kind[p] != RANGE:
                continue
            values = ends[start[pred_dim[p]] : start[pred_dim[p] + 1]]
            if values.size == 0:
                continue
            share = _share(values, lo, hi)
            if share < keys.mass[clause]:
                keys.mass[clause], keys.dim[clause] = share, pred_dim[p]
                keys.lo[clause], keys.hi[clause] = lo, hi
