"""What the gateway's thread, which follows Kafka, tells the rest of the gateway."""

from __future__ import annotations

from typing import Protocol

from confluent_kafka import Message

from tidings.kafka.layout import Plan
from tidings.kafka.records import Watcher
from tidings.serve.gateway.zone import Zone
from tidings.serve.hearing.notes import Note


class Hearer(Protocol):
    """Called in the thread."""

    def opened(self, zone: Zone, sent: int) -> None: ...

    def told(self, zone: Zone, notes: list[Note], upto: int) -> None: ...

    def noted(self, zone: Zone, record: Message) -> None: ...

    def called(self, zone: Zone, watcher: Watcher) -> None: ...

    def silent(self, zone: Zone, id: str) -> None: ...

    def closed(self, zone: Zone) -> None: ...

    def sent(self, zone: Zone) -> int: ...

    def split(self, zone: Zone, plan: Plan) -> None: ...
