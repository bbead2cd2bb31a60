"""What an operator asks of a topic: that it packs what is new, that it makes one segment of all."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.serve.access.callers import ADMIN
from tidings.serve.app.requests import caller_of, topic_of

router = APIRouter(tags=["upkeep"])


@router.post("/topics/{topic}/flush", status_code=204, response_class=Response, summary="Pack what is new into a segment")
async def flush(topic: str, request: Request) -> Response:
    caller_of(request, ADMIN)
    hosted = topic_of(request)
    await hosted.change(hosted.topic.flush)
    return Response(status_code=204)


@router.post("/topics/{topic}/merge", status_code=204, response_class=Response, summary="Make one segment of all")
async def merge(topic: str, request: Request) -> Response:
    caller_of(request, ADMIN)
    hosted = topic_of(request)
    await hosted.change(hosted.topic.merge)
    return Response(status_code=204)
