"""`notify`: matches in, the notifications that each subscription's ranking lets through out.

Batch: the matches are replayed in event time. Streaming: the windows are Spark state, one key a shard of subscriptions, so that
Spark's checkpoint is the truth and recovery is Spark's (`shard_log`).

As they come (`delay=None`): time moves with the events. A shard hears the latest event time of every micro-batch, also of one that
has no match for it, so promotions come with the first event after their instant, with that instant as their time.

By event time (`delay="10 seconds"`): time is the query's watermark, that much behind the latest event. Events wait until it has
passed them and are published in order; a timer of the shard wakes it when the watermark reaches its next event, promotion or
expiry, also in a micro-batch that has no match for it or no event at all.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.durable.snapshots import Snapshots, snapshots_at
from tidings.errors import EventError
from tidings.spark.frames.answer_columns import NOTIFICATION, RANKED
from tidings.spark.frames.arrow_stage import map_arrow, spark_type
from tidings.spark.frames.metrics import called, observed
from tidings.spark.frames.pins import Pin, frame_pin, newest
from tidings.spark.frames.session import need_state
from tidings.spark.frames.topic_view import task_view
from tidings.spark.state.notification_rows import unpack
from tidings.spark.state.shard_records import PACKED, ShardPacker, shard_column
from tidings.spark.state.shard_windows import ShardWindows
from tidings.spark.state.state_format import to_bytes
from tidings.spark.state.window_processor import WindowProcessor

SHARDS_PER_PARTITION = 4
TOLD = spark_type({"body": pa.binary()})


def notify(matches: DataFrame, topic: str | os.PathLike[str], shards: int | None = None, delay: str | None = None) -> DataFrame:
    """`id, subscription, event, score, rank, why, at` of each notification; `matches` come from `match(..., ranking=True)`.

    `shards` is fixed when a streaming query first runs; four for each shuffle partition by default. `delay`, as "10 seconds": the
    events of a stream come out of order by at most so much and are put in order first.
    """
    place = snapshots_at(topic)
    missing = [name for name in RANKED if name not in matches.columns]
    if missing == ["group"]:
        # Of matches that an earlier version stored.
        matches, missing = matches.withColumn("group", F.lit(None).cast("long")), []
    if missing:
        raise EventError(f"matches have no column {missing[0]!r}: notify takes the rows of match(..., ranking=True)")
    spark = matches.sparkSession
    need_state(matches, "notify", "windows")
    shards = shards or SHARDS_PER_PARTITION * int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    pin = newest(place) if matches.isStreaming else frame_pin(place)
    packed = map_arrow(
        matches.withColumn("shard", shard_column(shards)), ShardPacker(place, pin, shards), PACKED, called("pack", place)
    )
    if not matches.isStreaming:
        replayed = packed.groupBy("shard").applyInArrow(lambda records: replay(place, pin, records), TOLD)
        return map_arrow(replayed, unpack, NOTIFICATION)
    if delay is not None:
        # Without the column that the watermark is of, Spark drops nothing for being late: that is for the windows to judge.
        packed = packed.withColumn("at", F.timestamp_micros("clock")).withWatermark("at", delay).drop("at")
        packed = packed.where(F.length("body") > 0)
    processor = WindowProcessor(place, pin, shards, delay is not None)
    told = packed.groupBy("shard").transformWithState(processor, TOLD, "append", "none" if delay is None else "eventtime")
    notes = map_arrow(told, unpack, NOTIFICATION, called("notify", place))
    return observed(notes, called("notify", place), told=F.count(F.lit(1)), clock=F.max("at"))


def replay(topic: Snapshots, pin: Pin, records: pa.Table) -> pa.Table:
    """All of a shard's matches, in event time."""
    clock = pc.max(records["clock"]).as_py()
    _, notes = ShardWindows().take(task_view(topic, pin)[0], records["body"].to_pylist(), clock)
    return pa.table({"body": pa.array([to_bytes(notes)], pa.binary())})
