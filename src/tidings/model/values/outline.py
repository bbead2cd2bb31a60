"""A place that is neither point nor box: its geometry, behind the bounding box that every index and kernel sees.

An `Outline` is the tuple (xmin, ymin, xmax, ymax), so whatever takes a box takes it; predicates on places ask `geometry_of`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import shapely

Box = tuple[float, float, float, float]


class Outline(tuple[float, float, float, float]):
    """Equal to another of the same geometry only: objects with one box and two shapes are two values."""

    wkb: bytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outline) and self.wkb == other.wkb

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.wkb)


def place_of(geometry: Any) -> Box:
    """The box of a shapely geometry that is no more than a box, else its outline."""
    box: Box = tuple(map(float, geometry.bounds))  # type: ignore[assignment]
    if geometry.geom_type == "Point" or (geometry.geom_type in ("Polygon", "LineString") and geometry.equals(_of_box(box))):
        return box
    outline = Outline(box)
    outline.wkb = shapely.to_wkb(geometry)
    return outline


@lru_cache(maxsize=1024)
def geometry_of(place: Box) -> Any:
    """A place as a shapely geometry of its own dimension: point, segment, rectangle, or what its outline has."""
    return shapely.from_wkb(place.wkb) if isinstance(place, Outline) else _of_box(place)


def _of_box(box: Box) -> Any:
    xmin, ymin, xmax, ymax = box
    if (xmin, ymin) == (xmax, ymax):
        return shapely.Point(xmin, ymin)
    if xmin == xmax or ymin == ymax:
        return shapely.LineString([(xmin, ymin), (xmax, ymax)])
    return shapely.box(xmin, ymin, xmax, ymax)
