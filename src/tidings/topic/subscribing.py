"""Subscriptions of a topic: taking them in, changing, moving, removing and listing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidings.errors import EventError, SubscriptionError
from tidings.match.answers.results import Notification
from tidings.match.store import listing
from tidings.match.store.subscription_rows import rows_of_batch
from tidings.model.columns.incoming import RAISE, must_be_known, shaped
from tidings.model.columns.subscription_tables import (
    subscription_at,
    subscription_columns,
    subscriptions_from_arrow,
)
from tidings.model.columns.tables import plain_table
from tidings.model.door.by import listed
from tidings.model.door.single_values import read_id, read_name
from tidings.model.door.subscription import Subscription, known_id, make_subscription, read_k
from tidings.model.values.schema import Schema
from tidings.rank.nearness import ideal_point
from tidings.rank.relevance import relevance_of
from tidings.topic.bodies import with_bodies
from tidings.topic.changing import Changing, Committed
from tidings.topic.fitting import all_must_fit, begins_at_once, must_fit, warn_of_first
from tidings.topic.moving import changed_in_place, moved, placed_within
from tidings.topic.relisting import asks_otherwise, goes_on, lists

PAGE = 1000
Filter = str | Mapping[str, Any]
Within = tuple[Sequence[float], float | str]


class Unchanged(Enum):
    """What `update` takes for a field that stays as it is; None puts one back to its default."""

    KEPT = "kept"


KEPT: Final = Unchanged.KEPT


def made(schema: Schema, source: Mapping[str, Any]) -> Subscription:
    """A subscription from the fields of an object."""
    fields = dict(source)
    return _made(schema, fields.pop("id", None), fields.pop("filter", None), **fields)


def _made(schema: Schema, id: object, filter: object, /, *, within: Any = None, **ranking: object) -> Subscription:
    subscription = make_subscription(schema, id, filter, **ranking)
    if within is not None:
        subscription = placed_within(schema, subscription, within)
    if subscription.by is not None:
        relevance_of(schema, subscription.by)
    return subscription


class Subscribing(Changing):
    def subscribe(
        self,
        id: str,
        filter: Filter | None = None,
        *,
        score: float | str | None = None,
        weights: Mapping[str, float] | None = None,
        similarity: tuple[float, float] | None = None,
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
        expires: Any = None,
        owner: str | None = None,
        tags: Sequence[str] | None = None,
        within: Within | None = None,
        replay: bool = False,
        bodies: bool = False,
        time: Any = None,
    ) -> list[Notification]:
        """Register or replace a subscription; `replay` gives the live events that match, a keyed topic gives its current list.

        With `per`, an attribute, of the events with one value of it only the best counts; `tz` is the time zone of a window that is
        a `day`, `week` or `month`. `budget` ("10 per day"), `cooldown` ("1 hour"), `dwell` ("10 minutes") and `digest` ("day", "at
        08:00") are its pace: see `withheld`. `within` is ((x, y), r): the place must lie within r metres of the point (units of a
        plane), on top of the filter. `owner` and `tags` say whose it is and what it is filed under (`subscriptions`). With `bodies`
        what is told carries its event.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number()})
        >>> deals.subscribe("ann", "price < 5", owner="u17", tags=["food"], time=0)
        []
        >>> deals.subscription("ann").filter
        'price < 5'
        """
        fields: dict[str, Any] = {}
        # Most have none of these, and are not to wait until each has been looked at.
        plain = score is None and weights is None and similarity is None and k is None and window is None and by is None
        plain = plain and per is None and tz is None and budget is None and cooldown is None and dwell is None and digest is None
        if not (plain and error is None and expires is None and owner is None and tags is None and within is None):
            given: dict[str, Any] = {"score": score, "weights": weights, "similarity": similarity, "k": k, "window": window}
            given |= {"by": by, "budget": budget, "cooldown": cooldown, "dwell": dwell, "digest": digest, "per": per, "tz": tz}
            given |= {"error": error, "expires": expires, "owner": owner, "tags": tags, "within": within}
            fields = {name: value for name, value in given.items() if value is not None}
        return self._take(_made(self.schema, id, filter, **fields), replay, bodies, time)

    def take(
        self, source: Mapping[str, Any], *, replay: bool = False, bodies: bool = False, time: Any = None
    ) -> list[Notification]:
        """The same for an object, as JSON has it: `{"id": "ann", "filter": "price < 500", "k": 5}`."""
        return self._take(made(self.schema, source), replay, bodies, time)

    def _take(self, subscription: Subscription, replay: bool, bodies: bool, time: Any) -> list[Notification]:
        now = self._at(time)
        must_fit(self.schema, subscription, self.key)
        if subscription.is_ranked or self.key is not None:
            subscription = subscription.but(since=now)
        with self._writing:
            subscription = self._replayed(subscription) if replay else subscription
            seq = self.store.next_seq
            with Committed(self, [subscription.id]) as change:
                notes: list[Notification] = []
                if replay or subscription.by is not None or subscription.paced or self.publisher.knows(subscription.id):
                    notes = change.watch(lambda publisher: publisher.register(subscription, now, replay))
                if bodies:
                    notes = [*with_bodies(self.schema, self.key, notes, None, self.publisher.events)]
                self.journal.put(seq, subscription, notes, self.publisher)
                self.store.put(seq, [subscription])
            return notes

    def _replayed(self, subscription: Subscription) -> Subscription:
        """One that is nothing but an ideal point keeps a list like any other, if there is something to begin it with."""
        if self.key is not None or not len(self.publisher.events) or ideal_point(subscription) is None:
            return subscription
        assert subscription.by is not None
        return subscription.but(by=listed(subscription.by))

    def subscribe_many(
        self, table: Any, *, on_error: str = "raise", id: str | None = None, on_unknown: str = RAISE, time: Any = None
    ) -> int:
        """Register the rows of a table (columnar form or a `filter` column), a DataFrame too; how many were taken.

        `id` names the column that is the id; `on_unknown="ignore"` leaves out columns that no subscription has.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> import pyarrow as pa
        >>> deals.subscribe_many(pa.table({"id": ["ann", "bob"], "price.hi": [5.0, None], "brand.in": [None, ["Acme"]]}))
        2
        >>> [match.subscription for match in deals.match({"id": "e1", "price": 3, "brand": "Acme"})]
        ['ann', 'bob']
        """
        now = self._at(time)
        if id is not None or on_unknown != RAISE:
            must_be_known(on_unknown, SubscriptionError)
            known = subscription_columns(self.schema)
            table = shaped(plain_table(table, SubscriptionError), id, known, on_unknown, SubscriptionError)
        with self._writing:
            batch = subscriptions_from_arrow(self.schema, self.vocabularies, table, on_error=on_error)
            all_must_fit(self.schema, batch, self.key)
            warn_of_first(self.schema, batch, self.key)
            rows = rows_of_batch(batch, now)
            replaced = self.store.existing(rows.ids())
            seq = self.store.next_seq
            added = self.store.built(seq, rows)
            with Committed(self, rows.ids()) as change:
                begins = range(len(batch)) if self.key is not None else np.flatnonzero(begins_at_once(rows)).tolist()
                watched = [subscription_at(batch, row).but(since=now) for row in begins]
                notes = change.watch(lambda publisher: publisher.register_many(replaced, watched, now))
                self.journal.loaded(seq, batch.table, replaced, now, notes, self.publisher)
                self.store.put_segment(seq, added)
        return len(rows)

    def update(
        self,
        id: str,
        *,
        filter: Filter | Unchanged | None = KEPT,
        score: float | str | Unchanged | None = KEPT,
        weights: Mapping[str, float] | Unchanged | None = KEPT,
        similarity: tuple[float, float] | Unchanged | None = KEPT,
        k: int | Unchanged | None = KEPT,
        window: str | int | timedelta | Unchanged | None = KEPT,
        by: str | Mapping[str, Any] | Unchanged | None = KEPT,
        per: str | Unchanged | None = KEPT,
        tz: str | Unchanged | None = KEPT,
        budget: str | Unchanged | None = KEPT,
        cooldown: str | timedelta | Unchanged | None = KEPT,
        dwell: str | timedelta | Unchanged | None = KEPT,
        digest: str | Unchanged | None = KEPT,
        error: float | Unchanged | None = KEPT,
        expires: Any = KEPT,
        owner: str | Unchanged | None = KEPT,
        tags: Sequence[str] | Unchanged | None = KEPT,
        within: Within | Unchanged | None = KEPT,
        time: Any = None,
    ) -> list[Notification]:
        """Change any part of a subscription; None puts a part back to its default. What is told is what differs: objects of a keyed
        topic, or live events, that came into reach, or into the list of the k best (`entered`), or went out (`left`).

        A new filter leaves the circle of `within` where it is, and a new circle leaves the filter.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> notes = deals.publish({"id": "e1", "price": 7}, time=1)
        >>> [(note.event, note.why) for note in deals.update("ann", filter="price < 9", time=2)]
        [('e1', 'entered')]
        """
        given: dict[str, object] = {"filter": filter, "score": score, "weights": weights, "similarity": similarity}
        given |= {"k": k, "window": window, "by": by, "per": per, "tz": tz, "error": error, "expires": expires}
        given |= {"owner": owner, "tags": tags, "within": within}
        given |= {"budget": budget, "cooldown": cooldown, "dwell": dwell, "digest": digest}
        return self.change(id, {name: value for name, value in given.items() if value is not KEPT}, time=time)

    def change(self, id: str, changes: Mapping[str, Any], *, time: Any = None) -> list[Notification]:
        """`update` for an object, as JSON has it: `{"k": 5, "window": null}`."""
        with self._writing:
            before = self.subscription(id)
            after = changed_in_place(self.schema, before, changes)
            if not changes.keys().isdisjoint(("filter", "k", "window", "by", "per", "dwell")):
                must_fit(self.schema, after, self.key)
            return self._replace(before, after, self._at(time))

    def move(self, id: str, point: Sequence[float], *, time: Any = None) -> list[Notification]:
        """Centre a subscription's place on `point`, keeping its size; what is told is what differs, as for `update`.

        >>> import tidings as td
        >>> taxis = td.Topic("taxis", {"place": td.Place()}, key="plate")
        >>> notes = taxis.publish({"plate": "B-1", "place": (13.40, 52.50)}, time=0)
        >>> notes = taxis.subscribe("me", within=((13.45, 52.50), "1 km"), time=1)
        >>> [(note.event, note.why) for note in taxis.move("me", (13.40, 52.50), time=2)]
        [('B-1', 'entered')]
        """
        with self._writing:
            before = self.subscription(id)
            return self._replace(before, moved(self.schema, before, point), self._at(time))

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription; one that is not there is a mistake.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5")
        >>> deals.unsubscribe("ann")
        >>> "ann" in deals
        False
        """
        id = known_id(id)
        with self._writing:
            if id not in self.store:
                raise SubscriptionError(f"there is no subscription {id!r}")
            seq = self.store.next_seq
            with Committed(self, [id]) as change:
                self.journal.removed(seq, [id])
                self.store.remove(seq, [id])
                if self.publisher.knows(id):
                    change.watch(lambda publisher: publisher.register_many([id], [], 0))

    def unsubscribe_many(self, ids: Sequence[str]) -> int:
        """Remove those of `ids` that are there, as one change; how many they were.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5")
        >>> deals.unsubscribe_many(["ann", "nobody"])
        1
        """
        with self._writing:
            there = self.store.existing(pa.array(dict.fromkeys(map(known_id, ids)), pa.string()))
            seq = self.store.next_seq
            with Committed(self, there) as change:
                if there:
                    self.journal.removed(seq, there)
                    self.store.remove(seq, there)
                change.watch(lambda publisher: publisher.register_many(there, [], 0))
            return len(there)

    def withheld(self, id: str) -> int:
        """How many notifications a subscription's budget and cooldown have kept back.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5", budget="1 per day", time=0)
        >>> [len(deals.publish({"id": f"e{second}", "price": 3}, time=second)) for second in (1, 2, 3)]
        [1, 0, 0]
        >>> deals.withheld("ann")
        2
        """
        with self._writing:
            self.must_be_whole()
            return self.publisher.gates.withheld(self.subscription(id).id)

    def subscription(self, id: str) -> Subscription:
        """What a subscription is, as it was given and as it was changed.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5", k=3)
        >>> deals.subscription("ann")
        Subscription('ann', 'price < 5', k=3)
        """
        found = self.store.get(known_id(id))
        if found is None:
            raise SubscriptionError(f"there is no subscription {id!r}")
        return found

    def subscriptions(
        self, *, owner: str | None = None, tag: str | None = None, after: str | None = None, limit: int = PAGE
    ) -> list[Subscription]:
        """The first `limit` subscriptions by id, of those above `after`; of one owner, with one tag.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number()})
        >>> for number, owner in enumerate(["u17", "u4", "u17"]):
        ...     notes = deals.subscribe(f"s{number}", "price < 5", owner=owner, time=0)
        >>> [s.id for s in deals.subscriptions(owner="u17")]
        ['s0', 's2']
        """
        try:
            owner, tag = None if owner is None else read_name("owner", owner), None if tag is None else read_id("tag", tag)
        except EventError as problem:
            raise SubscriptionError(str(problem)) from None
        last = None if after is None else known_id(after)
        return listing.listed(self.store, owner, tag, last, read_k(limit))

    def __iter__(self) -> Iterator[Subscription]:
        """All of them by id, read page by page: what changes meanwhile may or may not be seen."""
        page = self.subscriptions()
        while page:
            yield from page
            page = self.subscriptions(after=page[-1].id)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id in self.store

    def __len__(self) -> int:
        return len(self.store)

    def _replace(self, before: Subscription, after: Subscription, now: int) -> list[Notification]:
        keeps, otherwise = goes_on(before, after), asks_otherwise(before, after)
        if self.key is None and after.is_ranked and (after.since is None or not keeps):
            after = after.but(since=now)
            keeps = goes_on(before, after)
        if after.by is not None:
            relevance_of(self.schema, after.by)
        if otherwise and lists(before, after):
            after = self._replayed(after)
        seq = self.store.next_seq
        with Committed(self, [after.id]) as change:
            notes: list[Notification] = []
            shifted = otherwise and len(self.publisher.events) > 0
            if not keeps or after.paced or shifted or self.publisher.knows(after.id):
                notes = change.watch(lambda publisher: publisher.change(before, after, now))
            self.journal.put(seq, after, notes, self.publisher, same_window=keeps and not otherwise)
            self.store.put(seq, [after])
        return notes
