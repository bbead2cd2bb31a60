"""Dead letters: notes that a sink's receiver refused, or did not take in time. Listed, read, sent again, forgotten.

A sink keeps the newest MOST of them; how many older ones were dropped is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from tidings.serve.hearing.notes import Note
from tidings.serve.hosting.ledger import Ledger
from tidings.serve.refusals import NotFound

MOST = 10_000


class Letters:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def put(self, topic: str, sink: str, notes: Sequence[Note], reason: str) -> int:
        """Keep them; how many older ones had to go."""
        now = datetime.now(UTC).isoformat()
        rows = [(topic, sink, note.waiting.id, note.body.decode(), reason, now) for note in notes]
        with self._ledger.change() as db:
            db.executemany("INSERT INTO letter (topic, sink, id, body, reason, at) VALUES (?, ?, ?, ?, ?, ?)", rows)
            return db.execute(
                "DELETE FROM letter WHERE topic = ? AND sink = ? AND number <= "
                "(SELECT number FROM letter WHERE topic = ? AND sink = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (topic, sink, topic, sink, MOST),
            ).rowcount

    def page(self, topic: str, sink: str, after: int, limit: int) -> list[dict[str, Any]]:
        query = (
            "SELECT number, id, body, reason, at FROM letter WHERE topic = ? AND sink = ? AND number > ? ORDER BY number LIMIT ?"
        )
        return [_letter(*row) for row in self._ledger.read(query, topic, sink, after, limit)]

    def get(self, topic: str, sink: str, number: int) -> dict[str, Any]:
        found = self.page(topic, sink, number - 1, 1)
        if not found or found[0]["number"] != number:
            raise NotFound(f"sink {sink!r} has no dead letter {number}")
        return found[0]

    def delete(self, topic: str, sink: str, numbers: Sequence[int]) -> int:
        with self._ledger.change() as db:
            rows = [(topic, sink, number) for number in numbers]
            return db.executemany("DELETE FROM letter WHERE topic = ? AND sink = ? AND number = ?", rows).rowcount

    def count(self, topic: str, sink: str) -> int:
        [(count,)] = self._ledger.read("SELECT count(*) FROM letter WHERE topic = ? AND sink = ?", topic, sink)
        return int(count)


def _letter(number: int, id: str, body: str, reason: str, at: str) -> dict[str, Any]:
    return {"number": number, "id": id, "reason": reason, "at": at, "notification": orjson.Fragment(body)}
