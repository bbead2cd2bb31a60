"""What a registry holds beside subscriptions, as Parquet: live events, windows, and notifications that wait.

| object   | columns                      |
|----------|------------------------------|
| `event`  | `id`, `expires`, `body`      |
| `state`  | `name`, `body`               |
| `outbox` | `number`, `id`, `body`       |

`body` is as in the registry, of which some are text and some are bytes (`text` says which). They stand at the last `push` or
`close`, which write them whole; a manifest that a flush makes names those of the manifest before.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidings.durable.lake.subscription_objects import read_rows
from tidings.durable.registry import Registry, crc_of

COLUMNS = {
    "event": {"id": pa.string(), "expires": pa.int64()},
    "state": {"name": pa.string()},
    "outbox": {"number": pa.int64(), "id": pa.string()},
}
FACTS = ("clock", "publications")
"""What `meta` says of them."""


def record_tables(registry: Registry) -> dict[str, pa.Table]:
    """The tables that have anything, of one state of the registry."""
    found = {}
    for name, columns in COLUMNS.items():
        registry.bodies(name)  # whose check sums are looked at
        rows = registry.read(f"SELECT {', '.join(columns)}, body FROM {name} ORDER BY 1")
        if rows:
            *keys, bodies = zip(*rows, strict=True)
            arrays = [pa.array(values, kind) for values, kind in zip(keys, columns.values(), strict=True)]
            text = pa.array([isinstance(body, str) for body in bodies])
            found[name] = pa.table([*arrays, pa.array(map(as_bytes, bodies), pa.binary()), text], [*columns, "body", "text"])
    return found


def as_bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


def record_rows_of(path: Path, name: str) -> Iterable[tuple[Any, ...]]:
    """The rows as the registry has them: keys, body and its check sum."""
    table = read_rows(path)
    for *keys, body, text in zip(*(table[column].to_pylist() for column in (*COLUMNS[name], "body", "text")), strict=True):
        kept = body.decode() if text else body
        yield (*keys, kept, crc_of(kept))
