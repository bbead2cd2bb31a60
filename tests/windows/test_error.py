"""What `error=` costs beside the exact lists, measured: the figures of docs/ranking.md. `python -m tests.windows.test_error`."""

from __future__ import annotations

import random

import pytest

from tidings.model.values.window import Window
from tidings.windows.windows import Windows

K, COUNT, EVENTS = 5, 100, 3000


def shares(error: float, seeds: range) -> tuple[float, float]:
    """Of the exact deliveries of independent events: the share that is missed, and that is told besides."""
    told = missed = extra = 0
    for seed in seeds:
        draw, exact, bounded = random.Random(seed), Windows(), Windows()
        exact.activate("s", K, Window(count=COUNT), 0)
        bounded.activate("s", K, Window(count=COUNT), 0, error)
        wanted, given = set[str](), set[str]()
        for i in range(1, EVENTS):
            relevance = draw.random()
            wanted |= {entry.event for entry in exact.publish(f"e{i}", i, None, [("s", relevance)])}
            given |= {entry.event for entry in bounded.publish(f"e{i}", i, None, [("s", relevance)])}
        told, missed, extra = told + len(wanted), missed + len(wanted - given), extra + len(given - wanted)
    return missed / told, extra / told


@pytest.mark.parametrize(("error", "most_extra"), [(0.01, 0.01), (0.3, 0.4)])
def test_an_error_misses_few_and_tells_some_besides(error, most_extra):
    missed, extra = shares(error, range(2))
    assert missed <= error
    assert extra <= most_extra
    assert (extra > 0.1) == (error > 0.1), "a queue that has lost a better one promotes a worse one"


if __name__ == "__main__":
    for error in (0.01, 0.1, 0.3):
        missed, extra = shares(error, range(4))
        print(f"error={error}: {missed:.1%} missed, {extra:.1%} besides")
