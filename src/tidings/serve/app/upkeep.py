"""What an operator asks of a topic: that time passes, that it packs what is new, that it makes one segment of all."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.serve.access.callers import ADMIN, PUBLISH
from tidings.serve.app.answers import notification_json, rows_answer
from tidings.serve.app.documents import TIME, gives, parameters
from tidings.serve.app.requests import caller_of, instant, topic_of

router = APIRouter(tags=["upkeep"])


@router.post(
    "/topics/{topic}/advance",
    responses=gives("The notifications that time brought.", many=True),
    openapi_extra={"parameters": parameters(**TIME)},
    summary="Let time pass: promotions and expiries up to an instant",
)
async def advance(topic: str, request: Request) -> Response:
    caller_of(request, PUBLISH)
    hosted, at = topic_of(request), instant(request)
    notes = await hosted.change(lambda: hosted.topic.advance(at))
    return rows_answer(request, "notifications", map(notification_json, notes), notes.table)


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
