"""Relaxed matching: at least one dimension holds, and the score is the aggregate of the weights of those that do.

Each segment gets a `RelaxedIndex` when it is first asked, over its clauses as they are then; what is new is packed into a segment
first. Subscriptions with a residue are few and are scored one by one. A dimension's weight is the subscription's for that
attribute, 1 if it gives none; a subscription of several clauses has the score of its best one.

The k best come by the path that is priced lowest: a search in order of bounds, whose price is what searches for about as many have
looked at so far in this segment; the score of everybody, and the best of these; or, where clauses are nothing but ranges and scores
are sums, a scan of columns that bound everybody's score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.errors import SubscriptionError
from tidings.index.packed.record import Events
from tidings.index.relaxed.bounds import FANOUT
from tidings.index.relaxed.relaxed_index import NOBODY, RelaxedIndex, is_certain
from tidings.index.relaxed.terms import Alternatives, plain_event
from tidings.match.answers.ordering import ROW, best, match_list, ordered, table_of
from tidings.match.answers.results import Match
from tidings.match.store.hits import NO_ROWS, Found, Hits
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.ranking_columns import column_of
from tidings.match.store.reader import Reader
from tidings.match.store.subscription_rows import WEIGHT
from tidings.model.columns.arrays import EventColumns, dimensions
from tidings.model.columns.gather import gather_clauses
from tidings.model.columns.tables import EventBatch
from tidings.model.door.event import Event
from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Schema
from tidings.rank.aggregates import AGGREGATES, combined

Scored = tuple[NDArray[np.int32], NDArray[np.float64]]
"""Ordinals, best first, and their scores."""
SEARCHED, EVALUATED, SCANNED, GIVEN = 60.0, 25.0, 1.3, 300.0
"""Nanoseconds: a clause looked at by a search, its share of the nodes above it included; a clause scored in passing; one bounded by
columns in passing; an answer."""
MOST_SCANNED = 1024
"""The greatest k of a scan, whose heap is the price of every answer."""


class RelaxedSegment:
    """The relaxed side of one segment: an index of the clauses without residue, and the subscriptions that have one."""

    def __init__(self, live: LiveSegment) -> None:
        segment = live.segment
        self.schema = schema = segment.schema
        clauses = segment.columns()
        apart = np.unique(clauses.owner[clauses.residue])
        indexed = gather_clauses(clauses, np.flatnonzero(~np.isin(clauses.owner, apart)))
        weight = {name: column_of(segment.table, name + WEIGHT, 1.0) for name in schema}
        self.index = RelaxedIndex.build(
            indexed,
            _by_predicate(schema, weight, indexed.owner, indexed.pred_start, indexed.pred_dim),
            len(schema.ranges),
            weight[schema.place][indexed.owner] if schema.place is not None else None,
            weight[schema.words][indexed.owner] if schema.words is not None else None,
        )
        self.apart = [(int(ordinal), live.subscription(int(ordinal))) for ordinal in apart]
        self.looked_at: dict[int, float] = {}
        """by the bits of k: clauses that a search looked at, a moving average"""
        self._scanned: dict[int, bool] = {}
        """by k: whether a scan was priced lowest, until a search has told more"""

    def topk(self, event: Alternatives, values: Values, k: int, aggregate: str, hidden: NDArray[np.bool_]) -> Scored:
        """The k best of one event but for those with `hidden`, which may be empty."""
        if aggregate == "sum" and self.scan_pays(k) and is_certain(event):
            ordinal, score = self.index.scan(event, k, hidden)
        elif (prices := self.prices(k))["search"] <= prices["all"]:
            ordinal, score, looked_at = self.index.search(event, k, aggregate, hidden)
            before = self.looked_at.get(k.bit_length(), looked_at)
            self.looked_at[k.bit_length()] = before + (looked_at - before) / 8
            self._scanned.clear()
        else:
            ordinal, score = self.index.score_all(event, aggregate)
            if hidden.size:
                ordinal, score = ordinal[~hidden[ordinal]], score[~hidden[ordinal]]
        return self._with_apart(ordinal, score, values, k, aggregate, hidden)

    def topk_one(self, event: Pinned[Events], values: Values, k: int, hidden: NDArray[np.bool_]) -> Scored | None:
        """The same of a sum for one plain event, the short way; None where a scan does not pay."""
        if not self.scan_pays(k):
            return None
        found = self.index.scan_one(event, k, hidden)
        return self._with_apart(*found, values, k, "sum", hidden) if self.apart else found

    def scan_pays(self, k: int) -> bool:
        if k not in self._scanned:
            prices = self.prices(k)
            self._scanned[k] = self.scans(k) and prices["scan"] <= prices["search"]
        return self._scanned[k]

    def scans(self, k: int) -> bool:
        return k <= MOST_SCANNED and self.index.scannable is not None

    def prices(self, k: int) -> dict[str, float]:
        """Nanoseconds an event, of a search and of scoring everybody."""
        bits = k.bit_length()
        known = min(self.looked_at, key=lambda other: abs(other - bits), default=None)
        expected = FANOUT * k if known is None else self.looked_at[known] * 2.0 ** (bits - known)
        wanted = min(k, len(self.index))
        return {
            "search": min(expected, len(self.index)) * SEARCHED + wanted * GIVEN,
            "all": len(self.index) * EVALUATED + wanted * GIVEN,
            "scan": len(self.index) * SCANNED + wanted * GIVEN,
        }

    def explained(self, k: int) -> str:
        prices = self.prices(k)
        named = {"search": "search by bounds", "all": "score everybody"} | ({"scan": "scan bounds"} if self.scans(k) else {})
        chosen, *others = [f"{named[way]} {prices[way] / 1000:.3g} us" for way in sorted(named, key=prices.__getitem__)]
        return f"relaxed: {chosen} ({', '.join(others)})"

    def _with_apart(
        self,
        ordinal: NDArray[np.int32],
        score: NDArray[np.float64],
        values: Values,
        k: int,
        aggregate: str,
        hidden: NDArray[np.bool_],
    ) -> Scored:
        if not self.apart and len(ordinal) <= k:
            order = np.lexsort((ordinal, -score))
            return ordinal[order], score[order]
        more = []
        for number, s in self.apart:
            extra = None if hidden.size and hidden[number] else relaxed_score(self.schema, s.clauses, s.weights, values, aggregate)
            if extra is not None:
                more.append((number, extra))
        ordinals = np.concatenate([ordinal, np.array([o for o, _ in more], np.int32)])
        scores = np.concatenate([score, np.array([score for _, score in more], np.float64)])
        order = np.lexsort((ordinals, -scores))[:k]
        return ordinals[order], scores[order]


def _by_predicate(
    schema: Schema,
    weight: Mapping[str, NDArray[np.float64]],
    owner: NDArray[np.int32],
    start: NDArray[np.int64],
    dim: NDArray[np.int16],
) -> NDArray[np.float64]:
    """The weight of each predicate: that of its owner for its attribute."""
    clause = np.repeat(np.arange(len(owner)), np.diff(start))
    weights = np.ones(len(dim))
    for name, number in dimensions(schema).items():
        here = dim == number
        weights[here] = weight[name][owner[clause[here]]]
    return weights


def relaxed_score(
    schema: Schema, clauses: tuple[Clause, ...], weights: Mapping[str, float], values: Values, aggregate: str
) -> float | None:
    """The score of the best clause of which a dimension holds; None when there is none."""
    scores = []
    for clause in clauses:
        parts = sorted(clause.by_attribute(schema).items())
        held = [weights.get(name, 1.0) for name, part in parts if part.holds(schema, values)]
        if held:
            scores.append(combined(aggregate, held))
    return max(scores, default=None)


def hidden_at(live: LiveSegment, seq: int, time: int) -> NDArray[np.bool_]:
    """Whether each subscription is removed or has expired; empty when nobody is."""
    hidden = ~live.is_live(np.arange(len(live)), seq) if live.dead else NOBODY
    if live.segment.expires is not None:
        expired = live.segment.expires <= time
        hidden = hidden | expired if hidden.size else expired
    return hidden


Asked = tuple[Alternatives, Values]
"""An event as the index takes it, and its values for what the index does not know."""


def relaxed_pairs(
    reader: Reader, events: Sequence[Asked], k: int | None, aggregate: str, time: int
) -> Iterator[tuple[int, LiveSegment, Scored]]:
    """(place in `events`, segment, what it gives), of every event and segment; the reader has everything in segments."""
    if aggregate not in AGGREGATES:
        raise SubscriptionError(f"aggregate = {aggregate!r}: one of {', '.join(AGGREGATES)} is accepted")
    for segment in reader.snapshot.segments:
        side = segment.aside(RelaxedSegment)
        hidden = hidden_at(segment, reader.snapshot.seq, time)
        wanted = len(segment) if k is None else min(k, len(segment))
        for row, (event, values) in enumerate(events):
            yield row, segment, side.topk(event, values, wanted, aggregate, hidden)


def plain_row(columns: EventColumns, row: int) -> Alternatives:
    event: Alternatives = plain_event(
        columns.value[row], columns.box[row], columns.word[columns.word_start[row] : columns.word_start[row + 1]]
    )
    return event


def relaxed_list(reader: Reader, event: Event, k: int | None, aggregate: str, time: int, asked: Asked | None = None) -> list[Match]:
    """The relaxed matches of one event: by id, or the k best by (score desc, id asc). `asked` is its form if it is not plain."""
    if asked is None and aggregate == "sum" and k is not None:
        found = scanned(reader, event.values, k, time)
        if found is not None:
            return match_list(event.id, found, k)
    if asked is None:
        columns = reader.encoded(event.values)
        asked = plain_event(columns.value[0].copy(), columns.box[0].copy(), columns.word.copy()), event.values
    matches = [
        Match(event.id, id, score)
        for _, segment, (ordinal, scores) in relaxed_pairs(reader, [asked], k, aggregate, time)
        for id, score in zip(segment.names(ordinal), scores.tolist(), strict=True)
    ]
    return ordered(matches, k)


def scanned(reader: Reader, values: Values, k: int, time: int) -> Hits | None:
    """The k best of one plain event in every segment by a scan; None if that does not pay in one of them."""
    event = reader.pinned(values)
    hits: list[Found] = []
    for live in reader.snapshot.segments:
        best = live.aside(RelaxedSegment).topk_one(event, values, min(k, len(live)), hidden_at(live, reader.snapshot.seq, time))
        if best is None:
            return None
        hits.append(Found(live, NO_ROWS, *best, best=True))
    return hits


def relaxed_table(reader: Reader, batch: EventBatch, k: int | None, aggregate: str, time: int) -> pa.Table:
    """(event, subscription, score) of the relaxed matches of a batch."""
    columns = batch.encoded(reader.vocabularies)
    events = [(plain_row(columns, row), batch.values(row)) for row in range(len(batch))]
    parts = [table_of(np.empty(0, np.int32), pa.array([], pa.string()), np.empty(0))]
    for row, segment, (ordinal, scores) in relaxed_pairs(reader, events, k, aggregate, time):
        parts.append(table_of(np.full(len(ordinal), row, np.int32), segment.ids(ordinal), scores))
    table = pa.concat_tables(parts).combine_chunks()
    table = best(table, k) if k is not None else table.sort_by([(ROW, "ascending"), ("subscription", "ascending")])
    return table.add_column(1, "event", batch.ids.take(table[ROW].combine_chunks()))
