"""A gateway's process: what `tidings gateway` runs, until SIGTERM or SIGINT."""

from __future__ import annotations

import uvicorn

from tidings.errors import TidingsError
from tidings.serve.app.watching import log_to_stderr
from tidings.serve.gateway.app import make_gateway
from tidings.serve.gateway.gateway import GatewaySettings
from tidings.serve.run.server import GRACE, Server, is_loopback, listening


def run_gateway(settings: GatewaySettings, host: str = "127.0.0.1", port: int = 0, url: str | None = None) -> None:
    """`url` is what other gateways and clients reach it by, where that is not the address it listens on."""
    if settings.open and not is_loopback(host):
        raise TidingsError(f"--open lets everybody in, and {host} is not loopback: make keys with `tidings keys`")
    settings.folder.mkdir(parents=True, exist_ok=True)
    sock = listening(host, port)
    bound, number = sock.getsockname()[:2]
    url = url or f"http://{bound}:{number}"
    log_to_stderr(settings.log)
    app = make_gateway(settings, url)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=GRACE, lifespan="on", server_header=False
    )
    print(f"tidings is a gateway of {settings.topic} on {url}", flush=True)
    Server(config).run(sockets=[sock])
