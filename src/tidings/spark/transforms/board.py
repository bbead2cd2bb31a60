"""`board`: updates of a keyed topic's objects in, every change of every watcher's list out.

Watchers are sharded by their id; each shard has all objects, in Spark's state (`board_processor`), so that a watcher that begins
finds its list and that Spark's checkpoint is all there is to recover. Every update goes to every shard, which runs Paint-Batch for
its own watchers. Objects are therefore kept, and painted, once a shard: `shards` wants to be about the number of cores.

Streaming: a micro-batch is one publication. Of an object's updates the one of the latest `time` counts, of equal times the last in
order of partition and row; the instant is the latest time of the micro-batch (an update without one has the pinned instant), and
what changes is told once, net: `topic.publish_batch(updates, time=that)`. Batch: event time is replayed, each instant a
publication, as `topic.publish_batch(updates)` does with updates in order of time. Objects that expire leave when the clock passes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.boards.messages.family import Family, parse_family
from tidings.boards.messages.table import MESSAGE
from tidings.durable.manifest_view import View
from tidings.durable.snapshots import Snapshots, snapshots_at
from tidings.errors import EventError, SchemaError
from tidings.spark.frames.answer_columns import NOTIFICATION, REASON
from tidings.spark.frames.arrow_stage import Batches, frame_form, map_arrow, spark_type, together
from tidings.spark.frames.metrics import MANIFEST, called, observed, titled
from tidings.spark.frames.pins import Pin
from tidings.spark.frames.session import need_state
from tidings.spark.frames.topic_view import check_events, planned_view, task_view
from tidings.spark.state.board_processor import BoardProcessor, in_order
from tidings.spark.state.notification_rows import Unpacker, notes_table, unpack
from tidings.spark.state.shard_boards import ShardBoards
from tidings.spark.state.shard_painter import PaintingProcessor, ShardPainter, unpack_messages
from tidings.spark.state.state_format import to_bytes

UPDATES = {"shard": pa.int32(), "partition": pa.int32(), "body": pa.binary()}
TOLD = spark_type({"body": pa.binary()})


def board(
    updates: DataFrame,
    topic: str | os.PathLike[str],
    shards: int | None = None,
    *,
    messages: bool = False,
    families: Sequence[str] = (),
) -> DataFrame:
    """`id, subscription, event, score, rank, why, at, digest` of each change; `updates` are events of the keyed topic at `topic`.

    `shards` is fixed when a streaming query first runs; one for each shuffle partition by default. With `messages` the rows are
    messages for watchers elsewhere (docs/gateways.md has their columns), of these `families`, as `price:-stars:20`: the topic's own
    subscriptions hear nothing, a micro-batch is a sequence, and a family is painted in one task.

    >>> import tidings as td
    >>> with td.open(folder, "flats", {"rent": td.Number()}, key="address") as flats:
    ...     notes = flats.subscribe("ann", "rent < 900", k=1, by="-rent", time=0)
    >>> updates = spark.createDataFrame([("a1", 800.0, 60), ("a2", 700.0, 120)], "address string, rent double, seconds long")
    >>> from tidings.spark import board
    >>> told = board(updates.selectExpr("address", "rent", "timestamp_seconds(seconds) AS time"), folder, shards=1)
    >>> sorted((row.event, row.why) for row in told.collect())
    [('a1', 'entered'), ('a1', 'left'), ('a2', 'entered')]
    """
    place = snapshots_at(topic)
    pin, view = planned(updates, place, "board")
    if messages:
        return painted(updates, place, pin, families_of(view, families))
    shards = shards or int(str(updates.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    packed = map_arrow(updates, UpdatePacker(place, pin, shards), UPDATES).groupBy("shard")
    if updates.isStreaming:
        told = packed.transformWithState(BoardProcessor(place, pin, shards), TOLD, "append", "none")
    else:
        told = packed.applyInArrow(lambda records: replay(place, pin, shards, records), TOLD)
    if not updates.isStreaming:
        return map_arrow(told, unpack, NOTIFICATION, called("board", place))
    changed = map_arrow(told, Unpacker(place, pin, by_batch=True), NOTIFICATION | {MANIFEST: pa.int64()}, called("board", place))
    figures = {"told": F.count(F.lit(1)), "clock": F.max("at"), "manifest": F.max(MANIFEST)}
    return observed(changed, titled(called("board", place)), **figures).drop(MANIFEST)


def planned(updates: DataFrame, place: Snapshots, transform: str) -> tuple[Pin, View]:
    """What a transform of a keyed topic's updates is planned with; they are refused here, before anything runs."""
    pin, view = planned_view(place, updates.isStreaming)
    if view.key is None:
        raise SchemaError(
            f"topic {view.manifest.topic!r} in {place.title} has no key: {transform} takes the objects of a keyed topic"
        )
    if REASON in updates.columns:
        raise EventError(f"updates have a column {REASON!r}: {transform} takes those where it is null, without it")
    check_events(frame_form(updates), view)
    need_state(updates, transform, "objects")
    return pin, view


def families_of(view: View, said: Sequence[str]) -> list[Family]:
    if not said:
        raise SchemaError("families is empty: attribute:by:k of at least one is accepted, as price:-stars:20")
    return [parse_family(view.schema, family) for family in said]


def painted(updates: DataFrame, place: Snapshots, pin: Pin, families: Sequence[Family]) -> DataFrame:
    packed = map_arrow(updates, UpdatePacker(place, pin, len(families)), UPDATES).groupBy("shard")
    if updates.isStreaming:
        told = packed.transformWithState(PaintingProcessor(place, pin, families), TOLD, "append", "none")
    else:
        told = packed.applyInArrow(lambda records: paint_all(place, pin, families, records), TOLD)
    return map_arrow(told, unpack_messages, dict(zip(MESSAGE.names, MESSAGE.types, strict=True)), called("board", place))


@dataclass(frozen=True, slots=True)
class UpdatePacker:
    """The checked updates of a partition, for every shard."""

    topic: Snapshots
    pin: Pin
    shards: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in together(batches):
            task_view(self.topic, self.pin)[0].read(table)
            task = TaskContext.get()
            partition = [0 if task is None else task.partitionId()] * self.shards
            body = [to_bytes(table)] * self.shards
            yield pa.record_batch([list(range(self.shards)), partition, body], schema=pa.schema(list(UPDATES.items())))


def replay(topic: Snapshots, pin: Pin, shards: int, records: pa.Table) -> pa.Table:
    """All updates, for one shard, in event time."""
    view, time = task_view(topic, pin)
    boards = ShardBoards(view, records["shard"][0].as_py(), shards)
    rows = [(row["partition"], row["body"]) for row in records.to_pylist()]
    notes = boards.replay(in_order(view, rows, time), time)
    return pa.table({"body": pa.array([to_bytes(notes_table(notes))], pa.binary())})


def paint_all(topic: Snapshots, pin: Pin, families: Sequence[Family], records: pa.Table) -> pa.Table:
    """All updates, for one family, in event time."""
    view, time = task_view(topic, pin)
    shard = records["shard"][0].as_py()
    rows = [(row["partition"], row["body"]) for row in records.to_pylist()]
    table = ShardPainter(view, shard, len(families)).replayed(families[shard], in_order(view, rows, time), time)
    return pa.table({"body": pa.array([to_bytes(table)], pa.binary())})
