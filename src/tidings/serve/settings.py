"""What an operator says when the service is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidings.serve.access.tokens import Provider


@dataclass(frozen=True, slots=True)
class Settings:
    """`open` lets everybody in, on loopback. `body` is the most bytes of a request. A topic's outbox keeps the newest `backlog`
    notifications, and knows the newest `remembered` events again. `allow` names hosts in private ranges that sinks may reach.
    `readers` processes answer beside the writer; `tiles` is the address of a server of map tiles, as the console has it. `paint`
    names families, as `flats=price:-stars:20`, that are painted for gateways over Kafka's `brokers`, in so many `zones`; `sparse`
    if only where gateways say that there are watchers."""

    folder: Path
    open: bool = False
    body: int = 64 * 2**20
    backlog: int = 1_000_000
    remembered: int = 1_000_000
    allow: tuple[str, ...] = ()
    provider: Provider | None = None
    log: str = "info"
    readers: int = 0
    tiles: str | None = None
    brokers: str | None = None
    paint: tuple[str, ...] = ()
    zones: int = 8
    sparse: bool = False
