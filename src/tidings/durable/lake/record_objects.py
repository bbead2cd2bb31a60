"""What a registry holds beside subscriptions, as Parquet: live events, windows, notifications that wait, and for whom.

An object a table of the registry (COLUMNS), with its columns and without its check sums, which Parquet has its own of. The bodies
of windows are bytes or text (`text` says which). They stand at the last `push` or `close`, which write them whole; a manifest
that a flush makes names those of the manifest before.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidings.durable.lake.subscription_objects import read_rows
from tidings.durable.registry import CHECKED, CONSUMERS, Registry, crc_of, set_meta
from tidings.durable.waiting import FORGOTTEN

COLUMNS = {
    "event": {"id": pa.string(), "expires": pa.int64(), "body": pa.string()},
    "event_batch": {
        "first": pa.int64(),
        "last": pa.int64(),
        "until": pa.int64(),
        "gone": pa.int64(),
        "body": pa.binary(),
    },
    "event_gone": {"number": pa.int64()},
    "state": {"name": pa.string(), "body": pa.binary()},
    "outbox_batch": {"first": pa.int64(), "last": pa.int64(), "body": pa.binary()},
    "outbox": {"number": pa.int64(), "id": pa.string(), "body": pa.string()},
    "taken": {"number": pa.int64(), "event": pa.string(), "told": pa.int64(), "last": pa.int64(), "body": pa.string()},
    "consumer": {"name": pa.string(), "done": pa.int64()},
}
FACTS = ("clock", "publications", FORGOTTEN)
"""What `meta` says of them."""
NEWEST = "newest"
"""The fact that says which number each table with numbers has given last, since none is given twice."""
TEXT = "text"


def record_tables(registry: Registry) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """The tables that have anything, and facts, of one state of the registry."""
    found = {}
    with registry.reading():
        there = {name for (name,) in registry.read("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for name, columns in COLUMNS.items():
            if name in CHECKED and name in there:
                registry.bodies(name)  # so that their check sums are looked at
            rows = registry.read(f"SELECT {', '.join(columns)} FROM {name} ORDER BY 1") if name in there else []
            if rows:
                values = dict(zip(columns, zip(*rows, strict=True), strict=True))
                found[name] = pa.table({column: pa.array(values[column], kind) for column, kind in columns.items()})
                if name == "state":
                    found[name] = found[name].append_column(TEXT, pa.array([isinstance(body, str) for body in values["body"]]))
        facts = {name: value for name, value in registry.meta().items() if name in FACTS}
        return found, facts | {NEWEST: dict(registry.read("SELECT name, seq FROM sqlite_sequence"))}


def rows_of(path: Path, name: str) -> list[tuple[Any, ...]]:
    """The rows of a table, in the order of its COLUMNS."""
    table = read_rows(path)
    columns = {column: table[column].to_pylist() for column in table.column_names}
    if TEXT in columns:
        pairs = zip(columns["body"], columns[TEXT], strict=True)
        columns["body"] = [body.decode() if text else body for body, text in pairs]
    return list(zip(*(columns[column] for column in COLUMNS[name]), strict=True))


def put_record(db: sqlite3.Connection, name: str, rows: list[tuple[Any, ...]]) -> None:
    """Into a registry that has none of them."""
    if name == "consumer":
        db.execute(CONSUMERS)
    columns = list(COLUMNS[name])
    if name in CHECKED:
        body = columns.index("body")
        rows = [(*row, crc_of(row[body])) for row in rows]
        columns.append("crc")
    db.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows)


def put_facts(db: sqlite3.Connection, facts: dict[str, Any]) -> None:
    set_meta(db, **{name: value for name, value in facts.items() if name in FACTS})
    for name, number in facts.get(NEWEST, {}).items():
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, number))
