"""What the tests of the service share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tidings.serve.run.server import listening, server_of
from tidings.serve.service import Service
from tidings.serve.settings import Settings

DEALS = {
    "schema": {
        "price": {"type": "number", "lo": 0, "hi": 10000},
        "brand": "category",
        "place": "place",
        "about": "words",
        "made": "time",
        "day": "date",
        "fresh": "bool",
    }
}


@contextmanager
def serving(settings: Settings) -> Iterator[httpx.Client]:
    """A client of a service in a thread of this process, on a free port of loopback."""
    with hosted(settings) as (client, _):
        yield client


@contextmanager
def hosted(settings: Settings) -> Iterator[tuple[httpx.Client, Service]]:
    """The client, and the service itself for who looks inside."""
    sock = listening("127.0.0.1", 0)
    server = server_of(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{sock.getsockname()[1]}", timeout=60) as client:
            while client.get("/readyz").status_code != 200:
                time.sleep(0.02)
            yield client, server.service
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """Of a service that is open to all and has the topic `deals`."""
    with serving(Settings(tmp_path / "data", open=True)) as client:
        assert client.put("/topics/deals", json=DEALS).status_code == 201
        yield client
