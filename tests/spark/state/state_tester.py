"""A stateful processor called as Spark calls it, with its state and timers in this process: one key, a batch after another.

PySpark has the like from 4.2 on (`TwsTester`); the locked one has not. The whole way, with RocksDB and real micro-batches, is the
tests' of `notify` and `board`; here a test can also change the state, and say when the watermark goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, TimerValues


class ValueInMemory:
    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


class MapInMemory:
    def __init__(self) -> None:
        self.values: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return self.values.get(key)

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:
        self.values[key] = value

    def removeKey(self, key: tuple[Any, ...]) -> None:
        self.values.pop(key, None)


class StateTester:
    """The key is `key`; the watermark is 0 until it is set."""

    def __init__(self, processor: StatefulProcessor, key: int = 0) -> None:
        self.processor, self.key = processor, key
        self.value_states: dict[str, ValueInMemory] = {}
        self.map_states: dict[str, MapInMemory] = {}
        self.timers: set[int] = set()
        self.watermark = 0
        processor.init(self)

    def getValueState(self, name: str, schema: str) -> ValueInMemory:
        return self.value_states.setdefault(name, ValueInMemory())

    def getMapState(self, name: str, key_schema: str, value_schema: str) -> MapInMemory:
        return self.map_states.setdefault(name, MapInMemory())

    def registerTimer(self, at: int) -> None:
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.timers.remove(at)

    def test(self, rows: Sequence[Row]) -> list[Row]:
        """What comes of a micro-batch of these rows."""
        return list(self.processor.handleInputRows((self.key,), iter(rows), TimerValues(0, self.watermark)))

    def set_watermark(self, at: int) -> list[Row]:
        """What comes of it when the watermark goes on."""
        self.watermark = at
        told: list[Row] = []
        while self.timers and min(self.timers) <= at:
            due = min(self.timers)
            self.timers.remove(due)
            told += self.processor.handleExpiredTimer((self.key,), TimerValues(0, at), ExpiredTimerInfo(due))
        return told
