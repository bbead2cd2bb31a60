"""Raw events: JSON values, as Kafka and log files carry them, become the columns of a topic's events.

A value is whatever `model.event` reads: an object, a CloudEvent, a GeoJSON Feature. One that cannot be read becomes a row that has
nothing but `_corrupt`, the reason; `match(..., corrupt=True)` passes it on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from tidings.durable.manifest_view import View
from tidings.errors import EventError, TidingsError
from tidings.model.columns.tables import arrow_schema, events_to_arrow
from tidings.model.door.event import Event, EventReader
from tidings.model.values.schema import Schema
from tidings.spark.frames.columns import CORRUPT, Batches, map_arrow
from tidings.spark.frames.pins import PARTS
from tidings.spark.parts.cells import first_part


@dataclass(frozen=True, slots=True)
class Parser:
    schema: Schema
    key: str | None

    @property
    def columns(self) -> dict[str, pa.DataType]:
        form = arrow_schema(self.schema, self.key)
        return dict(zip(form.names, form.types, strict=True)) | CORRUPT

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        read = EventReader(self.schema, self.key)
        for batch in batches:
            yield from self.table([_read(read, value) for value in batch["value"].to_pylist()]).to_batches()

    def table(self, results: list[Event | str]) -> pa.Table:
        good = events_to_arrow(self.schema, [one for one in results if isinstance(one, Event)], self.key)
        reasons = pa.array([one for one in results if isinstance(one, str)], pa.string())
        parts = [good.append_column("_corrupt", pa.nulls(len(good), pa.string())), pa.table({"_corrupt": reasons})]
        return pa.concat_tables(parts, promote_options="default").select(list(self.columns))


def _read(read: EventReader, value: object) -> Event | str:
    try:
        return read(value)
    except TidingsError as error:
        return str(error)


def parse(raw: DataFrame, topic: str | os.PathLike[str]) -> DataFrame:
    """The events of column `value` (string or binary) for the topic at path `topic`, and `_corrupt`."""
    if "value" not in raw.columns:
        raise EventError(f"raw events have no column 'value': they have {', '.join(raw.columns)}")
    folder = Path(topic)
    view = View.open(first_part(folder) if (folder / PARTS).exists() else folder, verify=False)
    parser = Parser(view.schema, view.key)
    return map_arrow(raw.select("value"), parser, parser.columns)
