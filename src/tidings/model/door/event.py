"""Events at the door: from a dict, a CloudEvents 1.0 JSON event, a GeoJSON Feature, or the JSON of any of these, to `Event`.

An event's values take the forms that `schema` lists, once, here; nothing behind this module validates again. A null attribute is
a missing one. Whatever cannot be read raises EventError: one sentence with the field, the value and what is accepted.

Which form it is: `specversion` marks a CloudEvent (attributes in `data`, id and time from the envelope, every other envelope
attribute ignored); `"type": "Feature"` marks a GeoJSON Feature (attributes in `properties`, the geometry is the first Place
attribute). A schema that has an attribute of that very name keeps it: `type` then needs a `geometry` beside it.

In a keyed topic the field `key` is the id, and `"deleted": true` makes a tombstone.

Cost: a dict of 20 numbers takes about 3 us.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidings.errors import BulkError, EventError, SchemaError, shown
from tidings.model.door.single_values import read_id, read_time, read_truth, value_reader
from tidings.model.values.schema import Category, Number, Schema
from tidings.model.values.vague import Between, Uncertain, check_worlds

_LARGEST = sys.float_info.max
_VAGUE = (Between, Uncertain)
_FREE, _VERSION_4 = ~(0xF << 76 | 0x3 << 62), 0x4 << 76 | 0x2 << 62
"""The random bits of a UUID and those that say so, [RFC 9562, section 5.4]; `uuid.uuid4` takes four times as long."""


@dataclass(slots=True)
class Event:
    """`values` in the forms of `schema`; `time` and `expires` in microseconds since 1970-01-01 UTC; `deleted` marks a tombstone.

    Nobody changes one. It is not frozen, because to make a frozen one takes a third of the time of reading it.
    """

    id: str
    values: dict[str, Any]
    time: int | None = None
    expires: int | None = None
    deleted: bool = False
    vague: bool = False
    """Whether a value is `Between` or `Uncertain`."""


class EventReader:
    """Reads events of one topic; the tables it needs are made once. `key` is the field that names a keyed topic's objects.

    `id` is the field that names events, if it is another than `id`; `ignoring` leaves out fields that the topic does not know.
    """

    def __init__(self, schema: Schema, key: str | None = None, id: str | None = None, ignoring: bool = False) -> None:
        if id is not None and key is not None:
            raise EventError(f"id is {shown(id)}: a keyed topic's objects are named by its key {key!r}")
        if key is not None and key in schema and not isinstance(schema[key], Category):
            raise SchemaError(
                f"key {key!r} is a {type(schema[key]).__name__} attribute: a key is a Category or no attribute at all"
            )
        self.schema = schema
        self.key = key
        self.id_field = key if key is not None else "id" if id is None else id
        self._ignoring = ignoring
        self._id_alone = [self.id_field]
        self._numbers = frozenset(name for name, attribute in schema.items() if isinstance(attribute, Number))
        self._readers = {name: value_reader(name, attribute) for name, attribute in schema.items()}

    def __call__(self, source: object) -> Event:
        """One event from a mapping, or from JSON text or bytes; one that was read before is itself."""
        if source.__class__ is dict and "type" not in source and "specversion" not in source:
            return self._plain(source, source.get(self.id_field))
        if isinstance(source, Event):
            return source
        if source.__class__ is not dict and isinstance(source, str | bytes | bytearray | memoryview):
            source = parse_json(source)
        if hasattr(source, "dropna"):
            # A row of a DataFrame, in which NaN is a missing value; in a dict it is a mistake, whoever made that.
            source = source.dropna().to_dict()
        if source.__class__ is not dict and not isinstance(source, Mapping):
            raise EventError(f"event {shown(source)} ({type(source).__name__}): an event is an object with named attributes")
        if "specversion" in source and "specversion" not in self._readers:
            return self._cloud_event(source)
        kind = source.get("type")  # which need not be a text, and an array is not even comparable
        if kind.__class__ is str and kind == "Feature" and ("type" not in self._readers or "geometry" in source):
            return self._feature(source)
        return self._plain(source, source.get(self.id_field))

    def batch(self, source: object) -> tuple[list[Event], list[tuple[int, str]]]:
        """The events of a batch that can be read, and (row, sentence) of those that cannot: see `all`."""
        events, refused = [], []
        seen: set[str] = set()
        for row, each in enumerate(_each(source)):
            try:
                event = self(each)
                if self.key is None and event.id in seen:
                    raise EventError(f"id is {shown(event.id)}, which an earlier row has: an id stands once in a batch")
            except EventError as error:
                refused.append((row, str(error)))
            else:
                seen.add(event.id)
                events.append(event)
        return events, refused

    def all(self, source: object) -> list[Event]:
        """Events of an iterable of single ones, a JSON array (so a CloudEvents batch), a GeoJSON FeatureCollection, or NDJSON text.

        BulkError reports the rows that cannot be read, all together; an id that stands twice is one of them unless the topic is
        keyed.
        """
        events, refused = self.batch(source)
        if refused:
            raise BulkError("events", refused)
        return events

    def _plain(self, source: Mapping[str, Any], event_id: object) -> Event:
        values = {}
        others = []
        vague = False
        numbers, readers = self._numbers, self._readers
        least, largest = -_LARGEST, _LARGEST
        for name, value in source.items():
            if value.__class__ is float and name in numbers and least <= value <= largest:
                values[name] = value
            elif value.__class__ is int and name in numbers and least <= value <= largest:
                values[name] = float(value)
            elif name not in readers:
                others.append(name)
            elif value is not None:
                values[name] = made = readers[name](value)
                vague = vague or made.__class__ in _VAGUE
        if vague:
            check_worlds(values)
            return replace(self._with_envelope(source, others, event_id, values), vague=True)
        if not others or others == self._id_alone:
            return Event(self._id(event_id), values)
        return self._with_envelope(source, others, event_id, values)

    def _with_envelope(self, source: Mapping[str, Any], others: list[str], event_id: object, values: dict[str, Any]) -> Event:
        time = expires = None
        deleted = False
        for name in others:
            value = source[name]
            if name == self.id_field:
                continue
            if name == "time":
                time = read_time("time", value)
            elif name == "expires":
                expires = read_time("expires", value)
            elif name == "deleted" and self.key is not None:
                deleted = read_truth("deleted", value)
            elif not self._ignoring:
                raise self._unknown(name, value)
        return Event(self._id(event_id), values, time, expires, deleted)

    def _cloud_event(self, source: Mapping[str, Any]) -> Event:
        if str(source["specversion"]) != "1.0":
            raise EventError(f"specversion is {shown(source['specversion'])}: CloudEvents '1.0' is accepted")
        data = _base64_object(source["data_base64"]) if "data_base64" in source else source.get("data")
        data = {} if data is None else data
        if isinstance(data, str):
            data = parse_json(data)
        if not isinstance(data, Mapping):
            raise EventError(f"data is {shown(data)}: the data of a CloudEvent is an object with the event's attributes")
        envelope = {name: source[name] for name in ("time", "expires") if source.get(name) is not None}
        event_id = source.get("id") if self.id_field == "id" and self.key is None else data.get(self.id_field)
        return self._plain({**data, **envelope}, event_id)

    def _feature(self, source: Mapping[str, Any]) -> Event:
        properties = source.get("properties")
        if properties is None:
            properties = {}
        if not isinstance(properties, Mapping):
            raise EventError(
                f"properties is {shown(properties)}: the properties of a Feature are an object with the event's attributes"
            )
        geometry = source.get("geometry")
        if geometry is not None:
            if self.schema.place is None:
                raise EventError(f"geometry is {shown(geometry)}: this topic has no Place attribute to take it")
            if properties.get(self.schema.place) is not None:
                raise EventError(f"{self.schema.place} stands in properties and geometry gives it too: one of the two is accepted")
            properties = {**properties, self.schema.place: geometry}
        named = properties.get(self.id_field)
        if self.id_field != "id" and named is not None:
            return self._plain(properties, named)
        return self._plain(properties, named if source.get("id") is None else source["id"])

    def _id(self, value: object) -> str:
        if value is None:
            if self.key is not None:
                raise EventError(f"{self.key} is missing: it is this topic's key, a string that is not empty")
            return f"{int.from_bytes(os.urandom(16)) & _FREE | _VERSION_4:032x}"
        return read_id(self.id_field, value)

    def _unknown(self, name: object, value: object) -> EventError:
        known = ", ".join([self.id_field, *self.schema, "time", "expires", *(["deleted"] if self.key is not None else [])])
        return EventError(f"attribute {shown(name)} (with value {shown(value)}) is unknown: this topic's events have {known}")


def read_event(schema: Schema, source: object, key: str | None = None) -> Event:
    return EventReader(schema, key)(source)


def read_events(schema: Schema, source: object, key: str | None = None) -> list[Event]:
    """See `EventReader.all`."""
    return EventReader(schema, key).all(source)


def parse_json(text: str | bytes | bytearray | memoryview) -> Any:
    """The JSON value of `text`; EventError gives the byte where it breaks."""
    text = text if isinstance(text, str) else _decode(bytes(text))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        near = shown(text[max(0, error.pos - 20) : error.pos + 20])
        raise EventError(f"broken JSON at byte {offset}, near {near}: {error.msg}") from None
    except RecursionError:
        raise EventError("broken JSON: nested too deeply; an event is an object with named attributes") from None
    except ValueError as error:
        raise EventError(f"broken JSON: {error}") from None


def _each(source: object) -> Iterator[object]:
    if isinstance(source, bytes | bytearray | memoryview):
        source = _decode(bytes(source))
    if isinstance(source, str):
        source = _parse_batch(source)
    if isinstance(source, Mapping):
        if str(source.get("type")) == "FeatureCollection" and isinstance(source.get("features"), list):
            return iter(source["features"])
        return iter((source,))
    if isinstance(source, Iterable):
        return iter(source)
    raise EventError(f"events {shown(source)}: a list of events, a FeatureCollection or NDJSON text is accepted")


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EventError(f"broken JSON at byte {error.start}: not UTF-8") from None


def _parse_batch(text: str) -> object:
    """One JSON value, or NDJSON: text whose first line is a whole object and not the last."""
    head, _, tail = text.strip().partition("\n")
    if head.startswith("{") and head.rstrip().endswith("}") and tail:
        return [line for line in text.split("\n") if line.strip()]
    return parse_json(text)


def _base64_object(data: object) -> Any:
    try:
        return parse_json(base64.b64decode(data, validate=True))  # type: ignore[arg-type]
    except (binascii.Error, TypeError, ValueError):
        raise EventError(f"data_base64 is {shown(data)}: base64 of a JSON object is accepted") from None
