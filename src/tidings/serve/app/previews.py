"""What a subscription would have told over the live events, before anybody makes it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.errors import shown
from tidings.model.values.pace import PACES
from tidings.serve.access.callers import OWNER, READ
from tidings.serve.app.answers import JSON, json_answer
from tidings.serve.app.bodies import object_of
from tidings.serve.app.documents import TIME, body, gives, parameters
from tidings.serve.app.requests import bytes_of, caller_of, instant, service_of, topic_of
from tidings.serve.app.subscriptions import quietly
from tidings.serve.refusals import Unacceptable

router = APIRouter(tags=["questions"])
FIELDS = ("filter", "score", "k", "window", "by", "per", "tz", *PACES, "error", "within", "over", "first")
PREVIEW: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "filter": {"type": ["string", "object", "null"]},
        "score": {"type": ["number", "string", "null"]},
        "k": {"type": ["integer", "null"], "minimum": 0},
        "window": {"type": ["string", "integer", "null"]},
        "per": {"type": ["string", "null"]},
        "tz": {"type": ["string", "null"]},
        **{name: {"type": ["string", "null"]} for name in PACES},
        "by": {"type": ["string", "object", "null"]},
        "error": {"type": ["number", "null"]},
        "within": {"type": ["array", "null"]},
        "over": {"type": ["string", "null"], "description": "How far back, as '7 days'; null looks at all that is live."},
        "first": {"type": "integer", "minimum": 0, "maximum": 1000, "description": "How many notifications are shown."},
    },
}


@router.post(
    "/topics/{topic}/preview",
    responses=gives("How many it would have told, a day and on each; the first of them with their reasons."),
    openapi_extra={"parameters": parameters(**TIME)} | body(JSON, schema=PREVIEW),
    summary="What a subscription would have told",
)
async def preview(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service, at = topic_of(request), service_of(request), instant(request)
    content = await object_of(request, bytes_of(request, caller))
    for name in content:
        if name not in FIELDS:
            raise Unacceptable(f"field {shown(name)} is unknown: a preview has {', '.join(FIELDS)}")
    filter = content.pop("filter", None)
    first = content.get("first", 10)
    if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first <= 1000:
        raise Unacceptable(f"first is {shown(first)}: a whole number from 0 to 1000 is accepted")

    def answer() -> dict[str, Any]:
        service.door.price(hosted, caller, {"filter": filter, "k": content.get("k")}, new=False)
        return quietly(lambda: hosted.topic.preview(filter, **content, time=at)).to_dict()

    return json_answer(await hosted.ask(answer))
