"""Matches of a partition, packed for the windows of each shard of subscriptions: one binary record a shard.

A state operator that is called once for each subscription spends its time in being called; here it is called once a shard and
batch (30-40 times as many rows a second). Where `notify` is given what `match` gave, packing happens in the Python worker that
matched, and matches never become rows of Spark's. A record:

| column                | meaning                                                                                            |
|-----------------------|----------------------------------------------------------------------------------------------------|
| `shard`               |                                                                                                     |
| `clock`               | the latest time of any event packed with it; null where there is none                              |
| `body`                | a bundle (BODY) of the shard's matches, empty if it has none                                         |
| `rows`                | how many they are                                                                                   |
| `matched`, `refused`  | of the whole partition, in the first shard's record, 0 in the others                                |
| `manifest`            | the number of the manifest that was read                                                            |

| table of a body | columns                                                                                                     |
|-----------------|-------------------------------------------------------------------------------------------------------------|
| `events`        | `id`, `time`, `expires`: microseconds, NEVER for an event that does not expire                               |
| `subscriptions` | `id`, each once                                                                                             |
| `rows`          | `event` and `subscription`, places in these tables; `score`, `relevance`, `group` (0: none) as in matches    |

Every shard gets a record, if only for the clock, so that all keep the same time. Only when the topic has a count window does a
shard hear of the events that concern nobody in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.durable.snapshots import Snapshots
from tidings.spark.frames import arrow_stage
from tidings.spark.frames.answer_columns import REASON
from tidings.spark.frames.arrow_stage import Batches, Stage, together
from tidings.spark.frames.id_hash import spark_shards
from tidings.spark.frames.pins import Pin
from tidings.spark.frames.topic_view import task_view, view_at
from tidings.spark.state.state_format import bundle, unbundle
from tidings.windows.memory import NEVER

PACKED = {
    "shard": pa.int32(),
    "clock": pa.int64(),
    "body": pa.binary(),
    "rows": pa.int64(),
    "matched": pa.int64(),
    "refused": pa.int64(),
    "manifest": pa.int64(),
}
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Matches(NamedTuple):
    """Rows by place: `event[row]` in the events' columns, `subscription[row]` in `subscriptions`."""

    ids: pa.StringArray
    time: Ints
    expires: Ints
    subscriptions: pa.StringArray
    event: NDArray[np.int32]
    subscription: NDArray[np.int32]
    score: Floats
    relevance: Floats
    group: Ints


@dataclass(frozen=True, slots=True)
class ShardPacker:
    """`found` makes matches of what comes; None where they come as rows of Spark's."""

    topic: Snapshots
    pin: Pin
    shards: int
    found: Stage | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in together(batches if self.found is None else self.found(batches), arrow_stage.HELD_ROWS):
            view, _ = task_view(self.topic, self.pin)
            counted = counts(self.topic, view.manifest.identity, view.manifest.number)
            yield self.pack(table, counted, view.manifest.number)

    def pack(self, table: pa.Table, counted: bool, manifest: int) -> pa.RecordBatch:
        refused = 0
        if REASON in table.column_names:
            refused = len(table) - table[REASON].null_count
            table = table.filter(table[REASON].is_null())
        matches, clock = coded(table), pc.max(table["time"]).as_py()
        parts = list(parted(matches, self.shards))
        bodies = [body_of(matches, part, counted) for part in parts]
        first = np.arange(self.shards) == 0
        columns = {
            "shard": np.arange(self.shards, dtype=np.int32),
            "clock": pa.array([clock] * self.shards, pa.int64()),
            "body": pa.array(bodies, pa.binary()),
            "rows": np.array([len(part.rows) for part in parts]),
            "matched": first * len(matches.event),
            "refused": first * refused,
            "manifest": np.full(self.shards, manifest),
        }
        return pa.RecordBatch.from_arrays([pa.array(column, PACKED[name]) for name, column in columns.items()], names=list(PACKED))


def coded(table: pa.Table) -> Matches:
    """Rows of `match(..., ranking=True)`; those without a subscription only tell of an event."""
    time, expires = table["time"].to_numpy(), table["expires"].fill_null(NEVER).to_numpy()
    events, place = published(table["event"].combine_chunks(), time, expires)
    told = table["subscription"].is_valid()
    rows = table.select(["subscription", "score", "relevance", "group"]).filter(told)
    names = rows["subscription"].combine_chunks().dictionary_encode()
    return Matches(
        *events,
        names.dictionary,
        place[told.to_numpy()],
        names.indices.to_numpy(),
        rows["score"].to_numpy(),
        rows["relevance"].to_numpy(),
        rows["group"].fill_null(0).to_numpy(),
    )


class Events(NamedTuple):
    ids: pa.StringArray
    time: Ints
    expires: Ints


def published(ids: pa.StringArray, time: Ints, expires: Ints) -> tuple[Events, NDArray[np.int32]]:
    """The distinct events, and the place of each row's. One that is published again at another time is another."""
    named = ids.dictionary_encode()
    place, names = named.indices.to_numpy(), named.dictionary
    once = np.zeros(len(names), np.int64)
    once[place] = time
    if not np.array_equal(once[place], time):
        instants = np.unique(time)
        pair = place.astype(np.int64) * len(instants) + np.searchsorted(instants, time)
        _, first, place = np.unique(pair, return_index=True, return_inverse=True)
        names, once = ids.take(pa.array(first)), time[first]
    ends = np.zeros(len(names), np.int64)
    ends[place] = expires
    return Events(names, once, ends), place.astype(np.int32, copy=False)


class Part(NamedTuple):
    """A shard's subscriptions, and the rows of them."""

    subscriptions: Ints
    rows: Ints


def parted(matches: Matches, shards: int) -> Iterator[Part]:
    shard = spark_shards(matches.subscriptions, shards)
    yield from map(Part, places_by(shard, shards), places_by(shard[matches.subscription], shards))


def places_by(number: NDArray[np.int32], count: int) -> list[Ints]:
    """The places that have each number below `count`."""
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(count + 1)).tolist()
    return [order[begin:end] for begin, end in pairwise(ends)]


def body_of(matches: Matches, part: Part, counted: bool) -> bytes:
    event, subscription = matches.event[part.rows], matches.subscription[part.rows]
    heard = np.arange(len(matches.ids)) if counted else np.unique(event)
    if not len(heard):
        return b""
    place_of_event = np.zeros(len(matches.ids), np.int32)
    place_of_event[heard] = np.arange(len(heard), dtype=np.int32)
    place = np.zeros(len(matches.subscriptions), np.int32)
    place[part.subscriptions] = np.arange(len(part.subscriptions), dtype=np.int32)
    rows = {"event": place_of_event[event], "subscription": place[subscription], "group": matches.group[part.rows]}
    return bundle(
        {
            "events": {"id": matches.ids.take(pa.array(heard)), "time": matches.time[heard], "expires": matches.expires[heard]},
            "subscriptions": {"id": matches.subscriptions.take(pa.array(part.subscriptions))},
            "rows": {**rows, "score": matches.score[part.rows], "relevance": matches.relevance[part.rows]},
        }
    )


def matches_of(bodies: Iterable[bytes]) -> Matches | None:
    """The matches of all these bodies; None if there are none. An event or a subscription that stands in several stands once."""
    found = [unbundle(body) for body in bodies if body]
    if not found:
        return None
    time, expires = (_column(found, "events", name) for name in ("time", "expires"))
    events, event = published(pa.concat_arrays([one["events"]["id"] for one in found]), time, expires)
    names = pa.concat_arrays([one["subscriptions"]["id"] for one in found]).dictionary_encode()
    event = event[_column(found, "rows", "event") + _offsets(found, "events")]
    subscription = names.indices.to_numpy()[_column(found, "rows", "subscription") + _offsets(found, "subscriptions")]
    score, relevance, group = (_column(found, "rows", name) for name in ("score", "relevance", "group"))
    return Matches(*events, names.dictionary, event, subscription, score, relevance, group)


def _column(found: list[dict[str, dict[str, pa.Array]]], table: str, name: str) -> NDArray[Any]:
    made: NDArray[Any] = np.concatenate([one[table][name].to_numpy() for one in found])
    return made


def _offsets(found: list[dict[str, dict[str, pa.Array]]], table: str) -> Ints:
    """For each row, how many of `table` stand in the bodies before its own."""
    before = np.cumsum([0, *(len(one[table]["id"]) for one in found[:-1])])
    return np.repeat(before, [len(one["rows"]["event"]) for one in found])


@lru_cache(maxsize=8)
def counts(topic: Snapshots, identity: int, number: int) -> bool:
    """Whether any subscription of a manifest has a window of so many publications."""
    segments = view_at(topic, number, identity=identity).segments
    kinds = [live.segment.table["window"] for live in segments if "window" in live.segment.table.column_names]
    return any(text.endswith("events") for kind in kinds for text in kind.unique().drop_null().to_pylist())
