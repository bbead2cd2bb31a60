"""Parquet files that the workers read themselves.

Spark reads Parquet into columns, makes a row of them, and writes the row to Arrow cell by cell, which costs half as much as
matching an event. Files that every worker can open, as it can the topic's own, go to pyarrow in the worker instead, and no row goes
through the JVM. A task takes whole row groups, until they have TASK_ROWS rows, and gives them on in batches as Spark would.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tidings.durable.lake.address import folder_of
from tidings.errors import StorageError
from tidings.spark.frames.arrow_stage import OUT_ROWS, Batches, Columns, Stage, frame_form, map_arrow, spark_type
from tidings.spark.frames.worker_upkeep import begin_task

TASK_ROWS = 500_000

Given: TypeAlias = DataFrame | list[Path]
"""Rows of Spark's, or the files that have them."""


class Share(NamedTuple):
    """What one task reads."""

    file: Path
    row_groups: list[int]


def given_by(source: DataFrame | str | os.PathLike[str]) -> Given:
    """A path is that of a Parquet file or of a folder of them; names that begin with `_` or `.` are not data, as for Spark."""
    if isinstance(source, DataFrame):
        return source
    path = folder_of(source, "a path of Parquet files").absolute()
    inside = sorted(path.glob("*.parquet")) if path.is_dir() else [path] if path.is_file() else []
    files = [file for file in inside if file.name[0] not in "_."]
    if not files:
        raise StorageError(f"{path} has no Parquet files: the path of one, or of a folder that has some, is accepted")
    return files


def form_of(given: Given) -> pa.Schema:
    """The columns as workers get them; all files have the same."""
    if isinstance(given, DataFrame):
        return frame_form(given)
    form = pq.read_schema(given[0]).remove_metadata()
    for file in given[1:]:
        if not pq.read_schema(file).remove_metadata().equals(form):
            raise StorageError(f"{file} has other columns than {given[0]}: files of one form are accepted")
    return form


def frame_of(given: Given) -> DataFrame:
    """As rows of Spark's, for what has to be sorted by it."""
    return given if isinstance(given, DataFrame) else SparkSession.active().read.parquet(*map(str, given))


def map_given(given: Given, work: Stage, columns: Columns, only: list[str] | None = None, name: str = "tidings") -> DataFrame:
    """What `work` makes of the rows, or of `only` some columns of them; `name` is how plans call it."""
    if isinstance(given, DataFrame):
        return map_arrow(given if only is None else given.select(*(f"`{column}`" for column in only)), work, columns, name)
    tasks = shares(given)

    def read(numbers: Batches) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch["id"].to_pylist():
                with pq.ParquetFile(tasks[number].file, memory_map=True) as file:
                    yield from file.iter_batches(OUT_ROWS, tasks[number].row_groups, only, use_threads=False)

    def stage(numbers: Batches) -> Iterator[pa.RecordBatch]:
        begin_task()
        return work(read(numbers))

    stage.__name__ = name
    return SparkSession.active().range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(stage, spark_type(columns))


def shares(files: list[Path]) -> list[Share]:
    made: list[Share] = []
    for file in files:
        footer = pq.read_metadata(file)
        groups: list[int] = []
        rows = 0
        for number in range(footer.num_row_groups):
            groups.append(number)
            rows += footer.row_group(number).num_rows
            if rows >= TASK_ROWS or number + 1 == footer.num_row_groups:
                made.append(Share(file, groups))
                groups, rows = [], 0
    return made
