"""Notifications with the bodies of their events, for those who ask: as JSON carries them, and as a topic reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidings.match.answers.notifications import Notifications
from tidings.match.answers.results import Notification, instant, with_body
from tidings.model.door.event import Event
from tidings.model.door.event_record import event_body
from tidings.model.values.schema import Schema
from tidings.topic.live.live_events import LiveEvents
from tidings.topic.publications import Publications


def with_bodies(
    schema: Schema, key: str | None, notes: Sequence[Notification], events: Publications | None, live: LiveEvents
) -> Notifications:
    """Each with its event as it was when it was told: one of those now published, else the live one. What is gone has none."""
    published: dict[tuple[str, Any], Event] = {}
    if events is not None:
        for event, at in zip(events.events(), events.at.tolist(), strict=True):
            published[event.id, instant(at)] = published[event.id, None] = event
    bodies: dict[tuple[str, Any], dict[str, Any] | None] = {}
    told: list[Notification] = []
    for note in notes:
        if note.body is not None:
            told.append(note)
            continue
        place = (note.event, note.at if (note.event, note.at) in published else None)
        if place not in bodies:
            found = published.get(place) or live.get(note.event)
            bodies[place] = None if found is None or found.deleted else event_body(schema, found, key)
        body = bodies[place]
        told.append(note if body is None else with_body(note, body))
    return Notifications.of(told)
