"""How calls reach a service, waited for."""

from __future__ import annotations

import time as clock
from typing import TypeVar

import httpx

from tidings.client.calls import Call
from tidings.client.retrying import Tries

Result = TypeVar("Result")


def headers_of(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}


class Connection:
    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60.0) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, headers=headers_of(key), timeout=timeout)

    def do(self, call: Call[Result]) -> Result:
        """Send a call; one that is safe is sent again when the connection breaks or the service is not ready."""
        tries = Tries(self.url, call.safe)
        while True:
            try:
                answer = self.http.request(**call.request())
            except httpx.TransportError as error:
                wait = tries.broken(error)
            else:
                if answer.status_code < 400:
                    return call.read(answer)
                wait = tries.refused(answer)
            clock.sleep(wait)
