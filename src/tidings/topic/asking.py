"""Questions to a topic: who should hear of an event, and why; what is live, what stands in a list, what would have been told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from tidings.errors import EventError
from tidings.match.answers.explain import Explanation, explain_event, explain_pair, explain_vague
from tidings.match.answers.ordering import match_list, match_rows, match_table, single_table
from tidings.match.answers.relaxed import relaxed_list, relaxed_table
from tidings.match.answers.results import Match
from tidings.match.answers.vague_events import has_vague_columns, vague_list, vague_relaxed
from tidings.model.columns.arrays import EventColumns, encode_events
from tidings.model.columns.incoming import RAISE, shaped, table_of
from tidings.model.columns.tables import EventBatch, batch_of, events_from_arrow
from tidings.model.door.event import Event
from tidings.model.door.subscription import read_k
from tidings.model.filter.clause import Clause
from tidings.model.filter.compile import compile_filter
from tidings.model.values.window import duration
from tidings.topic.past_events import MARKS, Past, given_past
from tidings.topic.preview import NAME, Preview, preview
from tidings.topic.stats import topic_stats
from tidings.topic.subscribing import Filter, Subscribing, Within, made

FEW = 4
"""Up to so many events are asked about one by one: the first column costs more."""


class Asking(Subscribing):
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

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> for id, score in [("ann", 1.0), ("bob", 2.0)]:
        ...     notes = deals.subscribe(id, "price < 5", score=score)
        >>> deals.match({"id": "e1", "price": 3}, k=1)
        [Match(event='e1', subscription='bob', score=2.0)]
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
        """(event, subscription, score) of a table of events (a DataFrame, too), or of an iterable of events.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5")
        >>> deals.match_batch([{"id": "e1", "price": 3}, {"id": "e2", "price": 9}]).to_pylist()
        [{'event': 'e1', 'subscription': 'ann', 'score': 1.0}]
        """
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
        k best would be found.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5 AND brand = 'Acme'")
        >>> print(deals.explain({"id": "e1", "price": 9, "brand": "Acme"}, "ann"))
        'ann' does not match event 'e1': price is 9, wanted below 5
        """
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

    def search(self, filter: str | Mapping[str, Any] | None = None, *, time: Any = None) -> pa.Table:
        """The live events that match, by id.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> for number in range(3):
        ...     notes = deals.publish({"id": f"e{number}", "price": number}, time=number)
        >>> deals.search("price >= 1", time=3)["id"].to_pylist()
        ['e1', 'e2']
        """
        clauses = [Clause()] if filter is None else compile_filter(self.schema, filter)
        with self._writing:
            self.must_be_whole()
            return self.publisher.events.search_table(clauses, self._at(time))

    def top(self, id: str, *, time: Any = None) -> list[Match]:
        """A subscription's current list, best first.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", k=2, window="1 hour", by="-price", time=0)
        >>> for second, price in enumerate([5, 3, 4], 1):
        ...     notes = deals.publish({"id": f"e{second}", "price": price}, time=second)
        >>> [(match.event, match.score) for match in deals.top("ann", time=9)]
        [('e2', -3.0), ('e3', -4.0)]
        """
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
                past = Past(*self.publisher.events.past(self.key), again=True)
        else:
            past = given_past(events, now)
        return preview(self.schema, self.key, asked, past, past.before if length is None else now - length, now, read_k(first))

    def stats(self) -> dict[str, Any]:
        """Subscriptions, segments and homes, bytes, live events, and what matching has cost so far.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number(), "brand": td.Category()})
        >>> notes = deals.subscribe("ann", "price < 5")
        >>> deals.stats()["subscriptions"]
        1
        """
        return topic_stats(self.name, self.store, self.publisher)

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
