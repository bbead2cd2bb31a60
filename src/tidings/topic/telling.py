"""What windows and boards tell, as notifications: by how much had been published, then by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from tidings.boards.changes import Changes
from tidings.match.answers.notifications import ENTERED, LEFT, PROMOTED, UPDATED, Notifications, Part
from tidings.match.answers.results import Notification
from tidings.windows.entries import Entries
from tidings.windows.memory import BEGINNING

BOARD_WHY = np.array([LEFT, ENTERED, UPDATED], np.int8)
"""What the reasons of boards are called here."""


def told_part(entries: Entries) -> Part:
    """Names are looked up at once: a slot may have another owner when somebody asks."""
    names = entries.names
    subscription = [names[slot] for slot in entries.slot.tolist()]
    why = np.where(entries.promoted, PROMOTED, ENTERED).astype(np.int8)
    return Part(subscription, entries.ids, entries.relevance, entries.rank, why, entries.at)


def in_order(plain: tuple[NDArray[np.integer], Part] | None, first: int, told: Sequence[Entries]) -> Notifications:
    """By how much had been published, then by time: of what a publication brings, plain matches first.

    A plain match comes with the row of its event, the rows being the publications from `first` on, and is older than all that
    happens after it.
    """
    told = [entries for entries in told if len(entries)]
    parts = [told_part(entries) for entries in told]
    if plain is None:
        numbers, times = [], []
    else:
        row, part = plain
        parts.insert(0, part)
        numbers, times = [row + np.int64(first)], [np.full(len(row), BEGINNING)]
    if len(parts) < 2:
        return Notifications(parts)
    numbers += [entries.number for entries in told]
    times += [entries.at for entries in told]
    return Notifications(parts, np.lexsort((np.concatenate(times), np.concatenate(numbers))))


def of_changes(changes: Changes, at: int) -> list[Notification]:
    return [note for part in parts_of(changes, at) for note in part.rows()]


def parts_of(changes: Changes, at: int) -> list[Part]:
    return [
        Part(part.subscription, part.key, part.score, part.rank, BOARD_WHY[part.why], np.full(len(part.key), at))
        for part in changes.parts
    ]


def differences(id: str, before: Mapping[str, float], after: Sequence[Notification], at: datetime) -> list[Notification]:
    """What a list that was `before` and is told anew `after` has lost and gained, and what has another score."""
    there = {note.event for note in after}
    left = [Notification(id, event, score, None, "left", at) for event, score in before.items() if event not in there]
    changed = [note if note.event not in before else note._replace(why="updated") for note in after]
    return left + [note for note in changed if before.get(note.event) != note.score]
