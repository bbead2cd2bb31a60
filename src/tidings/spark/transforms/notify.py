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
from tidings.spark.frames.id_hash import even_shards
from tidings.spark.frames.matching import matching_of
from tidings.spark.frames.metrics import MANIFEST, called, observed, titled
from tidings.spark.frames.parquet_files import map_given
from tidings.spark.frames.pins import Pin, frame_pin, newest
from tidings.spark.frames.session import need_state
from tidings.spark.frames.topic_view import task_view
from tidings.spark.state.notification_rows import Unpacker, unpack
from tidings.spark.state.shard_records import PACKED, ShardPacker
from tidings.spark.state.shard_windows import ShardWindows
from tidings.spark.state.state_format import to_bytes
from tidings.spark.state.window_processor import WindowProcessor

TOLD = spark_type({"body": pa.binary()})


def notify(matches: DataFrame, topic: str | os.PathLike[str], shards: int | None = None, delay: str | None = None) -> DataFrame:
    """`id, subscription, event, score, rank, why, at, digest` of each notification; `matches` come from `match(..., ranking=True)`.

    `shards` is fixed when a streaming query first runs; by default one to four for each shuffle
    partition, so many as are spread most evenly. `delay`, as "10 seconds": the
    events of a stream come out of order by at most so much and are put in order first.

    >>> import tidings as td
    >>> with td.open(folder, "deals", {"price": td.Number()}) as deals:
    ...     notes = deals.subscribe("ann", "price < 5", k=1, window="1 hour", by="-price", time=0)
    >>> events = spark.createDataFrame([("e1", 4.0, 60), ("e2", 3.0, 120)], "id string, price double, seconds long")
    >>> events = events.selectExpr("id", "price", "timestamp_seconds(seconds) AS time")
    >>> from tidings.spark import match, notify
    >>> told = notify(match(events, folder, ranking=True), folder)
    >>> sorted((row.event, row.why, row.rank) for row in told.collect())
    [('e1', 'entered', 1), ('e2', 'entered', 1)]
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
    shards = shards or even_shards(int(str(spark.conf.get("spark.sql.shuffle.partitions"))))
    pin = newest(place) if matches.isStreaming else frame_pin(place)
    packed = packed_matches(matches, place, pin, shards)
    if not matches.isStreaming:
        replayed = packed.groupBy("shard").applyInArrow(lambda records: replay(place, pin, records), TOLD)
        return map_arrow(replayed, unpack, NOTIFICATION)
    if delay is not None:
        # Without the column that the watermark is of, Spark drops nothing for being late: that is for the windows to judge.
        packed = packed.withColumn("at", F.timestamp_micros("clock")).withWatermark("at", delay).drop("at")
        packed = packed.where(F.length("body") > 0)
    processor = WindowProcessor(place, pin, shards, delay is not None)
    grouped = packed.select("shard", "clock", "body").groupBy("shard")
    told = grouped.transformWithState(processor, TOLD, "append", "none" if delay is None else "eventtime")
    notes = map_arrow(told, Unpacker(place, pin), NOTIFICATION | {MANIFEST: pa.int64()}, called("notify", place))
    figures = {"told": F.count(F.lit(1)), "clock": F.max("at"), "manifest": F.max(MANIFEST)}
    return observed(notes, titled(called("notify", place)), **figures).drop(MANIFEST)


def packed_matches(matches: DataFrame, place: Snapshots, pin: Pin, shards: int) -> DataFrame:
    """A record for each shard: by the stage that matches, where nothing stands between, and else of the rows that came of it."""
    made, name = matching_of(matches), called("pack", place)
    if made is None or made.topic != place:
        packed = map_arrow(matches, ShardPacker(place, pin, shards), PACKED, name)
    else:
        packer = ShardPacker(place, pin, shards, made.stage)
        packed = map_given(made.given, packer, PACKED, made.only, f"{called('match', place)}, pack")
        made.uses += 1
        title = made.title if made.uses == 1 else titled(called("match", place))
        refused = {"refused": F.sum("refused")} if made.corrupt else {}
        packed = observed(packed, title, matched=F.sum("matched"), **refused, manifest=F.max("manifest"))
    # The largest record of a shard over the mean of all.
    skew = F.try_divide(F.max("rows") * F.count(F.lit(1)), F.sum("rows"))
    packed = observed(packed, titled(called("shards", place)), rows=F.sum("rows"), skew=skew)
    # A partition whose events were all refused has no time.
    return packed.where(F.col("clock").isNotNull())


def replay(topic: Snapshots, pin: Pin, records: pa.Table) -> pa.Table:
    """All of a shard's matches, in event time."""
    clock = pc.max(records["clock"]).as_py()
    _, notes = ShardWindows().take(task_view(topic, pin)[0], records["body"].to_pylist(), clock)
    return pa.table({"body": pa.array([to_bytes(notes)], pa.binary())})
