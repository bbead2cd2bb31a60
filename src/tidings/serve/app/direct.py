"""The two routes that are asked thousands of times a second, without the framework's layers, which cost more than their work.

They are routes of the framework like all others, documented and callable through it; here their functions are called with the same
request, and what they raise is answered in the same way.
"""

from __future__ import annotations

import re

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from tidings.serve.app import events, questions
from tidings.serve.app.problems import answered
from tidings.serve.app.quick_requests import QuickRequest

ADDRESS = re.compile(r"/topics/([^/\x1f]+)/(match|events)")


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
