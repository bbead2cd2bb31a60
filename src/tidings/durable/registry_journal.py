"""A durable topic's journal: every change is one transaction of the registry."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence

import pyarrow as pa

from tidings.durable import event_batches
from tidings.durable.event_batches import drop_expired, mark_replaced, put_events, put_single_events
from tidings.durable.hearing import Hearing, put_taken
from tidings.durable.recovery import restore_publisher
from tidings.durable.registry import Registry, crc_of, put_chunk, put_gone, put_subscriptions, set_meta
from tidings.durable.waiting import put_notes
from tidings.match.answers.results import Notification
from tidings.match.store.store import Store
from tidings.model.door.subscription import Subscription
from tidings.model.door.subscription_record import to_record
from tidings.topic.gates import GATE
from tidings.topic.journal import Journal
from tidings.topic.publications import Publications, PublishedBatch
from tidings.topic.publisher import Publisher


def chunk_body(table: pa.Table, since: int) -> pa.Buffer:
    """A bulk load's rows as the registry keeps them."""
    sink = pa.BufferOutputStream()
    table = table.replace_schema_metadata({"since": str(since)})
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _put_states(db: sqlite3.Connection, publisher: Publisher) -> None:
    states = [(name, body, crc_of(body)) for name, body in publisher.changed_state()]
    db.executemany("INSERT OR REPLACE INTO state (name, body, crc) VALUES (?, ?, ?)", states)


def _drop_states(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    db.executemany("DELETE FROM state WHERE name = ? OR name = ?", [(id, GATE + id) for id in ids])


class RegistryJournal(Journal):
    def __init__(self, registry: Registry, keyed: bool, outbox_limit: int | None = None) -> None:
        """With an `outbox_limit` the outbox keeps the newest so many, whoever has not heard the others."""
        self.registry = registry
        self.keyed = keyed
        self.outbox_limit = outbox_limit
        self.hearing: Hearing | None = None
        """set where notifications are delivered with their events and owners, see `outbox`"""
        self.seen: Callable[[Publications | None, Sequence[Notification]], None] | None = None
        """told of what was published, once it is committed"""

    def must_be_writable(self) -> None:
        self.registry.must_be_writable()

    def put(
        self,
        seq: int,
        subscription: Subscription,
        notes: Sequence[Notification],
        publisher: Publisher,
        *,
        same_window: bool = False,
    ) -> None:
        with self.registry.transaction() as db:
            put_gone(db, seq, [subscription.id])
            put_subscriptions(db, seq, [(subscription.id, json.dumps(to_record(subscription)))])
            if not same_window:
                db.execute("DELETE FROM state WHERE name = ?", (subscription.id,))
            if subscription.id not in publisher.gates:
                db.execute("DELETE FROM state WHERE name = ?", (GATE + subscription.id,))
            self._put_notes(db, notes)
            _put_states(db, publisher)
            set_meta(db, seq=seq)

    def loaded(
        self,
        seq: int,
        table: pa.Table,
        replaced: Sequence[str],
        since: int,
        notes: Sequence[Notification],
        publisher: Publisher,
    ) -> None:
        with self.registry.transaction() as db:
            put_gone(db, seq, replaced)
            put_chunk(db, seq, len(table), chunk_body(table, since))
            _drop_states(db, replaced)
            self._put_notes(db, notes)
            _put_states(db, publisher)
            set_meta(db, seq=seq)

    def _put_notes(self, db: sqlite3.Connection, notes: Sequence[Notification], again: bool = True) -> None:
        owner_of = None if self.hearing is None else self.hearing.owner_of
        put_notes(db, notes, self.keyed, owner_of, again and not self.keyed, self.outbox_limit)

    def removed(self, seq: int, ids: Sequence[str]) -> None:
        with self.registry.transaction() as db:
            put_gone(db, seq, ids)
            _drop_states(db, ids)
            set_meta(db, seq=seq)

    def published(self, events: Publications | None, notes: Sequence[Notification], publisher: Publisher) -> None:
        replaced = publisher.events.replaced or []
        with self.registry.transaction() as db:
            mark_replaced(db, publisher.schema, publisher.events, replaced)
            together = self._put_together(db, events, publisher, bool(replaced))
            if not together and events is not None:
                self._put_each(db, events, publisher)
            if publisher.clock is not None:
                db.execute("DELETE FROM event WHERE expires <= ?", (publisher.clock,))
                drop_expired(db, publisher.clock)
            self._put_notes(db, notes, again=not together)
            if self.hearing is not None:
                put_taken(db, events, notes, publisher.events, self.hearing)
            _put_states(db, publisher)
            db.executemany("DELETE FROM state WHERE name = ?", [(name,) for name in publisher.gone_state()])
            set_meta(db, clock=publisher.clock, publications=publisher.windows.publications)
        replaced.clear()
        if self.seen is not None:
            self.seen(events, notes)

    def _put_together(self, db: sqlite3.Connection, events: Publications | None, publisher: Publisher, replaces: bool) -> bool:
        """Keep many events of a stream as columns, if none of them has replaced another; whether that was done."""
        if self.keyed or replaces or not isinstance(events, PublishedBatch) or len(events) < event_batches.FEWEST:
            return False
        put_events(db, events.batch, events.at, publisher.windows.publications)
        return True

    def _put_each(self, db: sqlite3.Connection, events: Publications, publisher: Publisher) -> None:
        last = {event.id: event for event in events.events()}
        live = publisher.published(last.values())
        put_single_events(db, live)
        db.executemany("DELETE FROM event WHERE id = ?", [(id,) for id in last.keys() - {event.id for event, _ in live}])

    def restored(self, fresh: Callable[[], Publisher], store: Store) -> Publisher:
        return restore_publisher(fresh(), store, self.registry)

    def close(self) -> None:
        self.registry.close()
