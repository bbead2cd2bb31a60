"""Windows as Spark state. For a shard of subscriptions it holds

    head     JSON: the step, the tokens of the last KEPT steps, at which step it was packed, sizes
    log      step -> what that micro-batch did to the shard (`turns`)
    packed   number -> all windows as they stood at one step: 0 what is no member's, then CHUNK members each

Every micro-batch is a step and adds one entry to the log, which is about as long as its matches; when the entries since the last
packing outweigh it, the shard is packed anew. The worker keeps the arrays of the shards it served, with their step and its
token, which is random. Spark gives a partition to any worker of the executor: one whose arrays are some steps behind applies
those turns, since the log keeps KEPT steps before the packing too. Arrays with a token that the state does not know, after a
retry, a restart or a move to another machine, are not what it holds: they are dropped, and made again from it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidings.durable.manifest_view import view_of
from tidings.errors import StorageError
from tidings.spark.frames.pins import Pin, current, micro_batch
from tidings.spark.state.shard_windows import ShardWindows
from tidings.spark.state.shards import to_bytes
from tidings.spark.state.turns import turn_body, turn_of
from tidings.windows.memory import NEVER

CHUNK = 10_000
KEPT = 8
SMALL = 1_000_000
"""Bytes of log that are not worth packing."""
QUERIES_KEPT = 4

_cached: dict[str, dict[int, tuple[int, str, ShardWindows]]] = {}
"""By query and shard: step, token, arrays."""


@dataclass
class Head:
    shards: int
    waits: bool
    step: int = 0
    tokens: dict[str, str] = field(default_factory=dict)
    packed_at: int = 0
    packed_bytes: int = 0
    chunks: int = 0
    log_bytes: int = 0
    log_first: int = 1
    timer: int = 0


class WindowProcessor(StatefulProcessor):  # type: ignore[misc]
    def __init__(self, folder: Path, pin: Pin, shards: int, waits: bool) -> None:
        self.folder = folder
        self.pin = pin
        self.shards = shards
        self.waits = waits

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.head = handle.getValueState("head", "body string")
        self.log = handle.getMapState("log", "step long", "body binary")
        self.packed = handle.getMapState("packed", "number long", "body binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        records = list(rows)
        clock = timerValues.getCurrentWatermarkInMs() * 1000 if self.waits else max(row.clock for row in records)
        yield from self.step(self._head(), int(key[0]), [bytes(row.body) for row in records], clock)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        head = self._head()
        head.timer = 0
        yield from self.step(head, int(key[0]), [], timerValues.getCurrentWatermarkInMs() * 1000)

    def step(self, head: Head, shard: int, bodies: list[bytes], clock: int) -> Iterator[Row]:
        """What comes, applied to the shard and written to its log."""
        windows = self._windows(shard, head)
        turn, notes = windows.take(view_of(self.folder, current(self.folder, self.pin).manifest), bodies, clock)
        body = turn_body(turn)
        head.step += 1
        self.log.updateValue((head.step,), (body,))
        head.log_bytes += len(body)
        if head.log_bytes > head.packed_bytes + SMALL:
            self._pack(head, windows)
        token = uuid.uuid4().hex
        head.tokens = {str(step): head.tokens[str(step)] for step in range(max(1, head.step - KEPT), head.step)}
        head.tokens[str(head.step)] = token
        if self.waits:
            self._set_timer(head, windows.wakes)
        self.head.update((json.dumps(asdict(head)),))
        self._keep(shard, head.step, token, windows)
        if len(notes):
            yield Row(body=to_bytes(notes))

    def _head(self) -> Head:
        found = self.head.get() if self.head.exists() else None
        if found is None:
            return Head(self.shards, self.waits)
        head = Head(**json.loads(found[0]))
        if head.shards != self.shards:
            raise StorageError(f"this checkpoint was made with {head.shards} shards, not {self.shards}: give notify that number")
        if head.waits != self.waits:
            raise StorageError(f"this checkpoint was made {'with' if head.waits else 'without'} a delay: notify must keep to that")
        return head

    def _windows(self, shard: int, head: Head) -> ShardWindows:
        """The shard's arrays as they stood after step `head.step`."""
        step, token, windows = _cached.get(query(), {}).pop(shard, (0, "", None))
        if windows is None or head.tokens.get(str(step)) != token:
            step = head.packed_at
            bodies = [self._packed(number) for number in range(head.chunks)]
            windows = ShardWindows.restore(bodies[0], bodies[1:], self.waits) if bodies else ShardWindows(self.waits)
        for later in range(step + 1, head.step + 1):
            windows.repeat(turn_of(bytes(self.log.getValue((later,))[0])))
        return windows

    def _packed(self, number: int) -> bytes:
        return bytes(self.packed.getValue((number,))[0])

    def _pack(self, head: Head, windows: ShardWindows) -> None:
        chunks = [windows.head()]
        chunks += [windows.chunk(first, first + CHUNK) for first in range(0, len(windows.ids), CHUNK)]
        for number, body in enumerate(chunks):
            self.packed.updateValue((number,), (body,))
        for number in range(len(chunks), head.chunks):
            self.packed.removeKey((number,))
        head.chunks, head.packed_at, head.packed_bytes, head.log_bytes = len(chunks), head.step, sum(map(len, chunks)), 0
        for step in range(head.log_first, head.step - KEPT):
            self.log.removeKey((step,))
        head.log_first = max(head.log_first, head.step - KEPT)

    def _set_timer(self, head: Head, instant: int) -> None:
        """One timer, at the first millisecond of the watermark at which there is something to do."""
        wanted = 0 if instant == NEVER else -(-instant // 1000)
        if wanted != head.timer:
            if head.timer:
                self.handle.deleteTimer(head.timer)
            if wanted:
                self.handle.registerTimer(wanted)
            head.timer = wanted

    def _keep(self, shard: int, step: int, token: str, windows: ShardWindows) -> None:
        mine = _cached.pop(query(), {})
        _cached[query()] = mine
        mine[shard] = step, token, windows
        for old in list(_cached)[:-QUERIES_KEPT]:
            del _cached[old]


def query() -> str:
    where = micro_batch()
    return "" if where is None else where[0]
