"""How long a top-k/w publications queue must be so that it loses a deliverable publication with probability below sigma.

A publication is born at position l of a subscription's queue (by relevance) and dies when its window has passed. Relevances are
taken as independent of each other and of time. In its last instant everything older has died, so its position l' is one more
than the number j of better publications born after it: that is where it stands best, and `p_u` is the chance of l'. It would
ever be among the k best with chance `p_sigma`, which falls with l; the last l at which it is still sigma or more is the length.

Symbols: l -> position, l' -> new_position, n -> length, m -> births (the expected number of publications in a window), d -> deaths,
b -> births, i -> better_deaths, j -> better_births, sigma -> error, l_best -> `queue_length`.

Cost: `queue_length` evaluates `p_sigma` O(log m) times, each O(k + l) vector operations; one subscription of k = 2,000 costs
under a millisecond. Results are cached.

Deviations:
- Binomials are sums of logarithms of ratios, not factorials: the shorter side of a binomial is multiplied out term by term, so the
  relative error stays near 1e-12 at m = 10^9, where differences of log-factorials (about 2e10 each) would lose six digits.
- (25) asks for the l'' at which p_sigma crosses sigma. Where even the first position falls short, or where every position up to m
  is good enough, there is no crossing; the length is then k, and m.

[topkw, Section 3]
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

WORST_BIRTHS = 1_000_000_000
"""The m the paper advises for a time window, whose publication rate is unknown: the length barely depends on it."""


def queue_length(k: int, error: float, births: int = WORST_BIRTHS) -> int:
    """The length of head and tail together: at least k, at most the window. [topkw, (25)]"""
    if k >= births:
        return births
    if not 0.0 < error < 1.0:
        raise ValueError(f"error is {error}: a probability between 0 and 1, both excluded, is accepted")
    return _queue_length(k, error, births)


@lru_cache(maxsize=4096)
def _queue_length(k: int, error: float, births: int) -> int:
    good, bad = k, 2 * k
    while bad < births and p_sigma(bad, k, births) >= error:
        good, bad = bad, 2 * bad
    if bad >= births:
        if p_sigma(births, k, births) >= error:
            return births
        bad = births
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if p_sigma(middle, k, births) >= error else (good, middle)
    return good


def p_sigma(position: int, k: int, births: int) -> float:
    """The chance that a publication born at `position` is ever among the k best. [topkw, (24)]"""
    better = min(k, births + 1)
    newer = _log_chooses(births, better - 1)
    older = _log_chooses(births - 1, position - 1)[-1]
    both = _log_chooses(2 * births - 1, position - 1 + better - 1)[position - 1 :]
    return float(0.5 * np.exp(newer + older - both).sum())


def p_u(new_position: int, position: int, births: int) -> float:
    """The chance of ending at `new_position` with m publications in every window. [topkw, (23)]"""
    j = new_position - 1
    if j > births:
        return 0.0
    return 0.5 * math.exp(
        log_choose(births, j) + log_choose(births - 1, position - 1) - log_choose(2 * births - 1, position - 1 + j)
    )


def p_a(new_position: int, position: int, length: int, births: int) -> float:
    """The chance of ending at `new_position`, the number of births taken at its mean. [topkw, (22)]"""
    return p_j(position, length, births, new_position - 1)


def p_f(new_position: int, position: int, length: int, births: float) -> float:
    """The chance of ending at `new_position`, over a Poisson number of births of mean `births`. [topkw, (21)]"""
    reach = 12.0 * math.sqrt(births) + 30.0
    first, last = max(0, int(births - reach)), int(births + reach)
    total = 0.0
    for b in range(first, last + 1):
        total += p_b(b, births) * p_j(position, length, b, new_position - 1)
    return total


def p_m(new_position: int, position: int, length: int, deaths: int, births: int) -> float:
    """The chance of standing at `new_position` after some deaths and births. [topkw, (19)]"""
    shift = new_position - position
    total = 0.0
    for better_deaths in range(max(0, -shift), min(position - 1, deaths, births - shift) + 1):
        total += p_i(position, length, deaths, better_deaths) * p_j(position, length, births, better_deaths + shift)
    return total


def p_j(position: int, length: int, births: int, better_births: int) -> float:
    """The chance that `better_births` of the born are better. [topkw, (18)]"""
    if not 0 <= better_births <= births:
        return 0.0
    return (length / (length + births)) * math.exp(
        log_choose(position - 1 + better_births, better_births)
        + log_choose(length - position + births - better_births, births - better_births)
        - log_choose(length + births - 1, births)
    )


def p_i(position: int, length: int, deaths: int, better_deaths: int) -> float:
    """The chance that `better_deaths` of the dead were better (hypergeometric). [topkw, (14)]"""
    if not max(0, deaths - (length - position)) <= better_deaths <= min(position - 1, deaths):
        return 0.0
    return math.exp(
        log_choose(position - 1, better_deaths)
        + log_choose(length - position, deaths - better_deaths)
        - log_choose(length - 1, deaths)
    )


def p_b(births: int, mean: float) -> float:
    """The chance of so many births, or deaths, where `mean` are expected (Poisson). [topkw, (13), (15)]"""
    return math.exp(births * math.log(mean) - mean - math.lgamma(births + 1)) if mean > 0.0 else float(births == 0)


def log_choose(n: int, k: int) -> float:
    return float(_log_chooses(n, min(k, n - k))[-1])


def _log_chooses(n: int, k: int) -> NDArray[np.float64]:
    """log C(n, 0), ..., log C(n, k)."""
    steps = np.arange(k, dtype=np.float64)
    result = np.zeros(k + 1)
    np.cumsum(np.log((n - steps) / (steps + 1.0)), out=result[1:])
    return result
