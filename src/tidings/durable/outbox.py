"""Notifications that wait for their consumer. Each stands here once, from the commit of the change that made it until acknowledged.

Numbers ascend in the order of the changes and are never used twice, so a consumer that remembers the last number it has dealt
with can go on from there after any crash, of its own or of the topic:

    for number, notification in topic.outbox(after=done):
        deliver(notification)
        done = number
    topic.acknowledge(done)

A consumer that crashes between delivering and remembering sees the notification again, with the same `Notification.id`.
"""

from __future__ import annotations

import json
from datetime import datetime

from tidings.durable.registry import Registry
from tidings.match.answers.results import Notification


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


def _notification(body: str) -> Notification:
    subscription, event, score, rank, why, at = json.loads(body)
    return Notification(subscription, event, score, rank, why, datetime.fromisoformat(at))
