"""What an operator looks at beside the numbers of a topic: the service as a whole, and the filters that take the longest."""

from __future__ import annotations

import time
from itertools import islice
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings import __version__
from tidings.model.door.subscription import Subscription
from tidings.serve.access.callers import OWNER, PUBLISH, READ
from tidings.serve.app.answers import json_answer
from tidings.serve.app.documents import gives, parameters
from tidings.serve.app.requests import caller_of, service_of, topic_of, whole
from tidings.serve.hosting.hosted_topic import HostedTopic

router = APIRouter(tags=["running"])
LOOKED_AT = 5_000
TIMED = 50
EVENTS = 100


@router.get("/engine", responses=gives("Its version, its processes, who listens, and what this key may do."), summary="The service")
async def engine(request: Request) -> Response:
    caller = caller_of(request, READ, PUBLISH, OWNER)
    service = service_of(request)
    said: dict[str, Any] = {"version": __version__, "readers": service.settings.readers, "backlog": service.settings.backlog}
    said["key"] = {"id": caller.id, "scopes": sorted(caller.scopes), "owner": caller.owner}
    said["topics"] = {
        name: {
            "listeners": service.tails[name].listening,
            "told": service.tails[name].at,
            "commits": hosted.writing.groups,
            "publishes": hosted.writing.grouped,
            "waiting writes": hosted.writer.depth,
            "waiting reads": hosted.readers.depth,
        }
        for name, hosted in sorted(service.topics.items())
    }
    return json_answer(said)


@router.get(
    "/topics/{topic}/slowest",
    responses=gives("By time, the longest first; `looked_at` subscriptions were considered and `events` asked of each."),
    openapi_extra={"parameters": parameters(limit=("whole", f"At most so many, up to {TIMED}."))},
    summary="The filters that take the longest, timed now, each alone over live events",
)
async def slowest(topic: str, request: Request) -> Response:
    caller_of(request, READ)
    hosted, limit = topic_of(request), whole(request, "limit", 10, 1, TIMED)
    values = await hosted.change(lambda: [event.values for event in islice(hosted.topic.publisher.events, EVENTS)])
    return json_answer(await hosted.ask(lambda: timed(hosted, values, limit)))


def timed(hosted: HostedTopic, values: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Of the first LOOKED_AT by id, the TIMED of the highest price are asked, clause by clause, of up to EVENTS live events."""
    considered = hosted.topic.subscriptions(limit=LOOKED_AT)
    dear = sorted(considered, key=price_of, reverse=True)[:TIMED]
    rows: list[dict[str, Any]] = [
        {"subscription": one.id, "microseconds": took, "clauses": len(one.clauses), "price": price_of(one), "filter": said(one)}
        for one in dear
        if (took := microseconds(hosted, one, values)) is not None
    ]
    rows.sort(key=lambda row: row["microseconds"], reverse=True)
    return {"slowest": rows[:limit], "looked_at": len(considered), "events": len(values)}


def price_of(subscription: Subscription) -> int:
    return sum(clause.price for clause in subscription.clauses)


def said(subscription: Subscription) -> str | None:
    return subscription.filter if isinstance(subscription.filter, str) else None


def microseconds(hosted: HostedTopic, subscription: Subscription, values: list[dict[str, Any]]) -> float | None:
    """An event, of all its clauses; None without live events."""
    if not values:
        return None
    schema, began = hosted.topic.schema, time.perf_counter()
    for one in values:
        for clause in subscription.clauses:
            clause.holds(schema, one)
    return round((time.perf_counter() - began) * 1e6 / len(values), 3)
