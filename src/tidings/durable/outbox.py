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

import json
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tidings.durable.hearing import records
from tidings.durable.registry import REGISTRY, Registry
from tidings.errors import EventError, OutboxError, shown
from tidings.match.answers.results import Notification, with_body
from tidings.model.door.single_values import read_id

UNNAMED = ""
LARGEST = 2**63 - 1
ADVANCE = "INSERT INTO consumer VALUES (?, ?) ON CONFLICT (name) DO UPDATE"

_OF = {"subscription": "json_extract(body, '$[0]')", "owner": "json_extract(body, '$[6]')"}


class Waiting(NamedTuple):
    """A notification in the outbox. `id` is stable; `owner` is the subscription's when it was told; `digest` is its list."""

    number: int
    id: str
    subscription: str
    event: str
    score: float
    rank: int | None
    why: str
    at: str
    owner: str | None
    digest: list[dict[str, Any]] | None = None


class Outbox:
    registry: Registry

    def outbox(self, after: int = 0, limit: int = 1000, *, consumer: str | None = None) -> list[tuple[int, Notification]]:
        """The first `limit` notifications, by number, above `after` that `consumer` did not acknowledge."""
        done = max(_number("after", after), self._done(consumer))
        rows = self.registry.bodies("outbox", "WHERE number > ? ORDER BY number LIMIT ?", done, _number("limit", limit))
        return [(number, _notification(body)) for number, body in rows]

    def acknowledge(self, number: int, *, consumer: str | None = None) -> None:
        """`consumer` is done with the notifications up to and including `number`; what all are done with is forgotten."""
        name, number = _name(consumer), _number("number", number)
        with self.registry.beside_the_writer() as db:
            newest = _newest(db)
            if number > newest:
                raise OutboxError(f"number is {number}: the newest notification of this topic has number {newest}")
            if name != UNNAMED:
                _must_be_there(name, dict(db.execute("SELECT name, done FROM consumer")))
            db.execute(f"{ADVANCE} SET done = max(done, excluded.done)", (name, number))
            _forget(db)
        self.registry.shrink()

    def add_consumer(self, name: str, *, after: int | None = None) -> None:
        """Remember how far `name` is: from the oldest notification that is still there, or from number `after` on.

        Who is there already goes on from where he was. From now on no notification is forgotten that `name` has not acknowledged.
        """
        name, done = _name(name), 0 if after is None else _number("after", after)
        with self.registry.beside_the_writer() as db:
            db.execute("INSERT OR IGNORE INTO consumer VALUES (?, ?)", (name, min(done, _newest(db))))

    def remove_consumer(self, name: str) -> None:
        """Nothing is kept for `name` any more."""
        name = _name(name)
        with self.registry.beside_the_writer() as db:
            _must_be_there(name, dict(db.execute("SELECT name, done FROM consumer")))
            db.execute("DELETE FROM consumer WHERE name = ?", (name,))
            _forget(db)
        self.registry.shrink()

    def consumers(self) -> dict[str, int]:
        """The last number that each consumer is done with, by name."""
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
    db.execute("DELETE FROM outbox WHERE number <= (SELECT min(done) FROM consumer)")


def _newest(db: sqlite3.Connection) -> int:
    """The highest number that was ever given."""
    given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
    return 0 if given is None else int(given[0])


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

    def version(self) -> int:
        """Another number after every commit of another connection; as cheap as a question can be."""
        return self.registry.version()

    def ends(self) -> tuple[int, int]:
        """The last number that is gone, and the newest ever given."""
        [(newest,)] = self.registry.read("SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox'")
        [(oldest,)] = self.registry.read("SELECT ifnull(min(number), ?) FROM outbox", newest + 1)
        return oldest - 1, newest

    def after(
        self, number: int, limit: int, *, subscription: str | None = None, owner: str | None = None, upto: int | None = None
    ) -> list[Waiting]:
        """The first `limit` numbered above `number` (and up to `upto`), of one subscription or one owner if that is said."""
        said = {"subscription": subscription, "owner": owner}
        wanted = {name: value for name, value in said.items() if value is not None}
        tests = ["number > ?", *(f"{_OF[name]} = ?" for name in wanted), *([] if upto is None else ["number <= ?"])]
        parameters = [number, *wanted.values(), *([] if upto is None else [upto]), limit]
        rows = self.registry.read(
            f"SELECT number, id, body FROM outbox WHERE {' AND '.join(tests)} ORDER BY number LIMIT ?", *parameters
        )
        return [_waiting(*row) for row in rows]

    def records(self, ids: list[str]) -> dict[str, str]:
        return records(self.registry, ids)

    def close(self) -> None:
        self.registry.close()


def _waiting(number: int, id: str, body: str) -> Waiting:
    fields: list[Any] = json.loads(body)
    subscription, event, score, rank, why, at = fields[:6]
    owner, told = fields[6] if len(fields) > 6 else None, fields[7] if len(fields) > 7 and why == "digest" else {}
    return Waiting(number, id, subscription, event, score, rank, why, at, owner, told.get("digest"))


def _notification(body: str) -> Notification:
    subscription, event, score, rank, why, at, *rest = json.loads(body)
    note = Notification(subscription, event, score, rank, why, datetime.fromisoformat(at))
    return with_body(note, rest[1]) if len(rest) > 1 else note
