"""`td.connect` and `td.connect_async`; what they need is imported when they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.client.async_service import AsyncService
    from tidings.client.service import Service


def connect(url: str, key: str | None = None, *, timeout: float = 60.0) -> Service:
    """A service that `tidings serve` runs: `td.connect("http://127.0.0.1:8080", key)["deals"]` has the calls of `Topic`.

    >>> import tidings as td
    >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
    >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
    >>> notes = deals.subscribe("ann", "price < 5", time=0)
    >>> [note.subscription for note in deals.publish({"id": "e1", "price": 3}, time=1)]
    ['ann']
    >>> service.drop("deals"); service.close()
    """
    from tidings.client.service import Service

    return Service(url, key, timeout=timeout)


def connect_async(url: str, key: str | None = None, *, timeout: float = 60.0) -> AsyncService:
    """The same with calls that are awaited.

    >>> import asyncio
    >>> import tidings as td
    >>> async def main():
    ...     async with td.connect_async(url) as service:  # of `tidings serve`, as "http://127.0.0.1:8080"
    ...         deals = await service.make("deals", {"price": td.Number()}, clock="given")
    ...         await deals.subscribe("ann", "price < 5", time=0)
    ...         told = await deals.publish({"id": "e1", "price": 3}, time=1)
    ...         await service.drop("deals")
    ...         return [note.subscription for note in told]
    >>> asyncio.run(main())
    ['ann']
    """
    from tidings.client.async_service import AsyncService

    return AsyncService(url, key, timeout=timeout)
