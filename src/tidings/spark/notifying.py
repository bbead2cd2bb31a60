"""`notify`: matches in, the notifications that each subscription's ranking lets through out.

Batch: the matches are replayed in event time. Streaming: the windows are Spark state, one key a shard of subscriptions, so that
Spark's checkpoint is the truth and recovery is Spark's. For a shard the state holds

    head     {token, clock, publications, manifest, shards, first, next, written, packed}, as JSON
    log      number -> the windows that a batch changed, as JSON; numbers first .. next - 1, the later ones hold

Each batch adds one entry of what changed; when the entries since the last packing outweigh it, all windows are written anew, in
entries of CHUNK subscriptions. The worker keeps the arrays of the shards it served. `token` is random and new with every write, so
arrays are used again only if they are exactly what the state holds: after a retry, a restart or a move to another worker they are
not, and are read from the log.

Time moves with the events only. A shard hears the latest event time of every micro-batch, also of one that has no match for it, so
promotions come with the first event after their instant, with that instant as their time, and need no timer.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidings.engine.view import view_of
from tidings.errors import EventError, StorageError
from tidings.spark.columns import NOTIFICATION, RANKED, Batches, map_arrow, spark_type
from tidings.spark.pins import Pin, current, newest
from tidings.spark.session import STATE_STORE
from tidings.spark.shard_windows import ShardWindows, with_ids
from tidings.spark.shards import PACKED, ShardPacker, from_bytes, to_bytes

CHUNK = 2000
SHARDS_PER_PARTITION = 4
PROVIDER = "spark.sql.streaming.stateStore.providerClass"

_cached: dict[tuple[str, int], tuple[str, ShardWindows]] = {}


def notify(matches: DataFrame, topic: str | os.PathLike[str], shards: int | None = None) -> DataFrame:
    """`id, subscription, event, score, rank, why, at` of each notification; `matches` come from `match(..., ranking=True)`.

    `shards` is fixed when a streaming query first runs; four for each shuffle partition by default.
    """
    folder = Path(topic).absolute()
    missing = [name for name in RANKED if name not in matches.columns]
    if missing:
        raise EventError(f"matches have no column {missing[0]!r}: notify takes the rows of match(..., ranking=True)")
    spark = matches.sparkSession
    shards = shards or SHARDS_PER_PARTITION * int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    pin = newest(folder)
    packed = map_arrow(matches, ShardPacker(folder, pin, shards), PACKED)
    if not matches.isStreaming:
        replayed = packed.groupBy("shard").applyInArrow(lambda records: replay(records), spark_type({"body": pa.binary()}))
        return map_arrow(replayed, unpack, NOTIFICATION)
    if spark.conf.get(PROVIDER, None) != STATE_STORE:
        raise StorageError(f"{PROVIDER} is {spark.conf.get(PROVIDER, None)}: windows as Spark state need {STATE_STORE}")
    told = packed.groupBy("shard").transformWithState(
        WindowProcessor(folder, pin, shards), spark_type({"body": pa.binary()}), "append", "none"
    )
    return map_arrow(told, unpack, NOTIFICATION)


def replay(records: pa.Table) -> pa.Table:
    """All of a shard's matches, in event time."""
    notes = ShardWindows().publish(records["body"].to_pylist(), pc.max(records["clock"]).as_py())
    return pa.table({"body": pa.array([to_bytes(notes)], pa.binary())})


def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for body in batch["body"].to_pylist():
            yield from with_ids(from_bytes(body)).to_batches(max_chunksize=100_000)


@dataclass
class Head:
    """What the state says of a shard beside its windows."""

    token: str
    clock: int | None
    publications: int
    manifest: int
    shards: int
    first: int
    next: int
    written: int
    packed: int


class WindowProcessor(StatefulProcessor):  # type: ignore[misc]
    def __init__(self, folder: Path, pin: Pin, shards: int) -> None:
        self.folder = folder
        self.pin = pin
        self.shards = shards

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.head = handle.getValueState("head", "body string")
        self.log = handle.getMapState("log", "number long", "body binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        shard = int(key[0])
        records = list(rows)
        head = self._head()
        windows = self._windows(shard, head)
        windows.keep(view_of(self.folder, current(self.folder, self.pin).manifest))
        notes = windows.publish([bytes(row.body) for row in records], max(row.clock for row in records))
        self._save(head, windows)
        _cached[self._place(shard)] = head.token, windows
        if len(notes):
            yield Row(body=to_bytes(notes))

    def _place(self, shard: int) -> tuple[str, int]:
        task = TaskContext.get()
        return str(task.getLocalProperty("sql.streaming.queryId") if task is not None else None), shard

    def _head(self) -> Head:
        if not self.head.exists():
            return Head("", None, 0, 0, self.shards, 0, 0, 0, 0)
        (body,) = self.head.get()
        head = Head(**json.loads(body))
        if head.shards != self.shards:
            raise StorageError(f"this checkpoint was made with {head.shards} shards, not {self.shards}: give notify that number")
        return head

    def _windows(self, shard: int, head: Head) -> ShardWindows:
        token, windows = _cached.pop(self._place(shard), ("", None))
        if windows is not None and token == head.token:
            return windows
        entries = {int(number[0]): bytes(body[0]) for number, body in self.log.iterator()} if head.next else {}
        return ShardWindows.restore(head.clock, head.publications, head.manifest, (entries[n] for n in sorted(entries)))

    def _save(self, head: Head, windows: ShardWindows) -> None:
        changes = windows.changes()
        if changes:
            self._append(head, changes)
        if head.written > head.packed + 1_000_000:
            self._pack(head, windows)
        head.token = uuid.uuid4().hex
        head.clock, head.publications = windows.windows.clock, windows.windows.publications
        head.manifest = windows.manifest
        self.head.update((json.dumps(head.__dict__),))

    def _append(self, head: Head, changes: dict[str, Any]) -> None:
        body = json.dumps(changes).encode()
        self.log.updateValue((head.next,), (body,))
        head.next += 1
        head.written += len(body)

    def _pack(self, head: Head, windows: ShardWindows) -> None:
        for number in range(head.first, head.next):
            self.log.removeKey((number,))
        head.first, head.written = head.next, 0
        ids = sorted(windows.activations)
        for start in range(0, len(ids), CHUNK):
            self._append(head, {id: windows.state_of(id) for id in ids[start : start + CHUNK]})
        head.packed, head.written = head.written, 0
