"""Events with values that are not one value (`model.vague`): ranges, and values with chances.

An uncertain event is its worlds. A subscription matches it if it matches one of them, and its score is the expectation: the sum,
over the worlds it matches, of the world's chance times its score there; so for relaxed matching too. Every world is matched in
full, also when only the k best are wanted: an expectation is known when all worlds are. One shortcut: the sum over dimensions of
relaxed matching is linear, so where every subscription has one clause the index takes chances as they are, and searches once.

A range is met in two steps. A clause meets [a, b] in a dimension either where it contains a, or where its lower end lies in (a, b].
So the answer is: all that match the event with its ranges at their low ends, found as ever; and of the clauses whose lower end
lies within a range those that hold, looked at one by one (`RelaxedIndex.beginning_inside`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.errors import EventError, shown
from tidings.index.relaxed.terms import Alternatives
from tidings.match.answers.ordering import match_list, ordered
from tidings.match.answers.relaxed import Asked, RelaxedSegment, hidden_at, relaxed_list
from tidings.match.answers.results import Match
from tidings.match.store.hits import Hits, scored
from tidings.match.store.reader import Reader
from tidings.model.columns.arrays import EventColumns, encode_events
from tidings.model.door.event import Event
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema
from tidings.model.values.vague import Between, Uncertain, low_ends, ranged, without_ranges, worlds


def vague_list(reader: Reader, event: Event, k: int | None, time: int) -> list[Match]:
    """`Topic.match` of an event that is not plain."""
    return expected(event.id, ((chance, _world(reader, values, time)) for chance, values in worlds(event.values)), k)


def vague_relaxed(reader: Reader, event: Event, k: int | None, aggregate: str, time: int) -> list[Match]:
    """The same, relaxed."""
    if linear(reader, event, aggregate):
        return relaxed_list(reader, event, k, aggregate, time, asked(reader, event.values))
    each = (
        (chance, relaxed_list(reader, event, None, aggregate, time, asked(reader, values)))
        for chance, values in worlds(event.values)
    )
    return expected(event.id, each, k)


def linear(reader: Reader, event: Event, aggregate: str) -> bool:
    """Whether the index itself gives the expectation of the relaxed score."""
    if not any(isinstance(value, Uncertain) for value in event.values.values()):
        return True
    sides = [segment.aside(RelaxedSegment) for segment in reader.snapshot.segments]
    return aggregate == "sum" and not any(side.apart or side.index.owners.shared.any() for side in sides)


def expected(id: str, each: Iterable[tuple[float, Sequence[Match]]], k: int | None) -> list[Match]:
    """Expectations of the scores that the worlds give."""
    total: dict[str, float] = {}
    for chance, matches in each:
        for _, subscription, score in matches:
            total[subscription] = total.get(subscription, 0.0) + chance * score
    return ordered([Match(id, subscription, score) for subscription, score in total.items()], k)


def _world(reader: Reader, values: Values, time: int) -> list[Match]:
    if not ranged(values):
        return match_list("", reader.match_one(values, time))
    columns = encode_events(reader.schema, reader.vocabularies, [low_ends(values)])
    close = reader.by_similarity(columns, lambda _: values, time)
    return match_list("", [*_ranged(reader, columns, values, time), *close])


def _ranged(reader: Reader, columns: EventColumns, values: Values, time: int) -> Hits:
    """Those that an event with ranges matches."""
    known, (event, _) = without_ranges(values), asked(reader, values)
    within = [reader.schema.dimension[name] for name, value in values.items() if isinstance(value, Between)]
    hits = []
    for segment in reader.snapshot.segments:
        side = segment.aside(RelaxedSegment)
        hidden = hidden_at(segment, reader.snapshot.seq, time)
        found = [segment.match(columns, lambda _: known, reader.snapshot.seq)[1]]
        found += [side.index.beginning_inside(event, dimension) for dimension in within]
        met = [o for o, s in side.apart if any(clause.holds(reader.schema, values) for clause in s.clauses)]
        ordinal = np.unique(np.concatenate([*found, np.array(met, np.int32)]))
        ordinal = ordinal[~np.isin(ordinal, segment.segment.similar)]
        ordinal = ordinal[~hidden[ordinal]] if hidden.size else ordinal
        hits.append(scored(segment, (np.zeros(len(ordinal), np.int32), ordinal), lambda _: values, reader.failures))
    return hits


def asked(reader: Reader, values: Values) -> Asked:
    """The event as the relaxed index takes it: every dimension a list of ranges with chances."""
    schema, vocabularies = reader.schema, reader.vocabularies
    alternatives: list[tuple[float, float, float]] = []
    start = [0]
    for name in schema.ranges:
        for value, chance in _choices(values, name):
            if name in vocabularies.categories:
                code = float(vocabularies.categories[name].code(value))
                alternatives.append((code, code, chance))
            else:
                alternatives.append((value.lo, value.hi, chance) if isinstance(value, Between) else (value, value, chance))
        start.append(len(alternatives))
    columns = encode_events(schema, vocabularies, [{n: v for n, v in values.items() if n in (schema.place, schema.words)}])
    for place, extent in ((schema.place, (columns.box[0, 0], columns.box[0, 2])), (schema.words, (0.0, 0.0))):
        if place in values:
            alternatives.append((*extent, 1.0))
        start.append(len(alternatives))
    lo, hi, chances = np.array(alternatives, np.float64).reshape(-1, 3).T.copy()
    event = Alternatives(np.array(start, np.int64), lo, hi, chances, columns.box[0], columns.word)
    return event, values


def _choices(values: Values, name: str) -> list[tuple[Any, float]]:
    if name not in values:
        return []
    value = values[name]
    return value.chances() if isinstance(value, Uncertain) else [(value, 1.0)]


def has_vague_columns(schema: Schema, columns: pa.Schema) -> bool:
    """Whether a Number, Time or Category of a table is a struct: ranges, or values with weights."""
    return any(column.name in schema.dimension and pa.types.is_struct(column.type) for column in columns)


def unpublishable(event: Event) -> EventError:
    name, value = next((n, v) for n, v in event.values.items() if isinstance(v, Between | Uncertain))
    return EventError(
        f"{name} is {shown(value)}: ranges and uncertain values can be matched; an event that is published has one value"
    )
