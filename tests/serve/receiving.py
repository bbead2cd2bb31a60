"""A real receiver of webhooks on loopback, in a thread: it answers as it is told and remembers what it took."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Message:
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """`answer` says what to answer to a message: a status, and headers."""

    answer: Callable[[Message], tuple[int, dict[str, str]]] = lambda message: (204, {})
    messages: list[Message] = field(default_factory=list)
    taken: list[Message] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def wait(self, count: int, seconds: float = 30) -> list[Message]:
        """Until so many were taken."""
        deadline = time.monotonic() + seconds
        while len(self.taken) < count:
            assert time.monotonic() < deadline, f"{len(self.taken)} of {count} came"
            time.sleep(0.01)
        return self.taken


@contextmanager
def receiving(receiver: Receiver | None = None) -> Iterator[Receiver]:
    found = receiver or Receiver()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            message = Message({name.lower(): value for name, value in self.headers.items()}, body, time.monotonic())
            found.messages.append(message)
            status, headers = found.answer(message)
            if 200 <= status < 300:
                found.taken.append(message)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", found.port), Answers)
    server.daemon_threads = True
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
