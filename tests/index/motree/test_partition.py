"""The optimisation model of MO-Tree: its lemmas against direct counting, its example, and the measured solution's optimality."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tidings.index.motree import partition


def test_the_papers_example():
    widths = partition.optimal_widths(levels=4, stab_limit=6.0)
    assert [Fraction(float(w)).limit_denominator(100) for w in widths] == [Fraction(3, 8), Fraction(11, 18), Fraction(5, 6), 1]
    assert widths == pytest.approx([3 / 8, 11 / 18, 5 / 6, 1], abs=1e-12)


def test_without_a_limit_every_level_takes_its_greatest_width():
    greatest = [partition.width_bounds(c, t)[1] for c, t in zip(partition.cell_counts(4), partition.level_limits(4), strict=True)]
    assert partition.optimal_widths(4, 100.0) == pytest.approx(greatest)
    assert partition.optimal_widths(4, 6.5) == pytest.approx(greatest), "the paper's setting, eta = 6.5, is exactly no limit"


@pytest.mark.parametrize("limit", [4.0, 4.5, 5.0, 5.5, 6.25])
@pytest.mark.parametrize("levels", [2, 3, 4, 5])
def test_closed_form_keeps_the_constraint_and_the_bounds(levels, limit):
    widths, counts = partition.optimal_widths(levels, limit), partition.cell_counts(levels)
    bounds = [partition.width_bounds(int(c), t) for c, t in zip(counts, partition.level_limits(levels), strict=True)]
    least = sum(c * low for c, (low, _) in zip(counts, bounds, strict=True))
    assert (counts * widths).sum() <= max(limit, least) + 1e-9
    assert all(low - 1e-9 <= w <= high + 1e-9 for w, (low, high) in zip(widths, bounds, strict=True))


def test_lemma_1_cells_span_the_domain():
    starts = partition.cell_starts(4, 0.375)
    assert starts[0] == 0
    assert starts[-1] + 0.375 == pytest.approx(1)
    assert starts[0] + 0.375 - starts[1] == pytest.approx(partition.overlap(4, 0.375))


def test_lemma_2_spreads_measured_widths_evenly():
    widths = np.random.default_rng(1).random(20_000) ** 2
    counts = partition.cell_counts(4)
    limits = partition.measured_limits(widths, counts)
    held = np.histogram(widths, [0, *limits])[0]
    assert held / counts == pytest.approx([2000] * 4, rel=0.01)


def test_lemma_3_at_the_greatest_width_everything_fits():
    for count, limit in ((4, 0.25), (3, 0.5), (2, 0.75)):
        least, greatest = partition.width_bounds(count, limit)
        assert partition.interception(count, greatest, limit) == pytest.approx(1)
        assert partition.interception(count, least, limit) == 0
        assert partition.overlap(count, greatest) == pytest.approx(limit)


@pytest.mark.parametrize("x", [0.05, 0.125, 0.2, 0.3])
def test_lemma_4_is_the_counted_share(x):
    lo = np.linspace(0, 1 - x, 40_001)
    width = 0.28
    counted = partition.intercepted(4, width, lo, lo + x)
    if partition.overlap(4, width) <= 0 or x >= partition.overlap(4, width):
        assert counted == pytest.approx(partition.interception(4, width, x), abs=2e-3)
    else:
        assert counted == 1


def test_stabbed_is_the_sum_of_widths_for_uniform_values():
    values = (np.arange(10_000) + 0.5) / 10_000
    assert partition.stabbed(4, 0.4375, values) == pytest.approx(4 * 0.4375, abs=1e-3)


def test_measured_widths_are_the_best_of_the_grid():
    rng = np.random.default_rng(7)
    ends = np.sort(rng.beta(2, 5, (400, 2)), axis=1)
    lo, hi, values = ends[:, 0], ends[:, 1], rng.beta(2, 5, 300)
    counts, limit, grid = [4, 3, 2, 1], 5.0, 7
    widths = partition.measured_widths(counts, limit, lo, hi, values, grid=grid)
    limits = partition.measured_limits(hi - lo, np.array(counts))

    def worth(chosen):
        before, total, cost = 0.0, 0.0, 1.0
        for count, t, w in zip(counts[:-1], limits[:-1], chosen, strict=True):
            aimed = (hi - lo <= t) & ((hi - lo > before) | (before == 0))
            total += aimed.mean() * partition.intercepted(count, w, lo[aimed], hi[aimed])
            cost += partition.stabbed(count, w, values)
            before = t
        return total, cost

    grids = [
        np.linspace(max(t, 1 / c), partition.width_bounds(c, t)[1], grid) for c, t in zip(counts[:-1], limits[:-1], strict=True)
    ]
    best = max(total for total, cost in map(worth, product(*grids)) if cost <= limit)
    total, cost = worth(widths[:-1])
    assert widths[-1] == 1
    assert cost <= limit
    assert total >= 0.97 * best


@pytest.mark.parametrize(
    ("items", "widths"), [(1_000_000, (0.025, 0.025, 1 / 3)), (2000, (0.1, 0.5)), (10, (1.0,)), (50_000, (0.0, 0.2))]
)
def test_cells_of_values_make_the_work_least(items, widths):
    """No cell more or less on one attribute would be better; many items or narrow searches want more cells."""

    def work(counts):
        visits = np.prod([w * c + 1 for w, c in zip(widths, counts, strict=True)])
        return partition.BUCKET * visits + items * np.prod([min(1.0, w + 1 / c) for w, c in zip(widths, counts, strict=True)])

    best = partition.value_cell_counts(items, widths)
    for at in range(len(widths)):
        for other in range(1, 61):
            assert work(best) <= work([*best[:at], other, *best[at + 1 :]]) * (1 + 1e-12)
    assert np.prod(partition.value_cell_counts(10 * items, widths)) >= np.prod(best)
