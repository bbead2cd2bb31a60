"""Questions about an event: who would hear of it, and why or why not. Nothing is published."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tidings.errors import shown
from tidings.match.answers.ordering import match_rows
from tidings.serve.access.callers import OWNER, READ
from tidings.serve.app.answers import ARROW, JSON, json_answer, match_json, rows_answer
from tidings.serve.app.bodies import EVENT_FORMS, SMALL, body_of, events_of, form_of, table_of
from tidings.serve.app.documents import TIME, body, gives, parameters
from tidings.serve.app.requests import bytes_of, caller_of, flag, instant, text, topic_of, whole
from tidings.serve.refusals import TooLarge, Unacceptable

router = APIRouter(tags=["questions"])
LARGEST_K = 2**31 - 1
AGGREGATES = ("sum", "max", "min")


@router.post(
    "/topics/{topic}/match",
    responses=gives("Who matches: by id, or the k best, best first.", many=True),
    openapi_extra={
        "parameters": parameters(
            k=("whole", "Only the k best."),
            relaxed=("flag", "At least one dimension holds; the score is the aggregate of the weights of those that do."),
            aggregate=("text", "sum, max or min."),
            **TIME,
        )
    }
    | body(*EVENT_FORMS),
    summary="Who would hear of these events",
)
async def match(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ)
    hosted = topic_of(request)
    form = form_of(request, EVENT_FORMS)
    content = await body_of(request, bytes_of(request, caller))
    k = whole(request, "k", most=LARGEST_K)
    if k is not None and caller.quotas.k is not None and k > caller.quotas.k:
        raise TooLarge(f"k is {k}: this key may ask for {caller.quotas.k} at most", limit=caller.quotas.k)
    relaxed, aggregate, at = flag(request, "relaxed"), text(request, "aggregate") or "sum", instant(request)
    if aggregate not in AGGREGATES:
        raise Unacceptable(f"aggregate is {shown(aggregate)}: {', '.join(AGGREGATES)} are accepted")

    def answer() -> Any:
        if form == ARROW:
            return hosted.topic.match_batch(table_of(content), k, relaxed=relaxed, aggregate=aggregate, time=at)
        events = events_of(hosted, request, form, content)
        if len(events) == 1:
            return hosted.topic.match(events[0], k, relaxed=relaxed, aggregate=aggregate, time=at)
        return hosted.topic.match_batch(events, k, relaxed=relaxed, aggregate=aggregate, time=at)

    def written() -> Response:
        found = answer()
        if isinstance(found, list):
            return rows_answer(request, "matches", map(match_json, found), lambda: match_rows(found))
        return rows_answer(request, "matches", found.to_pylist(), lambda: found)

    small = form != ARROW and not relaxed and len(content) <= SMALL
    return await (hosted.ask_small(written) if small else hosted.ask(written))


@router.post(
    "/topics/{topic}/explain",
    responses=gives("Why, as fields and as `text`."),
    openapi_extra={
        "parameters": parameters(
            subscription=("text", "Whose answer; without it, what each step of matching leaves over."),
            k=("whole", "How many best the plan is for."),
            **TIME,
        )
    }
    | body(*(form for form in EVENT_FORMS if form != ARROW)),
    summary="Why a subscription does or does not hear of an event",
)
async def explain(topic: str, request: Request) -> Response:
    caller = caller_of(request, READ, OWNER)
    hosted, of = topic_of(request), text(request, "subscription")
    form = form_of(request, EVENT_FORMS)
    content = await body_of(request, min(bytes_of(request, caller), 64 * SMALL))
    owner, at, k = caller.owns(), instant(request), whole(request, "k", 10, most=LARGEST_K)
    if of is None and owner is not None:
        raise Unacceptable("subscription is missing: an owner asks about his own")

    def answer() -> Any:
        if of is not None:
            hosted.subscription(of, owner)
        events = events_of(hosted, request, JSON if form == ARROW else form, content)
        if len(events) != 1:
            raise Unacceptable(f"the body has {len(events)} events: one is explained at a time")
        return hosted.topic.explain(events[0], of, k=k, time=at)

    explanation = await hosted.ask(answer)
    return json_answer(asdict(explanation) | {"text": str(explanation)})
