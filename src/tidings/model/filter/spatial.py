"""Places in filters: what a BBOX or geometry literal covers, and the S_ operators judged by shapely.

A BBOX or a POINT is a box and an index answers S_INTERSECTS with it alone, unless events have shapes (`Place.shapes`). Any other
geometry gives its bounding box to the index and itself to shapely. On longitude and latitude a BBOX with xmin > xmax crosses the
180th meridian and is two boxes. Straight lines between points are straight in the coordinates, not great circles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tidings.errors import FilterError
from tidings.model.filter.clause import Box, PointTest, touches
from tidings.model.values.outline import Outline, geometry_of
from tidings.model.values.schema import Place

COORDINATE_LIMIT = 1e100
"""Beyond it the products that shapely judges by overflow."""
_FOUR_FLOATS = [float] * 4
INVERSE = {
    "s_intersects": "s_intersects",
    "s_disjoint": "s_disjoint",
    "s_equals": "s_equals",
    "s_touches": "s_touches",
    "s_overlaps": "s_overlaps",
    "s_crosses": "s_crosses",
    "s_within": "s_contains",
    "s_contains": "s_within",
}


@dataclass(frozen=True, slots=True)
class Region:
    """What a literal covers: a shapely geometry and its bounding box, or, without a geometry, the boxes themselves. `exact` when
    touching one of the boxes is the same as intersecting the region."""

    boxes: tuple[Box, ...]
    exact: bool = True
    geometry: Any = None

    def related(self, op: str) -> Callable[[Box], bool]:
        """Whether `op(place, region)` holds, as a function of the place's box."""
        geometry = self._whole()
        judge = getattr(geometry, INVERSE[op].removeprefix("s_"))
        if op in ("s_intersects", "s_disjoint") and self.exact:
            boxes, wanted = self.boxes, op == "s_intersects"
            return lambda place: (
                bool(judge(geometry_of(place)))
                if place.__class__ is Outline
                else any(touches(box, place) for box in boxes) is wanted
            )
        return lambda place: bool(judge(geometry_of(place)))

    def related_points(self, op: str) -> PointTest:
        """`related` of many points at once."""
        if op in ("s_intersects", "s_disjoint") and self.exact:
            edges, wanted = np.array(self.boxes)[:, :, None], op == "s_intersects"
            return lambda x, y: _touched(edges, x, y) == wanted
        geometry = self._whole()
        if op in ("s_intersects", "s_disjoint"):
            wanted = op == "s_intersects"
            return lambda x, y: shapely.intersects_xy(geometry, x, y) == wanted
        judge = getattr(shapely, INVERSE[op].removeprefix("s_"))
        return lambda x, y: judge(geometry, shapely.points(x, y))

    def _whole(self) -> Any:
        geometry = shapely.union_all([geometry_of(box) for box in self.boxes]) if self.geometry is None else self.geometry
        shapely.prepare(geometry)
        return geometry


def _touched(edges: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each point lies in one of the boxes, of which edges[box, side, 0] are the sides."""
    inside = (edges[:, 0] <= x) & (x <= edges[:, 2]) & (edges[:, 1] <= y) & (y <= edges[:, 3])
    touched: NDArray[np.bool_] = np.logical_or.reduce(inside, axis=0)
    return touched


def relation(op: str) -> Callable[[Box, Box], bool]:
    """An S_ operator between two places."""
    name = op.removeprefix("s_")
    return lambda a, b: bool(getattr(geometry_of(a), name)(geometry_of(b)))


def read_region(name: str, place: Place, node: Any) -> Region:
    """The region of a literal compared with the attribute `name`."""
    if isinstance(node, dict) and "bbox" in node:
        return Region(read_box(name, place, node["bbox"]))
    if not isinstance(node, dict) or "type" not in node:
        raise FilterError(f"attribute {name!r} is a Place: BBOX(...) or a geometry such as POINT or POLYGON is accepted")
    geometry = _read_geometry(name, node)
    box: Box = tuple(map(float, geometry.bounds))  # type: ignore[assignment]
    _check_coordinates(name, place, box)
    if not geometry.is_valid:
        raise FilterError(f"attribute {name!r}: the {node['type']} is not valid: {shapely.is_valid_reason(geometry)}")
    exact = geometry.geom_type == "Point" or (geometry.geom_type == "Polygon" and geometry.equals(geometry_of(box)))
    return Region((box,), exact, geometry)


def read_box(name: str, place: Place, numbers: Any) -> tuple[Box, ...]:
    """The boxes of a BBOX: two if it crosses the 180th meridian."""
    if [*map(type, numbers)] != _FOUR_FLOATS and (len(numbers) != 4 or not all(type(n) in (int, float) for n in numbers)):
        told = "heights are not modelled" if len(numbers) == 6 else "they are xmin, ymin, xmax, ymax"
        raise FilterError(
            f"attribute {name!r}: BBOX{tuple(numbers)!r} has {len(numbers)} values, four numbers are accepted: {told}"
        )
    xmin, ymin, xmax, ymax = box = tuple(map(float, numbers))
    _check_coordinates(name, place, (xmin, ymin, xmax, ymax))
    if ymin > ymax or (place.plane and xmin > xmax):
        raise FilterError(f"attribute {name!r}: BBOX{box!r} has min > max")
    if xmin > xmax:
        return (xmin, ymin, 180.0, ymax), (-180.0, ymin, xmax, ymax)
    return ((xmin, ymin, xmax, ymax),)


def _check_coordinates(name: str, place: Place, box: Box) -> None:
    west, south, east, north = box
    if -180.0 <= west <= 180.0 and -180.0 <= east <= 180.0 and -90.0 <= south <= 90.0 and -90.0 <= north <= 90.0:
        return
    if not all(abs(coordinate) <= COORDINATE_LIMIT for coordinate in box):
        raise FilterError(f"attribute {name!r}: a coordinate in {box!r} is not a number within {COORDINATE_LIMIT}")
    if not place.plane and not all(-180 <= x <= 180 for x in (box[0], box[2])):
        raise FilterError(f"attribute {name!r}: {box!r} has a longitude outside [-180, 180]")
    if not place.plane and not all(-90 <= y <= 90 for y in (box[1], box[3])):
        raise FilterError(f"attribute {name!r}: {box!r} has a latitude outside [-90, 90]")


def _read_geometry(name: str, node: Any) -> Any:
    try:
        geometry = shapely.geometry.shape(node)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, shapely.errors.ShapelyError) as error:
        raise FilterError(f"attribute {name!r}: the {node['type']} cannot be read: {str(error).strip()}") from None
    if geometry.has_z:
        raise FilterError(
            f"attribute {name!r}: the {node['type']} has heights, which are not modelled: two coordinates are accepted"
        )
    if geometry.is_empty:
        raise FilterError(f"attribute {name!r}: the {node['type']} is empty")
    return geometry
