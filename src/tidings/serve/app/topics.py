"""Topics: made, described, dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.errors import shown
from tidings.model.values.schema import Schema
from tidings.serve.access.callers import ADMIN, OWNER, PUBLISH, READ
from tidings.serve.app.answers import JSON, json_answer
from tidings.serve.app.bodies import object_of
from tidings.serve.app.documents import body, gives
from tidings.serve.app.requests import bytes_of, caller_of, service_of, topic_of
from tidings.serve.hosting.hosted_topic import TopicSettings
from tidings.serve.refusals import Unacceptable

router = APIRouter(tags=["topics"])
FIELDS = ("schema", "key", "retention", "clock")
TOPIC: dict[str, Any] = {
    "type": "object",
    "required": ["schema"],
    "additionalProperties": False,
    "properties": {
        "schema": {
            "type": "object",
            "description": 'A type an attribute: {"price": {"type": "number", "lo": 0}, "brand": "category"}.',
        },
        "key": {"type": ["string", "null"], "description": "The field that names the objects of a keyed topic."},
        "retention": {"type": ["string", "null"], "description": "How long an event without `expires` is live, as '7 days'."},
        "clock": {"enum": ["wall", "given"], "description": "Whether time passes by itself."},
    },
}


@router.get("/topics", responses=gives("The topics of this service."), summary="List topics")
async def topics(request: Request) -> Response:
    caller_of(request, READ, PUBLISH, OWNER)
    return json_answer(service_of(request).describe())


@router.put(
    "/topics/{topic}",
    responses=gives("It was there, with this schema.") | gives("It was made.", status=201),
    openapi_extra=body(JSON, schema=TOPIC),
    summary="Make a topic, or change its settings",
)
async def put(topic: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN)
    content = await object_of(request, bytes_of(request, caller))
    for name in content:
        if name not in FIELDS:
            raise Unacceptable(f"field {shown(name)} is unknown: a topic has {', '.join(FIELDS)}")
    if "schema" not in content:
        raise Unacceptable("schema is missing: an object with a type for each attribute is accepted")
    key = content.get("key")
    if key is not None and not isinstance(key, str):
        raise Unacceptable(f"key is {shown(key)}: the name of a field is accepted")
    refuse_code(content["schema"])
    settings = TopicSettings(content.get("retention"), content.get("clock", "wall"))
    hosted, made = await service_of(request).make(topic, Schema.from_dict(content["schema"]), key, settings)
    return json_answer(hosted.describe(), 201 if made else 200)


def refuse_code(schema: Any) -> None:
    """A tokenizer that is named by its module would be imported and run: nobody's word over HTTP is enough for that."""
    for name, spec in schema.items() if isinstance(schema, Mapping) else ():
        tokenizer = spec.get("tokenizer", "plain") if isinstance(spec, Mapping) else "plain"
        if tokenizer not in ("plain", "as-is"):
            raise Unacceptable(
                f"attribute {shown(name)} has the tokenizer {shown(tokenizer)}: 'plain' or 'as-is' is accepted here, "
                "a function by whoever makes the topic in the service's folder"
            )


@router.get("/topics/{topic}", responses=gives("Its schema, key, settings and size."), summary="Describe a topic")
async def get(topic: str, request: Request) -> Response:
    caller_of(request, READ, PUBLISH, OWNER)
    return json_answer(topic_of(request).describe())


@router.delete("/topics/{topic}", status_code=204, response_class=Response, summary="Drop a topic and all that is in it")
async def delete(topic: str, request: Request) -> Response:
    caller_of(request, ADMIN)
    await service_of(request).drop(topic)
    return Response(status_code=204)


@router.get("/topics/{topic}/stats", responses=gives("What it holds and what matching has cost."), summary="A topic in numbers")
async def stats(topic: str, request: Request) -> Response:
    caller_of(request, READ)
    hosted = topic_of(request)
    return json_answer(await hosted.ask(hosted.topic.stats))
