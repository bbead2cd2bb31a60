"""The objects of every family as of a sequence: from the compacted topic, forward, as far as is asked for.

What is compacted is old, so the objects at any sequence of the last hour (`layout.TAIL`) are those of the records up to it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from confluent_kafka import Message

from tidings.boards.messages.family import Stands
from tidings.boards.messages.objects import FamilyObjects
from tidings.kafka.layout import Plan, named
from tidings.kafka.records import BATCH, OTHERS, SKETCHED, Partition, header
from tidings.model.filter.clause import Values

SHOWN = 5.0
"""Seconds within which a transaction that one partition shows is shown by all."""
Change = tuple[str, Values | None]


def values_in(brokers: str, topic: str) -> dict[str, dict[str, Any]]:
    """The newest objects, by key."""
    found: dict[str, bytes] = {}
    partition = Partition(brokers, named(topic, "objects"))
    try:
        for record in partition.to_end():
            found[record.key().decode()] = record.value()
    finally:
        partition.close()
    return {key: json.loads(body) for key, body in found.items() if body is not None and key not in OTHERS}


class Replica:
    def __init__(self, brokers: str, plan: Plan) -> None:
        self.objects = [FamilyObjects() for _ in plan.families]
        self.sequence = self.at = 0
        """of the last change, and its instant"""
        self.sketched = -1
        """the offset up to which the painter knows the sketch"""
        self.batch: tuple[str, int] | None = None
        """the query and the number of the micro-batch that told the last objects, if Spark told them"""
        self._stands: list[Stands] = [family.stands(plan.schema) for family in plan.families]
        self._partition = Partition(brokers, named(plan.topic, "objects"))
        self._next: Message | None = None

    def advance(self, sequence: int | None = None) -> int:
        """Up to and including a sequence, or to the end; the sequence that it then has."""
        batch: list[Change] = []
        end = self._partition.end()
        while (record := self._next or self._partition.next(end)) is not None:
            self._next = record
            at = header(record, "sequence")
            if sequence is not None and at > sequence:
                break
            self._next, self.sequence, self.at = None, at, header(record, "at")
            key = record.key().decode()
            if key == SKETCHED:
                self.sketched = json.loads(record.value())["offset"]
            elif key == BATCH:
                said = json.loads(record.value())
                self.batch = said["query"], said["batch"]
            elif key not in OTHERS:
                self.batch = None  # the record of a micro-batch comes after its objects
                batch.append((key, None if record.value() is None else json.loads(record.value())))
        self._apply(batch)
        return self.sequence

    def reach(self, sequence: int) -> int:
        """Up to and including a sequence that is known to be committed, though this partition may not show it yet. One whose
        records are compacted away is passed over in time."""
        deadline = time.monotonic() + SHOWN
        while self.advance(sequence) < sequence and self._next is None and time.monotonic() < deadline:
            time.sleep(0.002)
        return max(self.sequence, sequence)

    def _apply(self, changes: Sequence[Change]) -> None:
        last = dict(changes)
        for objects, stands in zip(self.objects, self._stands, strict=True):
            places = np.array([stands(values) for values in last.values()]).reshape(-1, 2)
            objects.apply(objects.moves(list(last), places[:, 0].copy(), places[:, 1].copy()))

    def close(self) -> None:
        self._partition.close()
