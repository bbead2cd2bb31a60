"""Events as JSON can carry them: records, as a durable topic's registry keeps them, and bodies, as users write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import shapely

from tidings.model.door.event import Event
from tidings.model.values.outline import Outline, geometry_of, place_of
from tidings.model.values.prose import prose_of, texts_of
from tidings.model.values.schema import Attribute, Date, Place, Schema, Time, Words
from tidings.model.values.times import EPOCH

_PLAIN = frozenset({float, int, str, bool})


def event_to_record(event: Event) -> dict[str, Any]:
    """The event as JSON can carry it; `event_from_record` is its inverse."""
    values = {name: value if value.__class__ in _PLAIN else _plain_value(value) for name, value in event.values.items()}
    record: dict[str, Any] = {"id": event.id, "values": values}
    record |= {"time": event.time, "expires": event.expires}
    return record | {"deleted": True} if event.deleted else record


def event_from_record(schema: Schema, record: Mapping[str, Any]) -> Event:
    """An event that `event_to_record` wrote; it is not validated again."""
    values = dict(record["values"])
    for name, value in values.items():
        if isinstance(value, list):
            kind = schema[name]
            if isinstance(kind, Words) and kind.prose:
                values[name] = prose_of(kind, value)
            else:
                values[name] = tuple(value) if isinstance(kind, Place) else frozenset(value)
        elif isinstance(value, dict):
            values[name] = place_of(shapely.from_wkb(value["wkb"]))
    return Event(record["id"], values, record["time"], record["expires"], record.get("deleted", False))


def event_body(schema: Schema, event: Event, key: str | None = None) -> dict[str, Any]:
    """The event in the forms that users write, so that it reads back as itself: instants and days as texts, a point as two numbers,
    a shape as GeoJSON, words as a list."""
    body: dict[str, Any] = {"id" if key is None else key: event.id}
    body |= {name: _written(schema[name], value) for name, value in event.values.items()}
    body |= {name: _instant(at) for name, at in (("time", event.time), ("expires", event.expires)) if at is not None}
    return body


def _written(attribute: Attribute, value: Any) -> Any:
    if isinstance(attribute, Time | Date):
        text = _instant(value)
        return text[:10] if isinstance(attribute, Date) else text
    if isinstance(value, Outline):
        return json.loads(shapely.to_geojson(geometry_of(value)))
    if isinstance(attribute, Place):
        return list(value[:2] if value[:2] == value[2:] else value)
    return texts_of(value) if isinstance(value, frozenset) else value


def _instant(microseconds: int | float) -> str:
    return (EPOCH + timedelta(microseconds=int(microseconds))).isoformat()


def _plain_value(value: Any) -> Any:
    if isinstance(value, Outline):
        return {"wkb": value.wkb.hex()}
    if isinstance(value, frozenset):
        return texts_of(value)
    return list(value) if isinstance(value, tuple) else value
