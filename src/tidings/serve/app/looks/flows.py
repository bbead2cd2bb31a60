"""A look at what flows through a topic: events as they come, and the board's messages as rectangles. Streams for pages."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidings.serve.access.callers import READ
from tidings.serve.app.answers import JSON, json_answer
from tidings.serve.app.documents import parameters
from tidings.serve.app.requests import caller_of, service_of, text, topic_of, whole
from tidings.serve.hearing.flow import Flow, Looking, Sample, Taking
from tidings.serve.hearing.painted import Painted
from tidings.serve.hearing.streams import EVENT_STREAM, HEADERS, OPENING
from tidings.serve.refusals import Unacceptable

router = APIRouter(tags=["hearing"])
LOOK = 0.25
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One look, a quarter of a second long; or a stream of them.",
        "content": {JSON: {"schema": {"type": "object"}}, EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}
MOST_K = 50


@router.get("/topics/{topic}/flow", responses=STREAM, summary="Look at events as they come: counts, and a sample")
async def flow(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ)
    service = service_of(request)
    running = service.flows[topic_of(request).folder.name]
    sample = Sample(running)
    if EVENT_STREAM in request.headers.get("accept", ""):
        return Looks(running, sample, sample.taken, service.meters.stream(caller))
    return await one_look(running, sample, sample.taken)


@router.get(
    "/topics/{topic}/painted",
    responses=STREAM,
    openapi_extra={
        "parameters": parameters(
            attribute=("text", "The attribute whose intervals [l, r] watchers ask for."),
            by=("text", "What ranks the objects, as '-price'."),
            k=("whole", f"The k of the lists, from 1 to {MOST_K}; 3."),
        )
    },
    summary="Look at a keyed topic's changes as painted rectangles of the plane (l, r)",
)
async def painted(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ)
    service, hosted = service_of(request), topic_of(request)
    attribute, by, k = text(request, "attribute"), text(request, "by"), whole(request, "k", 3, 1, MOST_K)
    if hosted.topic.key is None:
        raise Unacceptable(f"topic {hosted.name!r} has no key: boards are painted in a keyed topic")
    if attribute is None or by is None:
        raise Unacceptable("attribute and by are needed: a number's name, and what ranks, as '-price'")
    painter = Painted(hosted.topic.schema, attribute, by, k)
    running = service.flows[hosted.folder.name]

    def begin() -> None:
        painter.begin(hosted.topic.publisher.events)
        running.enter(painter)

    await hosted.change(begin)
    if EVENT_STREAM in request.headers.get("accept", ""):
        return Looks(running, painter, painter.taken, service.meters.stream(caller))
    return await one_look(running, painter, painter.taken)


async def one_look(flow: Flow, looking: Looking, taking: Taking) -> Response:
    """For who does not stream."""
    flow.enter(looking)
    try:
        await flow.rest(LOOK)
    finally:
        flow.leave(looking)
    return json_answer(await asyncio.to_thread(taking))


class Looks(Response):
    """What a look takes, four times a second while something comes and once a second while nothing does."""

    media_type = EVENT_STREAM

    def __init__(self, flow: Flow, looking: Looking, taking: Taking, counted: AbstractContextManager[None]) -> None:
        """It counts as open within `counted`, which may refuse it."""
        super().__init__(status_code=200)
        self._open = ExitStack()
        self._open.enter_context(counted)
        self._flow, self._looking, self._taking = flow, looking, taking

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = False

        async def watch() -> None:
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            gone = True

        watching = asyncio.create_task(watch())
        self._flow.enter(self._looking)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": OPENING + b"\n", "more_body": True})
            quiet = 0
            while await self._flow.rest(LOOK) and not gone:
                seen = await asyncio.to_thread(self._taking)
                quiet = 0 if seen["events"] or quiet >= 3 else quiet + 1
                if quiet == 0:
                    body = b"event: look\ndata: %b\n\n" % orjson.dumps(seen)
                    await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._open.close()
            self._flow.leave(self._looking)
            watching.cancel()
