"""Chromium's own EventSource as a client: it hears, and after the service was killed it comes back by itself and misses nothing."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.browsing import looking
from tests.serve.conftest import DEALS
from tests.serve.receiving import Receiver, receiving
from tests.serve.running import Running

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
PAGE = """<!doctype html><script>
const heard = new EventSource("{stream}");
heard.addEventListener("notification", (said) => fetch("{receiver}", {{method: "POST", mode: "no-cors", body: said.data}}));
heard.onopen = () => fetch("{receiver}", {{method: "POST", mode: "no-cors", body: '{{"open": true}}'}});
</script>"""


@contextmanager
def one_origin(page: bytes, port: int) -> Iterator[str]:
    """An address that gives the page, and everything else as the service at `port` does: a browser reads streams of the page's
    own origin."""

    class Passing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head = self.request.recv(65536)
            if head.startswith(b"GET /page "):
                said = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(page)
                self.request.sendall(said + page)
                return
            try:
                with socket.create_connection(("127.0.0.1", port)) as service:
                    service.sendall(head)
                    while part := service.recv(65536):
                        self.request.sendall(part)
            except OSError:
                pass  # the service or the browser is away: so is this connection

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Passing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def ids(receiver: Receiver) -> list[str]:
    return [message.json["event"]["id"] for message in receiver.taken if "event" in message.json]


def test_an_event_source_comes_back_and_misses_nothing(tmp_path, browser):
    with receiving() as receiver, Running(tmp_path / "data") as service:
        service.client.put("/topics/deals", json=DEALS)
        service.client.put("/topics/deals/subscriptions/ann", json={})
        page = PAGE.format(stream="/topics/deals/notifications?subscription=ann", receiver=receiver.url).encode()
        with one_origin(page, service.port) as address, looking(browser, address, receiver.url) as seen:
            seen.goto(f"{address}/page")
            receiver.wait(1, 120)
            for name in ("a", "b"):
                service.client.post("/topics/deals/events", json={"id": name})
            receiver.wait(3, 60)
            service.kill()
            service.start()
            service.client.post("/topics/deals/events", json={"id": "c"})
            receiver.wait(5, 120)
            service.client.post("/topics/deals/events", json={"id": "d"})
            receiver.wait(6, 60)
            assert sorted(ids(receiver)) == ["a", "b", "c", "d"]
