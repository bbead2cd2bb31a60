"""`search`: subscriptions in, a row for every live event that each of them matches out. The other direction of `match`.

| column         | type   | meaning                                                                                  |
|----------------|--------|------------------------------------------------------------------------------------------|
| `subscription` | string |                                                                                          |
| `event`        | string |                                                                                          |
| `score`        | double | of the subscription for this event, as in `match`                                        |
| `_corrupt`     | string | `corrupt=True`: why the subscription was refused, in a row that has nothing else but its id |

An event that expires is found while it lives, a subscription that expires finds while it lives, both at `time`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import uuid
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.durable.lake.address import folder_of
from tidings.durable.leases import PINS
from tidings.durable.snapshots import LakeSnapshots, snapshots_at
from tidings.errors import EventError, SchemaError, StorageError, SubscriptionError, TidingsError
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.columns.tables import events_from_arrow
from tidings.model.values.schema import Attribute, Schema
from tidings.spark.frames.answer_columns import CORRUPT, FOUND, REASON
from tidings.spark.frames.arrow_stage import Batches, Columns, frame_form, given_out, map_arrow, shaped
from tidings.spark.frames.metrics import observed, titled
from tidings.spark.frames.pins import frame_pin, instant, newest
from tidings.spark.transforms.event_sources import EventSource, FileEvents, FolderEvents, LakeEvents, topic_of, write_live
from tidings.spark.transforms.searchable_events import FILE, EventWriter, SearchableEvents

_last: dict[Hashable, SearchableEvents] = {}
"""This worker's, by what `EventSource.which` says."""


@dataclass(frozen=True, slots=True)
class SearchTask:
    """What a task does with its subscriptions."""

    source: EventSource
    schema: Schema
    key: str | None
    corrupt: bool

    @property
    def columns(self) -> Columns:
        return FOUND | (CORRUPT if self.corrupt else {})

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        events = self.events()
        for batch in batches:
            if len(batch):
                yield from given_out(self.search(events, batch))

    def search(self, events: SearchableEvents, batch: pa.RecordBatch) -> pa.Table:
        asked = subscriptions_from_arrow(self.schema, events.vocabularies, batch, on_error="skip" if self.corrupt else "raise")
        tables = [events.search(asked)]
        if asked.refused:
            rows, reasons = zip(*asked.refused, strict=True)
            ids = batch["id"].take(pa.array(rows)).cast(pa.string())
            tables.append(pa.table({"subscription": ids, REASON: pa.array(reasons, pa.string())}))
        return shaped(tables, self.columns)

    def events(self) -> SearchableEvents:
        """The events from this worker's cache, or read."""
        which = self.source.which()
        if which not in _last:
            table, time = self.source.read()
            _last.clear()
            _last[which] = SearchableEvents(self.schema, self.key, table, time)
        return _last[which]


def search(
    subscriptions: DataFrame,
    events: DataFrame | str | os.PathLike[str],
    schema: Schema | Mapping[str, Attribute] | None = None,
    *,
    key: str | None = None,
    snapshot: str | os.PathLike[str] | None = None,
    time: Any = None,
    corrupt: bool = False,
) -> DataFrame:
    """The events that these subscriptions (columnar form or a `filter` column) find; batch or streaming.

    `events` is the path or URL of a topic, whose live events are meant: as they stand now, in a streaming query at every
    micro-batch; at a URL, as they were pushed last. Or a DataFrame of events with its `schema`, which is written now to the folder
    `snapshot`, one that every worker sees.

    >>> import tidings as td
    >>> with td.open(folder, "deals", {"price": td.Number()}) as deals:
    ...     notes = deals.publish_batch([{"id": f"e{price}", "price": price} for price in range(9)])
    >>> from tidings.spark import search
    >>> asked = spark.createDataFrame([("cheap", "price < 2")], "id string, filter string")
    >>> sorted(row.event for row in search(asked, folder).collect())
    ['e0', 'e1']
    """
    at, given = instant(time), None if time is None else instant(time)
    source: EventSource
    if isinstance(events, DataFrame):
        if schema is None or snapshot is None:
            raise EventError("search in a DataFrame of events needs schema, and snapshot: a folder that every worker sees")
        made = schema if isinstance(schema, Schema) else Schema(schema)
        folder = folder_of(snapshot, "snapshot").absolute()
        source, title = FileEvents(write_snapshot(events, folder, made, key, at)), folder.name
    elif isinstance(place := snapshots_at(events), LakeSnapshots):
        source = LakeEvents(place, newest(place) if subscriptions.isStreaming else frame_pin(place), given)
        form = place.newest()
        made, key, title = form.schema_read, form.key, form.topic
    else:
        folder = folder_of(events, "search").absolute()
        made, key = topic_of(folder)
        source = FolderEvents(folder, given) if subscriptions.isStreaming else FileEvents(live_snapshot(folder, at))
        title = folder.name
    check_subscriptions(subscriptions, made)
    task = SearchTask(source, made, key, corrupt)
    found = map_arrow(subscriptions, task, task.columns)
    refused = {"refused": F.count(REASON)} if corrupt else {}
    return observed(found, titled(f"tidings search {title}"), matched=F.count("event"), **refused)


def write_snapshot(events: DataFrame, folder: Path, schema: Schema, key: str | None, time: int) -> tuple[Path, ...]:
    """The files of these events, written by the executors."""
    try:
        events_from_arrow(schema, Vocabularies(schema), frame_form(events).empty_table(), key)
        folder.mkdir(parents=True, exist_ok=True)
    except EventError as error:
        raise SchemaError(f"these events do not fit the schema: {error}") from error
    except OSError as error:
        raise StorageError(f"cannot make the snapshot {folder}: {error.strerror}") from error
    written = map_arrow(events, EventWriter(folder, schema, key, time), FILE).toArrow()
    return tuple(folder / file for file in sorted(written["file"].to_pylist()))


def live_snapshot(folder: Path, time: int) -> tuple[Path]:
    """The topic's live events in a file that goes when this process ends."""
    made = folder / PINS / f"search-{uuid.uuid4().hex}"
    made.mkdir(parents=True)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    write_live(folder, made / "0.arrow", time)
    return (made / "0.arrow",)


def check_subscriptions(subscriptions: DataFrame, schema: Schema) -> None:
    """Refuse, before anything runs, columns that no subscription of this schema has."""
    try:
        subscriptions_from_arrow(schema, Vocabularies(schema), frame_form(subscriptions).empty_table())
    except TidingsError as error:
        raise SubscriptionError(f"these subscriptions do not fit the schema: {error}") from error
