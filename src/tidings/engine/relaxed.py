"""Relaxed matching: at least one dimension holds, and the score is the aggregate of the weights of those that do.

Each segment gets a `RelaxedIndex` when it is first asked, over its clauses as they are then; what is new is packed into a segment
first. Subscriptions with a residue are few and are scored one by one, as are all when there is no k. A dimension's weight is the
subscription's for that attribute, 1 if it gives none; a subscription of several clauses has the score of its best one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.engine.matching import ROW, best, table_of
from tidings.engine.results import Match
from tidings.engine.rows import WEIGHT
from tidings.engine.segment import Segment, column_of
from tidings.engine.store import Store
from tidings.errors import SubscriptionError
from tidings.index.relaxed import RelaxedIndex
from tidings.model.arrays import EventColumns, Vocabularies, dimensions, encode_events
from tidings.model.clause import Clause, Values
from tidings.model.columns import EventBatch
from tidings.model.event import Event
from tidings.model.gather import gather_clauses
from tidings.model.schema import Schema
from tidings.rank.aggregates import AGGREGATES, combined

Scored = tuple[NDArray[np.int32], NDArray[np.float64]]
"""Ordinals, best first, and their scores."""


class RelaxedSegment:
    """The relaxed side of one segment: an index of the clauses without residue, and the subscriptions that have one."""

    def __init__(self, segment: Segment, vocabularies: Vocabularies) -> None:
        self._segment = segment
        schema, clauses = segment.schema, segment.columns()
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
        self.apart = [(int(ordinal), segment.subscription(vocabularies, int(ordinal))) for ordinal in apart]

    def topk(self, events: EventColumns, row: int, values: Values, k: int, aggregate: str, snapshot: int, time: int) -> Scored:
        """The k best live subscriptions of one event. The index does not know the dead, so it is asked for as many more."""
        segment = self._segment
        hidden = np.zeros(len(segment), np.bool_)
        hidden[~segment.is_live(np.arange(len(segment)), snapshot)] = True
        if segment.expires is not None:
            hidden |= segment.expires <= time
        words = events.word[events.word_start[row] : events.word_start[row + 1]]
        wanted = min(k + int(hidden.sum()), len(segment))
        ordinal, score = self.index.topk(events.value[row], wanted, aggregate, events.box[row], words)
        kept = ~hidden[ordinal]
        extra = [
            (o, relaxed_score(segment.schema, s.clauses, s.weights, values, aggregate)) for o, s in self.apart if not hidden[o]
        ]
        more = [(o, score) for o, score in extra if score is not None]
        ordinals = np.concatenate([ordinal[kept], np.array([o for o, _ in more], np.int32)])
        scores = np.concatenate([score[kept], np.array([score for _, score in more], np.float64)])
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


def _relaxed(
    store: Store, events: EventColumns, values: Sequence[Values], k: int | None, aggregate: str, time: int
) -> Iterator[tuple[int, Segment, Scored]]:
    if aggregate not in AGGREGATES:
        raise SubscriptionError(f"aggregate = {aggregate!r}: one of {', '.join(AGGREGATES)} is accepted")
    snapshot = store.packed()
    for segment in snapshot.segments:
        side = segment.relaxed(store.vocabularies, RelaxedSegment)
        for row in range(len(events)):
            wanted = len(segment) if k is None else k
            yield row, segment, side.topk(events, row, values[row], wanted, aggregate, snapshot.seq, time)


def relaxed_list(store: Store, event: Event, k: int | None, aggregate: str, time: int) -> list[Match]:
    """The relaxed matches of one event: by id, or the k best by (score desc, id asc)."""
    columns = encode_events(store.schema, store.vocabularies, [event.values])
    matches = [
        Match(event.id, id, score)
        for _, segment, (ordinal, scores) in _relaxed(store, columns, [event.values], k, aggregate, time)
        for id, score in zip(segment.names.take(ordinal), scores.tolist(), strict=True)
    ]
    if k is None:
        return sorted(matches, key=lambda match: match.subscription)
    return sorted(matches, key=lambda match: (-match.score, match.subscription))[:k]


def relaxed_table(store: Store, batch: EventBatch, k: int | None, aggregate: str, time: int) -> pa.Table:
    """(event, subscription, score) of the relaxed matches of a batch."""
    values = [batch.values(row) for row in range(len(batch))]
    parts = [table_of(np.empty(0, np.int32), pa.array([], pa.string()), np.empty(0))]
    for row, segment, (ordinal, scores) in _relaxed(store, batch.columns, values, k, aggregate, time):
        parts.append(table_of(np.full(len(ordinal), row, np.int32), segment.names.strings.take(pa.array(ordinal)), scores))
    table = pa.concat_tables(parts).combine_chunks()
    table = best(table, k) if k is not None else table.sort_by([(ROW, "ascending"), ("subscription", "ascending")])
    return table.add_column(1, "event", batch.ids.take(table[ROW].combine_chunks()))
