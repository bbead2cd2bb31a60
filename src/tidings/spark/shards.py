"""Matches of a partition, packed for the windows of each shard of subscriptions: one binary record a shard.

A state operator that is called once for each subscription spends its time in being called; here it is called once a shard and
batch (30-40 times as many rows a second). A record is (shard, clock, body): `clock` is the latest time of any event of the
partition, sent to every shard so that all keep the same time; `body` is an Arrow stream of the shard's matches and their windows:

| column                          | meaning                                                                                |
|---------------------------------|----------------------------------------------------------------------------------------|
| `event`, `time`, `expires`      | microseconds, NEVER for an event that does not expire                                   |
| `subscription`                  | null for an event that is only counted                                                  |
| `score`                         | the relevance; for a subscription without ranking the score                             |
| `k`, `window`, `error`, `since`, `by` | as in `rows.RANKING`                                                              |

Only when the topic has a count window does a shard hear of the events that concern nobody in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.engine.view import View, view_of
from tidings.engine.window_memory import NEVER
from tidings.spark.columns import Batches
from tidings.spark.pins import Pin, current

PACKED = {"shard": pa.int32(), "clock": pa.int64(), "body": pa.binary()}
WINDOW = ("k", "window", "error", "since", "by")
"""What makes a window; a subscription whose answers change here begins anew."""


@dataclass(frozen=True, slots=True)
class ShardPacker:
    folder: Path
    pin: Pin
    shards: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        given = [batch for batch in batches if len(batch)]
        if given:
            view = view_of(self.folder, current(self.folder, self.pin).manifest)
            yield self.pack(view, pa.Table.from_batches(given).combine_chunks())

    def pack(self, view: View, matches: pa.Table) -> pa.RecordBatch:
        clock = pc.max(matches["time"]).as_py()
        named = matches.filter(matches["subscription"].is_valid()).combine_chunks()
        rows, shard = self.windowed(view, named)
        counted = events_of(matches) if counts(view) else None
        bodies = []
        for number in range(self.shards):
            part = rows.filter(pa.array(shard == number))
            if counted is not None:
                silent = pc.invert(pc.is_in(counted["event"], part["event"].combine_chunks()))
                part = pa.concat_tables([part, counted.filter(silent)], promote_options="default")
            bodies.append(to_bytes(part) if len(part) else b"")
        columns = [pa.array(range(self.shards), pa.int32()), pa.array([clock] * self.shards), pa.array(bodies, pa.binary())]
        return pa.record_batch(columns, names=list(PACKED))

    def windowed(self, view: View, named: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
        """The matches with their windows, and the shard of each."""
        coded = named["subscription"].combine_chunks().dictionary_encode()
        ranking = view.ranking(view.locate(coded.dictionary), WINDOW)
        plain = pc.and_(ranking["k"].is_null(), ranking["window"].is_null()).combine_chunks().take(coded.indices)
        columns = {name: named[name] for name in ("event", "time", "subscription")}
        columns["expires"] = named["expires"].fill_null(NEVER)
        columns["score"] = pc.if_else(plain, named["score"], named["relevance"])
        columns |= {name: ranking[name].combine_chunks().take(coded.indices) for name in WINDOW}
        return pa.table(columns), shard_of(coded.dictionary, self.shards)[coded.indices.to_numpy()]


def shard_of(ids: pa.Array, shards: int) -> NDArray[np.int64]:
    """By a hash of the id that is the same in every process."""
    hashed = pd.util.hash_array(ids.to_numpy(zero_copy_only=False).astype(object), categorize=False)
    shard: NDArray[np.int64] = (hashed % np.uint64(shards)).astype(np.int64)
    return shard


def counts(view: View) -> bool:
    """Whether any subscription has a window of so many publications."""
    kinds = [segment.table["window"] for segment in view.segments if "window" in segment.table.column_names]
    return any(text.endswith("events") for kind in kinds for text in kind.unique().drop_null().to_pylist())


def events_of(matches: pa.Table) -> pa.Table:
    """The distinct events, as rows without a subscription."""
    once = matches.group_by("event").aggregate([("time", "min"), ("expires", "min")])
    return pa.table({"event": once["event"], "time": once["time_min"], "expires": once["expires_min"].fill_null(NEVER)})


def to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(body: bytes) -> pa.Table:
    return pa.ipc.open_stream(body).read_all()
