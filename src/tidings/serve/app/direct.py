"""The two routes that are asked thousands of times a second, without the framework's layers, which cost more than their work.

They are routes of the framework like all others, documented and callable through it; here their functions are called with the same
request, and what they raise is answered in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from tidings.serve.app import events, questions
from tidings.serve.app.problems import answered

ADDRESS = re.compile(r"/topics/([^/\x1f]+)/(match|events)")


class NamedHeaders(Headers):
    """The first of each name, as the framework's own gives it."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._list = list(raw)
        self._named = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self._list)}

    def get(self, key: str, default: Any = None) -> Any:
        return self._named.get(key, default)

    def __getitem__(self, key: str) -> str:
        return self._named[key.lower()]

    def __contains__(self, key: object) -> bool:
        return key in self._named


class QuickRequest(Request):
    """A request whose headers are looked up by name, not searched for each time they are asked for."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self._headers = NamedHeaders(scope["headers"])


class Direct:
    def __init__(self, app: FastAPI) -> None:
        self.app = app
        routes = [route for router in (events.router, questions.router) for route in router.routes]
        posts = [route for route in routes if isinstance(route, APIRoute) and "POST" in (route.methods or ())]
        self._routes = {route.path.rsplit("/", 1)[1]: route for route in posts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if asked is None:
            await self.app(scope, receive, send)
            return
        route = scope["route"] = self._routes[asked[2]]
        scope["app"], scope["path_params"] = self.app, {"topic": asked[1]}
        request = QuickRequest(scope, receive)
        try:
            response = await route.endpoint(asked[1], request)
        except Exception as error:  # noqa: BLE001 - the service's outermost edge, as `problems` is for the framework's
            response = await answered(request, error)
        await response(scope, receive, send)
