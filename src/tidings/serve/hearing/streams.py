"""Server-Sent Events: a stream of notes that goes on after `Last-Event-ID`, with nothing missed and nothing twice.

Every event's id is its number in the outbox. A stream opens with the number it begins at, and says how far it is when nothing
happens, so that whoever comes back asks for no more than was missed. If the outbox no longer reaches back so far, an event `gap`
says up to which number it is gone.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, ExitStack

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidings.serve.hearing.following import Heard, follow
from tidings.serve.hearing.listening import Listening, Selection

EVENT_STREAM = "text/event-stream"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
OPENING = b"retry: 1000\n"
"""Milliseconds after which a browser comes back."""


def written(heard: Heard) -> bytes:
    if heard.gone is not None:
        return b"event: gap\ndata: %b\n\n" % orjson.dumps({"after": heard.cursor, "gone": heard.gone})
    return b"".join([note.as_event for note in heard.notes]) or b"id: %d\n\n" % heard.cursor


class EventStream(Response):
    """Of a listener, until it goes or the service stops."""

    media_type = EVENT_STREAM

    def __init__(self, tail: Listening, selection: Selection, after: int | None, counted: AbstractContextManager[None]) -> None:
        """It counts as open within `counted`, which may refuse it."""
        super().__init__(status_code=200)
        self._open = ExitStack()
        self._open.enter_context(counted)
        self._tail, self._selection, self._after = tail, selection, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        listener = self._tail.enter(self._selection)
        after = listener.since if self._after is None else self._after

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            listener.over = True
            listener.woken.set()

        watching = asyncio.create_task(watch())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": OPENING, "more_body": True})
            async for heard in follow(self._tail, listener, after):
                await send({"type": "http.response.body", "body": written(heard), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._open.close()
            watching.cancel()
            self._tail.leave(listener)
