"""Raw events: JSON values, as Kafka and log files carry them, become the columns of a topic's events.

A value is whatever `model.event` reads: an object, a CloudEvent, a GeoJSON Feature. One that cannot be read becomes a row that has
nothing but `_corrupt`, the reason; `match(..., corrupt=True)` passes it on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from tidings.durable.snapshots import snapshots_at
from tidings.errors import EventError, TidingsError
from tidings.model.columns.tables import arrow_schema, events_to_arrow
from tidings.model.door.event import Event, EventReader
from tidings.model.values.schema import Schema
from tidings.spark.frames.answer_columns import CORRUPT, REASON
from tidings.spark.frames.arrow_stage import Batches, Columns, given_out, map_arrow, shaped
from tidings.spark.frames.topic_view import form_view


@dataclass(frozen=True, slots=True)
class Parser:
    schema: Schema
    key: str | None

    @property
    def columns(self) -> Columns:
        form = arrow_schema(self.schema, self.key)
        return dict(zip(form.names, form.types, strict=True)) | CORRUPT

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        read = EventReader(self.schema, self.key)
        for batch in batches:
            yield from given_out(self.table([_read(read, value) for value in batch["value"].to_pylist()]))

    def table(self, results: list[Event | str]) -> pa.Table:
        good = events_to_arrow(self.schema, [one for one in results if isinstance(one, Event)], self.key)
        reasons = pa.array([one for one in results if isinstance(one, str)], pa.string())
        return shaped([good, pa.table({REASON: reasons})], self.columns)


def _read(read: EventReader, value: object) -> Event | str:
    try:
        return read(value)
    except TidingsError as error:
        return str(error)


def parse(raw: DataFrame, topic: str | os.PathLike[str]) -> DataFrame:
    """The events of column `value` (string or binary) for the topic at path `topic`, and `_corrupt`.

    >>> import tidings as td
    >>> with td.open(folder, "deals", {"price": td.Number()}) as deals:
    ...     notes = deals.subscribe("ann", "price < 5", k=1, window="1 hour", by="-price", time=0)
    >>> from tidings.spark import parse
    >>> raw = spark.createDataFrame([('{"id": "e1", "price": 3}',), ('{"id": "e2", "price": "dear"}',)], "value string")
    >>> sorted((row.id or "", row._corrupt or "") for row in parse(raw, folder).collect())
    [('', "price is 'dear': a finite number is accepted"), ('e1', '')]
    """
    if "value" not in raw.columns:
        raise EventError(f"raw events have no column 'value': they have {', '.join(raw.columns)}")
    view = form_view(snapshots_at(topic))
    parser = Parser(view.schema, view.key)
    return map_arrow(raw.select("value"), parser, parser.columns)
