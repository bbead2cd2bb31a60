"""Sinks over HTTP: where notifications are sent, their secrets, and the letters that nobody took."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.errors import shown
from tidings.serve.access.callers import ADMIN, OWNER, READ, Caller
from tidings.serve.app.answers import JSON, json_answer
from tidings.serve.app.bodies import object_of
from tidings.serve.app.documents import body, gives, parameters
from tidings.serve.app.notifications import cursor_of, selection_of
from tidings.serve.app.requests import bytes_of, caller_of, service_of, topic_of, whole
from tidings.serve.delivery.outcomes import DAY, TAKEN
from tidings.serve.delivery.sinks import CLOUDEVENTS, NEEDS, WEBHOOK, Sink, not_there, read_secret, read_target, rotated
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.refusals import Conflict, Forbidden, TooMany, Unacceptable
from tidings.serve.service import NAME, Service

router = APIRouter(tags=["sinks"])
ADDRESS = "/topics/{topic}/sinks/{name}"
LETTERS = ADDRESS + "/dead-letters"
MOST_SINKS = 100
"""Of one owner in a topic."""
SINK: dict[str, Any] = {
    "type": "object",
    "required": ["kind"],
    "properties": {
        "kind": {"enum": list(NEEDS)},
        "url": {"type": "string"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "secret": {"type": "string", "description": "Of a webhook: whsec_ and base64; made if it is not given."},
        "brokers": {"type": "string"},
        "topic": {"type": "string"},
        "dsn": {"type": "string"},
        "channel": {"type": "string"},
        "batch": {"type": "integer", "minimum": 1, "maximum": 1000},
        "give_up": {"type": "number", "description": "Seconds after which what was not taken becomes a dead letter; a day."},
        "subscription": {"type": ["string", "null"]},
        "owner": {"type": ["string", "null"]},
        "after": {"type": ["integer", "null"], "minimum": 0, "description": "Where a new one begins; now without it."},
    },
}


def sink_of(service: Service, hosted: HostedTopic, name: str, caller: Caller, *, change: bool = False) -> Sink:
    """One that is there and is the caller's."""
    found = service.couriers.known.get((hosted.folder.name, name))
    mine = caller.changes() if change else caller.owns()
    if found is None or (mine is not None and found.target.owner != mine):
        raise not_there(hosted.name, name)
    return found


def described(service: Service, hosted: HostedTopic, sink: Sink) -> dict[str, Any]:
    courier = service.couriers.running.get((hosted.folder.name, sink.name))
    behind = max(service.tails[hosted.folder.name].at - sink.cursor, 0) if courier is None else courier.behind
    letters = service.couriers.letters.count(hosted.folder.name, sink.name)
    return sink.described() | {"behind": behind, "backlog": hosted.backlog, "dead_letters": letters}


@router.get("/topics/{topic}/sinks", responses=gives("By name, each with how far it is."), summary="List sinks")
async def listed(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    mine = caller.owns()
    found = [sink for sink in service.couriers.of(hosted.folder.name) if mine is None or sink.target.owner == mine]
    return json_answer({"sinks": await asyncio.to_thread(lambda: [described(service, hosted, sink) for sink in found])})


@router.put(
    ADDRESS,
    responses=gives("It was replaced and goes on where it was; a sink that was off is on again.") | gives("It is new.", status=201),
    openapi_extra=body(JSON, schema=SINK),
    summary="Make a sink, or replace it; the secret of a new webhook is shown this once",
)
async def put(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, service = topic_of(request), service_of(request)
    content = await object_of(request, bytes_of(request, caller))
    if not NAME.fullmatch(name):
        raise Unacceptable(f"a sink cannot be named {shown(name)}: up to 100 letters, digits, '_', '.' and '-' are accepted")
    of, owner, after, said = (content.pop(field, None) for field in ("subscription", "owner", "after", "secret"))
    if not all(one is None or isinstance(one, str) for one in (of, owner)):
        raise Unacceptable("subscription and owner are strings, or are not given")
    selection = selection_of(request, caller, hosted, of, owner)
    target = read_target(content, selection)
    if caller.changes() is not None and target.kind not in (WEBHOOK, CLOUDEVENTS):
        raise Forbidden(f"kind is {target.kind!r}: an owner's sinks are of kind {WEBHOOK} or {CLOUDEVENTS}")
    couriers, at = service.couriers, hosted.folder.name
    async with service.changing_sinks:
        there = couriers.known.get((at, name))
        mine = caller.changes()
        if there is not None and mine is not None and there.target.owner != mine:
            raise Conflict(f"sink {name!r} is taken: choose another name")
        if there is None and mine is not None and sum(sink.target.owner == mine for sink in couriers.of(at)) >= MOST_SINKS:
            raise TooMany(f"an owner has {MOST_SINKS} sinks in a topic at most", 60)
        begins = service.tails[at].at if after is None else cursor_of({"cursor": after})
        secrets = [read_secret(said)] if there is None or said is not None else there.secrets
        await couriers.stop(at, name)
        sink = Sink(name, target, secrets if target.kind == WEBHOOK else [], begins if there is None else there.cursor)
        if there is not None:
            sink.delivered, sink.lost = there.delivered, there.lost
        await asyncio.to_thread(couriers.sinks.put, at, sink)
        couriers.start(service.tails[at], sink)
    answer = await asyncio.to_thread(described, service, hosted, sink)
    shown_once = {"secret": sink.secrets[0].text} if there is None and sink.secrets else {}
    return json_answer(answer | shown_once, 200 if there else 201)


@router.get(ADDRESS, responses=gives("Where it sends, how far it is, and how it does."), summary="Describe a sink")
async def get(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    sink = sink_of(service, hosted, name, caller)
    return json_answer(await asyncio.to_thread(described, service, hosted, sink))


@router.delete(ADDRESS, status_code=204, response_class=Response, summary="Forget a sink and its dead letters")
async def delete(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, service = topic_of(request), service_of(request)
    async with service.changing_sinks:
        sink_of(service, hosted, name, caller, change=True)
        await service.couriers.stop(hosted.folder.name, name)
        del service.couriers.known[hosted.folder.name, name]
        await asyncio.to_thread(service.couriers.sinks.delete, hosted.folder.name, name)
    return Response(status_code=204)


@router.post(
    ADDRESS + "/rotate",
    responses=gives("The new secret, shown this once; the one before signs along for `overlap` seconds."),
    openapi_extra=body(
        JSON,
        required=False,
        schema={"type": "object", "properties": {"overlap": {"type": "number"}, "secret": {"type": "string"}}},
    ),
    summary="Give a webhook a new secret",
)
async def rotate(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, service = topic_of(request), service_of(request)
    content = await object_of(request, bytes_of(request, caller))
    overlap = content.get("overlap", DAY)
    if (
        isinstance(overlap, bool)
        or not isinstance(overlap, int | float)
        or not 0 <= overlap <= 30 * DAY
        or content.keys() - {"overlap", "secret"}
    ):
        raise Unacceptable(f"the body is {shown(content)}: overlap, seconds from 0 to {30 * DAY:g}, and secret are accepted")
    async with service.changing_sinks:
        sink = sink_of(service, hosted, name, caller, change=True)
        if sink.target.kind != WEBHOOK:
            raise Conflict(f"sink {name!r} is of kind {sink.target.kind}, which has no secret")
        sink.secrets = rotated(sink, read_secret(content.get("secret")), overlap)
        await asyncio.to_thread(service.couriers.sinks.put, hosted.folder.name, sink)
    return json_answer({"secret": sink.secrets[0].text, "valid": len(sink.signing())})


@router.get(
    LETTERS,
    responses=gives("Letters by number; `cursor` is where the next page begins."),
    openapi_extra={"parameters": parameters(after=("whole", "Only those numbered above."), limit=("whole", "At most so many."))},
    summary="List dead letters",
)
async def letters(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    sink_of(service, hosted, name, caller)
    after, limit = whole(request, "after", 0), whole(request, "limit", 100, 1, 1000)
    found = await asyncio.to_thread(service.couriers.letters.page, hosted.folder.name, name, after, limit)
    return json_answer({"dead_letters": found, "cursor": found[-1]["number"] if len(found) == limit else None})


@router.get(LETTERS + "/{number}", responses=gives("One, with its notification."), summary="Read a dead letter")
async def letter(topic: str, name: str, number: int, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, service = topic_of(request), service_of(request)
    sink_of(service, hosted, name, caller)
    return json_answer(await asyncio.to_thread(service.couriers.letters.get, hosted.folder.name, name, in_range(number)))


@router.delete(LETTERS + "/{number}", status_code=204, response_class=Response, summary="Forget a dead letter")
async def forget(topic: str, name: str, number: int, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, service = topic_of(request), service_of(request)
    sink_of(service, hosted, name, caller, change=True)
    found = service.couriers.letters
    await asyncio.to_thread(found.get, hosted.folder.name, name, in_range(number))
    await asyncio.to_thread(found.delete, hosted.folder.name, name, [number])
    return Response(status_code=204)


def in_range(number: int) -> int:
    return number if 0 <= number < 2**63 else 0


@router.post(
    LETTERS + "/resend",
    responses=gives("How many were taken now, and which were not."),
    openapi_extra=body(
        JSON,
        required=False,
        schema={"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}}},
    ),
    summary="Send dead letters again: those named, or the oldest 100",
)
async def resend(topic: str, name: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, service = topic_of(request), service_of(request)
    content = await object_of(request, bytes_of(request, caller))
    sink = sink_of(service, hosted, name, caller, change=True)
    numbers = content.get("numbers")
    whole_numbers = isinstance(numbers, list) and all(isinstance(n, int) and not isinstance(n, bool) for n in numbers)
    if content.keys() - {"numbers"} or (numbers is not None and (not whole_numbers or len(numbers) > 100)):
        raise Unacceptable(f"the body is {shown(content)}: an object with numbers, up to 100, is accepted")
    kept = service.couriers.letters
    if numbers is None:
        found = await asyncio.to_thread(kept.page, hosted.folder.name, name, 0, 100)
    else:
        found = [await asyncio.to_thread(kept.get, hosted.folder.name, name, in_range(number)) for number in numbers]
    sent, failed = [], []
    for each in found:
        outcome = await service.couriers.send_letter(hosted.folder.name, sink, each)
        if outcome.kind == TAKEN:
            sent.append(each["number"])
        else:
            failed.append({"number": each["number"], "reason": outcome.reason})
    await asyncio.to_thread(kept.delete, hosted.folder.name, name, sent)
    return json_answer({"sent": len(sent), "failed": failed})
