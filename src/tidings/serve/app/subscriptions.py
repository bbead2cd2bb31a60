"""Subscriptions, one at a time: put, read, changed, moved, removed, and a subscription's current list. `bulk` has many at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.errors import DroppedWarning, NeverMatchesWarning, RankingWarning, shown
from tidings.match.answers.results import Notification
from tidings.model.door.subscription import Subscription, known_id
from tidings.model.filter.elements import dropped_of
from tidings.model.filter.syntax import parse_filter
from tidings.serve.access.callers import ADMIN, OWNER, READ, Caller
from tidings.serve.app.addresses import SUBSCRIPTION as ADDRESS
from tidings.serve.app.answers import JSON, json_answer, match_json, notification_json, rows_answer
from tidings.serve.app.bodies import object_of
from tidings.serve.app.documents import TIME, body, gives, parameters
from tidings.serve.app.requests import bytes_of, caller_of, flag, instant, service_of, text, topic_of, whole
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.hosting.plain_json import subscription_json
from tidings.serve.refusals import Conflict, Forbidden, Unacceptable

Result = TypeVar("Result")
router = APIRouter(tags=["subscriptions"])
LOOKED_AT = 20_000
NEVER_MATCHES = "its filter can never match"
FIELDS: dict[str, Any] = {
    "filter": {"type": ["string", "object", "null"], "description": "CQL2, text or JSON; every event without it."},
    "score": {"type": ["number", "string", "null"]},
    "weights": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
    "similarity": {"type": ["array", "null"], "items": {"type": "number"}, "description": "[alpha, theta]"},
    "k": {"type": ["integer", "null"], "minimum": 0},
    "window": {"type": ["string", "integer", "null"], "description": "'1 day', 'P1D', '1000 events' or 'day'."},
    "by": {"type": ["string", "object", "null"]},
    "per": {"type": ["string", "null"], "description": "Of the events with one value of this attribute only the best counts."},
    "tz": {"type": ["string", "null"], "description": "The time zone of a window that is a day, week or month."},
    "budget": {"type": ["string", "null"], "description": "At most so many notifications, as '10 per day'."},
    "cooldown": {"type": ["string", "null"], "description": "Nothing for so long after one, as '1 hour'."},
    "dwell": {"type": ["string", "null"], "description": "Tell of an object that has stayed so long, as '10 minutes'."},
    "digest": {
        "type": ["string", "null"],
        "description": "The best of a 'day', 'week' or 'month' together, or each day 'at 08:00'.",
    },
    "expires": {"type": ["string", "number", "null"]},
    "owner": {"type": ["string", "null"]},
    "error": {"type": ["number", "null"]},
    "tags": {"type": ["array", "null"], "items": {"type": "string"}},
    "within": {"type": ["array", "null"], "description": "[[x, y], metres]: the place must lie so near."},
}
SUBSCRIPTION: dict[str, Any] = {"type": "object", "properties": FIELDS}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "notifications": {"type": "array", "items": {"type": "object"}},
        "warnings": {"type": "array", "items": {"type": "string"}},
    },
}


def quietly(call: Callable[[], Result]) -> Result:
    """What is accepted and has no effect is said in the answer, not on the service's own terminal."""
    with warnings.catch_warnings():
        for category in (NeverMatchesWarning, DroppedWarning, RankingWarning):
            warnings.simplefilter("ignore", category)
        return call()


def owned(caller: Caller, content: dict[str, Any]) -> None:
    """An owner's subscriptions are his own, whatever he says."""
    mine = caller.changes()
    if mine is not None:
        if content.get("owner") not in (None, mine):
            raise Forbidden(f"owner is {shown(content['owner'])}: this key subscribes for {mine!r} alone")
        content["owner"] = mine


def may_replace(hosted: HostedTopic, caller: Caller, id: str) -> bool:
    """Whether the id is there; an owner may not take another's."""
    there = hosted.topic.store.get(known_id(id))
    mine = caller.changes()
    if there is not None and mine is not None and there.owner != mine:
        raise Conflict(f"subscription id {id!r} is taken: choose another")
    return there is not None


@router.put(
    ADDRESS,
    responses=gives("It was replaced.", ANSWER) | gives("It is new.", ANSWER, status=201),
    openapi_extra={"parameters": parameters(replay=("flag", "Tell of the live events that match first."), **TIME)}
    | body(JSON, schema=SUBSCRIPTION),
    summary="Subscribe, or replace a subscription",
)
async def put(topic: str, id: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, service = topic_of(request), service_of(request)
    content = await object_of(request, bytes_of(request, caller))
    if content.setdefault("id", id) != id:
        raise Unacceptable(f"id is {shown(content['id'])}: the address says {id!r}")
    owned(caller, content)
    at, replay = instant(request), flag(request, "replay")

    def change() -> tuple[bool, list[Notification], list[str]]:
        there = may_replace(hosted, caller, id)
        service.door.price(hosted, caller, content, new=not there)
        with hosted.owners.changing(known_id(id), content.get("owner")):
            notes = quietly(lambda: hosted.topic.take(content, replay=replay, time=at))
        return there, notes, warnings_of(hosted, id)

    there, notes, warned = await hosted.change(change)
    return json_answer(changed(id, notes, warned), 200 if there else 201)


def warnings_of(hosted: HostedTopic, id: str) -> list[str]:
    """Of one that was just set; its owner is noted as it was read."""
    made = hosted.subscription(id)
    hosted.owners.set(made.id, made.owner)
    schema = hosted.topic.schema
    said = [] if made.filter is None or schema.words is None else [*dropped_of(schema, parse_filter(made.filter))]
    return [*([] if made.clauses else [NEVER_MATCHES]), *said]


def changed(id: str, notes: list[Notification], warned: list[str]) -> dict[str, Any]:
    said: dict[str, Any] = {"id": id, "notifications": [notification_json(note) for note in notes]}
    return said | {"warnings": warned} if warned else said


@router.get(ADDRESS, responses=gives("Its fields."), summary="Read a subscription")
async def get(topic: str, id: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted = topic_of(request)
    return json_answer(await hosted.ask(lambda: subscription_json(hosted.subscription(id, caller.owns()))))


@router.patch(
    ADDRESS,
    responses=gives("It was changed.", ANSWER),
    openapi_extra={"parameters": parameters(**TIME)} | body(JSON, schema=SUBSCRIPTION),
    summary="Change some fields of a subscription; null puts one back to its default",
)
async def patch(topic: str, id: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, service = topic_of(request), service_of(request)
    content = await object_of(request, bytes_of(request, caller))
    at = instant(request)
    if "owner" in content:
        owned(caller, content)

    def change() -> tuple[list[Notification], list[str]]:
        found = hosted.subscription(id, caller.changes())
        service.door.price(hosted, caller, content, new=False)
        with hosted.owners.changing(found.id, content.get("owner", found.owner)):
            notes = quietly(lambda: hosted.topic.change(found.id, content, time=at))
        warned = warnings_of(hosted, found.id)
        return notes, warned if "filter" in content else []

    notes, warned = await hosted.change(change)
    return json_answer(changed(id, notes, warned))


@router.delete(ADDRESS, status_code=204, response_class=Response, summary="Unsubscribe")
async def delete(topic: str, id: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted = topic_of(request)

    def change() -> None:
        found = hosted.subscription(id, caller.changes())
        hosted.topic.unsubscribe(found.id)
        hosted.owners.set(found.id, None)

    await hosted.change(change)
    return Response(status_code=204)


@router.post(
    ADDRESS + "/move",
    responses=gives("It was moved.", ANSWER),
    openapi_extra={"parameters": parameters(**TIME)}
    | body(JSON, schema={"type": "object", "required": ["point"], "properties": {"point": {"type": "array"}}}),
    summary="Centre a subscription's place on a point",
)
async def move(topic: str, id: str, request: Request) -> Response:
    caller = caller_of(request, ADMIN, OWNER)
    hosted, at = topic_of(request), instant(request)
    content = await object_of(request, bytes_of(request, caller))
    point = content.get("point")
    if not isinstance(point, list) or set(content) != {"point"}:
        raise Unacceptable(f"the body is {shown(content)}: an object with point, [x, y], is accepted")

    def change() -> list[Notification]:
        return hosted.topic.move(hosted.subscription(id, caller.changes()).id, point, time=at)

    return json_answer(changed(id, await hosted.change(change), []))


@router.get(
    ADDRESS + "/top",
    responses=gives("Its list, best first.", many=True),
    openapi_extra={"parameters": parameters(**TIME)},
    summary="A subscription's current list",
)
async def top(topic: str, id: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, at = topic_of(request), instant(request)
    found = await hosted.ask(lambda: hosted.topic.top(hosted.subscription(id, caller.owns()).id, time=at))
    return rows_answer(request, "top", map(match_json, found))


@router.get(
    ADDRESS + "/withheld",
    responses=gives("`withheld`: how many notifications its budget and its cooldown have kept back."),
    summary="How much a subscription's pace has kept back",
)
async def withheld(topic: str, id: str, request: Request) -> Response:
    caller, hosted = caller_of(request, READ, OWNER), topic_of(request)
    kept = await hosted.ask(lambda: hosted.topic.withheld(hosted.subscription(id, caller.owns()).id))
    return json_answer({"withheld": kept})


@router.get(
    "/topics/{topic}/subscriptions",
    responses=gives("A page of them, by id; `cursor` is where the next begins, null at the end."),
    openapi_extra={
        "parameters": parameters(
            owner=("text", "Only this owner's."),
            tag=("text", "Only those with this tag."),
            text=("text", f"Only those with this in their id or filter; a page looks at {LOOKED_AT} at most, and may be empty."),
            cursor=("text", "From after this id on."),
            limit=("whole", "At most so many, up to 1000."),
        )
    },
    summary="List subscriptions",
)
async def listed(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted = topic_of(request)
    owner = caller.owns() or text(request, "owner")
    tag, after, limit = text(request, "tag"), text(request, "cursor"), whole(request, "limit", 100, 1, 1000)
    said = text(request, "text")

    def page() -> dict[str, Any]:
        if said:
            found, cursor = holding(hosted, said.casefold(), owner, tag, after or None, limit)
        else:
            found = hosted.topic.subscriptions(owner=owner, tag=tag, after=after or None, limit=limit + 1)
            cursor = found[limit - 1].id if len(found) > limit else None
        return {"subscriptions": [subscription_json(subscription) for subscription in found[:limit]], "cursor": cursor}

    return json_answer(await hosted.ask(page))


def holding(
    hosted: HostedTopic, said: str, owner: str | None, tag: str | None, after: str | None, limit: int
) -> tuple[list[Subscription], str | None]:
    """Those with `said` in their id or filter, and where to go on; None where all were looked at."""
    found: list[Subscription] = []
    for _ in range(LOOKED_AT // 1000):
        some = hosted.topic.subscriptions(owner=owner, tag=tag, after=after, limit=1000)
        for one in some:
            after = one.id
            if said in one.id.casefold() or said in str(one.filter or "").casefold():
                found.append(one)
                if len(found) == limit:
                    return found, after
        if len(some) < 1000:
            return found, None
    return found, after
