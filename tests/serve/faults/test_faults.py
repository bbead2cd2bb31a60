"""A few kills of each kind; `make soak` adds up hundreds (docs/reliability.md)."""

from __future__ import annotations

import pytest

from tests.serve.faults.world import KILLED, faults


@pytest.mark.deep
def test_what_is_acknowledged_is_told_whoever_is_killed():
    counts = faults(seed=1, kills=1, pace=0.5)
    assert [counts[f"kills: {whom} of a service"] for whom in KILLED] == [1, 1, 1, 1]
    assert counts["notifications heard under kills"] > 0
