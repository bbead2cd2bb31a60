"""From matches to what windows take: the list (slot) of each, and the event's relevance to it, as columns.

A segment's subscriptions are named by ordinals that never change, so the slot of each is looked up by id once and kept beside the
segment, in an int32 array: NO_SLOT until it first matches. Then, too, its window begins (`Windows.activate_many`): a million idle
subscriptions cost nothing. A slot that a subscription has lost is never asked for, since who loses it is dead in that segment.

Relevance is computed once for each distinct `by` and event of the batch, over the columns of all its events (`ColumnRelevance`). A
`by` of few matches, or one that has no form in columns, is asked of each event that it concerns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tidings.match.store.hits import NEVER, NO_ROWS, NO_TEXT, Failures, Found, Hits, Source
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.segment import Segment
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema
from tidings.rank.relevance import ColumnRelevance, Relevance, column_relevance, relevance_of
from tidings.topic.publications import Publications
from tidings.windows.publishing import NO_GROUPS
from tidings.windows.windows import Activation, Windows

NO_SLOT = -1
FEW = 8
"""Up to so many matches are judged one by one."""
REMEMBERED = 1 << 17
"""Compiled relevances that are kept at most."""
Floats = NDArray[np.float64]


class Concerned(NamedTuple):
    """Event i of a batch concerns slot[start[i]:start[i + 1]], with these relevances and groups (none where nobody asks)."""

    start: NDArray[np.int64]
    slot: NDArray[np.int32]
    relevance: Floats
    group: NDArray[np.int64] = NO_GROUPS


def parted(hits: Hits) -> tuple[list[Found], list[Found]]:
    """Matches of subscriptions that have no list of their own, and of those that have."""
    plain, ranked = [], []
    for found in hits:
        listed = found.source.ranked(found.ordinal) if len(found.ordinal) else None
        if listed is None or not listed.any():
            plain.append(found)
        elif listed.all():
            ranked.append(found)
        else:
            ranked.append(found.where(listed))
            plain.append(found.where(~listed))
    return [found for found in plain if len(found.event)], ranked


class RankedMatches:
    """`failures` counts, by subscription, the relevances that were asked for and are not finite, or lack an attribute."""

    def __init__(self, schema: Schema, begun: Callable[[str, int], None], failures: Failures | None = None) -> None:
        """`begun` hears of each window that begins and has an end."""
        self.failures = Failures() if failures is None else failures
        self._begun = begun
        self._relevances = Relevances(schema)
        self._slots: WeakKeyDictionary[Segment, NDArray[np.int32]] = WeakKeyDictionary()

    def forget_slots(self) -> None:
        """Windows are no longer what they were."""
        self._slots.clear()

    def concerned(self, windows: Windows, hits: Hits, events: Publications) -> Concerned:
        """The lists that each event concerns; windows begin that have not yet."""
        if not hits:
            return Concerned(np.zeros(len(events) + 1, np.int64), NO_ROWS, np.empty(0))
        batch = None if len(events) == 1 else self._relevances.of_batch(events)
        parts = []
        for found in hits:
            slot = self._slots_of(windows, found.source, found.ordinal)
            relevance = self._of_one(found, events) if batch is None else batch.of(found)
            finite = np.isfinite(relevance)
            if not finite.all():
                self.failures.update(found.source.names(found.ordinal[~finite]))
                found, slot, relevance = found.where(finite), slot[finite], relevance[finite]
            parts.append((found.event, slot, relevance))
        event, slot, relevance = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        if batch is None:
            return Concerned(np.array((0, len(slot))), slot, relevance, grouped(windows, events, event, slot))
        if len(parts) > 1:
            order = np.argsort(event, kind="stable")
            event, slot, relevance = event[order], slot[order], relevance[order]
        start = np.searchsorted(event, np.arange(len(events) + 1))
        return Concerned(start, slot, relevance, grouped(windows, events, event, slot))

    def _of_one(self, found: Found, events: Publications) -> Floats:
        """As `BatchRelevances.of`, where there is one event and columns do not pay."""
        by = found.source.by(found.ordinal)
        if by is None:
            return found.score
        code, text = by
        values, at, known, numbers = events.values(0), int(events.at[0]), dict[int, float](), code.tolist()
        for number in set(numbers):
            if number != NO_TEXT:
                value = self._relevances.of_text(text(number))[0](values, at)
                known[number] = np.nan if value is None else value
        if len(known) == 1 and NO_TEXT not in numbers:
            return np.full(len(numbers), known[numbers[0]])
        return np.array([known.get(number, own) for number, own in zip(numbers, found.score.tolist(), strict=True)])

    def _slots_of(self, windows: Windows, source: Source, ordinal: NDArray[np.int32]) -> NDArray[np.int32]:
        if not isinstance(source, LiveSegment):
            distinct, place = np.unique(ordinal, return_inverse=True)
            return looked_up(windows, source, distinct, self._begun)[place]
        known = self._slots.get(source.segment)
        if known is None:
            known = self._slots[source.segment] = np.full(len(source.segment), NO_SLOT, np.int32)
        slots = known[ordinal]
        if slots.min(initial=0) < 0:
            fresh = np.unique(ordinal[slots < 0])
            known[fresh] = looked_up(windows, source, fresh, self._begun)
            slots = known[ordinal]
        return slots


def grouped(windows: Windows, events: Publications, event: NDArray[np.int32], slot: NDArray[np.int32]) -> NDArray[np.int64]:
    """The group of each match for the list that it concerns; nothing if no list asks for groups."""
    if not windows.grouped:
        return NO_GROUPS
    asked, group = windows.per(slot), np.zeros(len(slot), np.int64)
    for number, name in enumerate(windows.grouped):
        here = asked == number
        if here.any():
            group[here] = events.groups(name)[event[here]]
    return group


def looked_up(
    windows: Windows, source: Source, ordinals: NDArray[np.int32], begun: Callable[[str, int], None]
) -> NDArray[np.int32]:
    """The slots of these subscriptions, whose windows begin if they have none."""
    names = source.names(ordinals)
    idle = [place for place, name in enumerate(names) if name not in windows]
    if idle:
        windows.activate_many([names[place] for place in idle], [Activation(*terms) for terms in source.terms(ordinals[idle])])
        expiry = source.expiry(ordinals[idle])
        for place, end in zip(idle, [] if expiry is None else expiry.tolist(), strict=expiry is not None):
            if end != NEVER:
                begun(names[place], end)
    return np.array([windows.slot(name) for name in names], np.int32)


class Relevances:
    """Compiled relevances, each by its text."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._compiled: dict[str, tuple[Relevance, ColumnRelevance | None]] = {}

    def of_text(self, text: str) -> tuple[Relevance, ColumnRelevance | None]:
        if text not in self._compiled:
            if len(self._compiled) >= REMEMBERED:
                self._compiled.clear()
            self._compiled[text] = relevance_of(self._schema, text), column_relevance(self._schema, text)
        return self._compiled[text]

    def of_batch(self, events: Judged) -> BatchRelevances:
        return BatchRelevances(self, events)


class Judged(Protocol):
    """Events whose relevance is asked for; `at` is when each is published."""

    at: NDArray[np.int64]

    def column(self, name: str) -> Floats: ...

    def values(self, row: int) -> Values: ...


class BatchRelevances:
    """The relevances of one batch of events."""

    def __init__(self, compiled: Relevances, events: Judged) -> None:
        self._compiled = compiled
        self._events = events
        self._columns: dict[str, Floats] = {}

    def of(self, found: Found) -> Floats:
        """By each subscription's `by`, else the score; NaN for none."""
        by = found.source.by(found.ordinal)
        if by is None:
            return found.score
        code, text = by
        relevance = found.score.copy()
        order = np.argsort(code, kind="stable")
        bounds = np.flatnonzero(np.diff(code[order], prepend=NO_TEXT - 1, append=NO_TEXT - 1))
        for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            here = order[first:end]
            if code[here[0]] != NO_TEXT:
                relevance[here] = self._of_text(text, int(code[here[0]]), found.event[here])
        return relevance

    def _of_text(self, text: Callable[[int], str], number: int, rows: NDArray[np.int32]) -> Floats:
        one, column = self._compiled.of_text(text(number))
        if column is None or len(rows) <= FEW:
            return self._one_by_one(one, rows)
        columns = {name: self._column(name) for name in column.attributes}
        return column(columns, self._events.at)[rows]

    def _column(self, name: str) -> Floats:
        if name not in self._columns:
            self._columns[name] = self._events.column(name)
        return self._columns[name]

    def _one_by_one(self, relevance: Relevance, rows: NDArray[np.int32]) -> Floats:
        distinct, place = np.unique(rows, return_inverse=True)
        values = [relevance(self._events.values(row), int(self._events.at[row])) for row in distinct.tolist()]
        judged = np.array([np.nan if value is None else value for value in values], np.float64)
        return judged[place]
