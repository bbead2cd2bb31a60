"""Notifications that wait for their consumers: each once, from the commit of the change that made it until it is acknowledged.

Numbers ascend in the order of the changes and are never used twice, so a consumer that remembers the last number it has dealt
with can go on from there after any crash, of its own or of the topic:

    for number, notification in topic.outbox(after=done):
        deliver(notification)
        done = number
    topic.acknowledge(done)

Several consumers each have a name, and the topic remembers for each how far it is (`add_consumer`):

    for number, notification in topic.outbox(consumer="mail"):
        deliver(notification)
        topic.acknowledge(number, consumer="mail")

What all of them have acknowledged is forgotten. Whoever acknowledges without a name is one of them from then on. A consumer that
crashes between delivering and acknowledging sees the notification again, with the same `Notification.id`. A process that opened the
topic with `mode="r"` may read and acknowledge beside the writer.
`OutboxReader` is the same for those who deliver beside the writer, in another thread or process: it has a connection of its own.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime
from functools import cached_property
from pathlib import Path

from tidings.durable.hearing import records
from tidings.durable.registry import REGISTRY, Registry
from tidings.durable.waiting import OutboxPages, Waiting, forget, newest
from tidings.errors import EventError, OutboxError, shown
from tidings.match.answers.results import Notification, with_body
from tidings.model.door.single_values import read_id

UNNAMED = ""
LARGEST = 2**63 - 1
ADVANCE = "INSERT INTO consumer VALUES (?, ?) ON CONFLICT (name) DO UPDATE"


class Outbox:
    registry: Registry

    @cached_property
    def _pages(self) -> OutboxPages:
        return OutboxPages(self.registry)

    def outbox(self, after: int = 0, limit: int = 1000, *, consumer: str | None = None) -> list[tuple[int, Notification]]:
        """The first `limit` notifications, by number, above `after` that `consumer` did not acknowledge.

        >>> import tempfile
        >>> import tidings as td
        >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> notes = deals.publish({"id": "e1", "price": 3}, time=1)
        >>> [(number, note.event) for number, note in deals.outbox()]
        [(1, 'e1')]
        >>> deals.close()
        """
        done = max(_number("after", after), self._done(consumer))
        return [(waiting.number, _notification(waiting)) for waiting in self._pages.after(done, _number("limit", limit))]

    def acknowledge(self, number: int, *, consumer: str | None = None) -> None:
        """`consumer` is done with the notifications up to and including `number`; what all are done with is forgotten.

        >>> import tempfile
        >>> import tidings as td
        >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> notes = deals.publish({"id": "e1", "price": 3}, time=1)
        >>> deals.acknowledge(1)
        >>> deals.outbox()
        []
        >>> deals.close()
        """
        name, number = _name(consumer), _number("number", number)
        with self.registry.beside_the_writer() as db:
            last = newest(db)
            if number > last:
                raise OutboxError(f"number is {number}: the newest notification of this topic has number {last}")
            if name != UNNAMED:
                _must_be_there(name, dict(db.execute("SELECT name, done FROM consumer")))
            db.execute(f"{ADVANCE} SET done = max(done, excluded.done)", (name, number))
            _forget(db)
        self.registry.shrink()

    def add_consumer(self, name: str, *, after: int | None = None) -> None:
        """Remember how far `name` is: from the oldest notification that is still there, or from number `after` on.

        Who is there already goes on from where he was. From now on no notification is forgotten that `name` has not acknowledged.

        >>> import tempfile
        >>> import tidings as td
        >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> deals.add_consumer("mail")
        >>> notes = deals.publish({"id": "e1", "price": 3}, time=1)
        >>> [note.event for _, note in deals.outbox(consumer="mail")]
        ['e1']
        >>> deals.close()
        """
        name, done = _name(name), 0 if after is None else _number("after", after)
        with self.registry.beside_the_writer() as db:
            db.execute("INSERT OR IGNORE INTO consumer VALUES (?, ?)", (name, min(done, newest(db))))

    def remove_consumer(self, name: str) -> None:
        """Nothing is kept for `name` any more.

        >>> import tempfile
        >>> import tidings as td
        >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> deals.add_consumer("mail")
        >>> deals.remove_consumer("mail")
        >>> deals.consumers()
        {}
        >>> deals.close()
        """
        name = _name(name)
        with self.registry.beside_the_writer() as db:
            _must_be_there(name, dict(db.execute("SELECT name, done FROM consumer")))
            db.execute("DELETE FROM consumer WHERE name = ?", (name,))
            _forget(db)
        self.registry.shrink()

    def consumers(self) -> dict[str, int]:
        """The last number that each consumer is done with, by name.

        >>> import tempfile
        >>> import tidings as td
        >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> notes = deals.publish({"id": "e1", "price": 3}, time=1)
        >>> deals.add_consumer("mail", after=1)
        >>> deals.consumers()
        {'mail': 1}
        >>> deals.close()
        """
        return {name: done for name, done in sorted(self._known().items()) if name != UNNAMED}

    def _known(self) -> dict[str, int]:
        """A registry of an earlier format has no such table, as long as nobody has written to it."""
        there = self.registry.read("SELECT count(*) FROM sqlite_master WHERE name = 'consumer'") != [(0,)]
        return dict(self.registry.read("SELECT name, done FROM consumer")) if there else {}

    def _done(self, consumer: str | None) -> int:
        name, known = _name(consumer), self._known()
        if name != UNNAMED:
            _must_be_there(name, known)
        return known.get(name, 0)


def _forget(db: sqlite3.Connection) -> None:
    """Drop what every consumer is done with."""
    [(done,)] = db.execute("SELECT min(done) FROM consumer")
    if done is not None:
        forget(db, done)


def _must_be_there(name: str, known: dict[str, int]) -> None:
    if name not in known:
        there = ", ".join(sorted(repr(one) for one in known if one != UNNAMED)) or "none"
        raise OutboxError(f"there is no consumer {name!r} (there are: {there}): add_consumer({name!r}) makes one")


def _name(consumer: str | None) -> str:
    if consumer is None:
        return UNNAMED
    try:
        return read_id("consumer", consumer)
    except EventError as error:
        raise OutboxError(str(error)) from None


def _number(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise OutboxError(f"{field} is {shown(value)}: a whole number of 0 or more is accepted")
    return value


class OutboxReader:
    """Reads the outbox of the topic in `folder`. Threads take turns."""

    def __init__(self, folder: Path) -> None:
        self.registry = Registry(folder / REGISTRY, readonly=True)
        self._pages = OutboxPages(self.registry)

    def version(self) -> int:
        """Another number after every commit of another connection; as cheap as a question can be."""
        return self.registry.version()

    def ends(self) -> tuple[int, int]:
        """The last number that is gone, and the newest ever given."""
        return self._pages.ends()

    def after(
        self, number: int, limit: int, *, subscription: str | None = None, owner: str | None = None, upto: int | None = None
    ) -> list[Waiting]:
        """The first `limit` numbered above `number` (and up to `upto`), of one subscription or one owner if that is said."""
        return self._pages.after(number, limit, subscription=subscription, owner=owner, upto=upto)

    def records(self, ids: list[str]) -> dict[str, str]:
        return records(self.registry, ids)

    def close(self) -> None:
        self.registry.close()


def _notification(waiting: Waiting) -> Notification:
    _, _, subscription, event, score, rank, why, at, *_ = waiting
    note = Notification(subscription, event, score, rank, why, datetime.fromisoformat(at))
    return note if waiting.body is None else with_body(note, waiting.body)
