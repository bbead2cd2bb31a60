"""The app: a service's routes, its problems, its start and its stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from tidings import __version__
from tidings.console import pages
from tidings.serve.app import (
    bulk,
    events,
    keys,
    notifications,
    previews,
    problems,
    questions,
    running,
    sinks,
    subscriptions,
    topics,
    upkeep,
)
from tidings.serve.app.addresses import Slashes
from tidings.serve.app.direct import Direct
from tidings.serve.app.documents import PROBLEMS
from tidings.serve.app.forwarding import Forwarding
from tidings.serve.app.looks import checks, engine, flows
from tidings.serve.app.watching import OfService, Watching
from tidings.serve.reading import ReadingService
from tidings.serve.service import Service
from tidings.serve.settings import Settings

ROUTERS = (
    *(topics, subscriptions, bulk, events, questions, previews, checks),
    *(notifications, flows, sinks, keys, upkeep, engine, running),
)


def make_app(settings: Settings, writer: str | None = None) -> Watching:
    """An ASGI app over the topics in `settings.folder`, opened when it starts and closed when it stops.

    With `writer`, the path of a socket, it is a reader's: it answers questions and streams itself, and sends the rest there.
    """

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        service = app.state.service = Service(settings) if writer is None else ReadingService(settings)
        watching.registry.register(OfService(service))
        opening = asyncio.create_task(service.start())
        try:
            yield
        finally:
            await asyncio.gather(opening, return_exceptions=True)
            await service.stop()

    app = FastAPI(title="tidings", version=__version__, lifespan=living, responses=PROBLEMS, redoc_url=None)
    problems.install(app)
    app.add_middleware(Slashes)
    for routes in ROUTERS:
        app.include_router(routes.router)
    pages.install(app, settings.open, settings.tiles)
    watching = Watching(Direct(app) if writer is None else Forwarding(app, Direct(app), writer))
    app.state.exposed = watching.exposed
    return watching
