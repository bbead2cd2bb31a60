"""The rows that `notify` gives: as tables on their way, and at last with the stable id of each."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidings.match.answers.results import SEPARATOR, instant
from tidings.spark.frames.columns import NOTIFICATION, Batches
from tidings.spark.state.shards import from_bytes

ON_THE_WAY = {name: kind for name, kind in NOTIFICATION.items() if name != "id"} | {"at": pa.int64()}


def notification_table(subscription: Any, event: Any, score: Any, rank: Any, why: Any, at: Any) -> pa.Table:
    """Columns of ON_THE_WAY."""
    columns = zip(ON_THE_WAY.items(), (subscription, event, score, rank, why, at), strict=True)
    return pa.table({name: _cast(column, kind) for (name, kind), column in columns})


def _cast(column: Any, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return column.cast(kind) if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column, kind)


def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Notifications of packed records, with ids."""
    for batch in batches:
        for body in batch["body"]:
            yield from with_ids(from_bytes(body.as_buffer())).to_batches(max_chunksize=100_000)


def with_ids(told: pa.Table) -> pa.Table:
    """The columns of NOTIFICATION: as `results.Notification.id` says, for many; each instant is written once."""
    at = told["at"].combine_chunks().dictionary_encode()
    instants = pa.array([instant(time).isoformat() for time in at.dictionary.to_pylist()], pa.string()).take(at.indices)
    texts = pc.binary_join_element_wise(told["subscription"], told["event"], told["why"], instants, SEPARATOR)
    ids = [blake2b(text, digest_size=16).hexdigest() for text in texts.cast(pa.binary()).to_pylist()]
    table = told.set_column(told.column_names.index("at"), "at", told["at"].cast(NOTIFICATION["at"]))
    return table.add_column(0, "id", pa.array(ids, pa.string())).select(list(NOTIFICATION))
