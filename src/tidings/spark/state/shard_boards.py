"""The boards of one shard of watchers: what the embedded publisher does on a keyed topic, for the updates of a micro-batch.

A shard has all current objects and its own watchers only. Boards hold nothing that objects (with when each was last updated) and
subscriptions do not say, but for what they recall (`PREV(price)`) and where gates stand, so the state is that: `changes` gives what
a batch did to it, `restore` takes all of it and a manifest, and goes on as if it had never stopped.

When the topic has a newer manifest, watchers that are gone fall silent; those that are new, or were registered anew, begin with
their current list (`entered`), at the instant they were registered or, if that lies before it, at the clock; those that were
changed are told what differs, at the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from tidings.durable.manifest_view import View
from tidings.match.answers.results import Notification
from tidings.match.store.hits import LONG_AGO
from tidings.match.store.sorted_ids import ABSENT
from tidings.model.door.event import Event
from tidings.model.door.event_record import event_from_record, event_to_record
from tidings.model.door.subscription import Subscription
from tidings.model.door.subscription_record import from_record, to_record
from tidings.model.filter.clause import Values
from tidings.spark.frames.id_hash import spread
from tidings.topic.gates import GATE
from tidings.topic.publisher import Publisher

Record = dict[str, Any]
Objects = dict[str, Record | None]
"""By id; None for one that is gone. No object has the id STATES: under it stands what boards recall, and gates, by name."""
STATES = ""


class ShardBoards:
    def __init__(self, view: View, shard: int, shards: int) -> None:
        self.shard, self.shards = shard, shards
        self._begin(view, None, {})

    def _begin(self, view: View, clock: int | None, objects: Objects) -> None:
        """Anew, with the watchers of `view` and these objects, at `clock`."""
        self.view = view
        self.publisher = Publisher(view.schema, view.key, self._matching)
        self._changed: Objects = {}
        self._ends: dict[str, int] = {}
        self._states: dict[str, str] = dict(objects.get(STATES) or {})
        for record in (record for id, record in objects.items() if record is not None and id != STATES):
            event = event_from_record(view.schema, record)
            self.publisher.events.put(event, record.get("published", LONG_AGO), 0)
            if event.expires is not None:
                self._ends[event.id] = event.expires
        watchers = list(self.mine(view))
        self._watchers = {subscription.id: to_record(subscription) for subscription in watchers}
        self.publisher.restore(clock, 0, self._states.items())
        self.publisher.restore_boards(watchers)

    @classmethod
    def restore(cls, view: View, shard: int, shards: int, clock: int | None, objects: Objects) -> ShardBoards:
        """As it was at `clock` with the watchers of `view`."""
        made = cls.__new__(cls)
        made.shard, made.shards = shard, shards
        made._begin(view, clock, objects)
        return made

    def repeat(self, view: View, objects: Objects, clock: int) -> None:
        """Do again what some batches did, together: the watchers of `view`, and these objects changed."""
        boards = self.publisher.boards
        if STATES in objects or (boards is not None and boards.recalls):
            known: Objects = {record["id"]: record for record in self.objects()}
            self._begin(view, clock, known | {STATES: self._states} | objects)
            return
        self.follow(view)
        gone = [Event(id, {}, deleted=True) for id, record in objects.items() if record is None]
        there = [record for record in objects.values() if record is not None]
        events = [event_from_record(view.schema, record) for record in there]
        self.replace(gone + events, clock)
        for event, record in zip(events, there, strict=True):
            if event.id in self.publisher.events:
                self.publisher.events.put(event, record.get("published", LONG_AGO), 0)
        self.changes()

    @property
    def clock(self) -> int | None:
        return self.publisher.clock

    def follow(self, view: View) -> list[Notification]:
        """Take on the watchers of `view`; the lists of those that begin."""
        known, self.view = self.view, view
        if view.manifest.identity == known.manifest.identity:
            return []
        ids = list(self._watchers)
        place = view.locate(pa.array(ids, pa.string()))
        for id, segment in zip(ids, place.segment.tolist(), strict=True):
            if segment == ABSENT:
                self._unwatch(id)
        notes = []
        for subscription in self.mine(view, known):
            before, after = self._watchers.get(subscription.id), to_record(subscription)
            if before is not None and before != after and before.get("since") == after.get("since"):
                notes += self._change(from_record(view.schema, before), subscription)
            elif before != after:
                self._unwatch(subscription.id)
                notes += self._watch(subscription, max(self.clock or 0, subscription.since or 0))
        return notes

    def mine(self, view: View, known: View | None = None) -> Iterator[Subscription]:
        """This shard's subscriptions, of the segments that `known` has not."""
        for file, segment in view.files.items():
            if known is None or file not in known.files:
                live = segment.live(view.manifest.seq)
                shard = spread(segment.ids(live), self.shards)
                for ordinal in live[shard == self.shard].tolist():
                    yield segment.subscription(ordinal)

    def replace(self, events: Sequence[Event], at: int) -> list[Notification]:
        """Updates of one instant, the last of a key counting: one run of the boards."""
        notes = self.publisher.advance(at)
        for key in [key for key, expires in self._ends.items() if expires <= at]:
            del self._ends[key]
            self._changed[key] = None
        for event in events:
            self._changed[event.id] = None if event.deleted else event_to_record(event) | {"published": at}
            self._ends.pop(event.id, None)
            if event.expires is not None and not event.deleted:
                self._ends[event.id] = event.expires
        return notes + self.publisher.replace(events, at)

    def replay(self, events: Sequence[Event], time: int) -> list[Notification]:
        """Updates in order of their times, each instant a run; `time` is for those that have none."""
        notes = []
        for at, group in groupby(events, key=lambda event: time if event.time is None else event.time):
            notes += self.replace(list(group), at)
        return notes

    def changes(self) -> Objects:
        """The objects that changed since last asked, None for those that are gone."""
        changed, self._changed = self._changed, {}
        states = dict(self.publisher.changed_boards())
        if states:
            self._states |= states
            changed[STATES] = dict(self._states)
        return changed

    def objects(self) -> Iterator[Record]:
        events = self.publisher.events
        return (event_to_record(event) | {"published": events.published(event.id)[0]} for event in events)

    def packed(self) -> Iterator[tuple[str, Record]]:
        """All of the state: the objects by id, and what is recalled under its name."""
        yield from ((record["id"], record) for record in self.objects())
        if self._states:
            yield STATES, dict(self._states)

    def _watch(self, subscription: Subscription, at: int) -> list[Notification]:
        self._watchers[subscription.id] = to_record(subscription)
        return self.publisher.register(subscription, at, False)

    def _change(self, before: Subscription, after: Subscription) -> list[Notification]:
        self._watchers[after.id] = to_record(after)
        if (before.clauses, before.by) != (after.clauses, after.by):
            self._states.pop(after.id, None)
        return self.publisher.change(before, after, self.clock or 0)

    def _unwatch(self, id: str) -> None:
        if self._watchers.pop(id, None) is not None:
            self.publisher.register_many([id], [], 0)
            self._states = {name: body for name, body in self._states.items() if name not in (id, GATE + id)}

    def _matching(self, values: Values) -> list[str]:
        return [id for found in self.view.reader.match_one(values, LONG_AGO) for id in found.source.names(found.ordinal)]
