"""Named readers of notifications: what each hears, and how far it has acknowledged. They read pages or streams from there on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidings.serve.hearing.listening import Selection
from tidings.serve.hosting.ledger import Ledger
from tidings.serve.refusals import NotFound


@dataclass(frozen=True, slots=True)
class Consumer:
    name: str
    selection: Selection
    cursor: int

    def described(self) -> dict[str, Any]:
        return {"name": self.name, **self.selection._asdict(), "cursor": self.cursor}


class Consumers:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def all(self, topic: str, owner: str | None = None) -> list[Consumer]:
        """Of a topic, or of one owner in it."""
        query = "SELECT name, subscription, owner, cursor FROM consumer WHERE topic = ? AND (? IS NULL OR owner = ?) ORDER BY name"
        return [
            Consumer(name, Selection(of, his), cursor) for name, of, his, cursor in self._ledger.read(query, topic, owner, owner)
        ]

    def get(self, topic: str, name: str, owner: str | None = None) -> Consumer:
        found = [consumer for consumer in self.all(topic, owner) if consumer.name == name]
        if not found:
            raise NotFound(f"topic {topic!r} has no consumer {name!r}")
        return found[0]

    def put(self, topic: str, name: str, selection: Selection, cursor: int) -> bool:
        """Whether it is new; one that is there keeps its cursor."""
        with self._ledger.change() as db:
            made = db.execute(
                "INSERT OR IGNORE INTO consumer VALUES (?, ?, ?, ?, ?)",
                (topic, name, selection.subscription, selection.owner, cursor),
            ).rowcount
            db.execute(
                "UPDATE consumer SET subscription = ?, owner = ? WHERE topic = ? AND name = ?",
                (selection.subscription, selection.owner, topic, name),
            )
        return bool(made)

    def acknowledge(self, topic: str, name: str, cursor: int) -> None:
        """It has dealt with everything up to `cursor`; a cursor does not go back."""
        with self._ledger.change() as db:
            db.execute("UPDATE consumer SET cursor = max(cursor, ?) WHERE topic = ? AND name = ?", (cursor, topic, name))

    def delete(self, topic: str, name: str) -> None:
        with self._ledger.change() as db:
            db.execute("DELETE FROM consumer WHERE topic = ? AND name = ?", (topic, name))
