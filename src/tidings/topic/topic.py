"""A topic: subscriptions, live events, and the answers. In memory by itself; `durable.open` makes one that is kept on disk.

`changing` tells how it changes, `subscribing` has what concerns its subscriptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal, overload

import pyarrow as pa

from tidings.boards.messages.family import read_family
from tidings.errors import EventError, SchemaError
from tidings.match.answers.explain import Explanation, explain_event, explain_pair, explain_vague
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.ordering import match_list, match_rows, match_table, single_table
from tidings.match.answers.relaxed import relaxed_list, relaxed_table
from tidings.match.answers.results import Match
from tidings.match.answers.vague_events import has_vague_columns, unpublishable, vague_list, vague_relaxed
from tidings.model.columns.arrays import EventColumns, encode_events
from tidings.model.columns.incoming import RAISE, shaped, table_of
from tidings.model.columns.tables import EventBatch, batch_of, events_from_arrow
from tidings.model.door.event import Event
from tidings.model.door.subscription import read_k
from tidings.model.filter.clause import Clause
from tidings.model.filter.compile import compile_filter
from tidings.model.values.times import check_ahead
from tidings.model.values.window import duration
from tidings.topic.bodies import with_bodies
from tidings.topic.changing import Closed, Committed
from tidings.topic.past_events import MARKS, Past, given_past
from tidings.topic.preview import NAME, Preview, preview
from tidings.topic.publications import Publications, PublishedBatch, PublishedEvent
from tidings.topic.stats import topic_stats
from tidings.topic.subscribing import Filter, Subscribing, Within, made
from tidings.windows.memory import CLOCK

FEW = 4
"""Up to so many events are asked about one by one: the first column costs more."""


class Topic(Subscribing):
    """`schema` names the attributes; `key` makes it a keyed topic, a table of current objects instead of a stream of events. With
    `retention`, as "7 days", an event without `expires` ends so long after it was published; else it is live for ever.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"price": td.Number()}, retention="7 days")
    >>> notes = deals.publish({"id": "e1", "price": 3}, time=0)
    >>> len(deals.search("price < 5", time=7 * 86400 - 1)), len(deals.search("price < 5", time=7 * 86400))
    (1, 0)
    """

    # Matching

    def match(
        self,
        event: Any,
        k: int | None = None,
        *,
        relaxed: bool = False,
        aggregate: str = "sum",
        id: str | None = None,
        on_unknown: str = RAISE,
        time: Any = None,
    ) -> list[Match]:
        """Who should hear of this event: all, by id; or the k best by (score desc, id asc).

        `id` names the field that is the event's id; `on_unknown="ignore"` leaves out fields that the topic does not know.
        """
        read = self.reader_of(id, on_unknown)(event)
        k = None if k is None else read_k(k)
        now = self._at(time)
        return self._match(read, k, now, aggregate if relaxed else None)

    def _recalling(self, read: Event) -> Event:
        """With the values of the object that it would replace, if filters ask for them."""
        boards = self.publisher.boards
        return replace(read, values=dict(boards.seen(read.id, read.values))) if boards is not None and boards.recalls else read

    def _match(self, read: Event, k: int | None, now: int, relaxed: str | None) -> list[Match]:
        """`relaxed` names the aggregate."""
        read = self._recalling(read)
        if relaxed is not None:
            return (vague_relaxed if read.vague else relaxed_list)(self.store.packed_reader(), read, k, relaxed, now)
        if read.vague:
            return vague_list(self.store.packed_reader(), read, k, now)
        return match_list(read.id, self.store.reader().match_one(read.values, now, k), k)

    def match_batch(
        self,
        events: Any,
        k: int | None = None,
        *,
        relaxed: bool = False,
        aggregate: str = "sum",
        id: str | None = None,
        on_unknown: str = RAISE,
        time: Any = None,
    ) -> pa.Table:
        """(event, subscription, score) of a table of events (a DataFrame, too), or of an iterable of events."""
        k = None if k is None else read_k(k)
        now = self._at(time)
        batch = self._batch(events, FEW, id, on_unknown)
        if not isinstance(batch, list) and self.publisher.boards is not None and self.publisher.boards.recalls:
            batch = batch.events()
        if isinstance(batch, list):
            if len(batch) == 1 and not relaxed and not batch[0].vague:
                return single_table(batch[0].id, self.store.reader().match_one(batch[0].values, now, k), k)
            return match_rows([m for event in batch for m in self._match(event, k, now, aggregate if relaxed else None)])
        if relaxed:
            return relaxed_table(self.store.packed_reader(), batch, k, aggregate, now).drop_columns(["row"])
        hits = self.store.reader(len(batch)).match(batch, k, at=now)
        return match_table(batch.ids, hits, k).drop_columns(["row"])

    def explain(self, event: Any, subscription: str | None = None, *, k: int = 10, time: Any = None) -> Explanation:
        """Why a subscription does or does not hear of an event; without one, what each step of matching left over, and how the
        k best would be found."""
        read = self._recalling(self._read(event))
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

    @overload
    def publish(
        self,
        event: Any,
        *,
        time: Any = ...,
        bodies: bool = ...,
        id: str | None = ...,
        on_unknown: str = ...,
        as_messages: Literal[False] = ...,
    ) -> Notifications: ...

    @overload
    def publish(
        self,
        event: Any,
        *,
        time: Any = ...,
        bodies: bool = ...,
        id: str | None = ...,
        on_unknown: str = ...,
        as_messages: Literal[True],
    ) -> pa.Table: ...

    def publish(
        self,
        event: Any,
        *,
        time: Any = None,
        bodies: bool = False,
        id: str | None = None,
        on_unknown: str = RAISE,
        as_messages: bool = False,
    ) -> Notifications | pa.Table:
        """Take an event in: who is notified of it, and what the passing of time until then brought.

        With `bodies` every notification carries its event (`Notification.body`), here and in the outbox. With `as_messages` the
        answer is what `messages` says afterwards; the topic's own subscriptions are notified by its outbox alone.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> [note.body for note in deals.publish({"id": "e1", "price": 3}, time=1, bodies=True)]
        [{'id': 'e1', 'price': 3.0}]
        """
        read = self.reader_of(id, on_unknown)(event)
        if read.vague:
            raise unpublishable(read)

        def act() -> Notifications | pa.Table:
            notes = self._publish(PublishedEvent(read, self._at(time), time is not None, self.retention), time, bodies)
            return self.messages() if as_messages else notes

        return self.in_turn(act)

    @overload
    def publish_batch(
        self,
        events: Any,
        *,
        time: Any = ...,
        bodies: bool = ...,
        id: str | None = ...,
        on_unknown: str = ...,
        as_messages: Literal[False] = ...,
    ) -> Notifications: ...

    @overload
    def publish_batch(
        self,
        events: Any,
        *,
        time: Any = ...,
        bodies: bool = ...,
        id: str | None = ...,
        on_unknown: str = ...,
        as_messages: Literal[True],
    ) -> pa.Table: ...

    def publish_batch(
        self,
        events: Any,
        *,
        time: Any = None,
        bodies: bool = False,
        id: str | None = None,
        on_unknown: str = RAISE,
        as_messages: bool = False,
    ) -> Notifications | pa.Table:
        """Take many events in, in order, as one change; an event's own `time` is when it is published unless `time` says."""
        batch = self._batch(events, 0, id, on_unknown)
        if isinstance(batch, list):
            raise unpublishable(next(event for event in batch if event.vague))

        def act() -> Notifications | pa.Table:
            notes = self._publish(PublishedBatch(batch, self._at(time), time is not None, self.retention), time, bodies)
            return self.messages() if as_messages else notes

        return self.in_turn(act)

    def add_family(self, attribute: str, by: str, k: int, *, epsilon: float | None = None) -> str:
        """Paint, for watchers elsewhere: those of a range of `attribute` who rank by `by`, with lists no longer than k. Its name.

        With `epsilon` there are fewer messages, some of which tell watchers of objects just outside their lists.

        >>> import tidings as td
        >>> flats = td.Topic("flats", {"price": td.Number(), "stars": td.Number()}, key="flat")
        >>> flats.add_family("price", by="stars", k=2)
        'price:stars:2'
        >>> flats.publish({"flat": "f1", "price": 900, "stars": 4}, time=0, as_messages=True).num_rows
        1
        """
        if self.key is None:
            raise SchemaError(f"topic {self.name!r} has no key: messages tell of the objects of a keyed topic")
        family = read_family(self.schema, attribute, by, k, epsilon)
        with self._writing:
            self._painted.add(family)
        return family.name

    def messages(self) -> pa.Table:
        """What has changed for painted families since it was last asked, as messages (docs/gateways.md has their columns).

        Its `sequence` counts from 1, and `snapshot` 0 is a topic without objects: whoever begins with the first messages needs
        nothing else.
        """
        with self._writing:
            self.must_be_whole()
            return self._painted.messages(self.publisher)

    def advance(self, time: Any, *, bodies: bool = False) -> Notifications:
        """Let time pass: promotions and expiries up to and including `time`."""
        now = self._at(time)
        with self._writing, Committed(self) as change:
            notes = change.do(lambda publisher: publisher.advance(now))
            if bodies:
                notes = with_bodies(self.schema, self.key, notes, None, self.publisher.events)
            self.journal.published(None, notes, self.publisher)
            return notes

    def search(self, filter: str | Mapping[str, Any] | None = None, *, time: Any = None) -> pa.Table:
        """The live events that match, by id."""
        clauses = [Clause()] if filter is None else compile_filter(self.schema, filter)
        with self._writing:
            self.must_be_whole()
            return self.publisher.events.search_table(clauses, self._at(time))

    def top(self, id: str, *, time: Any = None) -> list[Match]:
        """A subscription's current list, best first."""
        with self._writing:
            self.must_be_whole()
            return self.publisher.top(self.subscription(id), self._at(time))

    def preview(
        self,
        filter: Filter | None = None,
        *,
        score: float | str | None = None,
        k: int | None = None,
        window: str | int | timedelta | None = None,
        by: str | Mapping[str, Any] | None = None,
        per: str | None = None,
        tz: str | None = None,
        budget: str | None = None,
        cooldown: str | timedelta | None = None,
        dwell: str | timedelta | None = None,
        digest: str | None = None,
        error: float | None = None,
        within: Within | None = None,
        over: str | timedelta | None = "7 days",
        events: Any = None,
        first: int = 10,
        time: Any = None,
    ) -> Preview:
        """What such a subscription would have told in the time `over` until now (None: ever), had it been there.

        It is asked of the live events, or of `events`, a table of past ones with their `time`. Nothing is subscribed.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number()})
        >>> for hour in range(48):
        ...     notes = deals.publish({"id": f"e{hour}", "price": hour % 10}, time=3600 * hour)
        >>> seen = deals.preview("price < 3", over="2 days", time=48 * 3600)
        >>> seen.told, seen.a_day, seen.by_day
        (14, 7.0, {'1970-01-01': 8, '1970-01-02': 6})
        """
        ranking = {"score": score, "k": k, "window": window, "by": by, "per": per, "tz": tz, "error": error}
        ranking |= {"budget": budget, "cooldown": cooldown, "dwell": dwell, "digest": digest}
        asked = made(self.schema, {"id": NAME, "filter": filter, "within": within, **ranking})
        now, length = self._at(time), None if over is None else duration("over", over)
        if events is None:
            with self._writing:
                self.must_be_whole()
                past = Past(*self.publisher.events.past(self.key))
        else:
            past = given_past(events, now)
        return preview(self.schema, self.key, asked, past, past.before if length is None else now - length, now, read_k(first))

    def _publish(self, events: Publications, time: Any, bodies: bool) -> Notifications:
        if time is None and len(events):
            check_ahead(int(events.at.max()), self._at(None))
        with Committed(self) as change:
            notes = self._told(events, change) if self.key is None else change.do(lambda publisher: publisher.replace_all(events))
            if bodies:
                notes = with_bodies(self.schema, self.key, notes, events, self.publisher.events)
            self.journal.published(events, notes, self.publisher)
        return notes

    def _told(self, events: Publications, change: Committed) -> Notifications:
        """Who is notified of each event, once the publisher has taken it in."""
        hits = events.hits(self.store.reader(len(events)), int(self.publisher.windows.memory.meter[CLOCK]))
        return change.do(lambda publisher: publisher.publish(events, hits))

    # The rest

    def __repr__(self) -> str:
        attributes = ", ".join(f"{name} {type(attribute).__name__}" for name, attribute in self.schema.items())
        keyed = "" if self.key is None else f" by {self.key}"
        return f"<Topic {self.name!r}{keyed}: {len(self)} subscriptions, {len(self.publisher.events)} live events; {attributes}>"

    def stats(self) -> dict[str, Any]:
        """Subscriptions, segments and homes, bytes, live events, and what matching has cost so far."""
        return topic_stats(self.name, self.store, self.publisher)

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
        """Let go of everything; whoever asks afterwards is told so."""
        self.housekeeping.close()
        self.journal.close()
        closed: Any = Closed(self.name)
        self.store = self.publisher = closed

    def __bool__(self) -> bool:
        """A topic is something, though nobody has subscribed."""
        return True

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def encode(self, events: Sequence[Event]) -> EventColumns:
        return encode_events(self.schema, self.vocabularies, [event.values for event in events])

    def _batch(self, events: Any, few: int = 0, id: str | None = None, on_unknown: str = "raise") -> EventBatch | list[Event]:
        """The events as columns; as objects if they are few, or some have values that no column can hold."""
        read_one = self.reader_of(id, on_unknown)
        table = table_of(events)
        if table is not None:
            if read_one is not self._read:
                known = {*self.schema, *MARKS, *([] if self.key is None else [self.key])}
                table, read_one = shaped(table, id, known, on_unknown, EventError), self._read
            if 0 < len(table) <= few and (read := self._few_rows(table)):
                return read
            if not has_vague_columns(self.schema, table.schema):
                return events_from_arrow(self.schema, self.vocabularies, table, key=self.key)
            events = table.to_pylist()
        read = read_one.all(events)
        if 0 < len(read) <= few or any(event.vague for event in read):
            return read
        return batch_of(self.schema, self.vocabularies, read, self.key)
