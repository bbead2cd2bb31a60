"""Every drawing of the site is what its code draws."""

from __future__ import annotations

import re

import pytest

from docs.figures.drawn import DRAWINGS, FOLDER


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_what_its_code_draws(name):
    assert (FOLDER / f"{name}.svg").read_text() == DRAWINGS[name](), "stale: run 'make docs'"


def test_no_drawing_is_left_over_or_fetches_anything():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(DRAWINGS)
    for path in FOLDER.glob("*.svg"):
        named = set(re.findall(r'(?:href|src)="([^"#][^"]*)"', path.read_text()))
        assert not named, path.name
