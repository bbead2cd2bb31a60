"""The painter: changes of objects become messages in the partitions of the zones they meet, and records of the objects themselves.

One change is one Kafka transaction: messages and objects, or neither. What it has painted is what Kafka has: begun anew it reads
the objects back, so that nothing depends on what it remembers, and a painter that comes later fences off one that is thought dead
(`transactional.id`). Its memory is that of the objects, and of the watchers' sketch where it paints for those alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
from confluent_kafka import KafkaError, KafkaException, Producer

from tidings.boards.messages.painter import FamilyPainter
from tidings.boards.messages.record import Said, zoned
from tidings.errors import TidingsError
from tidings.model.filter.clause import Values
from tidings.model.filter.operands import compile_number
from tidings.serve.gateway.layout import Plan, await_topics, make_topics, named, widen
from tidings.serve.gateway.records import PATIENCE, Partition
from tidings.serve.gateway.replica import SKETCHED, Replica
from tidings.serve.gateway.sketch import Sketch

PLAN = "plan"
NOWHERE = np.array([[[np.inf, -np.inf], [np.inf, -np.inf]]])
"""A cover of nobody: no range begins at infinity and ends before everything."""


def read_plan(brokers: str, topic: str) -> Plan | None:
    partition = Partition(brokers, named(topic, "plan"))
    try:
        found = [record.value() for record in partition.to_end()]
    finally:
        partition.close()
    return Plan.from_json(found[-1]) if found else None


class Painter:
    def __init__(self, brokers: str, plan: Plan, statistics: Any = None) -> None:
        """`plan` is for a topic that has none yet, with the same families; `statistics` is called with librdkafka's JSON."""
        self._brokers, self.topic = brokers, plan.topic
        make_topics(brokers, plan.topic, plan.partitions)
        settings: dict[str, Any] = {
            "bootstrap.servers": brokers,
            "transactional.id": f"tidings-painter-{plan.topic}",
            "compression.type": "zstd",
            "compression.level": 1,
        }
        settings |= {
            "linger.ms": 0,
            "retry.backoff.ms": 5,
            "topic.metadata.refresh.interval.ms": 1_000,
            "transaction.timeout.ms": 30_000,
            "queue.buffering.max.messages": 1_000_000,
        }
        if statistics is not None:
            settings |= {"statistics.interval.ms": 500, "stats_cb": statistics}
        self._settings = settings
        self._producer = Producer(settings)
        self._producer.init_transactions(PATIENCE)
        await_topics(self._producer, plan.topic, 1)
        there = read_plan(brokers, plan.topic)
        if there is not None and there.families != plan.families:
            names = ", ".join(family.name for family in there.families)
            raise TidingsError(
                f"topic {plan.topic!r} is painted in Kafka for the families {names}: others need a topic of their own"
            )
        self.plan = there or plan
        await_topics(self._producer, plan.topic, self.plan.partitions)
        used = {name for f in plan.families for name in (f.attribute, *compile_number(plan.schema, f.by).attributes)}
        self._attributes = sorted(used)
        self._sketch = Sketch(brokers, self.plan) if self.plan.sparse else None
        self.last_at = 0
        self.load()
        if there is None:
            self._write_plan(self.plan)

    def load(self) -> None:
        """What Kafka has is what was painted, and its plan is the plan."""
        self.plan = read_plan(self._brokers, self.topic) or self.plan
        replica = Replica(self._brokers, self.plan)
        try:
            self.sequence = replica.advance()
            self.last_at = max(self.last_at, replica.at)
        finally:
            replica.close()
        self.painters = [FamilyPainter(self.plan.schema, self.topic, family) for family in self.plan.families]
        for painter, objects in zip(self.painters, replica.objects, strict=True):
            painter.take_over(objects)
        if self._sketch is not None:
            self._cover(self._sketch)

    @property
    def keys(self) -> Iterator[str]:
        """Of all objects that are in some family, perhaps more than once; none is read unless it is asked for."""
        return (key for painter in self.painters for key in painter.objects.keys.number)

    def publish(self, changes: Mapping[str, Values | None], at: int) -> int:
        """Tell of objects that now have these values, in one sequence; how many messages there are. None is an object gone.

        What Kafka does not take is not painted: `load` goes back to what it has, and the caller says again what changed."""
        self.look()
        names = self._attributes
        known = {key: None if v is None else {name: v[name] for name in names if name in v} for key, v in changes.items()}
        self.last_at = max(self.last_at + 1, at)
        said = [painter.say(known) for painter in self.painters]
        self._write({key: None if v is None else orjson.dumps(v) for key, v in known.items()}, said)
        return sum(len(each.box) for each in said)

    def look(self) -> None:
        """Take in what gateways said of their watchers; they wait for it."""
        if self._sketch is not None and self._sketch.read():
            self._cover(self._sketch)
            self._write({SKETCHED: json.dumps({"offset": self._sketch.offset}).encode()}, [])

    def split(self, zone: int, family: int = 0) -> None:
        """Cut a zone in two, at the median of what the sketch or the objects say; its gateway hands the watchers on."""
        points = self.painters[family].objects.index.arrays
        there = points.block_of >= 0
        x = np.sort(points.x[there])
        low, high = self.plan.zones[family].low[zone], self.plan.zones[family].high[zone]
        sample = np.array([(l, r) for l in x[:: max(len(x) // 64, 1)] for r in x[:: max(len(x) // 64, 1)] if l <= r]).reshape(-1, 2)
        plan = self.plan.split(zone, family, sample[((low <= sample) & (sample < high)).all(1)], self.sequence + 1)
        if plan.partitions == self.plan.partitions:
            raise TidingsError(f"zone {zone} cannot be split: there are no two objects' values in it")
        widen(self._brokers, self.topic, plan.partitions)
        await_topics(self._producer, self.topic, plan.partitions)
        self._write_plan(plan, marker=zone)

    def _write_plan(self, plan: Plan, marker: int | None = None) -> None:
        """In a sequence of its own; with a mark in the partition of a zone that is split."""
        headers = [
            (name, str(value).encode())
            for name, value in {"version": 0, "sequence": self.sequence + 1, "left": 0, "at": self.last_at}.items()
        ]

        def write() -> None:
            self._produce("plan", plan.to_json(), PLAN)
            if marker is not None:
                self._produce("messages", plan.to_json(), partition=marker, headers=headers)
                self._produce("objects", b"{}", "\x00plan", headers=headers)

        self._commit(write)
        self.plan = plan
        self.sequence += marker is not None

    def _write(self, objects: Mapping[str, bytes | None], said: list[Said]) -> None:
        common = {"sequence": self.sequence + 1, "snapshot": self.sequence, "at": self.last_at}
        headers = [(name, str(common[name]).encode()) for name in ("sequence", "at")]

        def write() -> None:
            for each, zones, family in zip(said, self.plan.zones, self.plan.families, strict=False):
                for zone, body, saying in zoned(each, zones, common | {"family": family.name}):
                    self._produce("messages", body, partition=zone, headers=saying)
            for key, value in objects.items():
                self._produce("objects", value, key, headers=headers)

        self._commit(write)
        self.sequence += 1

    def _commit(self, write: Callable[[], None]) -> None:
        """All of it or nothing; a commit of which nobody knows is asked for again."""
        deadline = time.monotonic() + PATIENCE
        try:
            self._producer.begin_transaction()
            write()
            while True:
                try:
                    self._producer.commit_transaction(PATIENCE)
                    return
                except KafkaException as error:
                    if not error.args[0].retriable() or time.monotonic() > deadline:
                        raise
        except KafkaException as error:
            if error.args[0].code() == KafkaError._FENCED:
                raise TidingsError(f"another painter of {self.topic!r} has begun: {error.args[0].str()}") from error
            self._abort()
            raise

    def _abort(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._producer.abort_transaction(PATIENCE)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    self._producer = Producer(self._settings)
                    self._producer.init_transactions(PATIENCE)
                    return
                time.sleep(0.2)

    def _produce(self, kind: str, value: bytes | None, key: str | None = None, partition: int = 0, headers: Any = None) -> None:
        while True:
            try:
                self._producer.produce(named(self.topic, kind), value, key, partition, headers=headers)
                return
            except BufferError:
                self._producer.poll(0.05)

    def _cover(self, sketch: Sketch) -> None:
        for painter in self.painters:
            boxes = sketch.cover(painter.family.name)
            painter.cover(boxes if len(boxes) else NOWHERE)

    def flush(self) -> None:
        """Let librdkafka say what it has to say."""
        self._producer.poll(0)

    def close(self) -> None:
        self._producer.flush(5)
        if self._sketch is not None:
            self._sketch.close()
