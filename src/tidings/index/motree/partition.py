"""How wide should the overlapping cells of an indexing attribute be? The optimisation model of MO-Tree, section 5.

An attribute's domain is normalised to [0, 1] and covered by L levels of equally wide, evenly spaced, overlapping cells. An
interval is stored in the narrowest cell that contains it; a value stabs every cell that contains it. Wide cells *intercept* more of
the intervals that a level aims at, and are stabbed by more values. The model maximises what is intercepted while a
value stabs at most `stab_limit` cells on average.

Symbols of the paper: L -> `levels`, c_i -> `count`, w_i -> `width`, t_i -> `limit`, eta -> `stab_limit`, o_i -> `overlap`,
rho_i -> `stabbed`, gamma_i -> `intercepted`, P_w and P_l -> a sample `lo`, `hi` of intervals, P_e -> a sample `values` of events.

Deviations
- Lemma 2 claims t_i = i / L from Eq. (1) for Zipf widths, "roughly". `level_limits` is that; `measured_limits` solves Eq. (1) for
  a sample.
- The paper solves Theorem 1 only for its example. For measured distributions the objective is a step function of the widths, so
  `measured_widths` evaluates every level on a grid and finds the Lagrange multiplier by bisection.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.index.packed.types import Float64, Int64

BUCKET = 6.0
"""What visiting a bucket costs, in items compared: 40 ns against 6.7 at 300,000 events (`python -m benchmarks.motree`)."""


def cell_counts(levels: int) -> Int64:
    """Cells of each level from the narrowest to the one that covers the domain: c_i = L - i + 1. [motree, 5.2]"""
    return np.arange(levels, 0, -1, dtype=np.int64)


def overlap(count: int, width: float) -> float:
    """How far neighbouring cells overlap; an interval no wider than this always fits in some cell. [motree, Lemma 1]"""
    return (count * width - 1) / (count - 1)


def level_limits(levels: int) -> Float64:
    """The widest interval that each level aims at, t_i = i / L. [motree, Lemma 2]"""
    return np.arange(1, levels + 1) / levels


def measured_limits(widths: Float64, counts: Int64) -> Float64:
    """The limits that spread a sample of interval widths evenly over all cells. [motree, Eq. 1]"""
    return np.asarray(np.append(np.quantile(widths, (np.cumsum(counts) / counts.sum())[:-1]), 1.0))


def width_bounds(count: int, limit: float) -> tuple[float, float]:
    """Least and greatest useful cell width: at the least the widest interval can fit, at the greatest it must. [motree, Lemma 3]"""
    return limit, (limit * (count - 1) + 1) / count


def interception(count: int, width: float, x: float) -> float:
    """The share of intervals of width `x`, uniformly placed, that fit in a cell of the level. [motree, Lemma 4]"""
    return min(max(count * (width - x), 0.0) / (1 - x), 1.0) if x < 1 else float(width >= 1)


def cell_starts(count: int, width: float) -> Float64:
    """Left ends of the level's cells. [motree, Eq. 3]"""
    return np.asarray(np.arange(count) * ((1 - width) / max(count - 1, 1)), np.float64)


def optimal_widths(levels: int, stab_limit: float) -> Float64:
    """Cell widths for uniformly distributed interval ends and values, in closed form.

    There gamma_i is a parabola with its vertex at the greatest width, so that dF/dw_i = 0 makes the distance from the vertex
    proportional to c_i / a_i, and the constraint fixes the factor. A width that would fall below its least stays there.
    [motree, Theorem 1 and 5.3]
    """
    counts, limits = cell_counts(levels), level_limits(levels)
    bounds = [width_bounds(int(c), t) for c, t in zip(counts, limits, strict=True)]
    least, greatest = (np.array(side) for side in zip(*bounds, strict=True))
    slack = np.append([_slack(int(c), t, levels) for c, t in zip(counts[:-1], limits[:-1], strict=True)], 0.0)
    free = np.ones(levels, np.bool_)
    while True:
        excess = (counts * np.where(free, greatest, least)).sum() - stab_limit
        factor = max(excess, 0.0) / (counts * slack)[free].sum() if (counts * slack)[free].any() else 0.0
        widths = np.where(free, greatest - factor * slack, least)
        if not (free & (widths < least)).any():
            return np.asarray(widths)
        free &= widths >= least


def _slack(count: int, limit: float, levels: int) -> float:
    """c_i / a_i: how readily a level gives up width. a_i follows from the parabola's value at the least width.

    With P_w(x) = 2 (1 - x) both integrals over (limit - 1/L, limit] are elementary; at the least width Lemma 4's cap of 1 is
    reached only at the lower end.
    """
    least, greatest = width_bounds(count, limit)
    before = limit - 1 / levels
    aimed = (1 - before) ** 2 - (1 - limit) ** 2
    caught = count * (limit - before) ** 2
    curvature: float = (aimed - caught) / (greatest - least) ** 2
    return count / curvature


def value_cell_counts(items: int, widths: Sequence[float], most: int = 60) -> list[int]:
    """How many disjoint cells each stacked attribute of a tree of events should have, for searches of these widths (shares).

    A search of width w over c cells visits w c + 1 of them, and meets the items of w + 1 / c of the domain. The paper fixes c;
    here the product over the attributes of each, a visit weighing BUCKET items, is made least, one attribute after the other.
    """
    counts = [1] * len(widths)
    choices = np.arange(1, most + 1)
    while True:
        before = list(counts)
        for at, width in enumerate(widths):
            others = [(w, c) for place, (w, c) in enumerate(zip(widths, counts, strict=True)) if place != at]
            visits = float(np.prod([w * c + 1 for w, c in others]))
            share = float(np.prod([min(1.0, w + 1 / c) for w, c in others]))
            work = BUCKET * visits * (width * choices + 1) + items * share * np.minimum(1.0, width + 1 / choices)
            counts[at] = int(choices[np.argmin(work)])
        if counts == before:
            return counts


def stabbed(count: int, width: float, values: Float64) -> float:
    """Cells of a level that a value stabs, on average over a sample. [motree, Eq. 2]"""
    starts = cell_starts(count, width)
    return float(((starts <= values[:, None]) & (values[:, None] <= starts + width)).sum() / max(len(values), 1))


def intercepted(count: int, width: float, lo: Float64, hi: Float64) -> float:
    """The share of a sample of intervals that fit in a cell of the level. [motree, Eq. 4 and 6]"""
    starts = cell_starts(count, width)
    fits = (starts <= lo[:, None]) & (hi[:, None] <= starts + width)
    return float(fits.any(axis=1).sum() / max(len(lo), 1))


def measured_widths(
    counts: Sequence[int], stab_limit: float, lo: Float64, hi: Float64, values: Float64, *, grid: int = 33
) -> Float64:
    """Cell widths for a sample of normalised intervals and values; the last level always covers the domain. [motree, Theorem 1]"""
    cells = np.asarray(counts, np.int64)
    limits = measured_limits(hi - lo, cells)
    choices, gain, cost = _choices(cells, limits, lo, hi, values, grid)
    budget = stab_limit - 1.0
    rows = np.arange(len(choices))

    def best(price: float) -> Int64:
        return np.asarray(np.argmax(gain - price * cost, axis=1))

    cheap, dear = 0.0, 1e6
    for _ in range(60):
        price = (cheap + dear) / 2
        cheap, dear = (cheap, price) if cost[rows, best(price)].sum() <= budget else (price, dear)
    picked = _spend(best(dear), gain, cost, budget)
    return np.append(choices[rows, picked], 1.0)


def _choices(
    counts: Int64, limits: Float64, lo: Float64, hi: Float64, values: Float64, grid: int
) -> tuple[Float64, Float64, Float64]:
    """For each level but the last, widths on a grid between Lemma 3's bounds, and what each width intercepts and costs."""
    shape = (len(counts) - 1, grid)
    choices, gain, cost = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    before = 0.0
    for level, (count, limit) in enumerate(zip(counts[:-1].tolist(), limits[:-1].tolist(), strict=True)):
        least, greatest = width_bounds(count, limit)
        choices[level] = np.linspace(max(least, 1 / count), greatest, grid)
        aimed = (hi - lo > before) & (hi - lo <= limit) if level else hi - lo <= limit
        share = aimed.mean() if len(lo) else 0.0
        gain[level] = [share * intercepted(count, width, lo[aimed], hi[aimed]) for width in choices[level]]
        cost[level] = [stabbed(count, width, values) for width in choices[level]]
        before = limit
    return choices, gain, cost


def _spend(picked: Int64, gain: Float64, cost: Float64, budget: float) -> Int64:
    """What the multiplier leaves of the budget goes, level by level, to the best width that it still pays for."""
    for level in range(len(picked)):
        rest = budget - sum(cost[other, picked[other]] for other in range(len(picked)) if other != level)
        payable = cost[level] <= max(rest, cost[level, picked[level]])
        picked[level] = int(np.argmax(np.where(payable, gain[level], -1.0)))
    return picked
