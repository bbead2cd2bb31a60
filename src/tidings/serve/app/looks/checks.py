"""Whether a subscription would be accepted, while somebody still types it; and the shapes that its filter names, to be drawn."""

from __future__ import annotations

import math
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.errors import TidingsError
from tidings.model.door.subscription import Subscription
from tidings.model.filter.syntax import parse_filter
from tidings.serve.access.callers import OWNER, READ
from tidings.serve.app.answers import JSON, json_answer
from tidings.serve.app.bodies import object_of
from tidings.serve.app.documents import body, gives
from tidings.serve.app.requests import bytes_of, caller_of, service_of, topic_of
from tidings.serve.app.subscriptions import NEVER_MATCHES, SUBSCRIPTION, quietly
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.refusals import Refusal
from tidings.topic.subscribing import made

router = APIRouter(tags=["questions"])
NAME = "check"
CHECK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "accepted": {"type": "boolean"},
        "detail": {"type": "string", "description": "One sentence: why it is not accepted."},
        "clauses": {"type": "integer"},
        "price": {"type": "integer", "description": "About the values that its clauses name and its residues may look at."},
        "attributes": {"type": "array", "items": {"type": "string"}},
        "shapes": {"type": "array", "items": {"type": "object"}, "description": 'GeoJSON geometries, and {"bbox": [...]}.'},
        "ranges": {"type": "object", "description": "By number, [least, greatest] of a filter of one clause; null is open."},
        "warnings": {"type": "array", "items": {"type": "string"}},
    },
}


@router.post(
    "/topics/{topic}/check",
    responses=gives("Whether it would be accepted, and if not, why.", CHECK),
    openapi_extra=body(JSON, schema=SUBSCRIPTION),
    summary="Would this subscription be accepted",
)
async def check(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    content = await object_of(request, bytes_of(request, caller))

    def answer() -> dict[str, Any]:
        try:
            service.door.price(hosted, caller, content, new=False)
            return accepted(hosted, content)
        except TidingsError as error:
            return {"accepted": False, "detail": str(error)}
        except Refusal as refusal:
            return {"accepted": False, "detail": refusal.detail}

    return json_answer(await hosted.ask(answer))


def accepted(hosted: HostedTopic, content: dict[str, Any]) -> dict[str, Any]:
    schema, filter = hosted.topic.schema, content.get("filter")
    found = quietly(lambda: made(schema, {**content, "id": content.get("id", NAME)}))
    names = {name for clause in found.clauses for part in clause.by_attribute(schema) for name in part.split("+")}
    return {
        "accepted": True,
        "clauses": len(found.clauses),
        "price": sum(clause.price for clause in found.clauses),
        "attributes": sorted(names),
        "shapes": [] if filter is None else shapes_of(parse_filter(filter)),
        "ranges": ranges_of(found),
        "warnings": [] if found.clauses else [NEVER_MATCHES],
    }


def ranges_of(subscription: Subscription) -> dict[str, list[float | None]]:
    if len(subscription.clauses) != 1:
        return {}
    [clause] = subscription.clauses
    return {name: [end if math.isfinite(end) else None for end in ends] for name, ends in clause.ranges.items()}


def shapes_of(tree: Any) -> list[dict[str, Any]]:
    """The literals of places in a filter's tree, in the order in which they stand."""
    found, todo = list[dict[str, Any]](), [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += reversed(node)
        elif isinstance(node, dict):
            if "bbox" in node or ("type" in node and ("coordinates" in node or "geometries" in node)):
                found.append(node)
            else:
                todo += reversed(list(node.values()))
    return found
