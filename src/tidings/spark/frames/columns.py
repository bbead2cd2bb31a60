"""The columns that transforms give and take: Arrow types, as Spark schemas, and the check that events fit a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from tidings.durable.manifest_view import View
from tidings.errors import EventError, SchemaError

Batches = Iterable[pa.RecordBatch]

MATCH = {"event": pa.string(), "subscription": pa.string(), "score": pa.float64()}
FOUND = {"subscription": pa.string(), "event": pa.string(), "score": pa.float64()}
RANKED = {"relevance": pa.float64(), "time": pa.int64(), "expires": pa.int64()}
CORRUPT = {"_corrupt": pa.string()}
NOTIFICATION = {
    "id": pa.string(),
    "subscription": pa.string(),
    "event": pa.string(),
    "score": pa.float64(),
    "rank": pa.int32(),
    "why": pa.string(),
    "at": pa.timestamp("us", "UTC"),
}


def spark_type(columns: dict[str, pa.DataType]) -> StructType:
    made: StructType = from_arrow_schema(pa.schema(list(columns.items())))
    return made


def map_arrow(frame: DataFrame, work: Callable[[Batches], Iterator[pa.RecordBatch]], columns: dict[str, pa.DataType]) -> DataFrame:
    """`mapInArrow` for columns that may have dots in their names, which it cannot resolve itself."""
    names = frame.columns
    plain = frame.toDF(*(f"c{place}" for place in range(len(names))))
    return plain.mapInArrow(lambda batches: work(batch.rename_columns(names) for batch in batches), spark_type(columns))


def together(batches: Batches) -> Iterator[pa.Table]:
    """The rows of a partition as one table; no table if there are none."""
    given = [batch for batch in batches if len(batch)]
    if given:
        yield pa.Table.from_batches(given)


def widened(frame: DataFrame, work: Callable[[Batches], Iterator[pa.RecordBatch]], added: dict[str, DataType]) -> DataFrame:
    """What `work` makes of the frame's rows: the same columns and, after them, those `added`."""
    names = frame.columns
    short = [f"c{place}" for place in range(len(names))]
    plain = frame.toDF(*short)
    kinds = StructType([*plain.schema.fields, *(StructField(name, kind) for name, kind in added.items())])

    def renamed(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in work(batch.rename_columns(names) for batch in batches):
            yield batch.rename_columns([*short, *added])

    return plain.mapInArrow(renamed, kinds).toDF(*names, *added)


def shaped(parts: Iterable[pa.Table], columns: dict[str, pa.DataType]) -> pa.Table:
    """The parts as one table of exactly these columns."""
    made = []
    for part in parts:
        present = set(part.column_names)
        made.append(
            pa.table([part[n].cast(t) if n in present else pa.nulls(len(part), t) for n, t in columns.items()], list(columns))
        )
    return pa.concat_tables(made)


def frame_form(frame: DataFrame) -> pa.Schema:
    """The columns of a frame as workers get them."""
    form: pa.Schema = to_arrow_schema(frame.schema, timezone="UTC")
    return form


def check_events(form: pa.Schema, view: View) -> None:
    """Refuse, before anything runs, events whose columns the topic cannot read."""
    told = [field for field in form if field.name != "_corrupt"]
    try:
        view.read(pa.schema(told).empty_table())
    except EventError as error:
        raise SchemaError(f"these events do not fit topic {view.manifest.topic!r} in {view.folder}: {error}") from error
