"""What stands in the records of a painted topic's Kafka topics, and reading one partition to its end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from tidings.errors import TidingsError
from tidings.model.filter.clause import Values

PATIENCE = 60.0
"""Seconds that a broker may be away."""
OTHERS = SPLIT, SKETCHED, BATCH = "\x00plan", "\x00sketch", "\x00batch"
"""Keys of records among the objects that tell none: a zone was split; up to which offset the painter knows the watchers' sketch;
which micro-batch of which query this sequence is."""


class Origin(NamedTuple):
    """Where a watcher was before its zone was split by sequence `split`. Everything up to `sequence` was told there, the record at
    `offset` is next, and webhooks had taken everything up to `sent`. `before` is where that zone's own watchers came from."""

    zone: int
    offset: int
    sequence: int
    sent: int
    split: int
    before: Origin | None = None

    @classmethod
    def of(cls, said: Sequence[Any] | None) -> Origin | None:
        if said is None:
            return None
        zone, offset, sequence, sent, split, before = said
        return cls(zone, offset, sequence, sent, split, cls.of(before))

    def oldest_first(self) -> list[Origin]:
        return [*([] if self.before is None else self.before.oldest_first()), self]


@dataclass(frozen=True, slots=True)
class Watcher:
    """`since` is the sequence of the objects that its first list is of. `told` if changes are told; `url` is called by webhooks
    that `secret` signs. `moved` if it came from a zone that was split."""

    id: str
    family: str
    l: float
    r: float
    k: int
    since: int
    told: bool = True
    owner: str | None = None
    url: str | None = None
    secret: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    moved: Origin | None = None

    def to_json(self) -> bytes:
        said = asdict(self)
        for end in "lr":
            said[end] = said[end] if np.isfinite(said[end]) else None
        return json.dumps({name: value for name, value in said.items() if value is not None}).encode()

    @classmethod
    def from_json(cls, body: bytes) -> Watcher:
        said = {"l": -np.inf, "r": np.inf} | json.loads(body)
        return cls(**said | {"moved": Origin.of(said.get("moved"))})


def object_records(changes: Mapping[str, Values | None], attributes: Sequence[str]) -> dict[str, bytes | None]:
    """By key, objects that now have these values, of which only some are asked for; None is an object gone."""
    return {
        key: None if v is None else orjson.dumps({name: v[name] for name in attributes if name in v}) for key, v in changes.items()
    }


def headers(record: Message) -> dict[str, bytes]:
    return dict(record.headers() or ())


def header(record: Message, name: str) -> int:
    return int(headers(record)[name])


def consumer_of(brokers: str, **more: Any) -> Consumer:
    """Of committed records alone; `group.id` is asked for, though only gateways have a group."""
    said = {"bootstrap.servers": brokers, "group.id": "tidings", "enable.auto.commit": False, "isolation.level": "read_committed"}
    # Questions wait behind a fetch on the same connection, so a fetch waits for records no longer than this, in milliseconds.
    said |= {"enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 20}
    return Consumer(said | more)


class Partition:
    """One partition, read record by record: `to_end` gives what there is that is new."""

    def __init__(self, brokers: str, topic: str, partition: int = 0, offset: int = OFFSET_BEGINNING) -> None:
        self._place = TopicPartition(topic, partition, offset)
        self._consumer = consumer_of(brokers)
        self._consumer.assign([self._place])
        self._at = 0

    def end(self) -> int:
        """The offset up to which transactions are settled."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return int(self._consumer.get_watermark_offsets(self._place, timeout=PATIENCE)[1])
            except KafkaException:  # a topic that was made just now is not known everywhere at once
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def next(self, end: int) -> Message | None:
        """The next record; None if there is none before `end`, of which some offsets are Kafka's own marks."""
        deadline = time.monotonic() + PATIENCE
        while self._at < end:
            record = self._consumer.poll(0.2)
            if record is None:
                if time.monotonic() > deadline:
                    raise TidingsError(f"Kafka gave nothing of {self._place.topic} for {PATIENCE:g} seconds, not even its end")
            elif record.error() is None:
                self._at = record.offset() + 1
                return record
            elif record.error().code() == KafkaError._PARTITION_EOF:
                self._at = max(self._at, record.offset())
            elif record.error().fatal():
                raise KafkaException(record.error())
        return None

    def to_end(self) -> Iterator[Message]:
        end = self.end()
        while (record := self.next(end)) is not None:
            yield record

    def peek(self) -> Message | None:
        """The next record if it is here already."""
        record = self._consumer.poll(0)
        return record if record is not None and record.error() is None else None

    def close(self) -> None:
        self._consumer.close()
