"""Matching against the rows of a memtable as they were at one change: see `memtable` for the columns.

Intervals, absence and boxes are decided by the columns, exactly; sets of codes, words and residues, where a clause has any, by the
clause itself for the rows that are left. One event takes the way through NumPy, which compiles nothing; a batch one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._jit import inlined, kernel
from tidings.index.packed.packing import as_events
from tidings.index.packed.record import Events
from tidings.match.store.definition import Definition
from tidings.match.store.hits import NEVER, NO_ROWS, Failures, Pairs, Terms, ValuesOf, Work, by_of, terms_of
from tidings.match.store.point_residues import judge_points
from tidings.model.columns.arrays import EventColumns
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Clause, Unanswered, Values
from tidings.model.values.schema import Schema

LOOPED = 32
"""A batch of fewer events is scanned one by one, so nothing is compiled for it."""
MORE, NEAR = 1, 2
BOX, WORDS = -1, -2
"""What clauses ask for beside dimensions, in `asked`."""
MIX = 0x9E3779B97F4A7C15
WORD = 2**64 - 1


class Columns(NamedTuple):
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    absent: NDArray[np.bool_]
    box: NDArray[np.float64]
    need: NDArray[np.uint64]
    died: NDArray[np.int64]
    first: NDArray[np.int32]
    flags: NDArray[np.uint8]


class MemtableReader:
    """A subscription's ordinal is its first row. `asked` counts the clauses with a predicate, by dimension, BOX and WORDS."""

    def __init__(
        self,
        schema: Schema,
        columns: Columns,
        clause: Sequence[Clause],
        owner: Sequence[Subscription],
        asked: Mapping[int, int],
        seq: int,
        work: Work,
        subscriptions: int,
        few: Definition | None,
    ) -> None:
        """`few` are the clauses one by one, if they are few."""
        self.schema = schema
        self.columns = columns
        self.clause = clause
        self.owner = owner
        self.asked = asked
        self.seq = seq
        self.count = len(owner)
        self._work = work
        self._subscriptions = subscriptions
        self.few = few

    def match(self, events: EventColumns, values: ValuesOf, failures: Failures | None = None, near: bool = True) -> Pairs:
        """(event row, ordinal) of every match, each once, by event and then id; `near` as in `Segment.match`."""
        event, row = self._scan_each(events) if len(events) < LOOPED else self._scan(as_events(events))
        flags = self.columns.flags[row]
        kept = np.ones(len(row), np.bool_) if near else flags & NEAR == 0
        candidates = int(np.count_nonzero(kept))
        asked = np.flatnonzero(kept & (flags & MORE != 0))
        failed, settled = judge_points(event[asked], row[asked], events.box, lambda row: self.clause[row].residue)
        kept[asked[failed]] = False
        for i in asked[~(settled & (failed | self._residues_alone(row[asked])))].tolist():
            kept[i] = self.clause[row[i]].holds(self.schema, values(int(event[i])))
        found = self._in_order(event[kept], self.columns.first[row[kept]])
        self._work.add(candidates, len(found[0]))
        return found

    def _residues_alone(self, row: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether nothing but residues is left to ask of a clause."""
        distinct, place = np.unique(row, return_inverse=True)
        clauses = [self.clause[number] for number in distinct.tolist()]
        return np.array([not (clause.within or clause.without or clause.words) for clause in clauses], np.bool_)[place]

    def _in_order(self, event: NDArray[np.int32], ordinal: NDArray[np.int32]) -> Pairs:
        """Each pair once, by event and then id."""
        if not len(event):
            return NO_ROWS, NO_ROWS
        found = np.zeros(self.count, np.bool_)
        found[ordinal] = True
        by_id = np.array(sorted(np.flatnonzero(found).tolist(), key=lambda row: self.owner[row].id), np.int32)
        rank = np.empty(self.count, np.int64)
        rank[by_id] = np.arange(len(by_id))
        key = np.unique(event.astype(np.int64) * len(by_id) + rank[ordinal])
        return (key // len(by_id)).astype(np.int32), by_id[key % len(by_id)]

    def _scan_each(self, events: EventColumns) -> Pairs:
        rows = [self.scan_one(events, event) for event in range(len(events))]
        event = np.repeat(np.arange(len(rows), dtype=np.int32), [len(found) for found in rows])
        return event, np.concatenate([NO_ROWS, *rows]).astype(np.int32)

    def match_one(
        self, event: EventColumns, values: Values, near: bool = True, failures: Failures | None = None
    ) -> NDArray[np.int32]:
        """The ordinals that one event matches, each once, by id."""
        if self.few is not None:
            found = self.few.match(values, near, failures, self)
            self._work.add(self.few.size, len(found))
            return self.among(found, self.seq) if found else NO_ROWS
        candidates = self.scan_one(event, 0)
        asked = self.columns.flags[candidates]
        if not near:
            candidates, asked = candidates[asked & NEAR == 0], asked[asked & NEAR == 0]
        rows = candidates
        if (asked & MORE).any():
            more = zip(candidates.tolist(), (asked & MORE).tolist(), strict=True)
            rows = np.array([row for row, to_ask in more if not to_ask or self._asked(row, values, failures)], np.intp)
        self._work.add(len(candidates), len(rows))
        ordinal = self.columns.first[rows]
        if len(rows) < 2:
            return ordinal
        by_id = sorted(set(ordinal.tolist()), key=lambda row: self.owner[row].id)
        return np.array(by_id, np.int32)

    def among(self, ordinals: list[int], seq: int) -> NDArray[np.int32]:
        """All of them: `few` are those that live."""
        return np.array(ordinals, np.int32)

    def _asked(self, row: int, values: Values, failures: Failures | None) -> bool:
        """What the clause itself says."""
        failed = self.clause[row].first_failure(self.schema, values)
        if failures is not None and type(failed) is Unanswered:
            failures[self.owner[row].id] += 1
        return failed is None

    def scan_one(self, events: EventColumns, event: int) -> NDArray[np.intp]:
        """The living rows whose columns let an event pass."""
        n, columns, value = self.count, self.columns, events.value[event]
        hit = columns.died[:n] > self.seq
        if BOX in self.asked:
            xmin, ymin, xmax, ymax = events.box[event].tolist()
            hit &= columns.box[0, :n] <= xmax
            hit &= columns.box[1, :n] <= ymax
            hit &= columns.box[2, :n] >= xmin
            hit &= columns.box[3, :n] >= ymin
        telling = self._telling()
        for dim in telling:
            here = float(value[dim])
            hit &= (columns.lo[dim, :n] <= here) & (columns.hi[dim, :n] >= here) if here == here else columns.absent[dim, :n]
        if WORDS in self.asked:
            has = signature(events.word[events.word_start[event] : events.word_start[event + 1]].tolist())
            hit &= (columns.need[:n] & ~np.uint64(has)) == 0
        rows = np.flatnonzero(hit)
        if not len(rows) or len(telling) == sum(key >= 0 for key in self.asked):
            return rows
        passed = (columns.lo[:, rows] <= value[:, None]) & (columns.hi[:, rows] >= value[:, None])
        missing = np.isnan(value)
        passed[missing] = columns.absent[:, rows][missing]
        left: NDArray[np.intp] = rows[passed.all(axis=0)]
        return left

    def _telling(self) -> list[int]:
        """The dimensions that are asked of all rows: the two most common ones, none if there is a place to begin with."""
        if BOX in self.asked:
            return []
        return sorted((key for key in self.asked if key >= 0), key=lambda key: -self.asked[key])[:2]

    def _scan(self, events: Events) -> Pairs:
        has = signatures(events.word_start, events.word)
        found: Pairs = scan(self.columns, self.count, self.seq, events, has, np.array(self._telling(), np.int64))
        return found

    @property
    def living(self) -> int:
        """How many subscriptions it sees, those that go by similarity included."""
        return self._subscriptions

    def reached(self, events: EventColumns, id: str) -> tuple[bool, ...]:
        """Of each clause of a subscription, whether the columns let the one event pass."""
        given = set(self.scan_one(events, 0).tolist())
        died = self.columns.died[: self.count].tolist()
        return tuple(row in given for row in range(self.count) if self.owner[row].id == id and died[row] > self.seq)

    given = False

    def ids(self, ordinal: NDArray[np.integer]) -> pa.StringArray:
        if len(ordinal) <= self.count:
            return pa.array(self.names(ordinal), pa.string())
        return pa.array([s.id for s in self.owner[: self.count]], pa.string()).take(pa.array(ordinal))

    def __getitem__(self, ordinal: int) -> str:
        """The id that stands at an ordinal."""
        return self.owner[ordinal].id

    def names(self, ordinal: NDArray[np.integer]) -> list[str]:
        return [self.owner[row].id for row in ordinal.tolist()]

    def _each(self, ordinal: NDArray[np.integer], field: Callable[[Subscription], float | bool], kind: type) -> NDArray[Any]:
        """A field of the subscription of each ordinal, read once a subscription where a batch has many of each."""
        if len(ordinal) <= self.count:
            return np.array([field(self.owner[row]) for row in ordinal.tolist()], kind)
        each: NDArray[Any] = np.array([field(s) for s in self.owner[: self.count]], kind)[ordinal]
        return each

    def scores(self, event: NDArray[np.int32], ordinal: NDArray[np.int32], values: ValuesOf) -> NDArray[np.float64]:
        score = self._each(ordinal, lambda s: s.score, np.float64)
        for i in np.flatnonzero(self._each(ordinal, lambda s: bool(s.terms), np.bool_)).tolist():
            score[i] = self.owner[int(ordinal[i])].score_of(values(int(event[i])))
        return score

    def expiry(self, ordinal: NDArray[np.int32]) -> NDArray[np.int64] | None:
        until = self._each(ordinal, lambda s: NEVER if s.expires is None else s.expires, np.int64)
        return until if (until != NEVER).any() else None

    def ranked(self, ordinal: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        return self._each(ordinal, lambda s: s.is_ranked, np.bool_)

    def terms(self, ordinal: NDArray[np.integer]) -> list[Terms]:
        return terms_of(self.owner[row] for row in ordinal.tolist())

    def by(self, ordinal: NDArray[np.integer]) -> tuple[NDArray[np.integer], Callable[[int], str]] | None:
        return by_of(self.owner[row] for row in ordinal.tolist())

    def subscription(self, ordinal: int) -> Subscription:
        return self.owner[ordinal]


def expiry_of(subscriptions: Sequence[Subscription]) -> NDArray[np.int64] | None:
    """When each expires; None if nobody does."""
    times = [s.expires for s in subscriptions]
    return None if times.count(None) == len(times) else np.array([NEVER if t is None else t for t in times], np.int64)


def signature(words: Iterable[int]) -> int:
    """One bit a word, by its code."""
    bits = 0
    for word in words:
        bits |= 1 << ((word * MIX & WORD) >> 58)
    return bits


@kernel
def signatures(start: NDArray[np.int64], word: NDArray[np.int32]) -> NDArray[np.uint64]:
    """`signature` of each event's words."""
    has = np.zeros(start.size - 1, np.uint64)
    for event in range(has.size):
        for at in range(start[event], start[event + 1]):
            has[event] |= np.uint64(1) << (np.uint64(word[at]) * np.uint64(MIX) >> np.uint64(58))
    return has


@kernel
def scan(
    columns: Columns, count: int, seq: int, events: Events, has: NDArray[np.uint64], telling: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(event, row) of the living rows whose columns let each event pass. Two passes: over all rows what tells most, without a
    branch; then the rest of the rows that are left."""
    room = (count + 7) // 8 * 8
    hit, eights = np.zeros(room, np.uint8), np.empty(0, np.uint64)
    eights = hit.view(np.uint64)
    event_of, row_of, found = np.empty(1024, np.int32), np.empty(1024, np.int32), 0
    for event in range(events.value.shape[0]):
        pass_first(columns, count, seq, events, event, telling, hit)
        if found + count > event_of.size:
            event_of, row_of = longer(event_of, found + count), longer(row_of, found + count)
        for eight in range(eights.size):
            if eights[eight] == 0:
                continue
            for row in range(8 * eight, 8 * eight + 8):
                if hit[row] and passes(columns, row, events, event, has[event]):
                    event_of[found], row_of[found] = event, row
                    found += 1
    return event_of[:found].copy(), row_of[:found].copy()


@kernel
def pass_first(
    columns: Columns, count: int, seq: int, events: Events, event: int, telling: NDArray[np.int64], hit: NDArray[np.uint8]
) -> None:
    """Which rows live and let the event pass in the dimensions `telling`, or by their box if there are none."""
    died = columns.died[:count]
    if telling.size == 0:
        xmin, ymin, xmax, ymax = events.box[event]
        left, low, right, high = columns.box[0, :count], columns.box[1, :count], columns.box[2, :count], columns.box[3, :count]
        for i in range(count):
            hit[i] = (died[i] > seq) & (left[i] <= xmax) & (low[i] <= ymax) & (right[i] >= xmin) & (high[i] >= ymin)
        return
    for i in range(count):
        hit[i] = died[i] > seq
    for dim in telling:
        value, lo, hi, absent = (
            events.value[event, dim],
            columns.lo[dim, :count],
            columns.hi[dim, :count],
            columns.absent[dim, :count],
        )
        if value == value:
            for i in range(count):
                hit[i] &= (lo[i] <= value) & (hi[i] >= value)
        else:
            for i in range(count):
                hit[i] &= absent[i]


@inlined
def passes(columns: Columns, row: int, events: Events, event: int, has: int) -> bool:
    if columns.need[row] & ~has:
        return False
    for dim in range(columns.lo.shape[0]):
        value = events.value[event, dim]
        if value == value:
            if not (columns.lo[dim, row] <= value <= columns.hi[dim, row]):
                return False
        elif not columns.absent[dim, row]:
            return False
    # MISSING_BOX touches no box but NO_BOX, by its infinities.
    box = columns.box
    low = box[0, row] <= events.box[event, 2] and box[1, row] <= events.box[event, 3]
    return bool(low and box[2, row] >= events.box[event, 0] and box[3, row] >= events.box[event, 1])


@kernel
def longer(array: NDArray[np.int32], least: int) -> NDArray[np.int32]:
    grown = np.empty(max(2 * array.size, least), np.int32)
    grown[: array.size] = array
    return grown
