"""Events as records that JSON can carry: how a durable topic's registry keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import shapely

from tidings.model.door.event import Event
from tidings.model.values.outline import Outline, place_of
from tidings.model.values.schema import Place, Schema


def event_to_record(event: Event) -> dict[str, Any]:
    """The event as JSON can carry it; `event_from_record` is its inverse."""
    record: dict[str, Any] = {"id": event.id, "values": {name: _plain_value(value) for name, value in event.values.items()}}
    record |= {"time": event.time, "expires": event.expires}
    return record | {"deleted": True} if event.deleted else record


def event_from_record(schema: Schema, record: Mapping[str, Any]) -> Event:
    """An event that `event_to_record` wrote; it is not validated again."""
    values = dict(record["values"])
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value) if isinstance(schema[name], Place) else frozenset(value)
        elif isinstance(value, dict):
            values[name] = place_of(shapely.from_wkb(value["wkb"]))
    return Event(record["id"], values, record["time"], record["expires"], record.get("deleted", False))


def _plain_value(value: Any) -> Any:
    if isinstance(value, Outline):
        return {"wkb": value.wkb.hex()}
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value
