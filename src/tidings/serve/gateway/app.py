"""The gateway over HTTP: watchers begin, are asked for and end; what they hear is a stream. Others' are handed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from tidings import __version__
from tidings.errors import shown
from tidings.kafka.layout import Plan
from tidings.kafka.records import Watcher
from tidings.model.door.subscription import known_id, read_subscription
from tidings.serve.access.callers import ADMIN, OWNER, READ, Caller
from tidings.serve.app import problems
from tidings.serve.app.answers import json_answer
from tidings.serve.app.bodies import object_of
from tidings.serve.app.notifications import after_of
from tidings.serve.delivery.addresses import read_url
from tidings.serve.delivery.sinks import read_headers, read_secret
from tidings.serve.gateway.gateway import Elsewhere, Gateway, GatewaySettings
from tidings.serve.gateway.handing import ASKED, zone_of_id
from tidings.serve.hearing.listening import Selection
from tidings.serve.hearing.streams import EventStream
from tidings.serve.refusals import NotFound, NotReady, Unacceptable

router = APIRouter()
FIELDS = ("filter", "by", "k", "owner", "webhook", "headers", "secret", "told")


def gateway_of(request: Request, *scopes: str) -> tuple[Gateway, Caller]:
    gateway: Gateway = request.app.state.service
    caller = gateway.caller(request.headers.get("authorization"))
    caller.must(*scopes)
    return gateway, caller


def watcher_of(plan: Plan, id: str, said: dict[str, Any], caller: Caller) -> Watcher:
    for name in said:
        if name not in FIELDS:
            raise Unacceptable(f"field {shown(name)} is unknown: a watcher has {', '.join(FIELDS)}")
    asked = {name: said[name] for name in ("filter", "by", "k", "owner") if name in said}
    read = read_subscription(plan.schema, asked | {"id": id})
    for family in plan.families:
        found = family.range_of(plan.schema, read.clauses, read.by, read.k)
        if found is not None:
            break
    else:
        names = ", ".join(family.name for family in plan.families)
        raise Unacceptable(f"the watcher is of no painted family ({names}): subscribe it at the service and hear it by its id here")
    url = None if said.get("webhook") is None else read_url(said["webhook"])
    secret = None if url is None else read_secret(said.get("secret")).text
    told = said.get("told", True)
    if not isinstance(told, bool):
        raise Unacceptable(f"told is {shown(told)}: true or false is accepted")
    owner = read.owner if caller.changes() is None else caller.changes()
    assert read.k is not None
    return Watcher(
        read.id, family.name, *found, read.k, 0, told or url is not None, owner, url, secret, read_headers(said.get("headers"))
    )


def mine(caller: Caller, owner: str | None, id: str) -> None:
    """Another's is as if it were not there."""
    if caller.owns() is not None and caller.owns() != owner:
        raise NotFound(f"there is no watcher {id!r}")


async def handed(gateway: Gateway, request: Request, url: str | None) -> Response:
    """To the gateway that has it; 307 keeps method and body."""
    if url is None or url == gateway.url:
        raise NotReady("its zone is being taken over")
    query = f"?{request.url.query}" if request.url.query else ""
    return Response(status_code=307, headers={"location": f"{url}{quote(request.url.path)}{query}"})


async def elsewhere(gateway: Gateway, request: Request, id: str) -> Response:
    """A watcher that is not here."""
    if ASKED in request.headers:
        raise NotFound(f"there is no watcher {id!r} here")
    url = await gateway.handing.locate(quote(id, safe=""), request.headers)
    if url is None:
        raise NotFound(f"there is no watcher {id!r}")
    return await handed(gateway, request, url)


@router.put("/watchers/{id}", summary="Begin a watcher, or another in its place")
async def put(id: str, request: Request) -> Response:
    gateway, caller = gateway_of(request, ADMIN, OWNER)
    said = await object_of(request, gateway.settings.body)
    watcher = watcher_of(gateway.thread().plan, known_id(id), said, caller)
    there = await gateway.ask(lambda consuming: gateway.listed(consuming, watcher.id))
    if there is not None:
        mine(caller, there["owner"], id)
    other = None if there is not None else await gateway.handing.locate(quote(id, safe=""), request.headers)
    try:
        best, number = await gateway.ask(lambda consuming: gateway.register(consuming, watcher))
    except Elsewhere as error:
        return await handed(gateway, request, await gateway.handing.owner(error.zone))
    if other is not None:
        await gateway.handing.forget(other, quote(id, safe=""), request.headers)
    shown_once = {"secret": watcher.secret} if watcher.url is not None and said.get("secret") is None else {}
    return json_answer({"id": id, "list": best, "cursor": number} | shown_once, 200 if there or other else 201)


@router.get("/watchers/{id}", summary="A watcher's list")
@router.head("/watchers/{id}", include_in_schema=False)
async def get(id: str, request: Request) -> Response:
    gateway, caller = gateway_of(request, READ, OWNER)
    found = await gateway.ask(lambda consuming: gateway.listed(consuming, id))
    if found is None:
        return await elsewhere(gateway, request, id)
    mine(caller, found["owner"], id)
    return json_answer(found)


@router.delete("/watchers/{id}", summary="End a watcher")
async def delete(id: str, request: Request) -> Response:
    gateway, caller = gateway_of(request, ADMIN, OWNER)
    found = await gateway.ask(lambda consuming: gateway.listed(consuming, id))
    if found is None:
        return await elsewhere(gateway, request, id)
    mine(caller, found["owner"], id)
    await gateway.ask(lambda consuming: gateway.remove(consuming, id))
    return Response(status_code=204)


@router.get("/watchers/{id}/stream", summary="What changes in a watcher's list, as Server-Sent Events")
async def stream(id: str, request: Request) -> Response:
    gateway, caller = gateway_of(request, READ, OWNER)
    found = await gateway.ask(lambda consuming: gateway.listed(consuming, id))
    if found is None or found["zone"] not in gateway.tails:
        return await elsewhere(gateway, request, id)
    mine(caller, found["owner"], id)
    return EventStream(gateway.tails[found["zone"]], Selection(id), after_of(request), nullcontext())


@router.get("/subscriptions/{id}/stream", summary="What a subscription of the service is told, which goes by its id")
async def notes(id: str, request: Request) -> Response:
    gateway, caller = gateway_of(request, READ, OWNER)
    zone = zone_of_id(id, gateway.thread().plan.partitions)
    if zone not in gateway.notes:
        return await handed(gateway, request, await gateway.handing.owner(zone))
    return EventStream(gateway.notes[zone], Selection(id, caller.owns()), after_of(request), nullcontext())


@router.get("/gateway", summary="The zones that it serves, and how far each is")
async def described(request: Request) -> Response:
    gateway, _ = gateway_of(request, READ)
    zones = gateway.thread().zones
    said = {
        str(number): {
            "watchers": len(zone),
            "sequence": zone.sequence,
            "offset": zone.offset,
            "noted": zone.noted,
            "ready": zone.ready,
        }
        for number, zone in sorted(zones.copy().items())
    }
    return json_answer({"url": gateway.url, "topic": gateway.settings.topic, "epoch": gateway.thread().plan.epoch, "zones": said})


@router.get("/healthz", summary="Alive?")
async def healthz() -> Response:
    return json_answer({"status": "ok"})


@router.get("/readyz", summary="Has it a plan, and Kafka?")
async def readyz(request: Request) -> Response:
    gateway: Gateway = request.app.state.service
    if not gateway.ready:
        raise NotReady("the gateway waits for the plan of its topic")
    return json_answer({"status": "ready"})


def make_gateway(settings: GatewaySettings, url: str) -> FastAPI:
    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        gateway = app.state.service = Gateway(settings, url)
        starting = asyncio.create_task(gateway.start())
        try:
            yield
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await gateway.stop()

    app = FastAPI(title="tidings gateway", version=__version__, lifespan=living, redoc_url=None)
    problems.install(app)
    app.include_router(router)
    return app
