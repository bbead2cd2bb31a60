"""The queue mathematics against exact fractions, against simulation, and against what the paper says of its Figure 9."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tidings.rank.queue_length import log_choose, p_a, p_b, p_f, p_i, p_j, p_m, p_sigma, p_u, queue_length


def exact_p_u(new_position, position, births):
    j = new_position - 1
    return Fraction(math.comb(births, j) * math.comb(births - 1, position - 1), 2 * math.comb(2 * births - 1, position - 1 + j))


def exact_p_sigma(position, k, births):
    return sum(exact_p_u(new_position, position, births) for new_position in range(1, k + 1))


@pytest.mark.parametrize("births", [1, 2, 7, 40])
def test_p_u_is_a_distribution_and_equals_the_fraction(births):
    for position in range(1, births + 1):
        chances = [p_u(new_position, position, births) for new_position in range(1, births + 2)]
        assert chances == pytest.approx([float(exact_p_u(n, position, births)) for n in range(1, births + 2)], rel=1e-12)
        assert sum(chances) == pytest.approx(1.0)
        assert p_u(births + 2, position, births) == 0.0


def test_the_general_formulas_meet_in_the_special_one():
    for position, new_position in [(1, 1), (3, 2), (9, 4), (20, 20)]:
        assert p_a(new_position, position, 20, 20) == pytest.approx(p_u(new_position, position, 20))
        assert p_m(new_position, position, 20, 19, 20) == pytest.approx(p_u(new_position, position, 20))
        assert p_f(new_position, position, 2000, 2000) == pytest.approx(p_a(new_position, position, 2000, 2000), rel=0.03)


def test_each_formula_is_a_distribution():
    assert sum(p_b(b, 9.5) for b in range(80)) == pytest.approx(1.0)
    assert sum(p_i(6, 20, 8, i) for i in range(9)) == pytest.approx(1.0)
    assert sum(p_j(6, 20, 15, j) for j in range(16)) == pytest.approx(1.0)
    assert sum(p_m(n, 6, 20, 8, 15) for n in range(1, 36)) == pytest.approx(1.0)
    assert p_b(0, 0.0) == 1.0


@pytest.mark.parametrize("births", [10**4, 10**6, 10**9])
def test_large_windows_keep_their_digits(births):
    assert math.exp(log_choose(births, 2)) == pytest.approx(births * (births - 1) / 2, rel=1e-12)
    for position, k in [(1, 1), (40, 7), (300, 200)]:
        assert p_sigma(position, k, births) == pytest.approx(float(exact_p_sigma(position, k, births)), rel=1e-11)


@pytest.mark.parametrize(("k", "error", "births"), [(1, 0.001, 50), (3, 0.1, 30), (5, 0.001, 1000), (4, 0.9, 100), (7, 0.001, 8)])
def test_the_length_is_the_last_position_that_is_good_enough(k, error, births):
    good = [position for position in range(k, births + 1) if exact_p_sigma(position, k, births) >= Fraction(error)]
    assert queue_length(k, error, births) == max(good, default=k)


def test_a_window_that_k_fills_needs_no_tail():
    assert queue_length(10, 0.001, 10) == 10
    assert queue_length(20, 0.001, 10) == 10


def test_the_length_barely_depends_on_the_rate_and_grows_sublinearly_with_k():
    lengths = {k: queue_length(k, 0.001) for k in (1, 10, 100, 1000)}
    for k, length in lengths.items():
        assert queue_length(k, 0.001, 10**5) >= 0.97 * length
    tails = [lengths[k] - k for k in (1, 10, 100, 1000)]
    assert all(b < 10 * a for a, b in pairwise(tails))
    assert tails == sorted(tails)


def test_simulated_positions_follow_p_sigma():
    """The chance of ever being among the k best is largest in the last instant, where p_sigma takes it."""
    random = np.random.default_rng(5)
    births, position, k, rounds = 60, 8, 3, 20_000
    alive, newer = np.sort(random.random((rounds, births)), axis=1), random.random((rounds, births))
    own = alive[:, position - 1]
    better = (newer < own[:, None]).sum(axis=1)
    assert (better < k).mean() == pytest.approx(p_sigma(position, k, births), abs=0.01)


@pytest.mark.parametrize("error", [0.0, 1.0, -0.5])
def test_refusal(error):
    with pytest.raises(ValueError, match="error is"):
        queue_length(3, error, 100)
