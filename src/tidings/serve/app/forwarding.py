"""What a reader does with what is the writer's: it sends it there, body and answer as they come.

A reader answers `match`, `explain`, searches, notifications and its own health. A topic that it has not mapped yet is the writer's.
While the writer is away, what is his gets 503 and `Retry-After`; whether a change was made then is not known, so sending it
again is right for what is idempotent: puts, deletes, and events by their ids.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator

import httpcore
import orjson
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from tidings.serve.app.problems import PROBLEM

OWN = ("/healthz", "/readyz", "/metrics", "/docs", "/openapi.json")
QUESTION = re.compile(r"/topics/([^/]+)/(match|explain|events|notifications)")
METHOD = {"match": "POST", "explain": "POST", "events": "GET", "notifications": "GET"}
HOP = (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer", b"date", b"server")
EVENT_STREAM = b"text/event-stream"
AWAY = 60.0
"""Seconds that a stream waits for the writer."""
MINUTE = {"connect": 5.0, "read": 120.0, "write": 120.0, "pool": 60.0}


class Forwarding:
    def __init__(self, app: FastAPI, own: ASGIApp, writer: str) -> None:
        """`own` serves what is a reader's, of `app`."""
        self.app, self._own = app, own
        self._pool = httpcore.AsyncConnectionPool(uds=writer, max_connections=200, keepalive_expiry=20)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_ours(scope):
            await self._own(scope, receive, send)
        else:
            await self._forward(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        if scope["path"] in OWN or scope["path"] == "/" or scope["path"].startswith("/console/"):
            return True
        asked = QUESTION.fullmatch(scope["path"])
        if asked is None or METHOD[asked[2]] != scope["method"]:
            return False
        return asked[1] in self.app.state.service.topics

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A stream waits for a writer that is away: a browser that is refused one never comes back."""
        patience = AWAY if any(name == b"accept" and EVENT_STREAM in value for name, value in scope["headers"]) else 0.0
        deadline = time.monotonic() + patience
        while not await self._forwarded(scope, receive, send):
            if time.monotonic() >= deadline:
                await _away(send)
                return
            await asyncio.sleep(0.2)

    async def _forwarded(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Whether the writer answered."""

        async def body() -> AsyncIterator[bytes]:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                more = message.get("more_body", False)
                if message.get("body"):
                    yield message["body"]

        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        url = httpcore.URL(scheme=b"http", host=b"writer", port=None, target=scope["raw_path"] + query)
        headers = [pair for pair in scope["headers"] if pair[0] not in HOP or pair[0] == b"transfer-encoding"]
        headers += [(b"x-request-id", scope["request_id"].encode())]
        sized = any(name in (b"content-length", b"transfer-encoding") for name, _ in headers)
        begun = False
        try:
            asked = self._pool.stream(
                scope["method"], url, headers=headers, content=body() if sized else None, extensions={"timeout": MINUTE}
            )
            async with asked as answer:
                given = [(name.lower(), value) for name, value in answer.headers]
                kept = [(name, value) for name, value in given if name not in HOP and name != b"x-request-id"]
                begun = True
                await send({"type": "http.response.start", "status": answer.status, "headers": kept})
                async for part in answer.aiter_stream():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
            if begun:
                raise
        return begun


async def _away(send: Send) -> None:
    said = {"type": "about:blank", "title": "Not now", "status": 503, "detail": "the writer is starting again: try in a moment"}
    headers = [(b"content-type", PROBLEM.encode()), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(said), "more_body": False})
