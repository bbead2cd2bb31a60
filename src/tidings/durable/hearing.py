"""A topic whose notifications are delivered elsewhere keeps, in the transaction that tells them, all that a delivery says.

Beside each notification stands its owner as of that moment: who hears must not depend on changes made while it waited. Beside all
notifications of an event stands the event itself, once (`taken`), and how many were told, so that an event that is sent again is
known and answered as before. `last` is the newest notification that an event may be needed for.

`trim` bounds both: what is older than the newest `keep` notifications goes, and its readers are told so by its number.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.durable.registry import Registry
from tidings.durable.waiting import forget, newest
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.results import Notification
from tidings.model.door.event_record import event_to_record
from tidings.topic.live.live_events import LiveEvents
from tidings.topic.publications import Publications

AGAIN = "ON CONFLICT (event) DO UPDATE SET last = excluded.last, body = ifnull(body, excluded.body)"
MANY = 500
"""Parameters of one statement."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """`owner_of` a subscription, None for nobody; `written` makes the JSON of an event's record."""

    owner_of: Callable[[str], str | None]
    written: Callable[[dict[str, Any]], str] = json.dumps


def put_taken(
    db: sqlite3.Connection, events: Publications | None, notes: Sequence[Notification], live: LiveEvents, hearing: Hearing
) -> None:
    """Events that have come, and earlier ones that were told of now, with what their deliveries will say."""
    told = notes.told_of() if isinstance(notes, Notifications) else Counter(note.event for note in notes)
    ids = [] if events is None else [str(id) for id in events.ids]
    known, last = dict(zip(ids, range(len(ids)), strict=True)), newest(db)
    heard = [] if events is None else events.some_events(np.array([known[id] for id in told if id in known], np.int64))
    bodies = {event.id: hearing.written(event_to_record(event)) for event in heard}
    rows = [(id, told[id], last, bodies.get(id)) for id in known]
    db.executemany("INSERT OR REPLACE INTO taken (event, told, last, body) VALUES (?, ?, ?, ?)", rows)
    promoted = [(id, live.get(id)) for id in told.keys() - known.keys()]
    rows = [(id, told[id], last, None if event is None else hearing.written(event_to_record(event))) for id, event in promoted]
    db.executemany(f"INSERT INTO taken (event, told, last, body) VALUES (?, ?, ?, ?) {AGAIN}", rows)


def taken(registry: Registry, ids: Iterable[str]) -> dict[str, int]:
    """Those of the events that were taken before, with how many were told of each."""
    return {event: told for event, told, _ in _rows(registry, list(ids))}


def records(registry: Registry, ids: Iterable[str]) -> dict[str, str]:
    """The records of events, as JSON, that notifications wait for or that are live."""
    wanted = list(ids)
    found = {event: body for event, _, body in _rows(registry, wanted) if body is not None}
    for some in _parts([id for id in wanted if id not in found]):
        marks = ", ".join("?" * len(some))
        found |= dict(registry.bodies("event", f"WHERE id IN ({marks})", *some))
    return found


def trim(registry: Registry, keep: int, remembered: int) -> int:
    """Forget what is older than the newest `keep` notifications, and of `remembered` events; the last number that is gone."""
    with registry.transaction() as db:
        gone = max(newest(db) - keep, 0)
        forget(db, gone)
        db.execute("DELETE FROM taken WHERE number <= (SELECT max(number) FROM taken) - ? AND last <= ?", (remembered, gone))
        db.execute("UPDATE taken SET body = NULL WHERE last <= ? AND body IS NOT NULL", (gone,))
    registry.shrink()
    return gone


def _rows(registry: Registry, ids: list[str]) -> list[tuple[str, int, str | None]]:
    return [
        (event, told, body)
        for some in _parts(ids)
        for event, told, body in registry.read(
            f"SELECT event, told, body FROM taken WHERE event IN ({', '.join('?' * len(some))})", *some
        )
    ]


def _parts(ids: list[str]) -> list[list[str]]:
    return [ids[first : first + MANY] for first in range(0, len(ids), MANY)]
