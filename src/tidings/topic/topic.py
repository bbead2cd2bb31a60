"""A topic: subscriptions, live events, and the answers. In memory by itself; `durable.open` makes one that is kept on disk.

`changing` tells how it changes, `subscribing` has what concerns its subscriptions.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import pyarrow as pa

from tidings.boards.messages.family import read_family
from tidings.errors import SchemaError
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.vague_events import unpublishable
from tidings.model.columns.incoming import RAISE
from tidings.model.values.times import check_ahead
from tidings.topic.asking import Asking
from tidings.topic.bodies import with_bodies
from tidings.topic.changing import Closed, Committed
from tidings.topic.publications import Publications, PublishedBatch, PublishedEvent
from tidings.windows.memory import CLOCK


class Topic(Asking):
    """`schema` names the attributes; `key` makes it a keyed topic, a table of current objects instead of a stream of events. With
    `retention`, as "7 days", an event without `expires` ends so long after it was published; else it is live for ever.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"price": td.Number()}, retention="7 days")
    >>> notes = deals.publish({"id": "e1", "price": 3}, time=0)
    >>> len(deals.search("price < 5", time=7 * 86400 - 1)), len(deals.search("price < 5", time=7 * 86400))
    (1, 0)
    """

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
        """Take many events in, in order, as one change; an event's own `time` is when it is published unless `time` says.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> told = deals.publish_batch([{"id": "e1", "price": 3}, {"id": "e2", "price": 4}], time=1)
        >>> [note.event for note in told], told.table().num_rows
        (['e1', 'e2'], 2)
        """
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

        >>> import tidings as td
        >>> flats = td.Topic("flats", {"price": td.Number(), "stars": td.Number()}, key="flat")
        >>> family = flats.add_family("price", by="stars", k=2)
        >>> notes = flats.publish({"flat": "f1", "price": 900, "stars": 4}, time=0)
        >>> flats.messages().num_rows, flats.messages().num_rows
        (1, 0)
        """
        with self._writing:
            self.must_be_whole()
            return self._painted.messages(self.publisher)

    def advance(self, time: Any, *, bodies: bool = False) -> Notifications:
        """Let time pass: promotions and expiries up to and including `time`.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", k=1, window="1 hour", by="-price", time=0)
        >>> for minute, price in [(1, 3), (30, 4)]:
        ...     notes = deals.publish({"id": f"e{minute}", "price": price}, time=60 * minute)
        >>> [(note.event, note.why, note.at.minute) for note in deals.advance(7200)]
        [('e30', 'promoted', 1)]
        """
        now = self._at(time)
        with self._writing, Committed(self) as change:
            notes = change.do(lambda publisher: publisher.advance(now))
            if bodies:
                notes = with_bodies(self.schema, self.key, notes, None, self.publisher.events)
            self.journal.published(None, notes, self.publisher)
            return notes

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

    def flush(self) -> None:
        """Pack what is new into a segment (a durable topic writes it and a manifest).

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5")
        >>> deals.flush()
        >>> len(deals.stats()["segments"])
        1
        """
        self.housekeeping.flush()

    def merge(self) -> None:
        """Make one segment of all, and take back the codes of strings that nobody names any more, if they are most.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> for number in range(3):
        ...     notes = deals.subscribe(f"s{number}", "price < 5")
        ...     deals.flush()
        >>> deals.merge()
        >>> len(deals.stats()["segments"])
        1
        """
        self.housekeeping.flush()
        self.housekeeping.merge()
        if self.store.mostly_unused:
            with self._writing:
                self.housekeeping.reclaim()

    def close(self) -> None:
        """Let go of everything; whoever asks afterwards is told so.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> deals.close()
        >>> deals.match({"id": "e1", "price": 3})
        Traceback (most recent call last):
            ...
        tidings.errors.StorageError: the topic 'deals' was closed: open it again
        """
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
