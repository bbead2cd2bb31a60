"""What a route asks of a request: the service, the topic, who calls, and parameters of its address."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from tidings.errors import shown
from tidings.serve.access.callers import Caller
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.refusals import Unacceptable
from tidings.serve.service import Service

TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no", "")


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def topic_of(request: Request) -> HostedTopic:
    return service_of(request).topic(request.path_params["topic"])


def caller_of(request: Request, *scopes: str) -> Caller:
    """Who calls, which must have one of the scopes."""
    caller = service_of(request).caller(request.headers.get("authorization"))
    caller.must(*scopes)
    return caller


def bytes_of(request: Request, caller: Caller) -> int:
    """The most bytes that this caller may send."""
    most = service_of(request).settings.body
    return most if caller.quotas.bytes is None else min(most, caller.quotas.bytes)


def text(request: Request, name: str) -> str | None:
    """A parameter of the address; most requests have none at all, which is seen without reading it."""
    return request.query_params.get(name) if request.scope["query_string"] else None


def flag(request: Request, name: str) -> bool:
    said = text(request, name)
    if said is None or said.lower() in FALSE:
        return False
    if said.lower() in TRUE:
        return True
    raise Unacceptable(f"{name} is {shown(said)}: true or false is accepted")


def whole(request: Request, name: str, default: Any = None, least: int = 0, most: int = 2**53) -> Any:
    """A whole number in a range."""
    said = text(request, name)
    if said is None:
        return default
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 20 else -1
    if not least <= number <= most:
        raise Unacceptable(f"{name} is {shown(said)}: a whole number from {least} to {most} is accepted")
    return number


def instant(request: Request) -> str | float | None:
    """`time`, as ISO 8601 or seconds."""
    said = text(request, "time")
    if said is None:
        return None
    try:
        return float(said)
    except ValueError:
        return said
