"""One process that serves: uvicorn around the app, until SIGTERM or SIGINT; requests under way are finished first."""

from __future__ import annotations

import ipaddress
import os
import socket

import uvicorn
from fastapi import FastAPI

from tidings.errors import TidingsError
from tidings.serve.access.keys import Keys
from tidings.serve.app.factory import make_app
from tidings.serve.app.watching import log_to_stderr
from tidings.serve.gateway.painting import Painters
from tidings.serve.hosting.ledger import Ledger
from tidings.serve.service import Service
from tidings.serve.settings import Settings

GRACE = 30
"""Seconds that requests under way have at the end."""


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound and listens; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise TidingsError(f"cannot listen on {host}:{port}: {error.strerror}") from error


class Server(uvicorn.Server):
    """Streams are ended before uvicorn waits for requests under way. With a `parent`, it stops when that one is gone."""

    parent: int | None = None
    painters: Painters | None = None

    async def on_tick(self, counter: int) -> bool:
        orphaned = self.parent is not None and os.getppid() != self.parent
        return await super().on_tick(counter) or orphaned

    @property
    def service(self) -> Service:
        app = self.config.loaded_app
        while not isinstance(app, FastAPI):
            app = app.app
        service: Service = app.state.service
        return service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.painters is not None and self.started:
            self.painters.start(self.service)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.end_streams()
        if self.painters is not None:
            await self.painters.stop()
        await super().shutdown(sockets)


def server_of(settings: Settings, writer: str | None = None) -> Server:
    config = uvicorn.Config(
        make_app(settings, writer),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACE,
        lifespan="on",
        server_header=False,
        proxy_headers=False,
    )
    server = Server(config)
    if settings.brokers is not None and writer is None:
        server.painters = Painters(settings.brokers, settings.paint, settings.zones, settings.sparse)
    return server


def first_key(settings: Settings) -> None:
    """A service that nobody could use yet gets a key, which is shown this once."""
    ledger = Ledger(settings.folder)
    try:
        keys = Keys(ledger)
        if not keys.all() and settings.provider is None:
            _, text = keys.make({"name": "first", "scopes": ["admin"]})
            print(f"tidings made a first key, of scope admin, which is not shown again: {text}", flush=True)
    finally:
        ledger.close()


def open_door(settings: Settings, host: str, port: int) -> socket.socket:
    """The public socket, announced; a first key is made if nobody has one."""
    if settings.open and not is_loopback(host):
        raise TidingsError(
            f"--open lets everybody in, and {host} is not loopback: make keys with `tidings keys`, or listen on 127.0.0.1"
        )
    if not settings.open:
        first_key(settings)
    sock = listening(host, port)
    bound, number = sock.getsockname()[:2]
    log_to_stderr(settings.log)
    print(f"tidings serves {settings.folder} on http://{bound}:{number} (OpenAPI at /docs)", flush=True)
    return sock


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8080) -> None:
    """Serve in this process until told to stop."""
    server_of(settings).run(sockets=[open_door(settings, host, port)])
