"""The watchers' sketch: gateways say, zone by zone, in which rectangles their watchers are; the painter leaves out what is
elsewhere.

[range-topk, the remark that closes section III-B]. A cover may be too wide, never too narrow: a gateway that begins a watcher
outside of what it said says the wider cover first, and begins it once the painter has told that it knows (`records.SKETCHED`).
"""

from __future__ import annotations

import json

import numpy as np
from confluent_kafka import Message

from tidings.boards.messages.objects import Floats
from tidings.kafka.layout import Plan, named
from tidings.kafka.records import Partition

RECTANGLES = 64
"""Of one zone and family."""


def sketch_key(family: str, zone: int) -> str:
    return f"{zone} {family}"


def boxes_json(boxes: Floats) -> bytes:
    rows = [[end if np.isfinite(end) else None for end in box] for box in boxes.reshape(-1, 4).tolist()]
    return json.dumps(rows).encode()


def boxes_from(body: bytes) -> Floats:
    ends = (-np.inf, -np.inf, np.inf, np.inf)
    rows = [[end if value is None else value for value, end in zip(row, ends, strict=True)] for row in json.loads(body)]
    return np.array(rows, float).reshape(-1, 2, 2)


class Sketch:
    """The painter's side."""

    def __init__(self, brokers: str, plan: Plan) -> None:
        self.offset = -1
        self._boxes: dict[str, Floats] = {}
        self._partition = Partition(brokers, named(plan.topic, "sketch"))
        for record in self._partition.to_end():
            self._take(record)

    def read(self) -> bool:
        """What is new; whether there was anything."""
        news = False
        while (record := self._partition.peek()) is not None:
            news = True
            self._take(record)
        return news

    def _take(self, record: Message) -> None:
        self._boxes[record.key().decode()] = boxes_from(record.value())
        self.offset = record.offset()

    def cover(self, family: str) -> Floats:
        found = [boxes for key, boxes in self._boxes.items() if key.partition(" ")[2] == family]
        return np.concatenate([np.empty((0, 2, 2)), *found])

    def close(self) -> None:
        self._partition.close()
