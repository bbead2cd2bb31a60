"""Coasts and borders come from the package's own files, cut to the map."""

from __future__ import annotations

from demo.land import land

SWITZERLAND = (5.9, 45.8, 10.5, 47.8)


def test_lines_touch_the_map_and_little_more():
    found = land(SWITZERLAND)
    assert found.coasts, "shores of lakes"
    assert found.borders
    for line in (*found.coasts, *found.borders):
        assert line.shape[1] == 2
        inside = ((line >= SWITZERLAND[:2]) & (line <= SWITZERLAND[2:])).all(axis=1)
        assert inside.any()
        assert not (~inside[:-2] & ~inside[1:-1] & ~inside[2:]).any(), "never three points in a row beside it"


def test_the_open_sea_has_none():
    assert land((-150.5, -40.5, -150.0, -40.0)) == ([], [])
