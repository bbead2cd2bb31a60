"""Circles and distances: "within r of here", r in metres on longitude and latitude, or in the plane's own unit.

The earth is a sphere of its mean radius, which is within 0.6 % of the ellipsoid's distances. A circle becomes one or two boxes,
which indexes serve, and an exact test, which is checked last. Boxes are a hair wider than the circle, so that rounding never loses
a point that the test would accept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from tidings.errors import FilterError, shown
from tidings.model.filter.clause import Box, Clause, Residue, Values
from tidings.model.values.schema import Place, Schema

EARTH_RADIUS = 6_371_008.8
"""Mean radius in metres."""
_HAIR = 1e-9
_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_UNITS = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "nmi": 1852.0, "ft": 0.3048, "yd": 0.9144}
Point = tuple[float, float]
DWITHIN = "s_dwithin"


def distance(a: Point, b: Point) -> float:
    """Great-circle metres between two (longitude, latitude) points in degrees; by haversine, which is exact for near points."""
    north = math.radians(b[1] - a[1])
    east = math.radians(b[0] - a[0])
    half = math.sin(north / 2) ** 2 + math.cos(math.radians(a[1])) * math.cos(math.radians(b[1])) * math.sin(east / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(min(1.0, math.sqrt(half)))


def distance_to_box(point: Point, box: Box) -> float:
    """Great-circle metres from a point to the nearest point of a box; 0 inside it."""
    xmin, ymin, xmax, ymax = box
    x, y = point
    if xmin <= x <= xmax:
        return distance(point, (x, min(max(y, ymin), ymax)))
    return min(_to_meridian(point, side, ymin, ymax) for side in (xmin, xmax))


def _to_meridian(point: Point, longitude: float, ymin: float, ymax: float) -> float:
    """Metres to an arc of a meridian: to its foot point if the arc has it, else to the nearer end."""
    latitude = math.radians(point[1])
    foot = math.degrees(math.atan2(math.sin(latitude), math.cos(latitude) * math.cos(math.radians(longitude - point[0]))))
    ends = [ymin, ymax, *([foot] if ymin <= foot <= ymax else [])]
    return min(distance(point, (longitude, end)) for end in ends)


def circle_box(point: Point, metres: float) -> tuple[Box, ...]:
    """The boxes that hold every (longitude, latitude) within `metres` of a point: two if the circle crosses the 180th meridian."""
    x, y = point
    angle = metres / EARTH_RADIUS
    south, north = y - math.degrees(angle) - _HAIR, y + math.degrees(angle) + _HAIR
    if north >= 90 or south <= -90:
        return ((-180.0, max(south, -90.0), 180.0, min(north, 90.0)),)
    reach = math.degrees(math.asin(min(1.0, math.sin(angle) / math.cos(math.radians(y))))) + _HAIR
    west, east = x - reach, x + reach
    if west <= -180:
        return (-180.0, south, east, north), (west + 360, south, 180.0, north)
    if east >= 180:
        return (west, south, 180.0, north), (-180.0, south, east - 360, north)
    return ((west, south, east, north),)


def within(schema: Schema, point: Point, metres: float) -> tuple[Clause, ...]:
    """The clauses of "the place is within `metres` of `point`": a box each, and the exact distance as residue.

    An event whose place is a box is within if its nearest point is. Two boxes share only the 180th meridian, and a subscription
    that matches by both clauses is one match.
    """
    if schema.place is None:
        raise FilterError("the topic has no Place attribute to be near to")
    if not (all(map(math.isfinite, point)) and metres >= 0):
        raise FilterError(f"within {metres} of {point}: a distance is 0 or more, from a finite point")
    place = schema[schema.place]
    plane = isinstance(place, Place) and place.plane
    if not plane and not (-180 <= point[0] <= 180 and -90 <= point[1] <= 90):
        raise FilterError(f"point {point}: a longitude is -180 to 180 and a latitude -90 to 90")
    boxes = (_square(point, metres),) if plane else circle_box(point, metres)
    residue = _residue(schema.place, (float(point[0]), float(point[1])), float(metres), plane)
    return tuple(Clause(box=box, residue=(residue,)) for box in boxes)


def read_metres(name: str, value: object, plane: bool) -> float:
    """A distance: a number of metres (units of a plane), or a text with its unit as "500 m"."""
    form = _LENGTH.fullmatch(value) if isinstance(value, str) and not plane else None
    if form is not None and form[2].lower() in _UNITS:
        value = float(form[1]) * _UNITS[form[2].lower()]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        accepted = "a number of 0 or more" if plane else f"a number of metres from 0 on, or a text as '500 m' ({', '.join(_UNITS)})"
        raise FilterError(f"{name} is {shown(value)}: {accepted} is accepted")
    return float(value)


def read_circle(schema: Schema, args: list[Any]) -> tuple[str, Point, float]:
    """Attribute, point and metres of S_DWITHIN(place, POINT(...), 500, 'm')."""
    place = args[0].get("property") if args and isinstance(args[0], dict) else None
    attribute = schema.get(place or "")
    point = args[1].get("coordinates") if len(args) > 1 and isinstance(args[1], dict) and args[1].get("type") == "Point" else None
    if not isinstance(attribute, Place) or place is None or point is None or len(args) not in (3, 4):
        raise FilterError("S_DWITHIN takes a Place, a POINT, a distance and a unit, as S_DWITHIN(place, POINT(13 52), 500, 'm')")
    length: Any = args[2]
    if len(args) == 4 and not attribute.plane and isinstance(length, int | float):
        length = f"{length!r} {args[3]}"
    return place, (float(point[0]), float(point[1])), read_metres("S_DWITHIN", length, attribute.plane)


def distance_of(schema: Schema, name: str, point: Point) -> Callable[[Values], float]:
    """How far an event's place lies from a point: metres, or units of a plane; 0 inside a box."""
    place = schema[name]
    plane = isinstance(place, Place) and place.plane
    return lambda values: _plane_distance(point, values[name]) if plane else distance_to_box(point, values[name])


def circle_of(source: str) -> tuple[str, Point, float] | None:
    """Attribute, point and metres of the residue source that `within` wrote; None of any other."""
    node = json.loads(source)
    if node.get("op") != DWITHIN:
        return None
    attribute, centre, metres = node["args"]
    x, y = centre["coordinates"]
    return attribute["property"], (x, y), metres


def circle_residue(schema: Schema, name: str, point: Point, metres: float) -> Residue:
    """The distance test of `within`, rebuilt from what `circle_of` read."""
    place = schema[name]
    return _residue(name, point, metres, isinstance(place, Place) and place.plane)


def _square(point: Point, radius: float) -> Box:
    hair = _HAIR * max(radius, abs(point[0]), abs(point[1]))
    return point[0] - radius - hair, point[1] - radius - hair, point[0] + radius + hair, point[1] + radius + hair


def _residue(name: str, point: Point, metres: float, plane: bool) -> Residue:
    def test(values: Values) -> bool:
        if name not in values:
            return False
        box: Box = values[name]
        return (_plane_distance(point, box) if plane else distance_to_box(point, box)) <= metres

    centre = {"type": "Point", "coordinates": list(point)}
    source = json.dumps({"op": DWITHIN, "args": [{"property": name}, centre, metres]})
    return Residue(source=source, attributes=frozenset({name}), test=test)


def _plane_distance(point: Point, box: Box) -> float:
    return math.hypot(max(box[0] - point[0], 0.0, point[0] - box[2]), max(box[1] - point[1], 0.0, point[1] - box[3]))
