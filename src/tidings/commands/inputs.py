"""What a command reads: files of Parquet, CSV or JSON lines, standard input, or JSON on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tidings.errors import TidingsError

ROWS = 10_000
"""Rows that are taken at once."""
LINES = (".ndjson", ".jsonl", ".json")


def is_file(said: str) -> bool:
    return said == "-" or (not said.lstrip().startswith(("{", "[")) and Path(said).suffix.lower() in (".parquet", ".csv", *LINES))


def one_object(said: str) -> Any:
    """JSON on the command line, or the first line of a file."""
    if is_file(said):
        return next(iter(lines_of(said)), {})
    try:
        return json.loads(said)
    except ValueError as error:
        raise TidingsError(f"{said[:60]!r} is neither JSON nor a file: {error}") from None


def batches_of(said: str, rows: int = ROWS) -> Iterator[pa.Table | list[Any]]:
    """A file in pieces: tables of Parquet and CSV, lists of the objects of JSON lines."""
    suffix = Path(said).suffix.lower()
    if said != "-" and not Path(said).is_file():
        raise TidingsError(f"there is no file {said!r}")
    try:
        if suffix == ".parquet":
            for batch in pq.ParquetFile(said).iter_batches(rows):
                yield pa.Table.from_batches([batch])
        elif suffix == ".csv":
            for batch in pyarrow.csv.open_csv(said):
                yield pa.Table.from_batches([batch])
        else:
            lines = lines_of(said)
            while piece := [*islice(lines, rows)]:
                yield piece
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise TidingsError(f"{said} cannot be read: {error}") from None


def lines_of(said: str) -> Iterator[Any]:
    with sys.stdin if said == "-" else open(said, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise TidingsError(f"line {number} of {said} is no JSON: {error}") from None


def count_of(said: str) -> int | None:
    """How many rows a file has, if it says so."""
    return pq.ParquetFile(said).metadata.num_rows if Path(said).suffix.lower() == ".parquet" and Path(said).is_file() else None


def sample_of(said: str, rows: int = ROWS) -> pa.Table:
    """The first rows of a file, by which its columns are judged."""
    first = next(batches_of(said, rows), None)
    if first is None or not len(first):
        raise TidingsError(f"{said} is empty: its columns cannot be judged")
    return first if isinstance(first, pa.Table) else pa.Table.from_pylist(first)
