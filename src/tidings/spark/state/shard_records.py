"""Matches of a partition, packed for the windows of each shard of subscriptions: one binary record a shard.

A state operator that is called once for each subscription spends its time in being called; here it is called once a shard and
batch (30-40 times as many rows a second). A record is (shard, clock, body): `clock` is the latest time of any event packed with
it; `body` is an Arrow stream of the shard's rows (BODY):

| column                     | meaning                                                                               |
|----------------------------|---------------------------------------------------------------------------------------|
| `event`, `time`, `expires` | microseconds, NEVER for an event that does not expire                                  |
| `subscription`             | null for an event that is only counted                                                 |
| `score`, `relevance`, `group` | as in the matches                                                                    |

Every shard gets a record, if only for the clock, so that all keep the same time. Only when the topic has a count window does a
shard hear of the events that concern nobody in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from tidings.durable.snapshots import Snapshots
from tidings.spark.frames import arrow_stage
from tidings.spark.frames.arrow_stage import Batches, together
from tidings.spark.frames.pins import Pin
from tidings.spark.frames.topic_view import task_view, view_at
from tidings.spark.state.state_format import to_bytes
from tidings.windows.memory import NEVER

PACKED = {"shard": pa.int32(), "clock": pa.int64(), "body": pa.binary()}
BODY = {
    "event": pa.string(),
    "time": pa.int64(),
    "expires": pa.int64(),
    "subscription": pa.string(),
    "score": pa.float64(),
    "relevance": pa.float64(),
    "group": pa.int64(),
}


def shard_column(shards: int) -> Column:
    """The shard of a match's subscription, by Spark's own hash of the id."""
    return F.pmod(F.xxhash64("subscription"), F.lit(shards)).cast("int")


@dataclass(frozen=True, slots=True)
class ShardPacker:
    topic: Snapshots
    pin: Pin
    shards: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for matches in together(batches, arrow_stage.HELD_ROWS):
            view, _ = task_view(self.topic, self.pin)
            yield self.pack(matches, counts(self.topic, view.manifest.identity, view.manifest.number))

    def pack(self, matches: pa.Table, counted: bool) -> pa.RecordBatch:
        clock = pc.max(matches["time"]).as_py()
        rows = matches.select([*BODY, "shard"]).filter(matches["subscription"].is_valid())
        rows = rows.set_column(2, "expires", rows["expires"].fill_null(NEVER)).combine_chunks()
        shard = rows["shard"].to_numpy()
        order = np.argsort(shard, kind="stable")
        rows = rows.drop_columns(["shard"]).take(pa.array(order))
        ends = np.searchsorted(shard[order], np.arange(self.shards + 1))
        tables = [rows.slice(begin, end - begin) for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        if counted:
            tables = [with_silent(table, events_of(matches)) for table in tables]
        bodies = pa.array([to_bytes(table) if len(table) else b"" for table in tables], pa.binary())
        columns = [pa.array(range(self.shards), pa.int32()), pa.array([clock] * self.shards, pa.int64()), bodies]
        return pa.record_batch(columns, names=list(PACKED))


@lru_cache(maxsize=8)
def counts(topic: Snapshots, identity: int, number: int) -> bool:
    """Whether any subscription of a manifest has a window of so many publications."""
    segments = view_at(topic, number, identity=identity).segments
    kinds = [live.segment.table["window"] for live in segments if "window" in live.segment.table.column_names]
    return any(text.endswith("events") for kind in kinds for text in kind.unique().drop_null().to_pylist())


def events_of(matches: pa.Table) -> pa.Table:
    """The distinct events, as rows without a subscription."""
    once = matches.group_by("event").aggregate([("time", "min"), ("expires", "min")])
    return pa.table({"event": once["event"], "time": once["time_min"], "expires": once["expires_min"].fill_null(NEVER)})


def with_silent(rows: pa.Table, events: pa.Table) -> pa.Table:
    """A shard's rows, and one for each of the events that has none there."""
    silent = pc.invert(pc.is_in(events["event"], rows["event"].combine_chunks()))
    return pa.concat_tables([rows, events.filter(silent)], promote_options="default")
