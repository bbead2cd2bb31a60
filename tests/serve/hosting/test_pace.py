"""Questions that take long leave the event loop, for longer each time, and come back."""

from __future__ import annotations

from tidings.serve.hosting.pace import FEWEST, LONG, MOST, Pace


def handed_over(pace: Pace) -> int:
    count = 0
    while not pace.quick:
        count += 1
    return count


def test_after_a_long_one_some_are_handed_over_and_twice_as_many_after_the_next():
    pace = Pace()
    assert pace.quick
    for count in (FEWEST, 2 * FEWEST, 4 * FEWEST):
        pace.took(2 * LONG)
        assert handed_over(pace) == count
    for _ in range(20):
        pace.took(2 * LONG)
        assert handed_over(pace) <= MOST
    pace.took(LONG / 2)
    assert pace.quick
    pace.took(2 * LONG)
    assert handed_over(pace) == FEWEST
