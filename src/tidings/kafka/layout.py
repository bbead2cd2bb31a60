"""The Kafka topics of a painted topic, and the plan that stands in one of them: schema, families and zones."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from numpy.typing import NDArray

from tidings.boards.messages.family import Family
from tidings.boards.paint.zones import Zones
from tidings.errors import TidingsError
from tidings.model.filter.operands import compile_number
from tidings.model.values.schema import Schema

HOUR = 3_600_000
"""Milliseconds."""
TAIL = HOUR
"""For so long objects are kept with every value they had, so that a zone can be taken over from any sequence of it."""
COMPACTED = {"cleanup.policy": "compact"}
RECORDS = {
    "plan": COMPACTED,
    "sketch": COMPACTED,
    "objects": COMPACTED | {"min.compaction.lag.ms": str(TAIL), "delete.retention.ms": str(24 * HOUR)},
    "messages": {"retention.ms": str(24 * HOUR)},
    "watchers": COMPACTED | {"delete.retention.ms": str(24 * HOUR)},
    "notes": {"retention.ms": str(24 * HOUR)},
}
SHOWN = 60.0
"""Seconds."""
ZONED = ("messages", "watchers", "notes")
FEWEST = 64
"""Values of objects that ranges are made of; a sample of watchers with fewer is none."""


@dataclass(frozen=True)
class Plan:
    """`epoch` counts how often zones were cut anew; `since` is the sequence from which on the zones hold."""

    topic: str
    schema: Schema
    key: str
    families: tuple[Family, ...]
    zones: tuple[Zones, ...]
    """of each family; zone i of each is partition i"""
    sparse: bool = False
    epoch: int = 0
    since: int = 0

    @property
    def partitions(self) -> int:
        return max(map(len, self.zones))

    def family(self, name: str) -> int:
        return [family.name for family in self.families].index(name)

    def to_json(self) -> bytes:
        said: dict[str, Any] = {"topic": self.topic, "schema": self.schema.to_dict(), "key": self.key}
        said["families"] = [[f.attribute, f.by, f.k, f.epsilon] for f in self.families]
        said["zones"] = [zones.to_json() for zones in self.zones]
        return json.dumps(said | {"sparse": self.sparse, "epoch": self.epoch, "since": self.since}).encode()

    @classmethod
    def from_json(cls, body: bytes) -> Plan:
        said = json.loads(body)
        families = tuple(Family(*fields) for fields in said["families"])
        zones = tuple(map(Zones.from_json, said["zones"]))
        rest = (said["sparse"], said["epoch"], said["since"])
        return cls(said["topic"], Schema.from_dict(said["schema"]), said["key"], families, zones, *rest)

    def split(self, zone: int, family: int, points: NDArray[np.float64], since: int) -> Plan:
        """With one zone more for every family, the last: of that family it has half of the points, of others nothing."""
        cut = [zones if i != family else zones.split(zone, points) for i, zones in enumerate(self.zones)]
        return replace(self, zones=tuple(cut), epoch=self.epoch + 1, since=since)


def attributes_of(schema: Schema, families: Iterable[Family]) -> list[str]:
    """What of an object's values families ask for."""
    return sorted({name for f in families for name in (f.attribute, *compile_number(schema, f.by).attributes)})


def ranges_between(values: Iterable[float]) -> NDArray[np.float64]:
    """Ranges (n x 2) by which zones are cut where no watcher is known: between values that objects have."""
    x = sorted(values)
    x = x[:: max(len(x) // FEWEST, 1)] or [0.0, 1.0]
    return np.array([(l, r) for l in x for r in x if l <= r])


def named(topic: str, kind: str) -> str:
    return f"{topic}.{kind}"


def is_painted(brokers: str, topic: str) -> bool:
    """Whether there is a painter, or was one."""
    return named(topic, "plan") in AdminClient({"bootstrap.servers": brokers}).list_topics(timeout=30).topics


def make_topics(brokers: str, topic: str, partitions: int) -> None:
    """Those that are not there yet."""
    admin = AdminClient({"bootstrap.servers": brokers})
    there = admin.list_topics(timeout=30).topics
    wanted = [
        NewTopic(named(topic, kind), partitions if kind in ZONED else 1, config=config)
        for kind, config in RECORDS.items()
        if named(topic, kind) not in there
    ]
    for name, made in (admin.create_topics(wanted) if wanted else {}).items():
        try:
            made.result(30)
        except KafkaException as error:
            raise TidingsError(f"Kafka cannot make {name}: {error.args[0].str()}") from error


def await_topics(client: Producer, topic: str, partitions: int) -> None:
    """Until the client knows all of them: what was made just now is not known everywhere at once."""
    for kind in RECORDS:
        name, wanted = named(topic, kind), partitions if kind in ZONED else 1
        deadline = time.monotonic() + SHOWN
        while True:
            found = client.list_topics(name, SHOWN).topics[name]
            led = [part for part in found.partitions.values() if part.error is None and part.leader >= 0]
            if found.error is None and len(led) >= wanted:
                break
            if time.monotonic() > deadline:
                raise TidingsError(f"Kafka does not show {wanted} partitions of {name}: {found.error or len(led)}")
            time.sleep(0.05)


def widen(brokers: str, topic: str, partitions: int) -> None:
    """So many zones."""
    admin = AdminClient({"bootstrap.servers": brokers})
    there = admin.list_topics(timeout=30).topics
    wanted = [NewPartitions(named(topic, kind), partitions) for kind in ZONED]
    wanted = [each for each in wanted if len(there[each.topic].partitions) < partitions]
    for made in (admin.create_partitions(wanted) if wanted else {}).values():
        made.result(30)
