"""What a user's first calls cost, counted in compilations: no time is in a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.compiling.first_calls import readme
from tidings.compiling.dispatching import rehearsing
from tidings.warm.rehearsal import rehearse

WANTED, FUNCTIONS = 5, 101
"""Kernels that the README's path calls, and those with all that they reach. Fewer is better; more wants a reason."""


@pytest.mark.parametrize("way", ["", "plain"])
def test_the_readme_compiles_nothing_and_wants_no_more_kernels_than_before(way, tmp_path):
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "TIDINGS_KERNELS": way}
    found = subprocess.run([sys.executable, "-m", "tests.compiling.first_calls"], env=settings, capture_output=True, check=True)
    counts = json.loads(found.stdout)
    assert not counts["numba_at_import"]
    assert counts["compiled"] == 0
    if not way:
        assert (counts["wanted"] <= WANTED, counts["functions"] <= FUNCTIONS) == (True, True), counts


def test_a_rehearsal_wants_what_the_readme_does():
    with rehearsing() as wanted:
        readme()
    assert {(one.module, one.name) for one in wanted} <= {(one.module, one.name) for one in rehearse()}
