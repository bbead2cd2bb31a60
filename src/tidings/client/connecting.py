"""`td.connect` and `td.connect_async`; what they need is imported when they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.client.async_service import AsyncService
    from tidings.client.service import Service


def connect(url: str, key: str | None = None, *, timeout: float = 60.0) -> Service:
    """A service that `tidings serve` runs: `td.connect("http://127.0.0.1:8080", key)["deals"]` has the calls of `Topic`."""
    from tidings.client.service import Service

    return Service(url, key, timeout=timeout)


def connect_async(url: str, key: str | None = None, *, timeout: float = 60.0) -> AsyncService:
    """The same with calls that are awaited."""
    from tidings.client.async_service import AsyncService

    return AsyncService(url, key, timeout=timeout)
