"""Tables as they come in: from anything that speaks Arrow's stream protocol (pandas, polars, DuckDB, pyarrow), with columns that
have other names or that nobody asked for.

A DataFrame of pandas says a missing value by NaN, and gives it as null. Its index is no column unless it has a name.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa

from tidings.errors import TidingsError, shown

_INDEX = re.compile(r"__index_level_\d+__")
RAISE, IGNORE = "raise", "ignore"


def table_of(source: object) -> pa.Table | None:
    """The source as a table; None of what is none."""
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    table = pa.table(source)
    return table.select([name for name in table.column_names if not _INDEX.fullmatch(name)]).replace_schema_metadata(None)


def must_be_known(on_unknown: str, error: type[TidingsError]) -> None:
    if on_unknown not in (RAISE, IGNORE):
        raise error(f"on_unknown is {shown(on_unknown)}: 'raise' or 'ignore' is accepted")


def shaped(table: pa.Table, id: str | None, known: Collection[str], on_unknown: str, error: type[TidingsError]) -> pa.Table:
    """The table with column `id` as the id, and without columns that are not `known` if those are to be ignored."""
    if id is not None and id != "id":
        if id not in table.column_names:
            raise error(f"id is {shown(id)}: the table has the columns {', '.join(table.column_names)}")
        ids = table[id]
        others = [name for name in table.column_names if name != "id" and (name != id or id in known)]
        table = table.select(others).append_column("id", ids)
    if on_unknown == IGNORE:
        table = table.select([name for name in table.column_names if name in known or name == "id"])
    return table
