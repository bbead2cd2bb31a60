"""What comes in: a body within its limit, and the events or rows in it, whatever form they have."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
from starlette.requests import ClientDisconnect, Request

from tidings.errors import EventError, shown
from tidings.model.door.event import Event, parse_json, read_events
from tidings.serve.app.answers import ARROW, JSON, NDJSON
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.refusals import NotReadable, Refusal, TooLarge, Unacceptable

CLOUDEVENT, CLOUDEVENTS, GEOJSON = "application/cloudevents+json", "application/cloudevents-batch+json", "application/geo+json"
EVENT_FORMS = (JSON, CLOUDEVENT, CLOUDEVENTS, GEOJSON, NDJSON, ARROW)
SMALL = 16 * 1024
"""A body of up to so many bytes is read in the event loop: handing it over would cost more."""


async def body_of(request: Request, most: int) -> bytes:
    """The body, read no further than `most` bytes."""
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > most:
        raise too_large(most, int(length))
    receive = request.receive
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > most:
            raise too_large(most)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(most: int, length: int | None = None) -> TooLarge:
    said = "is longer" if length is None else f"has {length} bytes"
    return TooLarge(f"the body {said}: at most {most} bytes are accepted", limit=most)


def form_of(request: Request, accepted: tuple[str, ...]) -> str:
    """The media type of the body, without its parameters; JSON if it says nothing."""
    form = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if form not in accepted:
        raise NotReadable(f"the body is {shown(form)}: {', '.join(accepted)} are accepted")
    return form


async def object_of(request: Request, most: int) -> dict[str, Any]:
    """A JSON object."""
    form_of(request, (JSON,))
    body = await body_of(request, most)
    try:
        content = parse_json(body) if body else {}
    except EventError as error:
        raise Refusal(str(error)) from None
    if not isinstance(content, dict):
        raise Unacceptable(f"the body is {shown(content)}: a JSON object is accepted")
    return content


def table_of(body: bytes) -> pa.Table:
    """The table of an Arrow stream. Maps are refused by the schema: Arrow ends the process when it reads one that is damaged."""
    try:
        reader = pa.ipc.open_stream(body)
        for field in reader.schema:
            if has_map(field.type):
                raise Refusal(f"column {shown(field.name)} is {field.type}: no column of tidings is a map")
        table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise Refusal(f"the body is no Arrow stream: {str(error).splitlines()[0]}") from None
    return table


def has_map(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return has_map(kind.value_type)
    nested = pa.types.is_nested(kind)
    return bool(pa.types.is_map(kind) or (nested and any(has_map(kind.field(at).type) for at in range(kind.num_fields))))


def events_of(hosted: HostedTopic, request: Request, form: str, body: bytes) -> list[Event]:
    """The events of any form but Arrow's."""
    topic = hosted.topic
    if "ce-specversion" in request.headers:
        return [hosted.read(binary_cloud_event(request, body))]
    if form == NDJSON:
        return read_events(topic.schema, [quickly(line) for line in body.split(b"\n") if line.strip()], topic.key)
    content = parse_json(body)
    if isinstance(content, dict) and content.get("type") != "FeatureCollection":
        return [hosted.read(content)]
    return read_events(topic.schema, content, topic.key)


def quickly(line: bytes) -> Any:
    """A line of JSON, read; itself where that is refused, for what is accepted and how it is refused is the reader's."""
    try:
        read = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    return read if isinstance(read, dict) else line


def binary_cloud_event(request: Request, body: bytes) -> dict[str, Any]:
    """A CloudEvent whose attributes are headers and whose data is the body."""
    attributes: dict[str, Any] = {name[3:]: value for name, value in request.headers.items() if name.startswith("ce-")}
    return attributes | {"data": parse_json(body) if body else {}}
