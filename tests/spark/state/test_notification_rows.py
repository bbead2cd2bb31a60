"""Instants in the ids of Spark's notifications are written as everywhere else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.match.answers.results import instant
from tidings.spark.state.notification_rows import written


@given(st.lists(st.integers(-(10**16), 10**16) | st.integers(-(10**10), 10**10).map(lambda seconds: seconds * 10**6)))
def test_instants_are_written_as_a_datetime_writes_them(instants: list[int]) -> None:
    assert written(np.array(instants, np.int64)).to_pylist() == [instant(one).isoformat() for one in instants]
