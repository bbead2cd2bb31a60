"""The memtable: what is new since the last segment, in a structure that takes single changes.

A change only marks its subscription as *waiting*; what waits is encoded and indexed together, at the next match or when there are
BATCH of them, because a batch costs a fraction of as many single calls into the index. Words and categories enter the vocabularies
at once: an event that is read after a change must know the subscription's words.

`slot` numbers clauses for the index; a subscription that changes keeps its slots while it has as many clauses. The columns that
entered the index are kept (`ClauseLog`), so that packing (`rows`) takes them as they are. The owner (`Store`) guards the memtable
with its lock and turns it into a segment before it grows large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tidings.index.motree.cells import Axis
from tidings.index.motree.tree import MOTree
from tidings.index.packed.record import Events
from tidings.match.store.clause_log import ClauseLog
from tidings.match.store.score_order import ScoreOrder
from tidings.match.store.subscription_rows import Rows, concat_rows, ranking_table, rows_of
from tidings.match.store.tree_axes import clause_axes
from tidings.model.columns.arrays import EventColumns, Vocabularies, encode_clauses
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Schema
from tidings.rank.nearness import ideal_point

BATCH = 256


class Memtable:
    """Similarity subscriptions are only kept here: `Similar` matches them. Those that are nothing but an ideal point match all."""

    def __init__(self, schema: Schema, vocabularies: Vocabularies, axes: Sequence[Axis] = ()) -> None:
        """`axes` are those to index by; without any, those that suit every schema."""
        self._schema = schema
        self._vocabularies = vocabularies
        self._index = MOTree(axes or clause_axes(schema, vocabularies))
        self.subscriptions: dict[str, Subscription] = {}
        self.near: dict[str, Subscription] = {}
        self._waiting: set[str] = set()
        self._slots: dict[str, range] = {}
        self._clause: dict[int, Clause] = {}
        self._owner: dict[int, Subscription] = {}
        self._next = 0
        self._order = ScoreOrder(schema)
        self._log = ClauseLog()

    def __len__(self) -> int:
        return len(self.subscriptions)

    @property
    def axes(self) -> Sequence[Axis]:
        return self._index.axes

    def put(self, subscription: Subscription) -> None:
        for clause in subscription.clauses:
            if clause.words or clause.within or clause.without:
                enter_strings(self._vocabularies, clause)
        self.subscriptions[subscription.id] = subscription
        self.near.pop(subscription.id, None)
        if ideal_point(subscription) is not None:
            self.near[subscription.id] = subscription
        self._wait(subscription.id)

    def remove(self, id: str) -> bool:
        if self.subscriptions.pop(id, None) is None:
            return False
        self.near.pop(id, None)
        self._wait(id)
        return True

    def _wait(self, id: str) -> None:
        self._waiting.add(id)
        if len(self._waiting) >= BATCH:
            self.index_waiting()

    def index_waiting(self) -> None:
        """Bring the index up to all changes."""
        if not self._waiting:
            return
        slots, clauses, gone = list[int](), list[Clause](), list[int]()
        for id in self._waiting:
            subscription = self.subscriptions.get(id)
            indexed = subscription is not None and subscription.similarity is None and id not in self.near
            held = subscription.clauses if subscription is not None and indexed else ()
            gone += self._seat(id, len(held))
            for slot, clause in zip(self._slots.get(id, ()), held, strict=True):
                assert subscription is not None
                self._clause[slot], self._owner[slot] = clause, subscription
                slots.append(slot)
                clauses.append(clause)
        self._waiting.clear()
        self._forget(gone)
        self._order.note([*slots, *gone])
        if slots:
            columns = encode_clauses(self._schema, self._vocabularies, clauses, slots)
            self._index.insert(columns.owner, columns)
            self._log.add(columns, self._clause)

    def _seat(self, id: str, clauses: int) -> Iterable[int]:
        """Give a subscription as many slots as it has clauses; the slots that it leaves."""
        before = self._slots.get(id, range(0))
        if len(before) == clauses:
            return ()
        self._slots.pop(id, None)
        if clauses:
            self._slots[id] = range(self._next, self._next + clauses)
            self._next += clauses
        return before

    def _forget(self, slots: list[int]) -> None:
        if slots:
            self._index.delete(np.array(slots, np.int32))
        for slot in slots:
            del self._clause[slot], self._owner[slot]

    def rows(self) -> Rows:
        """All subscriptions, packed."""
        self.index_waiting()
        indexed = [self.subscriptions[id] for id in self._slots]
        clauses = self._log.newest([slot for slots in self._slots.values() for slot in slots])
        residues = {}
        for row in np.flatnonzero(clauses.residue).tolist():
            residues[row] = tuple(r.source for r in self._clause[int(clauses.owner[row])].residue)
        clauses.owner = np.repeat(np.arange(len(indexed), dtype=np.int32), [len(slots) for slots in self._slots.values()])
        rows = Rows(ranking_table(indexed), clauses, residues)
        others = [subscription for id, subscription in self.subscriptions.items() if id not in self._slots]
        return concat_rows([rows, rows_of(self._schema, self._vocabularies, others)]) if others else rows

    def match(self, events: EventColumns, values: Callable[[int], Values], near: bool = True) -> list[tuple[int, Subscription]]:
        """(event row, subscription) of every match, each once, in any order; `near` as in `Segment.match`."""
        self.index_waiting()
        found: dict[tuple[int, str], Subscription] = {}
        for event, slot in zip(*(part.tolist() for part in self._index.match_batch(events)), strict=True):
            if all(residue.test(values(event)) for residue in self._clause[slot].residue):
                found[event, self._owner[slot].id] = self._owner[slot]
        return [(event, subscription) for (event, _), subscription in found.items()] + (self._everywhere(events) if near else [])

    def _everywhere(self, events: EventColumns) -> list[tuple[int, Subscription]]:
        return [(event, subscription) for subscription in self.near.values() for event in range(len(events))]

    def best(self, events: EventColumns, values: Callable[[int], Values], k: int) -> list[tuple[int, Subscription]]:
        """The same, but who is not among an event's k best may be left out."""
        self.index_waiting()
        found = self._order.best(events, k, self._owner)
        if found is None:
            return self.match(events, values)
        return [(event, self._owner[slot]) for event, slot in found] + self._everywhere(events)

    def plan(self) -> str:
        """How `best` goes about it, and why."""
        self.index_waiting()
        why = self._order.why_not(self._owner)
        return "memtable: IR-tree in order of score" if why is None else f"memtable: all matches, then the k best: {why}"

    def match_one(self, events: Events, values: Values) -> list[Subscription]:
        """The subscriptions that one event matches, each once: the short way. `events` are read-only arrays."""
        self.index_waiting()
        found: dict[str, Subscription] = {}
        for slot in self._index.match_one(events, 0).tolist():
            if all(residue.test(values) for residue in self._clause[slot].residue):
                found[self._owner[slot].id] = self._owner[slot]
        return [*found.values(), *self.near.values()]

    def reached(self, events: EventColumns, id: str) -> tuple[bool, ...]:
        """Of each clause of a subscription, whether the index gives it for the one event."""
        self.index_waiting()
        if id in self.near:
            return (True,) * len(self.near[id].clauses)
        given = set(self._index.match_batch(events)[1].tolist())
        return tuple(slot in given for slot in self._slots.get(id, ()))

    @property
    def stats(self) -> dict[str, int]:
        return self._index.stats

    def check(self) -> None:
        self.index_waiting()
        self._index.check()
        assert sorted(self._owner) == sorted(slot for slots in self._slots.values() for slot in slots)
        assert all(self._owner[slot] is self.subscriptions[id] for id, slots in self._slots.items() for slot in slots)


def enter_strings(vocabularies: Vocabularies, clause: Clause) -> None:
    """Give codes to the words and categories of a clause."""
    for word in clause.words:
        vocabularies.words.add(word)
    for sets in (clause.within, clause.without):
        for name, strings in sets.items():
            for string in strings:
                vocabularies.categories[name].add(string)
