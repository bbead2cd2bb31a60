"""Preview: what a subscription would have told, over past events, before anybody makes it.

By definition: a topic with nothing but this subscription, made `over` ago, to which the past events are published in the order of
their times, and which is then advanced to now. Only the attributes that the subscription asks for are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidings._lazy import lazily
from tidings.boards.plain import recalled
from tidings.errors import SubscriptionError
from tidings.match.answers.explain import explain_pair
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.results import Notification, instant, with_body
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.reader import Reader
from tidings.match.store.store import Store
from tidings.model.columns.arrays import Vocabularies, encode_events
from tidings.model.door.by import read_by
from tidings.model.door.event import Event
from tidings.model.door.event_record import event_body
from tidings.model.door.subscription import Subscription
from tidings.model.filter.compile import compile_residue
from tidings.model.values.schema import Place, Schema, Words
from tidings.model.values.times import DAY
from tidings.topic.past_events import Past, PastEvents
from tidings.topic.publisher import Publisher

pc = lazily("pyarrow.compute")

FIRST = 10
NAME = "preview"


@dataclass(frozen=True, slots=True)
class Preview:
    """Of the `events` between `since` and `until` (microseconds since 1970-01-01 UTC), so many would have been `told`.

    `by_day` counts the notifications of each day (UTC) that has any. `first` are the first of them, with the bodies of their
    events, and `reasons` says of each what it matched, predicate by predicate.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"price": td.Number()})
    >>> notes = deals.publish({"id": "e1", "price": 3}, time=0)
    >>> seen = deals.preview("price < 5", over="1 day", time=3600)
    >>> seen.events, seen.told, [note.event for note in seen.first]
    (1, 1, ['e1'])
    """

    events: int
    told: int
    since: int
    until: int
    by_day: Mapping[str, int]
    first: tuple[Notification, ...]
    reasons: tuple[str, ...]

    @property
    def a_day(self) -> float:
        return self.told * DAY / max(self.until - self.since, 1)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can carry it."""
        told = [{**note.to_dict(), "reason": reason} for note, reason in zip(self.first, self.reasons, strict=True)]
        ends = {"since": instant(self.since).isoformat(), "until": instant(self.until).isoformat()}
        return {"events": self.events, "told": self.told, "a_day": self.a_day, **ends, "by_day": dict(self.by_day), "first": told}


def asked_of(schema: Schema, subscription: Subscription, key: str | None) -> Schema:
    """The attributes that a subscription asks for: the rest of an event is not read."""
    names = {name for clause in subscription.clauses for name in clause.by_attribute(schema) if name in schema}
    names |= set(subscription.terms) | {name for name in schema if name == subscription.per}
    names |= {name for clause in subscription.clauses for residue in clause.residue for name in residue.attributes}
    if subscription.by is not None:
        by = read_by(schema, subscription.by)
        names |= {name for name, _, _ in by.near} | (set() if by.expression is None else by.expression.attributes)
        names |= set() if by.place is None else {by.place[0]}
    names = {recalled(name) for name in names}
    # An index serves the first Place and the first Words of a schema: which that is may not change.
    for kind, first in ((Place, schema.place), (Words, schema.words)):
        if first is not None and any(isinstance(schema[name], kind) for name in names):
            names.add(first)
    if key is not None and key in schema:
        names.add(key)
    return Schema({name: attribute for name, attribute in schema.items() if name in names} or dict([next(iter(schema.items()))]))


def preview(
    schema: Schema, key: str | None, subscription: Subscription, past: Past, since: int, until: int, first: int = FIRST
) -> Preview:
    if subscription.similarity is not None:
        raise SubscriptionError("similarity cannot be previewed: how much a word weighs depends on all other subscriptions")
    narrow = asked_of(schema, subscription, key)
    clauses = [
        replace(clause, residue=tuple(compile_residue(narrow, residue.source) for residue in clause.residue))
        for clause in subscription.clauses
    ]
    asked = replace(subscription, id=NAME, clauses=tuple(clauses), since=since)
    store = Store(narrow, Vocabularies(narrow), Statistics())
    store.put(1, [asked])
    past = past.between(since, until)
    events = past.read(narrow, store.vocabularies, key)
    notes = _told(narrow, key, store, asked, events, since, until)
    days = Counter(notes.table()["at"].to_numpy().astype("datetime64[D]").astype(str).tolist())
    whole = _whole(schema, key, past, events, notes[:first])
    told = [
        with_body(n, event_body(schema, whole[n.event], key)) if n.event in whole and n.body is None else n for n in notes[:first]
    ]
    reasons = [_reason(store.reader(), asked, note, whole.get(note.event)) for note in told]
    return Preview(len(events), len(notes), since, until, dict(sorted(days.items())), tuple(told), tuple(reasons))


def _reason(reader: Reader, asked: Subscription, note: Notification, event: Event | None) -> str:
    if event is None or note.why == "left":
        return note.why
    known = replace(event, values={name: value for name, value in event.values.items() if name in reader.schema})
    columns = encode_events(reader.schema, reader.vocabularies, [known.values])
    told = explain_pair(reader, columns, known, asked, 0)
    return "; ".join([f"{note.why}: {told}", *told.held]) if told.matched else note.why


def _told(
    schema: Schema, key: str | None, store: Store, asked: Subscription, events: PastEvents, since: int, until: int
) -> Notifications:
    publisher = Publisher(schema, key, lambda values: [NAME] if any(c.holds(schema, values) for c in asked.clauses) else [])
    publisher.advance(since)
    publisher.register(asked, since, False)
    if key is not None:
        return Notifications.of([*publisher.replace_all(events), *publisher.advance(until)])
    hits = events.hits(store.reader(), since)
    told = publisher.told(events, hits)
    later = publisher.advance(until)
    return told if not len(later) else Notifications.of([*told, *later])


def _whole(schema: Schema, key: str | None, past: Past, events: PastEvents, notes: list[Notification]) -> dict[str, Event]:
    """The events that some notifications tell of, with all their attributes; of several with one id the last."""
    wanted = pa.array({note.event for note in notes}, pa.string())
    rows = np.flatnonzero(pc.is_in(events.ids, wanted).to_numpy(zero_copy_only=False))
    found: dict[str, Event] = {}
    for row in rows.tolist():
        table, place = past.place(int(row))
        alone = Past([table.slice(place, 1)], np.arange(1), past.at[[row]])
        one = alone.read(schema, Vocabularies(schema), key, own_time=True).event(0)
        found[events.ids[row].as_py()] = replace(one, id=events.ids[row].as_py())
    return {id: event for id, event in found.items() if not event.deleted}
