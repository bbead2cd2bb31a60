"""From the registry back to a running topic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.durable.event_batches import batch_bodies, restore_batches
from tidings.durable.registry import Registry
from tidings.match.store.store import Store
from tidings.match.store.subscription_rows import rows_of_batch
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.door.event_record import event_from_record
from tidings.model.door.subscription_record import from_record
from tidings.model.values.limits import recovering
from tidings.topic.live.live_events import NOT_KNOWN
from tidings.topic.publisher import Publisher

pc = lazily("pyarrow.compute")

Marks = tuple[pa.StringArray, NDArray[np.int64]]
"""Ids that were removed or replaced, and the change that last did so."""


def catch_up(store: Store, registry: Registry) -> None:
    """Apply to the store every change after the snapshot it stands at; with an empty store, everything.

    Between its steps the store is in no state that ever was, so it must not be saved before the end.
    """
    after, last = store.snapshot.seq, registry.last_seq()
    if store.snapshot.segments:
        store.remove(last, [id for (id,) in registry.read("SELECT id FROM gone WHERE seq > ?", after)])
    else:
        after = -1
    marks = gone_marks(registry)
    for seq, body in registry.bodies("chunk", "WHERE seq > ? ORDER BY seq", after):
        table = live_rows(marks, seq, pa.ipc.open_stream(body).read_all())
        if len(table):
            with recovering():
                batch = subscriptions_from_arrow(store.schema, store.vocabularies, table)
            store.put_rows(last, rows_of_batch(batch, since_of(table)))
    singles = registry.bodies("subscription", "WHERE seq > ? ORDER BY seq", after)
    store.put(last, [from_record(store.schema, json.loads(body)) for _, body in singles])


def gone_marks(registry: Registry) -> Marks:
    marks = registry.read("SELECT id, seq FROM gone")
    return pa.array([id for id, _ in marks], pa.string()), np.array([seq for _, seq in marks], np.int64)


def live_rows(marks: Marks, seq: int, table: pa.Table) -> pa.Table:
    """The rows of a load that no later change removed or replaced."""
    ids, changes = marks
    later = ids.filter(pa.array(changes > seq))
    # A table may have had numbers for ids, or a dictionary of texts.
    return table.filter(pc.invert(pc.is_in(table["id"].cast(pa.string()), later))) if len(later) else table


def since_of(table: pa.Table) -> int:
    return int((table.schema.metadata or {})[b"since"])


def restore_publisher(publisher: Publisher, store: Store, registry: Registry) -> Publisher:
    """Live events, windows and boards as they were at the last commit, in a publisher that knows nothing yet."""
    events = [json.loads(body) for _, body in registry.bodies("event", "ORDER BY id")]
    return restored_publisher(publisher, store, registry.meta(), batch_bodies(registry), events, registry.bodies("state"))


def restored_publisher(
    publisher: Publisher,
    store: Store,
    meta: Mapping[str, Any],
    batches: tuple[list[bytes], list[int]],
    events: Iterable[dict[str, Any]],
    states: list[tuple[Any, Any]],
) -> Publisher:
    """The same from what was read: the clock, live events in batches and those of them that are gone, records of others, windows
    by name."""
    restore_batches(publisher.events, store.schema, *batches)
    for record in events:
        publisher.events.put(event_from_record(store.schema, record), *record.get("published", NOT_KNOWN))
    clock = meta.get("clock")
    if clock is not None:
        publisher.events.expire(clock)
    publisher.events.replaced = [] if publisher.boards is None else None
    publisher.restore(clock, meta.get("publications", 0), states, store.near_subscriptions(), store.get)
    publisher.restore_boards(store.subscriptions() if publisher.boards is not None else ())
    return publisher
