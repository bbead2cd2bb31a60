"""Coasts and borders for the report's map, as whoever runs a job can give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bounds: TypeAlias = tuple[float, float, float, float]
Line: TypeAlias = NDArray[np.float64]
"""Longitude and latitude, a point a row."""


class Lines(NamedTuple):
    coasts: list[Line]
    borders: list[Line]


Land: TypeAlias = Callable[[Bounds], Lines]
"""The lines that touch (west, south, east, north)."""
