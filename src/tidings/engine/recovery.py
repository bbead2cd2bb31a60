"""From the registry back to a running topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tidings.engine.publisher import Publisher
from tidings.engine.registry import Registry
from tidings.engine.rows import rows_of_batch
from tidings.model.columns import subscriptions_from_arrow
from tidings.model.event import event_from_record
from tidings.model.subscription import from_record

if TYPE_CHECKING:
    from tidings.engine.durable import DurableTopic


def catch_up(topic: DurableTopic) -> None:
    """Apply to the store every change after the snapshot it stands at; with an empty store, everything."""
    registry, store = topic.registry, topic.store
    after, last = store.snapshot.seq, registry.last_seq()
    if store.snapshot.segments:
        store.remove(last, [id for (id,) in registry.read("SELECT id FROM gone WHERE seq > ?", after)])
    else:
        after = -1
    for seq, body in registry.read("SELECT seq, body FROM chunk WHERE seq > ? ORDER BY seq", after):
        table = live_rows(registry, seq, pa.ipc.open_stream(body).read_all())
        if len(table):
            store.put_rows(last, rows_of_batch(subscriptions_from_arrow(topic.schema, topic.vocabularies, table), _since(table)))
    singles = registry.read("SELECT body FROM subscription WHERE seq > ? ORDER BY seq", after)
    store.put(last, [from_record(topic.schema, json.loads(body)) for (body,) in singles])


def live_rows(registry: Registry, seq: int, table: pa.Table) -> pa.Table:
    """The rows of a load that no later change removed or replaced."""
    gone = [id for (id,) in registry.read("SELECT id FROM gone WHERE seq > ?", seq)]
    return table.filter(pc.invert(pc.is_in(table["id"], pa.array(gone, table["id"].type)))) if gone else table


def _since(table: pa.Table) -> int:
    return int((table.schema.metadata or {})[b"since"])


def restore_publisher(topic: DurableTopic, registry: Registry) -> Publisher:
    """Live events, windows and boards as they were at the last commit."""
    meta = registry.meta()
    publisher = topic.new_publisher()
    for (body,) in registry.read("SELECT body FROM event ORDER BY id"):
        publisher.events.put(event_from_record(topic.schema, json.loads(body)))
    publisher.restore(meta.get("clock"), meta.get("publications", 0), registry.read("SELECT name, body FROM state"))
    publisher.restore_boards(topic.store.subscriptions() if topic.key is not None else ())
    return publisher
