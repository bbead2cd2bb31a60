"""Single values at the door: a value of each attribute type, an id, an owner, an instant, taken to its one form.

Whatever cannot be read raises EventError: one sentence with the field, the value and what is accepted. Bulk readers give the same
sentences by calling these for the rows that they refuse.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import shapely

from tidings.errors import EventError, shown
from tidings.model.values.limits import CONTROL, TEXT_LIMIT, has_surrogate, limited
from tidings.model.values.outline import Box, place_of
from tidings.model.values.prose import Prose, analyser_of, prose_of
from tidings.model.values.schema import Attribute, Bool, Category, Date, Number, Place, Time, Words
from tidings.model.values.text import tokenize
from tidings.model.values.times import parse_date, parse_time
from tidings.model.values.vague import read_vague

PLACE_FORMS = "(x, y), (xmin, ymin, xmax, ymax), the same as an object with these names, or a geometry (GeoJSON, WKT, shapely)"
_ROUNDING = 1e-9
_LARGEST = sys.float_info.max


def value_reader(name: str, attribute: Attribute) -> Callable[[Any], Any]:
    """The function that takes a value of `attribute` to its one form, or raises EventError."""
    if isinstance(attribute, Number):
        return lambda value: read_vague(name, value, read_number, True) or read_number(name, value)
    if isinstance(attribute, Category):
        return lambda value: read_text(name, value) if isinstance(value, str) else _category(name, value)
    if isinstance(attribute, Time):
        return lambda value: read_vague(name, value, read_time, True) or read_time(name, value)
    if isinstance(attribute, Bool):
        return lambda value: read_truth(name, value)
    if isinstance(attribute, Date):
        return lambda value: read_date(name, value)
    if isinstance(attribute, Place):
        return _place_reader(name, attribute)
    return words_reader(name, attribute)


def _category(name: str, value: Any) -> Any:
    return read_vague(name, value, read_text, False) or read_text(name, value)


def read_number(name: str, value: Any) -> float:
    if isinstance(value, int | float | np.integer | np.floating | Decimal) and not isinstance(value, bool):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise EventError(f"{name} is {shown(value)}: a finite number is accepted")


def read_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise EventError(f"{name} is {shown(value)}: a string is accepted")
    if len(value) > TEXT_LIMIT and limited():
        raise EventError(f"{name} is a string of {len(value)} characters: at most {TEXT_LIMIT} are accepted")
    if has_surrogate(value):
        raise EventError(f"{name} is {shown(value)}: a string of Unicode characters is accepted, and half a surrogate pair is none")
    return value


def read_id(name: str, value: object) -> str:
    # Nearly every id is a short text of ASCII, in which to be printable is to have no control character.
    if value.__class__ is str and 0 < len(value) <= TEXT_LIMIT and value.isascii() and value.isprintable():
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return str(value)
    if not isinstance(value, str) or not value:
        raise EventError(f"{name} is {shown(value)}: a string that is not empty is accepted")
    return read_name(name, value)


def read_name(name: str, value: object) -> str:
    """A text without control characters: an id or an owner."""
    text = read_text(name, value)
    if CONTROL.search(text) and limited():
        raise EventError(f"{name} is {shown(text)}: a string without control characters is accepted")
    return text


def read_truth(name: str, value: object) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise EventError(f"{name} is {shown(value)}: true or false is accepted")


def read_date(name: str, value: object) -> int:
    try:
        return parse_date(value)
    except ValueError as error:
        raise EventError(f"{name}: {error}") from None


def read_time(name: str, value: object) -> int | None:
    if value is None:
        return None
    try:
        return parse_time(value)
    except ValueError as error:
        raise EventError(f"{name}: {error}") from None


def words_reader(name: str, attribute: Words) -> Callable[[Any], frozenset[str]]:
    if not attribute.prose:
        tokenizer = attribute.name
        return lambda value: read_words(name, value, tokenizer)
    analyser_of(attribute)  # a tokenizer that cannot be found is said now
    return lambda value: read_prose(name, value, attribute)


def read_prose(name: str, value: object, attribute: Words) -> Prose:
    texts = [read_text(name, value)] if isinstance(value, str) else read_texts(name, value)
    return prose_of(attribute, texts)


def read_words(name: str, value: object, tokenizer: str) -> frozenset[str]:
    if value.__class__ is list and tokenizer == "as-is":
        # All words at once: what they are joined to is a text within bounds iff each of them is one.
        try:
            joined = "".join(value)
        except TypeError:
            joined = ""
        if joined.isascii() and 0 < len(joined) <= TEXT_LIMIT:
            return frozenset(value)
    return tokenize(read_text(name, value) if isinstance(value, str) else read_texts(name, value), tokenizer)


def read_texts(name: str, value: object) -> list[str]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple | set | frozenset) or not all(isinstance(word, str) for word in value):
        raise EventError(f"{name} is {shown(value)}: a string or a list of strings is accepted")
    if sum(map(len, value)) > TEXT_LIMIT and limited():
        raise EventError(f"{name} has words of {sum(map(len, value))} characters: at most {TEXT_LIMIT} are accepted")
    return [read_text(name, word) for word in (sorted(value) if isinstance(value, set | frozenset) else value)]


_OBJECT_FORMS = (("x", "y"), ("xmin", "ymin", "xmax", "ymax"))
_POINT = frozenset(_OBJECT_FORMS[0])


def read_place(name: str, value: Any, plane: bool, shapes: bool = False) -> Box:
    """The box of a place in any of its forms, within longitude and latitude unless it lies on a plane.

    With `shapes` a geometry that is more than a box is an Outline; WKB is one more form of it.
    """
    if value.__class__ is dict and value.keys() == _POINT:
        value = (value["x"], value["y"])
    if isinstance(value, tuple | list) and len(value) == 2:
        x, y = value
        if not (x.__class__ is y.__class__ is float and -_LARGEST <= x <= _LARGEST and -_LARGEST <= y <= _LARGEST):
            x, y = read_number(f"{name}.x", x), read_number(f"{name}.y", y)
        box = (x, y, x, y)
    else:
        if isinstance(value, str | shapely.Geometry):
            value = _geojson(name, value)
        given = isinstance(value, bytes) or (isinstance(value, Mapping) and "type" in value)
        box = _shape(name, value, plane) if shapes and given else _other_box(name, value)
        if box[0] > box[2] or box[1] > box[3]:
            raise _inverted(name, box, plane)
    if not plane and not (box[0] >= -180.0 and box[2] <= 180.0 and box[1] >= -90.0 and box[3] <= 90.0):
        raise EventError(
            f"{name} is {shown(value)}: longitude from -180 to 180 and latitude from -90 to 90 are accepted, in this order"
        )
    return box


def _place_reader(name: str, attribute: Place) -> Callable[[Any], Box]:
    """`read_place`, the short way for what nearly every place is: an object of two floats, within bounds."""
    plane, shapes = attribute.plane, attribute.shapes
    east, north = (_LARGEST, _LARGEST) if plane else (180.0, 90.0)
    west, south = -east, -north

    def read(value: Any) -> Box:
        if value.__class__ is dict and len(value) == 2 and "x" in value and "y" in value:
            x, y = value["x"], value["y"]
            if x.__class__ is y.__class__ is float and west <= x <= east and south <= y <= north:
                return (x, y, x, y)
        return read_place(name, value, plane, shapes)

    return read


def _geojson(name: str, value: str | shapely.Geometry) -> dict[str, Any]:
    """A geometry that came as WKT or from shapely."""
    try:
        geometry = shapely.from_wkt(value) if isinstance(value, str) else value
    except shapely.errors.ShapelyError as error:
        raise EventError(f"{name} is {shown(value)}: {PLACE_FORMS} is accepted ({str(error).strip()})") from None
    written: dict[str, Any] = shapely.geometry.mapping(geometry)
    return written


def _shape(name: str, value: Any, plane: bool) -> Box:
    """The place of a GeoJSON geometry or of WKB. A coordinate beyond the globe by no more than rounding is put on its edge."""
    if not isinstance(value, bytes):
        _geometry_box(name, value)
    try:
        geometry = shapely.from_wkb(value) if isinstance(value, bytes) else shapely.geometry.shape(value)
        geometry = shapely.force_2d(geometry)
        told = "it is empty" if geometry.is_empty else "" if geometry.is_valid else shapely.is_valid_reason(geometry)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, shapely.errors.ShapelyError) as error:
        told = str(error).strip() or "it cannot be read"
    if told:
        raise EventError(f"{name} is {shown(value)}: a valid geometry is accepted ({told})")
    if not all(map(math.isfinite, geometry.bounds)):
        raise EventError(f"{name} is {shown(value)}: finite coordinates are accepted")
    west, south, east, north = geometry.bounds
    if not plane and 0.0 < max(-180.0 - west, east - 180.0, -90.0 - south, north - 90.0) <= _ROUNDING:
        geometry = shapely.transform(geometry, lambda corners: np.clip(corners, (-180.0, -90.0), (180.0, 90.0)))
    return place_of(geometry)


def _inverted(name: str, box: Box, plane: bool) -> EventError:
    if not plane and box[0] > box[2] and box[1] <= box[3]:
        return EventError(
            f"{name} is {box}: a box across the 180th meridian (xmin > xmax) is not accepted here; give each side its own"
        )
    return EventError(f"{name} is {box}: a box has xmin <= xmax and ymin <= ymax")


def _other_box(name: str, value: object) -> Box:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        if "type" in value:
            return _geometry_box(name, value)
        for form in _OBJECT_FORMS:
            if value.keys() == set(form):
                value = [value[part] for part in form]
                break
    if not isinstance(value, tuple | list) or len(value) not in (2, 4):
        raise EventError(f"{name} is {shown(value)}: {PLACE_FORMS} is accepted")
    first, second, *rest = (read_number(name, part) for part in value)
    return (first, second, *rest) if rest else (first, second, first, second)  # type: ignore[return-value]


def _geometry_box(name: str, geometry: Mapping[str, Any]) -> Box:
    """The bounding box of a GeoJSON geometry, however deeply its positions are nested."""
    xs, ys = [], []
    todo: list[Any] = [geometry]
    while todo:
        part = todo.pop()
        if isinstance(part, Mapping):
            inner = part.get("geometries" if str(part.get("type")) == "GeometryCollection" else "coordinates")
            if not isinstance(inner, list | tuple):
                raise EventError(f"{name} is {shown(geometry)}: {PLACE_FORMS} is accepted")
            todo.append(inner)
        elif isinstance(part, list | tuple) and part and not isinstance(part[0], list | tuple | Mapping):
            if len(part) < 2:
                raise EventError(f"{name} has the position {shown(part)}: a position is two numbers or more")
            xs.append(read_number(f"{name}.x", part[0]))
            ys.append(read_number(f"{name}.y", part[1]))
        elif isinstance(part, list | tuple):
            todo.extend(part)
        else:
            raise EventError(f"{name} has the coordinates {shown(part)}: a position is two numbers or more")
    if not xs:
        raise EventError(f"{name} is {shown(geometry)}: a geometry has a position at least")
    return (min(xs), min(ys), max(xs), max(ys))
