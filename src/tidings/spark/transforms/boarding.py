"""`board`: updates of a keyed topic's objects in, every change of every watcher's list out.

Watchers are sharded by their id; each shard has all objects, in Spark's state (`shard_log`), so that a watcher that begins finds
its list and that Spark's checkpoint is all there is to recover. Every update goes to every shard, which runs Paint-Batch for its
own watchers. Objects are therefore kept, and painted, once a shard: `shards` wants to be about the number of cores.

Streaming: a micro-batch is one publication. Of an object's updates the one of the latest `time` counts, of equal times the last in
order of partition and row; the instant is the latest time of the micro-batch (an update without one has the pinned instant), and
what changes is told once, net: `topic.publish_batch(updates, time=that)`. Batch: event time is replayed, each instant a
publication, as `topic.publish_batch(updates)` does with updates in order of time. Objects that expire leave when the clock passes.

A worker keeps the boards of the shards it served. `token` in the head is new with every write: boards that do not have it are not
what the state holds, and are made anew from it, with the watchers of the manifest that the head names.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidings.durable.manifest_view import View, view_of
from tidings.errors import EventError, SchemaError, StorageError
from tidings.match.answers.results import Notification
from tidings.model.door.event import Event
from tidings.spark.frames.columns import NOTIFICATION, Batches, check_events, frame_form, map_arrow, spark_type, together
from tidings.spark.frames.pins import Pin, current, micro_batch, newest
from tidings.spark.frames.session import need_rocksdb
from tidings.spark.state.shard_boards import Record, ShardBoards
from tidings.spark.state.shard_log import ShardLog
from tidings.spark.state.shards import from_bytes, to_bytes

UPDATES = {"shard": pa.int32(), "partition": pa.int32(), "body": pa.binary()}
BODY = {"body": pa.binary()}
CHUNK = 2000
"""Objects in an entry of a packed log."""

_cached: dict[tuple[str, int], tuple[str, ShardBoards]] = {}


def board(updates: DataFrame, topic: str | os.PathLike[str], shards: int | None = None) -> DataFrame:
    """`id, subscription, event, score, rank, why, at` of each change; `updates` are events of the keyed topic at path `topic`.

    `shards` is fixed when a streaming query first runs; one for each shuffle partition by default.
    """
    folder = Path(topic).absolute()
    pin = newest(folder)
    view = view_of(folder, pin.manifest)
    if view.key is None:
        raise SchemaError(f"topic {view.manifest.topic!r} in {folder} has no key: board takes the objects of a keyed topic")
    if "_corrupt" in updates.columns:
        raise EventError("updates have a column '_corrupt': board takes those where it is null, without it")
    check_events(frame_form(updates), view)
    spark = updates.sparkSession
    shards = shards or int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    packed = map_arrow(updates, UpdatePacker(folder, pin, shards), UPDATES).groupBy("shard")
    if updates.isStreaming:
        need_rocksdb(spark, "objects")
        told = packed.transformWithState(BoardProcessor(folder, pin, shards), spark_type(BODY), "append", "none")
    else:
        told = packed.applyInArrow(
            lambda records: replay(view_of(folder, pin.manifest), records, shards, pin.time), spark_type(BODY)
        )
    return map_arrow(told, unpack, NOTIFICATION)


@dataclass(frozen=True, slots=True)
class UpdatePacker:
    """The checked updates of a partition, for every shard."""

    folder: Path
    pin: Pin
    shards: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in together(batches):
            view_of(self.folder, current(self.folder, self.pin).manifest).read(table)
            task = TaskContext.get()
            partition = [0 if task is None else task.partitionId()] * self.shards
            body = [to_bytes(table)] * self.shards
            yield pa.record_batch([list(range(self.shards)), partition, body], schema=pa.schema(list(UPDATES.items())))


def replay(view: View, records: pa.Table, shards: int, time: int) -> pa.Table:
    """All updates, for one shard, in event time."""
    boards = ShardBoards(view, records["shard"][0].as_py(), shards)
    rows = [(row["partition"], row["body"]) for row in records.to_pylist()]
    notes = boards.replay(in_order(view, rows, time), time)
    return pa.table({"body": pa.array([to_bytes(notes_table(notes))], pa.binary())})


class BoardProcessor(StatefulProcessor):  # type: ignore[misc]
    def __init__(self, folder: Path, pin: Pin, shards: int) -> None:
        self.folder = folder
        self.pin = pin
        self.shards = shards

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.log = ShardLog(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        shard = int(key[0])
        query, batch = micro_batch() or ("", 0)
        pin = current(self.folder, self.pin)
        view = view_of(self.folder, pin.manifest)
        boards = self._boards(query, shard, view)
        events = in_order(view, [(row.partition, bytes(row.body)) for row in rows], pin.time)
        notes = boards.follow(view)
        latest = max(pin.time if event.time is None else event.time for event in events)
        notes += boards.replace(events, max(latest, boards.clock or latest))
        _cached[query, shard] = self._save(boards, pin.manifest), boards
        if notes:
            yield Row(body=to_bytes(notes_table(notes, f"-{batch}")))

    def _boards(self, query: str, shard: int, view: View) -> ShardBoards:
        head = self.log.read()
        token, boards = _cached.pop((query, shard), ("", None))
        if "token" not in head:
            return ShardBoards(view, shard, self.shards)
        if head["shards"] != self.shards:
            raise StorageError(f"this checkpoint was made with {head['shards']} shards, not {self.shards}: give board that number")
        if boards is not None and token == head["token"]:
            return boards
        objects: dict[str, Record | None] = {}
        for entry in self.log.entries():
            objects |= json.loads(entry)
        before = view_of(self.folder, head["manifest"])
        there = (record for record in objects.values() if record is not None)
        return ShardBoards.restore(before, shard, self.shards, head["clock"], there)

    def _save(self, boards: ShardBoards, manifest: int) -> str:
        token = uuid.uuid4().hex
        self.log.append(json.dumps(boards.changes()).encode())
        if self.log.heavy:
            self.log.pack(chunks(boards.objects()))
        self.log.save(token=token, clock=boards.clock, manifest=manifest, shards=self.shards)
        return token


def chunks(objects: Iterator[Record]) -> Iterator[bytes]:
    while some := list(islice(objects, CHUNK)):
        yield json.dumps({record["id"]: record for record in some}).encode()


def in_order(view: View, records: Iterable[tuple[int, bytes]], time: int) -> list[Event]:
    """The updates by time; of one time by partition and row."""
    events = [event for _, body in sorted(records) for event in view.read(from_bytes(body)).events()]
    return sorted(events, key=lambda event: time if event.time is None else event.time)


def notes_table(notes: Sequence[Notification], suffix: str = "") -> pa.Table:
    """The columns of NOTIFICATION. An object may change twice in one instant, so `suffix` tells micro-batches apart in the id."""
    rows = [(note.id + suffix, *note) for note in notes]
    columns = zip(*rows, strict=True) if rows else [()] * len(NOTIFICATION)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, NOTIFICATION.values(), strict=True)], list(NOTIFICATION)
    )


def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for body in batch["body"].to_pylist():
            yield from from_bytes(body).to_batches(max_chunksize=100_000)
