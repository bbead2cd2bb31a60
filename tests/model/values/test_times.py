import math
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.values.times import parse_time

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        ("1970-01-02", DAY),
        ("1970-01-02T00:00:00Z", DAY),
        ("1970-01-02T00:00:00.000001Z", DAY + 1),
        ("1970-01-02T01:00:00+01:00", DAY),
        ("1970-01-02T00:00:00", DAY),
        (date(1970, 1, 2), DAY),
        (datetime(1970, 1, 2), DAY),
        (datetime(1970, 1, 2, 2, tzinfo=timezone(timedelta(hours=2))), DAY),
        (86_400, DAY),
        (86_400.5, DAY + 500_000),
        (-1, -1_000_000),
    ],
)
def test_accepted(value, microseconds):
    assert parse_time(value) == microseconds


@given(st.datetimes(timezones=st.just(UTC)))
def test_text_and_datetime_agree(moment):
    assert parse_time(moment.isoformat()) == parse_time(moment)


@pytest.mark.parametrize(
    "value",
    ["", "soon", "2026-13-01", "x" * 10_000_000, math.nan, math.inf, 1e300, 10**30, None, True, [1], "9999-12-31T23:59:60Z"],
)
def test_refused_in_one_sentence(value):
    with pytest.raises(ValueError, match="is not a time: an ISO 8601 date") as refusal:
        parse_time(value)
    assert len(str(refusal.value)) < 300
