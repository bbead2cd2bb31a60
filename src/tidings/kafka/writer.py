"""The writer of a painted topic: what is said of a change, in the partitions of the zones it meets, and records of the objects.

One change is one Kafka transaction: messages and objects, or neither. There is one writer: who begins later fences off one that is
thought dead (`transactional.id`), and its change that was not committed is undone. Beside the plan stands who began last, so that
one that is fenced off knows whether another paints now (`Overtaken`) or its own transaction took too long. Who paints, `painter` in
one process or Spark's tasks, gives it what is said; sequences and instants are given here.
"""

from __future__ import annotations

import json
import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tidings.boards.messages.record import Said, zoned
from tidings.errors import TidingsError
from tidings.kafka.layout import Plan, await_topics, make_topics, named
from tidings.kafka.records import PATIENCE, SKETCHED, SPLIT, Partition
from tidings.kafka.replica import Replica
from tidings.kafka.sketch import Sketch

PLAN, BEGAN = "plan", "painter"
"""Keys of records: the plan, and who began to paint last."""


class Overtaken(TidingsError):
    """Another painter has begun, who tells gateways from now on."""


def read_plan(brokers: str, topic: str) -> Plan | None:
    found = _planned(brokers, topic).get(PLAN)
    return None if found is None else Plan.from_json(found)


def _planned(brokers: str, topic: str) -> dict[str, bytes]:
    partition = Partition(brokers, named(topic, "plan"))
    try:
        return {record.key().decode(): record.value() for record in partition.to_end()}
    finally:
        partition.close()


class Writer:
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
        self.sketch = Sketch(brokers, self.plan) if self.plan.sparse else None
        self.sequence = self.last_at = 0
        self._name = uuid.uuid4().hex.encode()
        self._commit(lambda: self._produce("plan", self._name, BEGAN))
        if there is None:
            self.write_plan(self.plan)

    def load(self) -> Replica:
        """What Kafka has is what was written, and its plan is the plan; the objects that it has."""
        self.plan = read_plan(self._brokers, self.topic) or self.plan
        replica = Replica(self._brokers, self.plan)
        try:
            self.sequence = replica.advance()
            self.last_at = max(self.last_at, replica.at)
        finally:
            replica.close()
        return replica

    def look(self) -> bool:
        """Take in what gateways said of their watchers, who wait for it; whether there was anything. What is written from now on
        has to be painted for these."""
        if self.sketch is None or not self.sketch.read():
            return False
        self.write({SKETCHED: json.dumps({"offset": self.sketch.offset}).encode()}, [])
        return True

    def write(self, objects: Mapping[str, bytes | None], said: Sequence[Said], at: int | None = None) -> None:
        """One sequence: what each family has to hear, in the plan's order, and records of `objects`. Instants ascend."""
        if at is not None:
            self.last_at = max(self.last_at + 1, at)
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

    def write_plan(self, plan: Plan, marker: int | None = None) -> None:
        """In a sequence of its own; with a mark in the partition of a zone that is split."""
        headers = [
            (name, str(value).encode())
            for name, value in {"version": 0, "sequence": self.sequence + 1, "left": 0, "at": self.last_at}.items()
        ]

        def write() -> None:
            self._produce("plan", plan.to_json(), PLAN)
            if marker is not None:
                self._produce("messages", plan.to_json(), partition=marker, headers=headers)
                self._produce("objects", b"{}", SPLIT, headers=headers)

        self._commit(write)
        self.plan = plan
        self.sequence += marker is not None

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
            fenced = error.args[0].code() in (KafkaError._FENCED, KafkaError._FATAL)
            if fenced and _planned(self._brokers, self.topic).get(BEGAN) != self._name:
                raise Overtaken(f"another painter of {self.topic!r} has begun: {error.args[0].str()}") from error
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

    def flush(self) -> None:
        """Let librdkafka say what it has to say."""
        self._producer.poll(0)

    def close(self) -> None:
        with suppress(KafkaException), warnings.catch_warnings():  # of one that was fenced off
            warnings.simplefilter("ignore", RuntimeWarning)
            self._producer.flush(5)
            self._producer.purge()  # what no broker took would keep it waiting
            self._producer.close()
        if self.sketch is not None:
            self.sketch.close()
