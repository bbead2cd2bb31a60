"""Events, subscriptions and answers as users read them: JSON that the same topic's door takes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import shapely

from tidings.match.answers.results import instant
from tidings.model.door.event import Event
from tidings.model.door.event_record import event_from_record
from tidings.model.door.subscription import Subscription
from tidings.model.door.subscription_record import to_record
from tidings.model.values.outline import Outline
from tidings.model.values.prose import texts_of
from tidings.model.values.schema import Attribute, Date, Place, Schema, Time


def event_json(schema: Schema, event: Event, key: str | None = None) -> dict[str, Any]:
    """The event as it may be published again."""
    said = {"id" if key is None else key: event.id}
    said |= {name: value_json(schema[name], value) for name, value in event.values.items()}
    said |= {name: time_json(at) for name, at in (("time", event.time), ("expires", event.expires)) if at is not None}
    return said | {"deleted": True} if event.deleted else said


def record_json(schema: Schema, record: str, key: str | None = None) -> dict[str, Any]:
    """The same of a registry's record."""
    return event_json(schema, event_from_record(schema, json.loads(record)), key)


def value_json(attribute: Attribute, value: Any) -> Any:
    if isinstance(attribute, Time):
        return time_json(value)
    if isinstance(attribute, Date):
        return instant(value).date().isoformat()
    if isinstance(attribute, Place):
        return place_json(value)
    return texts_of(value) if isinstance(value, frozenset) else value


def place_json(place: Any) -> Any:
    if isinstance(place, Outline):
        return json.loads(shapely.to_geojson(shapely.from_wkb(place.wkb)))
    xmin, ymin, xmax, ymax = place
    return [xmin, ymin] if (xmin, ymin) == (xmax, ymax) else [xmin, ymin, xmax, ymax]


def time_json(microseconds: int) -> str:
    return instant(microseconds).isoformat()


def subscription_json(subscription: Subscription) -> dict[str, Any]:
    """Its fields as they may be put again; `clauses` where they came as columns, `since` when it was taken in."""
    said = to_record(subscription)
    said |= {name: time_json(said[name]) for name in ("expires", "since") if name in said}
    return said


def rows_json(schema: Schema, table: pa.Table, key: str | None = None) -> list[dict[str, Any]]:
    """The rows of a table of events; what is missing is left out."""
    rows = table.to_pylist()
    return [{name: _cell(schema, name, value) for name, value in row.items() if value is not None} for row in rows]


def _cell(schema: Schema, name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return place_json((value["xmin"], value["ymin"], value["xmax"], value["ymax"]))
    if isinstance(value, bytes):
        return json.loads(shapely.to_geojson(shapely.from_wkb(value)))
    return value.isoformat() if hasattr(value, "isoformat") else value
