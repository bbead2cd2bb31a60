"""Is it alive, is it ready, and what is it doing."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.serve.access.callers import READ
from tidings.serve.app.answers import json_answer
from tidings.serve.app.documents import gives
from tidings.serve.app.requests import caller_of, service_of
from tidings.serve.refusals import NotReady

router = APIRouter(tags=["running"])
PROMETHEUS = "text/plain; version=0.0.4"


@router.get("/healthz", responses=gives("The process answers."), summary="Alive?")
async def healthz() -> Response:
    return json_answer({"status": "ok"})


@router.get(
    "/metrics",
    responses={200: {"description": "Numbers, as Prometheus reads them.", "content": {PROMETHEUS: {"schema": {"type": "string"}}}}},
    summary="Numbers",
)
async def metrics(request: Request) -> Response:
    caller_of(request, READ)
    return Response(request.app.state.exposed(), media_type=PROMETHEUS)


@router.get("/readyz", responses=gives("Every topic is open."), summary="Ready?")
async def readyz(request: Request) -> Response:
    if not service_of(request).ready:
        raise NotReady("the service is opening or closing its topics")
    return json_answer({"status": "ready", "topics": len(service_of(request).topics)})
