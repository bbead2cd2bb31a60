"""Live events that were published together, as the registry keeps them: an Arrow stream a batch, not a row an event.

`event_batch` has the events of one commit, published as the `first` to the `last`; `until` is when the last of them expires, null
if one does not, and `gone` counts those that were replaced. `event_gone` has the number of each of these.

What has expired is told by the clock, so nothing is written when time passes but that whole batches are let go. A batch of which
most was replaced is given up, and what is left of it becomes rows of `event`, where single events and few at a time stand.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.durable.registry import Registry, crc_of
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch, events_from_arrow
from tidings.model.door.event import Event
from tidings.model.door.event_record import event_to_record
from tidings.model.values.limits import recovering
from tidings.model.values.schema import Schema
from tidings.topic.live.live_events import LiveEvents

FEWEST = 64
"""Events of one commit from which on they are kept together."""
LARGEST = 1 << 18
"""Rows that are read at once."""
MOSTLY = 0.75
AT, FIRST = b"at", b"first"


class Stored(NamedTuple):
    """A batch as it was written, with the publications' numbers and instants."""

    table: pa.Table
    nth: NDArray[np.int64]
    at: NDArray[np.int64]

    def some(self, keep: NDArray[np.bool_]) -> Stored:
        return self if keep.all() else Stored(self.table.filter(pa.array(keep)), self.nth[keep], self.at[keep])


def body_of(table: pa.Table, first: int, at: NDArray[np.int64]) -> bytes:
    """One instant is written once."""
    instants = at[:1] if len(at) and (at == at[0]).all() else at
    said = table.replace_schema_metadata({AT: instants.astype("<i8").tobytes(), FIRST: str(first)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, said.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(said)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def stored(body: bytes) -> Stored:
    table = pa.ipc.open_stream(body).read_all()
    said = table.schema.metadata
    at = np.frombuffer(said[AT], "<i8").astype(np.int64)
    nth = int(said[FIRST]) + np.arange(len(table))
    return Stored(table.replace_schema_metadata(None), nth, np.resize(at, len(table)) if len(at) else nth[:0])


def put_events(db: sqlite3.Connection, batch: EventBatch, at: NDArray[np.int64], last: int) -> None:
    """The events of one commit, of which the last was the `last` publication."""
    first = last - len(batch) + 1
    until = None if (batch.expires == NONE).any() else int(batch.expires.max())
    body = body_of(batch.own_table(), first, at)
    db.execute(
        "INSERT INTO event_batch (first, last, until, gone, body, crc) VALUES (?, ?, ?, 0, ?, ?)",
        (first, last, until, body, crc_of(body)),
    )


def put_single_events(db: sqlite3.Connection, events: Iterable[tuple[Event, tuple[int, int]]]) -> None:
    """Each with when it was published, and as the how-manieth."""
    bodies = [(event, json.dumps(event_to_record(event) | {"published": published})) for event, published in events]
    rows = [(event.id, event.expires, body, crc_of(body)) for event, body in bodies]
    db.executemany("INSERT OR REPLACE INTO event (id, expires, body, crc) VALUES (?, ?, ?, ?)", rows)


def mark_replaced(db: sqlite3.Connection, schema: Schema, live: LiveEvents, numbers: Sequence[int]) -> None:
    """Events of these publications are no longer live, `live` has those that are; whoever is no part of a batch is nobody's
    concern here."""
    concerned = set()
    for number in numbers:
        there = db.execute("SELECT first, last FROM event_batch WHERE first <= ? ORDER BY first DESC LIMIT 1", (number,)).fetchone()
        if there is not None and number <= there[1]:
            concerned.add(there[0])
            db.execute("INSERT OR IGNORE INTO event_gone VALUES (?)", (number,))
            db.execute("UPDATE event_batch SET gone = gone + 1 WHERE first = ?", (there[0],))
    for first in concerned:
        _give_up_if_mostly_gone(db, schema, live, first)


def _give_up_if_mostly_gone(db: sqlite3.Connection, schema: Schema, live: LiveEvents, first: int) -> None:
    [(last, gone, body)] = db.execute("SELECT last, gone, body FROM event_batch WHERE first = ?", (first,))
    if gone < MOSTLY * (last - first + 1):
        return
    kept = stored(body)
    # What has expired was replaced by nobody, and an event of its id may be live.
    there = [live.published(id)[1] for id in kept.table["id"].to_pylist()]
    kept = kept.some(np.array(there, np.int64) == kept.nth)
    published = zip(kept.at.tolist(), kept.nth.tolist(), strict=True)
    put_single_events(db, zip(_read(schema, kept.table).events(), published, strict=True))
    db.execute("DELETE FROM event_batch WHERE first = ?", (first,))
    db.execute("DELETE FROM event_gone WHERE number BETWEEN ? AND ?", (first, last))


def drop_expired(db: sqlite3.Connection, clock: int) -> None:
    """Batches of which nothing is live any more."""
    over = db.execute("SELECT first, last FROM event_batch WHERE until <= ?", (clock,)).fetchall()
    for first, last in over:
        db.execute("DELETE FROM event_batch WHERE first = ?", (first,))
        db.execute("DELETE FROM event_gone WHERE number BETWEEN ? AND ?", (first, last))


def restore_batches(live: LiveEvents, schema: Schema, bodies: Iterable[bytes], gone: Sequence[int]) -> None:
    """Put what is left of these batches among the live events; batches of one form together, since that is much quicker."""
    marks, group, size = np.unique(np.array(gone, np.int64)), list[Stored](), 0
    for body in bodies:
        batch = stored(body)
        batch = batch.some(~np.isin(batch.nth, marks)) if len(marks) else batch
        if group and (batch.table.schema != group[0].table.schema or size + len(batch.table) > LARGEST):
            _put(live, schema, group)
            group, size = [], 0
        group.append(batch)
        size += len(batch.table)
    _put(live, schema, group)


def _put(live: LiveEvents, schema: Schema, group: Sequence[Stored]) -> None:
    if group and any(len(batch.table) for batch in group):
        table = pa.concat_tables([batch.table for batch in group]).combine_chunks()
        at, nth = np.concatenate([batch.at for batch in group]), np.concatenate([batch.nth for batch in group])
        live.put_batch(_read(schema, table), at, nth)


def _read(schema: Schema, table: pa.Table) -> EventBatch:
    with recovering():
        return events_from_arrow(schema, Vocabularies(schema), table)


def batch_bodies(registry: Registry) -> tuple[list[bytes], list[int]]:
    """All batches, in the order of publication, and the numbers that were replaced."""
    bodies = [body for _, body in registry.bodies("event_batch", "ORDER BY first")]
    gone = registry.read("SELECT number FROM event_gone") if bodies else []
    return bodies, [number for (number,) in gone]
