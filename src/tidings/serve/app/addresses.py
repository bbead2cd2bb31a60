"""Addresses whose parts may hold any text: a slash inside a part is written %2F, and stays within it.

Servers decode an address before routes see it, and a slash that was written %2F then looks like any other. `Slashes` gives it to
the routes as a control character, which no id may hold, and the convertor `name` makes it a slash again.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

STAND_IN = "\x1f"


class Name(Convertor[str]):
    """One part of an address."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return value.replace(STAND_IN, "/")

    def to_string(self, value: str) -> str:
        return value.replace("/", STAND_IN)


register_url_convertor("name", Name())
SUBSCRIPTION = "/topics/{topic}/subscriptions/{id:name}"
CONSUMER = "/topics/{topic}/consumers/{name:name}"


class Slashes:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw: bytes = scope.get("raw_path", b"")
        if b"%2F" in raw or b"%2f" in raw:
            path = raw.replace(b"%2F", b"%1F").replace(b"%2f", b"%1F").decode("ascii")
            scope = {**scope, "path": unquote(path)}
        await self.app(scope, receive, send)
