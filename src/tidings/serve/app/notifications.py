"""Hearing: notifications of a subscription, an owner or a consumer, as a stream or as pages."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.serve.access.callers import ADMIN, OWNER, READ, Caller
from tidings.serve.app.addresses import CONSUMER
from tidings.serve.app.answers import JSON, NDJSON, json_answer, wanted
from tidings.serve.app.bodies import object_of
from tidings.serve.app.documents import body, gives, parameters
from tidings.serve.app.requests import bytes_of, caller_of, service_of, text, topic_of, whole
from tidings.serve.hearing.listening import Page, Selection
from tidings.serve.hearing.streams import EVENT_STREAM, EventStream
from tidings.serve.hearing.tail import Tail
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.refusals import Forbidden, NotFound, Unacceptable

router = APIRouter(tags=["hearing"])
LONGEST_WAIT = 60
LONGEST_NAME = 200


def selection_of(request: Request, caller: Caller, hosted: HostedTopic, of: str | None, owner: str | None) -> Selection:
    """What is asked for, which must be the caller's to hear."""
    mine = caller.owns()
    if mine is None:
        return Selection(of, owner)
    if owner not in (None, mine):
        raise Forbidden(f"owner is {owner!r}: this key hears for {mine!r} alone")
    if of is not None:
        hosted.subscription(of, mine)
    return Selection(of, mine)


@router.get(
    "/topics/{topic}/notifications",
    responses={
        200: {
            "description": "A page; `cursor` is where the next begins, `gone` the last number that is no longer kept. Or a stream.",
            "content": {
                JSON: {"schema": {"type": "object"}},
                NDJSON: {"schema": {"type": "string"}},
                EVENT_STREAM: {"schema": {"type": "string"}},
            },
        }
    },
    openapi_extra={
        "parameters": [
            *parameters(
                subscription=("text", "Only this subscription's."),
                owner=("text", "Only this owner's."),
                consumer=("text", "What this consumer hears, from what it has acknowledged on."),
                after=("whole", "Only those numbered above; a stream begins now without it, a page at the oldest."),
                limit=("whole", "At most so many in a page, up to 10000."),
                wait=("whole", "Seconds that an empty page waits for its first notification, up to 60."),
            ),
            {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}},
        ]
    },
    summary="Hear notifications",
)
async def hear(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    service, streams = service_of(request), EVENT_STREAM in request.headers.get("accept", "")
    if streams:
        await service.opened()
    hosted = topic_of(request)
    tail = service.tails[hosted.folder.name]
    after = after_of(request)
    consumer = text(request, "consumer")
    if consumer is not None:
        found = await asyncio.to_thread(service.consumers.get, tail.name, consumer, caller.owns())
        selection, after = found.selection, found.cursor if after is None else after
    else:
        selection = selection_of(request, caller, hosted, text(request, "subscription"), text(request, "owner"))
    if streams:
        return EventStream(tail, selection, after, service.meters.stream(caller))
    limit, wait = whole(request, "limit", 1000, 1, 10_000), whole(request, "wait", 0, most=LONGEST_WAIT)
    page = await waited_page(tail, selection, after or 0, limit, wait)
    if wanted(request) == NDJSON:
        return Response(b"".join(note.body + b"\n" for note in page.notes), media_type=NDJSON, headers={"Cursor": str(page.cursor)})
    gone = (await asyncio.to_thread(tail.reader.ends))[0]
    rows = [orjson.Fragment(note.body) for note in page.notes]
    return json_answer({"notifications": rows, "cursor": page.cursor, "gone": gone})


def after_of(request: Request) -> int | None:
    """Where to go on: what the browser remembers, or what the address says."""
    last = request.headers.get("last-event-id", "").strip()
    if last:
        if not (last.isascii() and last.isdigit() and len(last) < 20):
            raise Unacceptable(f"Last-Event-ID is {last[:60]!r}: a number that this topic's stream gave is accepted")
        return int(last)
    number: int | None = whole(request, "after")
    return number


async def waited_page(tail: Tail, selection: Selection, after: int, limit: int, wait: int) -> Page:
    """A page; an empty one waits until there is something, or the time is over."""
    page = await asyncio.to_thread(tail.page, selection, after, limit)
    if page.notes or not wait:
        return page
    listener = tail.enter(selection)
    try:
        page = await asyncio.to_thread(tail.page, selection, page.cursor, limit)
        if not page.notes:
            try:
                await asyncio.wait_for(listener.woken.wait(), wait)
            except TimeoutError:
                return page
            page = await asyncio.to_thread(tail.page, selection, page.cursor, limit)
        return page
    finally:
        tail.leave(listener)


@router.post(
    "/topics/{topic}/notifications/acknowledge",
    responses=gives("The number up to which they are forgotten: no further than every consumer and sink has come."),
    openapi_extra=body(
        JSON, schema={"type": "object", "required": ["cursor"], "properties": {"cursor": {"type": "integer", "minimum": 0}}}
    ),
    summary="Forget notifications that all have dealt with",
)
async def acknowledge(topic: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN)
    hosted, service = topic_of(request), service_of(request)
    cursor = cursor_of(await object_of(request, bytes_of(request, caller)))
    upto = min([cursor, *service.cursors(hosted.folder.name)])
    await hosted.change(lambda: hosted.topic.acknowledge(upto))
    return json_answer({"cursor": upto})


def cursor_of(content: dict[str, Any]) -> int:
    cursor = content.get("cursor")
    if isinstance(cursor, bool) or not isinstance(cursor, int) or not 0 <= cursor < 2**63 or set(content) != {"cursor"}:
        raise Unacceptable("the body has no cursor of 0 or more alone: an object with the number of a notification is accepted")
    return cursor


@router.get("/topics/{topic}/consumers", responses=gives("By name, each with its cursor."), summary="List consumers")
async def consumers(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    found = await asyncio.to_thread(service.consumers.all, hosted.folder.name, caller.owns())
    return json_answer({"consumers": [consumer.described() for consumer in found]})


@router.put(
    CONSUMER,
    responses=gives("It was there and keeps its cursor.") | gives("It is new.", status=201),
    openapi_extra=body(
        JSON,
        schema={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "subscription": {"type": ["string", "null"]},
                "owner": {"type": ["string", "null"]},
                "after": {"type": ["integer", "null"], "minimum": 0, "description": "Where a new one begins; now without it."},
            },
        },
    ),
    summary="Make a consumer, or change what it hears",
)
async def put_consumer(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    content = await object_of(request, bytes_of(request, caller))
    of, owner, after = content.pop("subscription", None), content.pop("owner", None), content.pop("after", None)
    if content or not all(said is None or isinstance(said, str) for said in (of, owner)) or len(name) > LONGEST_NAME:
        raise Unacceptable(
            "the body is not understood: an object with subscription, owner (strings) and after (a number) is accepted"
        )
    begins = service.tails[hosted.folder.name].at if after is None else cursor_of({"cursor": after})
    selection = selection_of(request, caller, hosted, of, owner)
    mine = caller.owns()

    def change() -> bool:
        there = [consumer for consumer in service.consumers.all(hosted.folder.name) if consumer.name == name]
        if there and mine is not None and there[0].selection.owner != mine:
            raise NotFound(f"topic {hosted.name!r} has no consumer {name!r} of yours: choose another name")
        return service.consumers.put(hosted.folder.name, name, selection, begins)

    made = await asyncio.to_thread(change)
    found = await asyncio.to_thread(service.consumers.get, hosted.folder.name, name)
    return json_answer(found.described(), 201 if made else 200)


@router.get(CONSUMER, responses=gives("What it hears, and its cursor."), summary="Describe a consumer")
async def get_consumer(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    found = await asyncio.to_thread(service.consumers.get, hosted.folder.name, name, caller.owns())
    return json_answer(found.described())


@router.delete(CONSUMER, status_code=204, response_class=Response, summary="Forget a consumer")
async def delete_consumer(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    await asyncio.to_thread(service.consumers.get, hosted.folder.name, name, caller.owns())
    await asyncio.to_thread(service.consumers.delete, hosted.folder.name, name)
    return Response(status_code=204)


@router.post(
    CONSUMER + "/acknowledge",
    responses=gives("How far it is now."),
    openapi_extra=body(
        JSON, schema={"type": "object", "required": ["cursor"], "properties": {"cursor": {"type": "integer", "minimum": 0}}}
    ),
    summary="Say how far a consumer has dealt with what it heard",
)
async def acknowledge_consumer(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    cursor = cursor_of(await object_of(request, bytes_of(request, caller)))
    await asyncio.to_thread(service.consumers.get, hosted.folder.name, name, caller.owns())
    newest = service.tails[hosted.folder.name].reader.ends()[1]
    await asyncio.to_thread(service.consumers.acknowledge, hosted.folder.name, name, min(cursor, newest))
    found = await asyncio.to_thread(service.consumers.get, hosted.folder.name, name)
    return json_answer(found.described())
