"""The memtable: what is new since the last segment, as columns that are appended to and scanned.

No tree: at no size that a memtable has does one pay, and the scan of a single event by NumPy has nothing to compile. Every clause
has a *row*; those of a subscription lie together. A change appends rows, which are written for the next reader, and ends those it
replaces; no other cell is written twice. So a reader (`MemtableReader`) needs no lock: it holds the arrays, how many rows there
were, and its change number. When most rows are dead the living are copied into new arrays; readers keep the old ones.

`Columns`, room for r rows over d dimensions (`model.columns.arrays`):

| array      | shape, dtype   | meaning                                                                                        |
|------------|----------------|------------------------------------------------------------------------------------------------|
| `lo`, `hi` | d x r, float64 | the interval left to a value; a set of codes has its least and greatest; that of NULL is empty |
| `absent`   | d x r, bool    | whether an event without the attribute passes: there is no predicate, or NULL                  |
| `box`      | 4 x r, float64 | xmin, ymin, xmax, ymax; NO_BOX without a place                                                 |
| `need`     | r, uint64      | signature of the required words: all its bits must be in the event's                           |
| `died`     | r, int64       | the change that ended the row; NEVER while it lives                                            |
| `first`    | r, int32       | the first row of the same subscription: its ordinal                                            |
| `flags`    | r, uint8       | MORE: sets, words or a residue, asked of the clause itself; NEAR: nothing but an ideal point   |

Cost: an event of a batch passes over the two most telling columns of all rows, and over the others of the rows that are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.match.store import definition
from tidings.match.store.definition import Definition
from tidings.match.store.hits import NEVER, Work
from tidings.match.store.memtable_reader import BOX, MORE, NEAR, WORDS, Columns, MemtableReader, signature
from tidings.match.store.subscription_rows import Rows, rows_of
from tidings.model.columns.arrays import NO_BOX, Vocabularies, dimensions
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Clause
from tidings.model.values.schema import Schema
from tidings.rank.nearness import ideal_point

ROOM = 64
WORTH_PACKING, WORTH_PACKING_WORDS = 1 << 15, 512
"""Events of a batch for which a memtable is packed first: a row costs 10 us to pack and 0.5 ns to scan; and where clauses have
words, sets or residues, which Python asks one by one, some 3 us for each that an event comes upon."""
FEWEST = 4096
"""Rows from which on a memtable that is mostly dead is copied."""


def columns_of(dims: int, room: int) -> Columns:
    return Columns(
        np.full((dims, room), -np.inf),
        np.full((dims, room), np.inf),
        np.ones((dims, room), np.bool_),
        np.repeat(np.array(NO_BOX)[:, None], room, axis=1),
        np.zeros(room, np.uint64),
        np.full(room, NEVER),
        np.zeros(room, np.int32),
        np.zeros(room, np.uint8),
    )


class Memtable:
    """Similarity subscriptions are only kept here: `Similar` matches them. The owner (`Store`) guards it with its lock."""

    def __init__(self, schema: Schema, vocabularies: Vocabularies) -> None:
        self.schema = schema
        self.vocabularies = vocabularies
        self.subscriptions: dict[str, Subscription] = {}
        self._rows: dict[str, range] = {}
        self._dimension = dimensions(schema)
        self._dims = len(schema.ranges) + 2
        self.work = Work()
        self._few: Definition | None = None
        self._begin(ROOM)

    def _use(self, columns: Columns) -> None:
        self.columns = columns
        self._room = len(columns.died)
        # A memoryview writes a cell at half of an array's cost.
        self._lo: Any = columns.lo.reshape(-1).data
        self._hi: Any = columns.hi.reshape(-1).data
        self._absent: Any = columns.absent.reshape(-1).data
        self._first: Any = columns.first.data

    def _begin(self, room: int) -> None:
        self._use(columns_of(self._dims, room))
        self.clause: list[Clause] = []
        self.owner: list[Subscription] = []
        self._begins: list[int] = []
        """`first` of each row"""
        self._written = 0
        """rows that stand in the columns: the others are written for the next reader"""
        self.asked: dict[int, int] = {}
        """by dimension, BOX or WORDS: how many clauses have a predicate there"""

    def __len__(self) -> int:
        return len(self.subscriptions)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns)

    def put(self, seq: int, subscription: Subscription) -> None:
        self._few = None
        if subscription.id in self._rows:
            self._end(seq, subscription.id)
        self.subscriptions[subscription.id] = subscription
        for clause in subscription.clauses:
            if clause.words or clause.within or clause.without:
                enter_strings(self.vocabularies, clause)
        if subscription.similarity is None:
            self._append(subscription)

    def remove(self, seq: int, id: str) -> bool:
        if self.subscriptions.pop(id, None) is None:
            return False
        self._few = None
        self._end(seq, id)
        return True

    def near(self) -> list[Subscription]:
        """Those that are nothing but an ideal point."""
        return [s for s in self.subscriptions.values() if s.by is not None and ideal_point(s) is not None]

    def _end(self, seq: int, id: str) -> None:
        rows = self._rows.pop(id, None)
        if rows is not None:
            self.columns.died[rows.start : rows.stop] = seq
            if len(self.clause) > FEWEST and len(self.clause) > 2 * len(self.subscriptions):
                self._copy_living()

    def _copy_living(self) -> None:
        """Readers hold the arrays as they were; a dead row that they still see stays in those."""
        living = [self.subscriptions[id] for id in self._rows]
        self._rows.clear()
        self._begin(max(ROOM, 2 * len(living)))
        for subscription in living:
            self._append(subscription)

    def _append(self, subscription: Subscription) -> None:
        first = len(self.owner)
        del self.clause[first:], self._begins[first:]  # of one that was interrupted here
        while first + len(subscription.clauses) > self._room:
            self._grow()
        count = len(subscription.clauses)
        self.clause += subscription.clauses
        self._begins += [first] * count
        # A reader takes the length of `owner` for the number of rows: this comes last.
        self.owner += [subscription] * count
        self._rows[subscription.id] = range(first, first + count)

    def _settle(self) -> None:
        for row in range(self._written, len(self.owner)):
            self._write(row, self.clause[row])
            self._first[row] = self._begins[row]
            subscription = self.owner[row]
            if subscription.by is not None and ideal_point(subscription) is not None:
                self.columns.flags[row] |= NEAR
            self._written = row + 1

    def _grow(self) -> None:
        more = columns_of(self._dims, 2 * len(self.columns.died))
        room = len(self.columns.died)
        more.lo[:, :room], more.hi[:, :room], more.absent[:, :room] = self.columns.lo, self.columns.hi, self.columns.absent
        more.box[:, :room], more.need[:room], more.died[:room] = self.columns.box, self.columns.need, self.columns.died
        more.first[:room], more.flags[:room] = self.columns.first, self.columns.flags
        self._use(more)

    def _write(self, row: int, clause: Clause) -> None:
        columns, dimension, asked = self.columns, self._dimension, self.asked
        lo, hi, absent, room = self._lo, self._hi, self._absent, self._room
        for name, (low, high) in clause.ranges.items():
            # A fresh row lets everything pass, and a clause has one range a dimension: these are written, not narrowed.
            dim = dimension[name]
            at = dim * room + row
            lo[at], hi[at], absent[at] = low, high, False
            asked[dim] = asked.get(dim, 0) + 1
        for name in clause.present:
            self._narrow(row, dimension[name], -np.inf, np.inf)
        for name in clause.nulls:
            self._narrow(row, dimension[name], np.inf, -np.inf, absent=True)
        more = bool(clause.words or clause.residue or clause.without)
        for name, strings in clause.within.items():
            codes = [self.vocabularies.categories[name].code(string) for string in strings]
            self._narrow(row, dimension[name], min(codes), max(codes))
            more = more or len(codes) > 1
        for name in clause.without:
            self._narrow(row, dimension[name], -np.inf, np.inf)
        if clause.box is not None:
            columns.box[:, row] = clause.box
            self._ask(BOX)
        if clause.words:
            columns.need[row] = signature(self.vocabularies.words.codes(clause.words))
            self._ask(WORDS)
        if more:
            columns.flags[row] = MORE

    def _narrow(self, row: int, dim: int, low: float, high: float, absent: bool = False) -> None:
        lo, hi = self.columns.lo, self.columns.hi
        lo[dim, row], hi[dim, row] = max(lo[dim, row], low), min(hi[dim, row], high)
        self.columns.absent[dim, row] &= absent
        self._ask(dim)

    def _ask(self, key: int) -> None:
        self.asked[key] = self.asked.get(key, 0) + 1

    def rows(self) -> Rows:
        """All subscriptions, packed."""
        return rows_of(self.schema, self.vocabularies, [*self.subscriptions.values()])

    def is_worth_packing(self, events: int) -> bool:
        """Whether a batch of so many events had better find a segment."""
        if len(self.clause) <= definition.TINY:
            return False
        self._settle()
        return events >= WORTH_PACKING or bool((self.columns.flags[: len(self.clause)] & MORE).any())

    def reader(self, seq: int) -> MemtableReader:
        self._settle()
        if self._few is None and len(self.clause) <= definition.TINY:
            self._few = self._definition()
        return MemtableReader(self.schema, self.columns, self.clause, self.owner, self.asked, seq, self.work, len(self), self._few)

    def _definition(self) -> Definition:
        flags = self.columns.flags
        living = [(rows.start, bool(flags[rows.start] & NEAR), id) for id, rows in sorted(self._rows.items()) if len(rows)]
        return Definition(
            self.schema, [(first, near, clause) for first, near, id in living for clause in self.subscriptions[id].clauses]
        )

    def check(self) -> None:
        assert len(self.clause) == len(self.owner) <= len(self.columns.died)
        living = {row for rows in self._rows.values() for row in rows}
        dead = np.flatnonzero(self.columns.died[: len(self.owner)] != NEVER)
        assert living.isdisjoint(dead.tolist()), "who stands here lives"
        assert len(living) + len(dead) == len(self.owner), "every row lives or is dead"
        assert all(self.owner[row] is self.subscriptions[id] for id, rows in self._rows.items() for row in rows)


def enter_strings(vocabularies: Vocabularies, clause: Clause) -> None:
    """Give codes to the words and categories of a clause: an event that is read after a change must know them."""
    for word in clause.words:
        vocabularies.words.add(word)
    for sets in (clause.within, clause.without):
        for name, strings in sets.items():
            for string in strings:
                vocabularies.categories[name].add(string)
