"""The bytes of the state: tables as Arrow streams, several tables as one (a bundle), and the head with the format's version.

| version | meaning                                                                                                          |
|---------|------------------------------------------------------------------------------------------------------------------|
| none    | before there was a number: heads of windows were flat, boards packed into their log. Read, and written anew as 2 |
| 2       | `Head`                                                                                                           |
| 3       | groups and time zones                                                                                            |
| 4       | gates of windows (`shard_gates`)                                                                                   |

Whoever changes a head, a step (`window_steps`, `board_processor`) or a chunk (`ShardWindows.chunk`) so that what is there cannot be
read gives FORMAT the next number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.errors import StorageError

FORMAT = 4
READABLE = (2, 3, 4)
"""Format 2 has neither groups nor time zones, format 3 no gates of windows."""

Facts: TypeAlias = dict[str, int | None]
Column: TypeAlias = pa.Array | NDArray[np.generic]
Bundle: TypeAlias = Mapping[str, Mapping[str, Column]]


@dataclass
class Head:
    """Where a shard's log stands; `facts` are the windows' or boards' own."""

    step: int = 0
    tokens: dict[str, str] = field(default_factory=dict)
    packed_at: int = 0
    packed_bytes: int = 0
    chunks: int = 0
    log_bytes: int = 0
    log_first: int = 1
    facts: Facts = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)})


def head_of(body: str) -> Head:
    told = json.loads(body)
    version = told.pop("format", None)
    if version is None:
        return boards_without_version(told) if "next" in told else windows_without_version(told)
    if version not in READABLE:
        raise StorageError(
            f"this checkpoint has state of format {version}, and this version of tidings reads {FORMAT}: "
            "run the version that wrote it, or give the query a new checkpoint"
        )
    return Head(**told)


def windows_without_version(told: dict[str, int]) -> Head:
    facts = {name: told.pop(name) for name in ("shards", "waits", "timer")}
    return Head(**told, facts=facts)  # type: ignore[arg-type]


def boards_without_version(told: dict[str, int]) -> Head:
    """All entries of the log hold, the packed ones among them, and there are no chunks."""
    first, last = told["first"], told["next"] - 1
    facts: Facts = {name: told[name] for name in ("shards", "clock", "manifest")}
    return Head(last, {}, first - 1, told["packed"], 0, told["written"], first, facts)


def to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(body: bytes | pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(body).read_all()


def bundle(tables: Bundle) -> bytes:
    """Tables of different lengths as one Arrow stream: one row, whose columns are lists of structures."""
    lists = []
    for columns in tables.values():
        arrays = [column if isinstance(column, pa.Array) else pa.array(np.ascontiguousarray(column)) for column in columns.values()]
        rows = pa.StructArray.from_arrays(arrays, list(columns))
        lists.append(pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows))
    return to_bytes(pa.table(lists, names=list(tables)))


def unbundle(body: bytes) -> dict[str, dict[str, pa.Array]]:
    table = from_bytes(body)
    found = {}
    for name in table.column_names:
        rows = table[name].chunk(0).flatten()
        found[name] = {rows.type.field(i).name: rows.field(i) for i in range(rows.type.num_fields)}
    return found
