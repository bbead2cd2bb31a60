"""API keys over HTTP, for admins."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.serve.access.callers import ADMIN, SCOPES
from tidings.serve.app.answers import JSON, json_answer
from tidings.serve.app.bodies import object_of
from tidings.serve.app.documents import body, gives
from tidings.serve.app.requests import bytes_of, caller_of, service_of

router = APIRouter(tags=["keys"])
KEY: dict[str, Any] = {
    "type": "object",
    "required": ["scopes"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "scopes": {"type": "array", "minItems": 1, "items": {"enum": list(SCOPES)}},
        "owner": {"type": ["string", "null"], "description": "Whose things a key of scope owner has."},
        "quotas": {
            "type": ["object", "null"],
            "description": "events a second; subscriptions, streams; clauses, vertices, k; bytes of a request.",
        },
    },
}


@router.get("/keys", responses=gives("Keys, without what they are."), summary="List keys")
async def listed(request: Request) -> Response:
    caller_of(request, ADMIN)
    found = await asyncio.to_thread(service_of(request).keys.all)
    return json_answer({"keys": [key.described() for key in found]})


@router.post(
    "/keys",
    responses=gives("The key, shown this once.", status=201),
    status_code=201,
    openapi_extra=body(JSON, schema=KEY),
    summary="Make a key",
)
async def make(request: Request) -> Response:
    caller = caller_of(request, ADMIN)
    content = await object_of(request, bytes_of(request, caller))
    key, text = await asyncio.to_thread(service_of(request).keys.make, content)
    return json_answer(key.described() | {"key": text}, 201)


@router.delete("/keys/{id}", status_code=204, response_class=Response, summary="Withdraw a key")
async def delete(id: str, request: Request) -> Response:
    caller_of(request, ADMIN)
    await asyncio.to_thread(service_of(request).keys.delete, id)
    return Response(status_code=204)
