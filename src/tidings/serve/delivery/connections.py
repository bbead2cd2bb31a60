"""Connections to receivers over HTTP/1.1, kept and used again, one request at a time on each.

A delivery is one small request and a short answer, thousands of times a second, so this is no general client: it posts a body,
gives the status and `Retry-After`, reads no more than READ bytes of an answer, follows nothing, and leaves parsing to httptools.
A kept connection that the receiver closes just when it is used is not the receiver's refusal: the request is sent once more, on a
new one.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import httptools

from tidings.serve.delivery.addresses import Addresses

READ = 16 * 1024
IDLE = 30.0
"""Seconds for which a connection is kept without a request."""
KEPT, MOST = 200, 1000
"""Connections without a request, and in all."""


class Answer(NamedTuple):
    status: int
    retry_after: str | None


class Broken(OSError):
    """The connection ended without an answer; `stale` if it was one that had served before, and said nothing at all."""

    def __init__(self, said: str, *, stale: bool = False) -> None:
        super().__init__(said)
        self.stale = stale


class Place(NamedTuple):
    """Where a URL leads, and the head of a request to it."""

    scheme: str
    host: str
    port: int
    head: bytes


@lru_cache(1024)
def place_of(url: str) -> Place:
    parts = urlsplit(url)
    host, target = parts.hostname or "", (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Place(parts.scheme, host, port, f"POST {target} HTTP/1.1\r\nhost: {parts.netloc}\r\n".encode("ascii"))


class Connection(asyncio.Protocol):
    def __init__(self, everybody: set[Connection]) -> None:
        """It is one of `everybody` for as long as it is there."""
        self._everybody = everybody
        self._transport: asyncio.Transport | None = None
        self._asked: asyncio.Future[Answer] | None = None
        self.idle_since = 0.0
        self.served = 0
        self.open = True
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._heard = self._size = 0
        self._status: int | None = None
        self._retry_after: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._everybody.add(self)

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        assert self._transport is not None
        self._asked = asyncio.get_running_loop().create_future()
        self._begin()
        self._transport.write(request)
        return self._asked

    def data_received(self, data: bytes) -> None:
        self._heard += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._end(Broken("the receiver's answer is no HTTP"))

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, part: bytes) -> None:
        """A long answer is broken off: its status is known, and the connection is not worth the rest."""
        self._size += len(part)
        if self._size > READ:
            self._settle()
            self.close()

    def on_message_complete(self) -> None:
        if self._status is not None and self._status >= 200:
            keep = self._parser.should_keep_alive()
            self._settle()
            if not keep:
                self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._everybody.discard(self)
        if self._status is not None and self._status >= 200:
            self._settle()
        self._end(Broken(f"the connection ended: {error or 'closed by the receiver'}", stale=bool(self.served and not self._heard)))

    def _settle(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None and not asked.done():
            assert self._status is not None
            self.served += 1
            asked.set_result(Answer(self._status, self._retry_after))

    def _end(self, error: Broken) -> None:
        asked, self._asked = self._asked, None
        if asked is not None and not asked.done():
            asked.set_exception(error)
        self.close()

    def close(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()


class Connections:
    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._tls = ssl.create_default_context()
        self._everybody: set[Connection] = set()
        self._idle: defaultdict[tuple[str, str, int], list[Connection]] = defaultdict(list)
        self._kept = 0
        self._room = asyncio.Semaphore(MOST)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """OSError if there was no answer."""
        place = place_of(url)
        said = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        request = b"%b%bcontent-length: %d\r\n\r\n%b" % (place.head, said.encode("latin-1"), len(body), body)
        async with self._room:
            kept = self._take(place)
            if kept is not None:
                try:
                    return await self._ask(place, kept, request)
                except Broken as error:
                    if not error.stale:
                        raise
            return await self._ask(place, await self._connect(place), request)

    async def _ask(self, place: Place, connection: Connection, request: bytes) -> Answer:
        try:
            answer = await connection.ask(request)
        except BaseException:
            connection.close()
            raise
        self._keep(place, connection)
        return answer

    async def _connect(self, place: Place) -> Connection:
        loop, failed = asyncio.get_running_loop(), OSError(f"{place.host} has no address")
        tls, name = (self._tls, place.host) if place.scheme == "https" else (None, None)
        for address in await self._addresses.of(place.host, place.port):
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(self._everybody), address, place.port, ssl=tls, server_hostname=name
                )
                return connection
            except OSError as error:
                failed = error
        raise failed

    def _take(self, place: Place) -> Connection | None:
        idle = self._idle.get(place[:3], [])
        while idle:
            connection = idle.pop()
            self._kept -= 1
            if connection.open and time.monotonic() - connection.idle_since < IDLE:
                return connection
            connection.close()
        return None

    def _keep(self, place: Place, connection: Connection) -> None:
        if not connection.open:
            return
        if self._kept >= KEPT:
            self._let_go()
        connection.idle_since = time.monotonic()
        self._idle[place[:3]].append(connection)
        self._kept += 1

    def _let_go(self) -> None:
        """Of those that have waited longest, one of each receiver."""
        for at, idle in list(self._idle.items()):
            if idle:
                idle.pop(0).close()
                self._kept -= 1
            if not idle:
                del self._idle[at]

    async def close(self) -> None:
        """Close all, and wait until they are."""
        self._idle.clear()
        self._kept = 0
        for connection in list(self._everybody):
            connection.close()
        while self._everybody:
            await asyncio.sleep(0.01)
