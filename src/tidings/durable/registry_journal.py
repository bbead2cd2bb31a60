"""A durable topic's journal: every change is one transaction of the registry."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidings.durable.hearing import Hearing, put_taken
from tidings.durable.recovery import restore_publisher
from tidings.durable.registry import Registry, crc_of, put_chunk, put_gone, put_subscriptions, set_meta
from tidings.match.answers.results import Notification
from tidings.match.store.store import Store
from tidings.model.door.event import Event
from tidings.model.door.event_record import event_to_record
from tidings.model.door.subscription import Subscription, to_record
from tidings.topic.gates import GATE
from tidings.topic.journal import Journal
from tidings.topic.publications import Publications
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


def _kept(told: list[Any], owner: str | None, body: Mapping[str, Any] | None) -> list[Any]:
    """A notification as the outbox keeps it; owner and body only where there is one."""
    if body is not None:
        return [*told, owner, body]
    return told if owner is None else [*told, owner]


class RegistryJournal(Journal):
    def __init__(self, registry: Registry, keyed: bool, outbox_limit: int | None = None) -> None:
        """With an `outbox_limit` the outbox keeps the newest so many, whoever has not heard the others."""
        self.registry = registry
        self.keyed = keyed
        self.outbox_limit = outbox_limit
        self.hearing: Hearing | None = None
        """set where notifications are delivered with their events and owners, see `outbox`"""
        self.seen: Callable[[Sequence[Event], Sequence[Notification]], None] | None = None
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

    def _put_notes(self, db: sqlite3.Connection, notes: Sequence[Notification]) -> None:
        """An object may change twice in one instant, and both changes are news; an event enters a list once."""
        suffix = f"-{secrets.token_hex(4)}" if self.keyed else ""
        owner = (lambda _: None) if self.hearing is None else self.hearing.owner_of
        fields = [(n, [*n[:5], n.at.isoformat()], owner(n.subscription)) for n in notes]
        bodies = [(n.id + suffix, json.dumps(_kept(told, of, n.body))) for n, told, of in fields]
        due = [(id, body, crc_of(body)) for id, body in bodies]
        db.executemany("INSERT OR IGNORE INTO outbox (id, body, crc) VALUES (?, ?, ?)", due)
        if due and self.outbox_limit is not None:
            db.execute("DELETE FROM outbox WHERE number <= (SELECT max(number) FROM outbox) - ?", (self.outbox_limit,))

    def removed(self, seq: int, ids: Sequence[str]) -> None:
        with self.registry.transaction() as db:
            put_gone(db, seq, ids)
            _drop_states(db, ids)
            set_meta(db, seq=seq)

    def published(self, events: Publications | None, notes: Sequence[Notification], publisher: Publisher) -> None:
        last = {} if events is None else {e.id: e for e in events.events()}
        bodies = [(e, json.dumps(event_to_record(e) | {"published": at})) for e, at in publisher.published(last.values())]
        kept = [(e.id, e.expires, body, crc_of(body)) for e, body in bodies]
        gone = [(id,) for id in last.keys() - {e.id for e, _ in bodies}]
        with self.registry.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO event (id, expires, body, crc) VALUES (?, ?, ?, ?)", kept)
            db.executemany("DELETE FROM event WHERE id = ?", gone)
            db.execute("DELETE FROM event WHERE expires <= ?", (publisher.clock,))
            self._put_notes(db, notes)
            if self.hearing is not None:
                put_taken(db, list(last.values()), notes, self.hearing)
            _put_states(db, publisher)
            db.executemany("DELETE FROM state WHERE name = ?", [(name,) for name in publisher.gone_state()])
            set_meta(db, clock=publisher.clock, publications=publisher.windows.publications)
        if self.seen is not None:
            self.seen(list(last.values()), notes)

    def restored(self, fresh: Callable[[], Publisher], store: Store) -> Publisher:
        return restore_publisher(fresh(), store, self.registry)

    def close(self) -> None:
        self.registry.close()
