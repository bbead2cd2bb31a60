"""Coasts, shores of lakes and borders for the report's map, at a scale that a country's map can show."""

from __future__ import annotations

from tidings.console.coasts import BORDERS, COASTS, lines
from tidings.console.coasts import Bounds as Box
from tidings.spark.job.land import Bounds, Lines


def land(bounds: Bounds) -> Lines:
    """What touches the bounds."""
    return Lines(list(lines(COASTS, Box(*bounds))), list(lines(BORDERS, Box(*bounds))))
