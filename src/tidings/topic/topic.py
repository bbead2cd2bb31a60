"""A topic: subscriptions, live events, and the answers. In memory by itself; `durable.open` makes one that is kept on disk.

Every change is made in three steps: read and check the input, commit it to the journal (a durable topic's registry; nothing in
memory), apply it. What is not committed is not applied, and what was applied is committed. Windows and boards change before the
commit, which takes their notifications along, and are put back if it fails (`Committed`). Writers take turns; matching waits for
nobody's commit.
"""

from __future__ import annotations

import threading
import time as wall_clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tidings.errors import SubscriptionError
from tidings.match.answers.explain import Explanation, explain_event, explain_pair, explain_vague
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.ordering import match_list, match_table
from tidings.match.answers.relaxed import relaxed_list, relaxed_table
from tidings.match.answers.results import Match, Notification
from tidings.match.answers.vague_events import has_vague_columns, match_rows, unpublishable, vague_list, vague_relaxed
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.hits import LONG_AGO
from tidings.match.store.housekeeping import Housekeeping
from tidings.match.store.reader import EventList
from tidings.match.store.segment import near_rows
from tidings.match.store.store import Store
from tidings.match.store.subscription_rows import rows_of_batch
from tidings.model.columns.arrays import EventColumns, Vocabularies, encode_events
from tidings.model.columns.tables import (
    EventBatch,
    batch_of,
    events_from_arrow,
    events_to_arrow,
    subscription_at,
    subscriptions_from_arrow,
)
from tidings.model.door.event import Event, EventReader, read_events
from tidings.model.door.single_values import read_time
from tidings.model.door.subscription import Subscription, changed, known_id, make_subscription, read_k
from tidings.model.filter.clause import Clause, Values
from tidings.model.filter.compile import compile_filter
from tidings.model.values.schema import Attribute, Schema
from tidings.model.values.times import check_ahead
from tidings.rank.relevance import relevance_of
from tidings.topic.journal import Act, Journal
from tidings.topic.moving import moved, placed_within
from tidings.topic.publications import Publications, PublishedBatch, PublishedEvent
from tidings.topic.publisher import Publisher, same_window
from tidings.topic.stats import topic_stats
from tidings.topic.undo import Remembered

Told = TypeVar("Told", bound=Sequence[Notification])

FEW = 4
"""Up to so many events, that are no table, are asked about one by one: the first column costs more."""


class Committed:
    """A change of windows, boards and live events that is committed by the end of the block, or else undone."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._acts: list[Act] = []
        topic.journal.must_be_writable()
        topic.must_be_whole()

    def __enter__(self) -> Committed:
        self._topic.half_done = True
        self._began = wall_clock.perf_counter()
        return self

    def do(self, act: Callable[[Publisher], Told]) -> Told:
        """Change the publisher."""
        self._acts.append(act)
        return act(self._topic.publisher)

    def watch(self, act: Callable[[Publisher], Told]) -> Told:
        """The same with subscriptions, which in a keyed topic are all that boards need to be made anew."""
        return self.do(act) if self._topic.key is None else act(self._topic.publisher)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        topic = self._topic
        if kind is not None:
            topic.recover()
            return
        topic.half_done = False
        topic.journal.done(self._acts, wall_clock.perf_counter() - self._began, topic.publisher)


class Topic:
    """`schema` names the attributes; `key` makes it a keyed topic, a table of current objects instead of a stream of events."""

    def __init__(self, name: str, schema: Schema | Mapping[str, Attribute], *, key: str | None = None) -> None:
        self.name = name
        self.schema = schema if isinstance(schema, Schema) else Schema(schema)
        self.key = key
        self._read = EventReader(self.schema, key)
        self.statistics = Statistics()
        self.half_done = False
        self._writing = threading.RLock()
        self.use(Vocabularies(self.schema))
        self.publisher = self.new_publisher()
        self.journal: Journal = Remembered(self.new_publisher())

    def use(self, vocabularies: Vocabularies) -> None:
        """Begin with these codes and no subscriptions."""
        self.store = Store(self.schema, vocabularies, self.statistics)
        self.housekeeping = Housekeeping(self.store)

    @property
    def vocabularies(self) -> Vocabularies:
        """The codes that stand now; another object after they were taken back."""
        return self.store.vocabularies

    def new_publisher(self) -> Publisher:
        """One that knows nothing yet."""
        return Publisher(self.schema, self.key, self._matching)

    def _matching(self, values: Values) -> list[str]:
        return [id for found in self.store.reader().match_one(values, LONG_AGO) for id in found.source.names(found.ordinal)]

    # Subscriptions

    def subscribe(
        self,
        id: str,
        filter: str | Mapping[str, Any] | None = None,
        *,
        within: tuple[Sequence[float], float] | None = None,
        replay: bool = False,
        time: Any = None,
        **ranking: Any,
    ) -> list[Notification]:
        """Register or replace a subscription; `replay` gives the live events that match, a keyed topic gives its current list.

        `within` is ((x, y), r): the place must lie within r metres of the point (units of a plane), on top of the filter.
        """
        now = self._at(time)
        subscription = make_subscription(self.schema, id, filter, **ranking)
        if within is not None:
            subscription = placed_within(self.schema, subscription, within)
        if subscription.by is not None:
            relevance_of(self.schema, subscription.by)
        if subscription.is_ranked:
            subscription = replace(subscription, since=now)
        with self._writing:
            seq = self.store.next_seq
            with Committed(self) as change:
                notes = change.watch(lambda publisher: publisher.register(subscription, now, replay))
                self.journal.put(seq, subscription, notes)
                self.store.put(seq, [subscription])
            return notes

    def subscribe_many(self, table: pa.Table, *, on_error: str = "raise", time: Any = None) -> int:
        """Register the rows of a table (columnar form or a `filter` column); how many were taken."""
        now = self._at(time)
        with self._writing:
            batch = subscriptions_from_arrow(self.schema, self.vocabularies, table, on_error=on_error)
            rows = rows_of_batch(batch, now)
            replaced = self.store.existing(rows.ids())
            seq = self.store.next_seq
            added = self.store.built(seq, rows)
            with Committed(self) as change:
                begins = range(len(batch)) if self.key is not None else np.flatnonzero(near_rows(rows.table, rows.clauses)).tolist()
                watched = [replace(subscription_at(batch, row), since=now) for row in begins]
                notes = change.watch(lambda publisher: publisher.register_many(replaced, watched, now))
                self.journal.loaded(seq, batch.table, replaced, now, notes)
                self.store.put_segment(seq, added)
        return len(rows)

    def update(self, id: str, *, time: Any = None, **changes: Any) -> list[Notification]:
        """Change any part of a subscription: its filter, score, k, window and so on. A keyed topic gives its list anew."""
        with self._writing:
            before = self.subscription(id)
            return self._replace(before, changed(self.schema, before, changes), self._at(time))

    def move(self, id: str, point: Sequence[float], *, time: Any = None) -> list[Notification]:
        """Centre a subscription's place on `point`, keeping its size."""
        with self._writing:
            before = self.subscription(id)
            return self._replace(before, moved(self.schema, before, point), self._at(time))

    def unsubscribe(self, id: str) -> None:
        id = known_id(id)
        with self._writing:
            if id not in self.store:
                raise SubscriptionError(f"there is no subscription {id!r}")
            seq = self.store.next_seq
            with Committed(self) as change:
                self.journal.removed(seq, [id])
                self.store.remove(seq, [id])
                change.watch(lambda publisher: publisher.register_many([id], [], 0))

    def unsubscribe_many(self, ids: Sequence[str]) -> int:
        """Remove those of `ids` that are there, as one change; how many they were."""
        with self._writing:
            there = self.store.existing(pa.array(dict.fromkeys(map(known_id, ids)), pa.string()))
            seq = self.store.next_seq
            with Committed(self) as change:
                if there:
                    self.journal.removed(seq, there)
                    self.store.remove(seq, there)
                change.watch(lambda publisher: publisher.register_many(there, [], 0))
            return len(there)

    def subscription(self, id: str) -> Subscription:
        found = self.store.get(known_id(id))
        if found is None:
            raise SubscriptionError(f"there is no subscription {id!r}")
        return found

    def __len__(self) -> int:
        return len(self.store)

    def _replace(self, before: Subscription, after: Subscription, now: int) -> list[Notification]:
        if after.is_ranked and (after.since is None or not same_window(before, after)):
            after = replace(after, since=now)
        if after.by is not None:
            relevance_of(self.schema, after.by)
        seq = self.store.next_seq
        with Committed(self) as change:
            notes = change.watch(lambda publisher: publisher.change(before, after, now))
            self.journal.put(seq, after, notes, same_window=same_window(before, after))
            self.store.put(seq, [after])
        return notes

    # Matching

    def match(
        self, event: Any, k: int | None = None, *, relaxed: bool = False, aggregate: str = "sum", time: Any = None
    ) -> list[Match]:
        """Who should hear of this event: all, by id; or the k best by (score desc, id asc)."""
        read = self._read(event)
        k = None if k is None else read_k(k)
        now = self._at(time)
        return self._match(read, k, now, aggregate if relaxed else None)

    def _match(self, read: Event, k: int | None, now: int, relaxed: str | None) -> list[Match]:
        """`relaxed` names the aggregate."""
        if relaxed is not None:
            return (vague_relaxed if read.vague else relaxed_list)(self.store.packed_reader(), read, k, relaxed, now)
        if read.vague:
            return vague_list(self.store.packed_reader(), read, k, now)
        reader = self.store.reader()
        if k is None:
            return match_list(read.id, reader.match_one(read.values, now))
        return match_list(read.id, reader.match(EventList(self.schema, [read]), k, at=now), k)

    def match_batch(
        self, events: Any, k: int | None = None, *, relaxed: bool = False, aggregate: str = "sum", time: Any = None
    ) -> pa.Table:
        """(event, subscription, score) of a table of events, or of an iterable of events."""
        k = None if k is None else read_k(k)
        now = self._at(time)
        batch = self._batch(events, FEW)
        if isinstance(batch, list):
            return match_rows(m for event in batch for m in self._match(event, k, now, aggregate if relaxed else None))
        if relaxed:
            return relaxed_table(self.store.packed_reader(), batch, k, aggregate, now).drop_columns(["row"])
        hits = self.store.reader(len(batch)).match(batch, k, at=now)
        return match_table(batch.ids, hits, k).drop_columns(["row"])

    def explain(self, event: Any, subscription: str | None = None, *, k: int = 10, time: Any = None) -> Explanation:
        """Why a subscription does or does not hear of an event; without one, what each step of matching left over, and how the
        k best would be found."""
        read = self._read(event)
        now = self._at(time)
        known = None if subscription is None else self.subscription(subscription)
        if read.vague:
            return explain_vague(self.store.packed_reader(), read, known, now)
        reader = self.store.reader()
        columns = encode_events(self.schema, reader.vocabularies, [read.values])
        if known is None:
            return explain_event(reader, columns, read, now, k)
        failures = self.store.failures[known.id] + self.publisher.ranked.failures[known.id]
        return replace(explain_pair(reader, columns, read, known, now), failures=failures)

    # Publishing

    def publish(self, event: Any, *, time: Any = None) -> Notifications:
        """Take an event in: who is notified of it, and what the passing of time until then brought."""
        read = self._read(event)
        if read.vague:
            raise unpublishable(read)
        with self._writing:
            return self._publish(PublishedEvent(read, self._at(time), time is not None), time)

    def publish_batch(self, events: Any, *, time: Any = None) -> Notifications:
        """Take many events in, in order, as one change; an event's own `time` is when it is published unless `time` says."""
        batch = self._batch(events)
        if isinstance(batch, list):
            raise unpublishable(next(event for event in batch if event.vague))
        with self._writing:
            return self._publish(PublishedBatch(batch, self._at(time), time is not None), time)

    def advance(self, time: Any) -> Notifications:
        """Let time pass: promotions and expiries up to and including `time`."""
        now = self._at(time)
        with self._writing, Committed(self) as change:
            notes = change.do(lambda publisher: publisher.advance(now))
            self.journal.published(None, notes, self.publisher)
            return notes

    def search(self, filter: str | Mapping[str, Any] | None = None, *, time: Any = None) -> pa.Table:
        """The live events that match, by id."""
        clauses = [Clause()] if filter is None else compile_filter(self.schema, filter)
        with self._writing:
            self.must_be_whole()
            return events_to_arrow(self.schema, self.publisher.events.search(clauses, self._at(time)))

    def top(self, id: str, *, time: Any = None) -> list[Match]:
        """A subscription's current list, best first."""
        with self._writing:
            self.must_be_whole()
            return self.publisher.top(self.subscription(id), self._at(time))

    def _publish(self, events: Publications, time: Any) -> Notifications:
        if time is None and len(events):
            check_ahead(int(events.at.max()), self._at(None))
        with Committed(self) as change:
            notes = self._told(events, change) if self.key is None else change.do(lambda publisher: publisher.replace_all(events))
            self.journal.published(events, notes, self.publisher)
        return notes

    def _told(self, events: Publications, change: Committed) -> Notifications:
        """Who is notified of each event, once the publisher has taken it in."""
        hits = events.hits(self.store.reader(len(events)), self.publisher.clock_at(events.at))
        return change.do(lambda publisher: publisher.publish(events, hits))

    # The rest

    def stats(self) -> dict[str, Any]:
        """Subscriptions, segments and homes, bytes, live events, and what matching has cost so far."""
        return topic_stats(self.name, self.store, self.publisher)

    def must_be_whole(self) -> None:
        """Recover if that was itself interrupted before."""
        if self.half_done:
            self.recover()

    def recover(self) -> None:
        """After a change that failed: windows, boards and live events as they were at the last commit."""
        self.publisher = self.journal.restored(self.new_publisher, self.store)
        self.half_done = False

    def flush(self) -> None:
        """Pack what is new into a segment (a durable topic writes it and a manifest)."""
        self.housekeeping.flush()

    def merge(self) -> None:
        """Make one segment of all, and take back the codes of strings that nobody names any more, if they are most."""
        self.housekeeping.flush()
        self.housekeeping.merge()
        if self.store.mostly_unused:
            with self._writing:
                self.housekeeping.reclaim()

    def close(self) -> None:
        self.housekeeping.close()
        self.journal.close()

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def encode(self, events: Sequence[Event]) -> EventColumns:
        return encode_events(self.schema, self.vocabularies, [event.values for event in events])

    def _batch(self, events: Any, few: int = 0) -> EventBatch | list[Event]:
        """The events as columns; as objects if they are few, or some have values that no column can hold."""
        if isinstance(events, pa.Table | pa.RecordBatch):
            if not has_vague_columns(self.schema, events.schema):
                return events_from_arrow(self.schema, self.vocabularies, events, key=self.key)
            events = events.to_pylist()
        read = read_events(self.schema, events, self.key)
        if 0 < len(read) <= few or any(event.vague for event in read):
            return read
        return batch_of(self.schema, self.vocabularies, read, self.key)

    @staticmethod
    def _at(time: Any) -> int:
        """The only place that looks at the wall clock."""
        instant = read_time("time", time)
        return wall_clock.time_ns() // 1000 if instant is None else instant
