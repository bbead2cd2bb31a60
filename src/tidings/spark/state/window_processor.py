"""Windows as Spark state: `shard_log` for `ShardWindows`, with `window_steps` in the log.

Packed, a shard is a chunk of what is no member's, and then chunks of CHUNK members each. The facts of its head: `waits`, whether
the query has a delay, and with one `timer`, the millisecond of the watermark at which the shard is woken (0 for none).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from tidings.durable.snapshots import Snapshots
from tidings.errors import StorageError
from tidings.spark.frames.pins import Pin
from tidings.spark.frames.topic_view import task_view
from tidings.spark.state.shard_log import ShardLog
from tidings.spark.state.shard_windows import ShardWindows
from tidings.spark.state.state_format import Facts, to_bytes
from tidings.spark.state.window_steps import step_body, step_of
from tidings.windows.memory import NEVER

CHUNK = 10_000


class WindowProcessor(StatefulProcessor):  # type: ignore[misc]
    def __init__(self, topic: Snapshots, pin: Pin, shards: int, waits: bool) -> None:
        self.topic = topic
        self.pin = pin
        self.shards = shards
        self.waits = waits

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.log: ShardLog[ShardWindows] = ShardLog(handle, self, "notify")

    def handleInputRows(self, key: tuple[int], rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        records = list(rows)
        clock = timerValues.getCurrentWatermarkInMs() * 1000 if self.waits else max(row.clock for row in records)
        windows = self._open(int(key[0]))
        yield from self._step(int(key[0]), windows, [bytes(row.body) for row in records], clock)

    def handleExpiredTimer(self, key: tuple[int], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Iterator[Row]:
        windows = self._open(int(key[0]))
        self.log.head.facts["timer"] = 0
        yield from self._step(int(key[0]), windows, [], timerValues.getCurrentWatermarkInMs() * 1000)

    def _open(self, shard: int) -> ShardWindows:
        windows = self.log.open(shard)
        made = bool(self.log.head.facts.setdefault("waits", self.waits))
        if made != self.waits:
            raise StorageError(f"this checkpoint was made {'with' if made else 'without'} a delay: notify must keep to that")
        return windows

    def _step(self, shard: int, windows: ShardWindows, bodies: Sequence[bytes], clock: int) -> Iterator[Row]:
        """What comes, applied to the shard and written to its log."""
        step, notes = windows.take(task_view(self.topic, self.pin)[0], bodies, clock)
        timer = self._set_timer(self.log.head.facts.get("timer") or 0, windows.wakes) if self.waits else 0
        self.log.add(shard, windows, step_body(step), {"timer": timer})
        if len(notes):
            yield Row(body=to_bytes(notes))

    def _set_timer(self, before: int, instant: int) -> int:
        """One timer, at the first millisecond of the watermark at which there is something to do."""
        wanted = 0 if instant == NEVER else -(-instant // 1000)
        if before and wanted != before:
            self.handle.deleteTimer(before)
        if wanted and wanted != before:
            self.handle.registerTimer(wanted)
        return wanted

    def restore(self, shard: int, packed: Sequence[bytes], steps: Sequence[bytes], facts: Facts) -> ShardWindows:
        windows = ShardWindows.restore(packed[0], packed[1:], self.waits) if packed else ShardWindows(self.waits)
        self.repeat(windows, steps, facts)
        return windows

    def repeat(self, held: ShardWindows, steps: Sequence[bytes], facts: Facts) -> None:
        for body in steps:
            held.repeat(step_of(body))

    def pack(self, held: ShardWindows) -> Iterator[bytes]:
        yield held.head()
        for first in range(0, len(held.ids), CHUNK):
            yield held.chunk(first, first + CHUNK)
