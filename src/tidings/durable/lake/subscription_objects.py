"""The rows of a segment as Parquet, so that a lake is a record and not only an index: any engine can read who subscribes to what.

A row has `_ordinal`, its place in the segment, and either the columns of a bulk load as they were given (docs/spark.md) with
`_since`, the instant from which its window counts, or `_record`, a subscription as JSON. A segment has an object for every form
that its rows have, mostly one. Who is gone stands in the segment's bitmap, which serves both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.durable.recovery import gone_marks, live_rows, since_of
from tidings.durable.registry import Registry
from tidings.errors import StorageError
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.sorted_ids import ABSENT, Names
from tidings.model.door.subscription_record import to_record

pc = lazily("pyarrow.compute")
pq = lazily("pyarrow.parquet")

ORDINAL, SINCE, RECORD = "_ordinal", "_since", "_record"
ASKED_AT_ONCE = 500
FEW = 10_000
"""Up to so many, the registry is asked for each; beyond, it is read whole."""


def given_rows(table: pa.Table, ordinal: NDArray[np.int64], since: int) -> pa.Table:
    """Rows of a bulk load, in order of their ordinals."""
    order = np.argsort(ordinal)
    own = table.replace_schema_metadata(None).take(pa.array(order))
    return own.append_column(ORDINAL, pa.array(ordinal[order])).append_column(SINCE, pa.array(np.full(len(order), since)))


def record_rows(ordinal: Sequence[int], bodies: Sequence[str]) -> pa.Table:
    return pa.table({ORDINAL: pa.array(ordinal, pa.int64()), RECORD: pa.array(bodies, pa.string())})


def write_rows(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd")


def read_rows(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise StorageError(f"{path} is damaged: {str(error).splitlines()[0]}") from error


def by_form(tables: Iterable[pa.Table]) -> list[pa.Table]:
    """The rows of all tables, as one table for every form."""
    forms: dict[pa.Schema, list[pa.Table]] = {}
    for table in tables:
        if len(table):
            forms.setdefault(table.schema.remove_metadata(), []).append(table.replace_schema_metadata(None))
    return [pa.concat_tables(same).combine_chunks() for same in forms.values()]


def rows_in_registry(registry: Registry, live: LiveSegment, seq: int) -> list[pa.Table]:
    """The rows of a segment's subscriptions that live at change `seq`, which the registry has reached or passed.

    What was changed since then has another row in the registry by now: it is written as the segment has it.
    """
    ordinals = live.live(seq)
    ids = live.ids(ordinals)
    with registry.reading():
        later = pa.array([id for (id,) in registry.read("SELECT id FROM gone WHERE seq > ?", seq)], pa.string())
        unchanged = pc.invert(pc.is_in(ids, later)) if len(later) else pa.array(np.ones(len(ids), np.bool_))
        wanted = ids.filter(unchanged)
        singles = dict(_singles(registry, wanted))
        tables = [record_rows(live.segment.names.find_many(pa.array(singles, pa.string())).tolist(), list(singles.values()))]
        if len(singles) < len(wanted):
            tables += _loaded(registry, live.segment.names, wanted, seq)
    found = np.zeros(len(live), np.bool_)
    for table in tables:
        found[table[ORDINAL].to_numpy()] = True
    missing = [int(ordinal) for ordinal in ordinals if not found[ordinal]]
    tables.append(record_rows(missing, [json.dumps(to_record(live.subscription(ordinal))) for ordinal in missing]))
    return by_form(tables)


def _singles(registry: Registry, ids: pa.StringArray) -> list[tuple[str, str]]:
    """(id, record) of those that were set one at a time."""
    if len(ids) > FEW:
        wanted = set(ids.to_pylist())
        return [(id, body) for id, body in registry.bodies("subscription") if id in wanted]
    found = []
    for first in range(0, len(ids), ASKED_AT_ONCE):
        some = ids.slice(first, ASKED_AT_ONCE).to_pylist()
        found += registry.bodies("subscription", f"WHERE id IN ({', '.join('?' * len(some))})", *some)
    return found


def _loaded(registry: Registry, names: Names, wanted: pa.StringArray, seq: int) -> list[pa.Table]:
    """The rows of bulk loads."""
    marks, tables = gone_marks(registry), []
    for chunk, body in registry.bodies("chunk", "WHERE seq <= ?", seq):
        table = live_rows(marks, chunk, pa.ipc.open_stream(body).read_all())
        since = since_of(table)
        here = table.filter(pc.is_in(table["id"], wanted.cast(table["id"].type)))
        ordinal = names.find_many(here["id"].combine_chunks().cast(pa.string()))
        tables.append(given_rows(here.filter(pa.array(ordinal != ABSENT)), ordinal[ordinal != ABSENT], since))
    return tables


def moved_rows(tables: Iterable[pa.Table], live: LiveSegment, seq: int, to: Names) -> list[pa.Table]:
    """The rows of those who live at `seq`, with the ordinals that they have in another segment."""
    moved = []
    for table in tables:
        ordinal = table[ORDINAL].to_numpy()
        kept = live.is_live(ordinal, seq)
        place = to.find_many(live.ids(ordinal[kept]))
        column = table.column_names.index(ORDINAL)
        moved.append(table.filter(pa.array(kept)).set_column(column, ORDINAL, pa.array(place)))
    return moved
