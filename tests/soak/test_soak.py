"""Each kind of soak once, briefly; kills, limits, full disks, forks and readers stand in their own tests."""

from __future__ import annotations

from functools import partial

import pytest

from tests.soak import kinds, record


@pytest.mark.parametrize(
    "kind", [partial(kinds.damage, times=12), partial(kinds.churn, rounds=9), partial(kinds.fuzz, inputs=600, rounds=2)]
)
def test_a_short_soak(kind):
    assert all(kind(1).values())


def test_the_page_says_what_was_counted():
    kept = {**record.load(), "totals": {"kills": 1234}, "failures": []}
    assert "| kills | 1,234 |" in record.page(kept)
    assert "Failures: 0," in record.page(kept)
