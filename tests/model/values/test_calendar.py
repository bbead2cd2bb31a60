"""Periods of the calendar against what a zone's clock shows, and durations as ISO 8601 writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.windows import period_end
from tidings.errors import SubscriptionError
from tidings.model.values.calendar import LAST, Calendar, read_zone
from tidings.model.values.window import parse_window

SECOND = 1_000_000
ZONES = ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Apia", "America/Havana"]


@given(
    instant=st.integers(0, 2_000_000_000).map(lambda s: s * SECOND),
    unit=st.sampled_from(["day", "week", "month"]),
    zone=st.sampled_from(ZONES),
)
def test_a_period_ends_where_the_clock_of_its_zone_shows_the_next(instant, unit, zone):
    assert Calendar(unit, zone).end(instant) == period_end(instant, unit, zone)


@pytest.mark.parametrize("instant", [-(2**62), -62_135_596_800 * SECOND, LAST - 1, LAST, 2**62])
@pytest.mark.parametrize("zone", ZONES)
def test_at_the_ends_of_time_there_is_some_period(instant, zone):
    for unit in ("day", "week", "month"):
        starts = Calendar(unit, zone).starts(instant, instant)
        assert starts == sorted(set(starts))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("P1D", 86_400), ("PT90M", 5_400), ("P1DT1H", 90_000), ("p2w", 1_209_600), ("PT0.5S", 0.5), ("PT1,5S", 1.5)],
)
def test_a_duration_as_iso_8601_has_it(text, seconds):
    window = parse_window(text)
    assert window.duration == seconds * SECOND
    assert parse_window(str(window)) == window


@pytest.mark.parametrize("text", ["P", "PT", "P1M", "P1Y", "PT0S", "P1DT", "days", "fortnight", "-P1D"])
def test_what_has_no_length_is_refused(text):
    with pytest.raises(SubscriptionError, match="'P1D'"):
        parse_window(text)


@pytest.mark.parametrize("zone", ["Berlin", "Europe/Atlantis", "", "../etc/passwd", 3])
def test_an_unknown_zone_is_refused(zone):
    with pytest.raises(SubscriptionError, match="tz is "):
        read_zone(zone)
