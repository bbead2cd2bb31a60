"""A stage of Python between DataFrames: Arrow batches in, Arrow batches out, with bounds on how many rows are held at once.

A column of strings holds at most 2 GB in one Arrow array, and a Python worker has little memory: a stage that gathers rows takes at
most HELD_ROWS of them together, and what it gives goes out in batches of OUT_ROWS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from inspect import signature
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from tidings.spark.frames.worker_upkeep import begin_task

Batches: TypeAlias = Iterable[pa.RecordBatch]
Columns: TypeAlias = dict[str, pa.DataType]
Stage: TypeAlias = Callable[[Batches], Iterator[pa.RecordBatch]]

HELD_ROWS = 4_000_000
OUT_ROWS = 100_000
IN_UTC = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
"""PySpark 4.3 asks for the zone of times, 4.1 and 4.2 know no other."""


def spark_type(columns: Columns) -> StructType:
    made: StructType = from_arrow_schema(pa.schema(list(columns.items())))
    return made


def frame_form(frame: DataFrame) -> pa.Schema:
    """The columns of a frame as workers get them."""
    form: pa.Schema = to_arrow_schema(frame.schema, **IN_UTC)
    return form


def map_arrow(frame: DataFrame, work: Stage, columns: Columns, name: str = "tidings") -> DataFrame:
    """`mapInArrow` for columns that may have dots in their names, which it cannot resolve itself; `name` is how plans call it."""
    names = frame.columns
    plain = frame.toDF(*(f"c{place}" for place in range(len(names))))

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        begin_task()
        return work(batch.rename_columns(names) for batch in batches)

    stage.__name__ = name
    return plain.mapInArrow(stage, spark_type(columns))


def widened(frame: DataFrame, work: Stage, added: dict[str, DataType]) -> DataFrame:
    """What `work` makes of the frame's rows: the same columns and, after them, those `added`."""
    names = frame.columns
    short = [f"c{place}" for place in range(len(names))]
    plain = frame.toDF(*short)
    kinds = StructType([*plain.schema.fields, *(StructField(name, kind) for name, kind in added.items())])

    def renamed(batches: Batches) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in work(batch.rename_columns(names) for batch in batches):
            yield batch.rename_columns([*short, *added])

    return plain.mapInArrow(renamed, kinds).toDF(*names, *added)


def together(batches: Batches, most: int | None = None) -> Iterator[pa.Table]:
    """The rows of a partition as one table, or as tables of about `most` rows; no table if there are none."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if len(batch):
            held.append(batch)
        if most is not None and sum(map(len, held)) >= most:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def given_out(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(max_chunksize=OUT_ROWS)


def shaped(tables: Iterable[pa.Table], columns: Columns) -> pa.Table:
    """The tables as one of exactly these columns, null where a table lacks one."""
    made = []
    for table in tables:
        there = set(table.column_names)
        made.append([table[name].cast(kind) if name in there else pa.nulls(len(table), kind) for name, kind in columns.items()])
    return pa.concat_tables([pa.table(arrays, list(columns)) for arrays in made])
