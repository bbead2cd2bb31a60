"""The processes beside the service: `python -m tests.serve.faults.children publish|listen|receive SETTINGS`.

Each writes what it knows into a file, a line of JSON at a time by one system call, so that a kill leaves whole lines only. They are
started again with the same settings and go on from their files.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import tidings as td
from tidings.errors import ServiceError


class Lines:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def put(self, *fields: Any) -> None:
        os.write(self._file, json.dumps(fields).encode() + b"\n")


def lines(path: Path) -> Iterator[list[Any]]:
    if path.exists():
        for line in path.read_text().splitlines():
            yield json.loads(line)


def publish(url: str, key: str, file: str, name: str) -> None:
    """Post a few events at a time for ever; `sent` before, `taken` after the answer. A post that fails is sent again."""
    begun = sum(kind == "begun" for kind, *_ in lines(Path(file)))
    out, draw, number = Lines(Path(file)), random.Random(f"{name} {begun}"), 0
    out.put("begun", begun)
    with td.connect(url, key) as service:
        while True:
            events = [{"id": f"{name}-{begun}-{number + i}", "price": draw.uniform(0, 1000)} for i in range(draw.randint(1, 4))]
            number += len(events)
            out.put("sent", time.monotonic(), [[event["id"], event["price"]] for event in events])
            while not posted(service["deals"], events):
                time.sleep(0.05)
            out.put("taken", time.monotonic(), [event["id"] for event in events])
            time.sleep(0.005)


def posted(topic: Any, events: list[dict[str, Any]]) -> bool:
    try:
        topic.post(events[0] if len(events) == 1 else events)
    except ServiceError:
        return False
    return True


def listen(url: str, key: str, file: str, **whose: str) -> None:
    """Hear for ever. Without a consumer's name it remembers for itself how far it is."""
    heard = [number for number, *_ in lines(Path(file))]
    after = None if "consumer" in whose else max(heard, default=0)
    out = Lines(Path(file))
    while True:
        try:
            with td.connect(url, key) as service:
                for note in service["deals"].listen(**whose, after=after):
                    assert note.event is not None, f"notification {note.number} came without its event"
                    out.put(note.number, note.id, note.subscription, note.owner, note.event["id"], note.event["price"])
                    after = after if "consumer" in whose else note.number
        except ServiceError:
            time.sleep(0.05)


def receive(port: int, file: str) -> None:
    """Take what sinks send; it is written down before it is answered, so a kill between the two makes it come again."""
    out = Lines(Path(file))

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = self.rfile.read(length)
            if len(body) < length:
                self.close_connection = True
                return
            said = json.loads(body)
            events = said if isinstance(said, list) else [said]
            for note in [event["data"] for event in events]:
                fields = [note[name] for name in ("number", "id", "subscription", "owner")]
                out.put(self.path, *fields, note["event"]["id"], note["event"]["price"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, address: Any) -> None:
            """A sender that was killed in the middle of its message."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, address)

    Quiet(("127.0.0.1", port), Answers).serve_forever()


ROLES: dict[str, Callable[..., None]] = {"publish": publish, "listen": listen, "receive": receive}

if __name__ == "__main__":
    ROLES[sys.argv[1]](**json.loads(sys.argv[2]))
