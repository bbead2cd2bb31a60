"""Notifications that wait for their consumer. Each stands here once, from the commit of the change that made it until acknowledged.

Numbers ascend in the order of the changes and are never used twice, so a consumer that remembers the last number it has dealt
with can go on from there after any crash, of its own or of the topic:

    for number, notification in topic.outbox(after=done):
        deliver(notification)
        done = number
    topic.acknowledge(done)

A consumer that crashes between delivering and remembering sees the notification again, with the same `Notification.id`.
`OutboxReader` is the same for those who deliver beside the writer, in another thread or process: it has a connection of its own.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tidings.durable.hearing import records
from tidings.durable.registry import REGISTRY, Registry
from tidings.match.answers.results import Notification

_OF = {"subscription": "json_extract(body, '$[0]')", "owner": "json_extract(body, '$[6]')"}


class Waiting(NamedTuple):
    """A notification in the outbox. `id` is stable; `owner` is the subscription's when it was told."""

    number: int
    id: str
    subscription: str
    event: str
    score: float
    rank: int | None
    why: str
    at: str
    owner: str | None


class Outbox:
    registry: Registry

    def outbox(self, after: int = 0, limit: int = 1000) -> list[tuple[int, Notification]]:
        """The first `limit` notifications numbered above `after`, in order, that were not acknowledged."""
        rows = self.registry.bodies("outbox", "WHERE number > ? ORDER BY number LIMIT ?", after, limit)
        return [(number, _notification(body)) for number, body in rows]

    def acknowledge(self, number: int) -> None:
        """Forget the notifications up to and including `number`."""
        with self.registry.transaction() as db:
            db.execute("DELETE FROM outbox WHERE number <= ?", (number,))
        self.registry.shrink()


class OutboxReader:
    """Reads the outbox of the topic in `folder`. Threads take turns."""

    def __init__(self, folder: Path) -> None:
        self.registry = Registry(folder / REGISTRY, readonly=True)

    def version(self) -> int:
        """Another number after every commit of another connection; as cheap as a question can be."""
        [(version,)] = self.registry.read("PRAGMA data_version")
        return int(version)

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
    return Waiting(number, id, subscription, event, score, rank, why, at, fields[6] if len(fields) > 6 else None)


def _notification(body: str) -> Notification:
    subscription, event, score, rank, why, at, *_ = json.loads(body)
    return Notification(subscription, event, score, rank, why, datetime.fromisoformat(at))
