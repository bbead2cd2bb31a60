"""The rows that `notify` and `board` give: as tables on their way, and at last with the stable id of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.durable.snapshots import Snapshots
from tidings.match.answers.results import SEPARATOR, Notification
from tidings.spark.frames.answer_columns import NOTIFICATION
from tidings.spark.frames.arrow_stage import Batches, given_out
from tidings.spark.frames.metrics import MANIFEST
from tidings.spark.frames.pins import Pin, current, micro_batch
from tidings.spark.state.state_format import from_bytes

ON_THE_WAY = {name: kind for name, kind in NOTIFICATION.items() if name != "id"} | {"at": pa.int64()}


def notification_table(*columns: Iterable[object], digest: Sequence[object] | None = None) -> pa.Table:
    """The columns of ON_THE_WAY: subscription, event, score, rank, why, at; and digests, if there are any."""
    named = zip(ON_THE_WAY.items(), columns, strict=False)
    table = pa.table({name: _cast(column, kind) for (name, kind), column in named})
    kind = ON_THE_WAY["digest"]
    return table.append_column("digest", pa.nulls(len(table), kind) if digest is None else pa.array(digest, kind))


def _cast(column: Iterable[object], kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return column.cast(kind) if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column, kind)


def notes_table(notes: Sequence[Notification]) -> pa.Table:
    columns = [list(column) for column in zip(*notes, strict=True)] if notes else [[]] * len(Notification._fields)
    digests = [_listed(note) for note in notes] if any(note.why == "digest" for note in notes) else None
    return notification_table(*columns[:-1], pa.array(columns[-1], NOTIFICATION["at"]), digest=digests)


def _listed(note: Notification) -> list[dict[str, object]] | None:
    return [{**one, "at": datetime.fromisoformat(one["at"])} for one in note.digest] or None


def unpack(batches: Batches, by_batch: bool = False) -> Iterator[pa.RecordBatch]:
    """Notifications of packed records, with ids; `by_batch`: those of a micro-batch end with its number."""
    where = micro_batch() if by_batch else None
    suffix = "" if where is None else f"-{where[1]}"
    for batch in batches:
        for body in batch["body"]:
            yield from given_out(with_ids(from_bytes(body.as_buffer()), suffix))


@dataclass(frozen=True, slots=True)
class Unpacker:
    """`unpack` for a stream, whose notifications also say by which manifest they were told."""

    topic: Snapshots
    pin: Pin
    by_batch: bool = False

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        number = current(self.topic, self.pin).manifest
        for batch in unpack(batches, self.by_batch):
            yield batch.append_column(MANIFEST, pa.array(np.full(len(batch), number)))


def with_ids(told: pa.Table, suffix: str = "") -> pa.Table:
    """The columns of NOTIFICATION: as `results.Notification.id` says, for many; each instant is written once."""
    at = told["at"].combine_chunks().dictionary_encode()
    instants = written(at.dictionary.to_numpy()).take(at.indices)
    rank = told["rank"].fill_null(0).cast(pa.string())
    bits = pa.array((told["score"].to_numpy() + 0.0).view(np.int64)).cast(pa.string())
    texts = pc.binary_join_element_wise(told["subscription"], told["event"], told["why"], instants, rank, bits, SEPARATOR)
    ids = [blake2b(text, digest_size=16).hexdigest() + suffix for text in texts.cast(pa.binary()).to_pylist()]
    table = told.set_column(told.column_names.index("at"), "at", told["at"].cast(NOTIFICATION["at"]))
    return table.add_column(0, "id", pa.array(ids, pa.string())).select(list(NOTIFICATION))


def written(instants: NDArray[np.int64]) -> pa.StringArray:
    """Each as `datetime.isoformat` has it: with six digits of a second's parts, or without any."""
    exact = np.datetime_as_string(instants.view("M8[us]"), unit="us")
    return pc.binary_join_element_wise(pa.array(np.where(instants % 1_000_000 == 0, exact.astype("U19"), exact)), "+00:00", "")
