"""One writer and many readers: a parent that holds the sockets, starts the processes, and starts again whoever dies.

The readers accept on the public socket, the writer on one of this machine's that only they know. Both sockets are the parent's, so
while a process is away its callers wait in the queue instead of being refused. `python -m tidings.serve.run.processes` is a child.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Any

from tidings.serve.access.tokens import Provider
from tidings.serve.app.watching import log_to_stderr
from tidings.serve.run.server import GRACE, server_of
from tidings.serve.settings import Settings

LOOK = 0.05
REST = 0.5
"""Seconds before a process that died at once is started again."""


def supervise(settings: Settings, public: socket.socket, readers: int) -> None:
    """Run one writer and `readers` readers until told to stop."""
    with tempfile.TemporaryDirectory(prefix="tidings-") as folder:
        path = str(Path(folder) / "writer")
        private = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        private.bind(path)
        private.listen(1024)
        children = [Child(settings, private, None), *(Child(settings, public, path) for _ in range(readers))]
        stopping: list[int] = []

        def stop(number: int, _: FrameType | None) -> None:
            stopping.append(number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        try:
            while not stopping:
                for child in children:
                    child.keep()
                time.sleep(LOOK)
        finally:
            public.close()
            for child in reversed(children):
                child.stop()
            private.close()


class Child:
    """A process, the writer's if it knows no `writer`."""

    def __init__(self, settings: Settings, sock: socket.socket, writer: str | None) -> None:
        self._sock = sock
        self._said = json.dumps({"settings": packed(settings), "fd": sock.fileno(), "writer": writer})
        self._process: subprocess.Popen[bytes] | None = None
        self._began = -REST

    def keep(self) -> None:
        """Start it if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        if time.monotonic() - self._began >= REST:
            self._began = time.monotonic()
            command = [sys.executable, "-m", "tidings.serve.run.processes", self._said]
            self._process = subprocess.Popen(command, pass_fds=[self._sock.fileno()])

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(GRACE + 10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def packed(settings: Settings) -> dict[str, Any]:
    return asdict(settings) | {"folder": str(settings.folder)}


def unpacked(said: dict[str, Any]) -> Settings:
    provider = None if said["provider"] is None else Provider(**said["provider"])
    return replace(
        Settings(**said), folder=Path(said["folder"]), allow=tuple(said["allow"]), paint=tuple(said["paint"]), provider=provider
    )


def child(said: str) -> None:
    """What a child does; it ends when its parent does."""
    fields = json.loads(said)
    settings, parent = unpacked(fields["settings"]), os.getppid()
    log_to_stderr(settings.log)
    sock = socket.socket(fileno=fields["fd"])
    server = server_of(settings, fields["writer"])
    server.parent = parent
    server.run(sockets=[sock])


if __name__ == "__main__":
    child(sys.argv[1])
