"""The memtable: what is new since the last segment, in a structure that takes single changes.

`slot` numbers clauses for the index; a slot is used once. The owner (`Store`) guards it with its lock and turns it into a segment
before it grows large.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidings.engine.axes import clause_axes
from tidings.index.mo_tree import MOTree
from tidings.model.arrays import NO_BOX, ClauseColumns, EventColumns, Vocabularies, encode_clauses
from tidings.model.clause import Clause, Values
from tidings.model.gather import NO_CLAUSES
from tidings.model.schema import Schema
from tidings.model.subscription import Subscription


class Memtable:
    """Similarity subscriptions are only kept here: `Similar` matches them."""

    def __init__(self, schema: Schema, vocabularies: Vocabularies, sample: ClauseColumns = NO_CLAUSES) -> None:
        """`sample` are clauses like those to come."""
        self._schema = schema
        self._vocabularies = vocabularies
        self._index = MOTree(clause_axes(schema, vocabularies, sample))
        self._slots: dict[str, range] = {}
        self._clause: dict[int, Clause] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self._owner: dict[int, Subscription] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self.subscriptions)

    def put(self, subscription: Subscription) -> None:
        before = self.subscriptions.get(subscription.id)
        if before is not None and only_moved(before, subscription):
            self._move(subscription)
            return
        self.remove(subscription.id)
        first, self._next = self._next, self._next + len(subscription.clauses)
        slots = range(first, self._next)
        # Encoding comes first in any case: an event that is read after this must know the subscription's words.
        encoded = encode_clauses(self._schema, self._vocabularies, subscription.clauses, slots)
        clauses = subscription.clauses if subscription.similarity is None else ()
        if clauses:
            self._index.insert(np.arange(first, self._next, dtype=np.int32), encoded)
        slots = slots[: len(clauses)]
        self._slots[subscription.id] = slots
        self.subscriptions[subscription.id] = subscription
        for slot, clause in zip(slots, clauses, strict=True):
            self._clause[slot] = clause
            self._owner[slot] = subscription

    def _move(self, subscription: Subscription) -> None:
        """The same clauses with other boxes: nothing but the boxes is touched."""
        slots = self._slots[subscription.id]
        self.subscriptions[subscription.id] = subscription
        if slots:
            boxes = np.array([NO_BOX if clause.box is None else clause.box for clause in subscription.clauses])
            self._index.move_batch(np.arange(slots.start, slots.stop, dtype=np.int32), boxes)
        for slot, clause in zip(slots, subscription.clauses, strict=False):
            self._clause[slot], self._owner[slot] = clause, subscription

    def remove(self, id: str) -> bool:
        if id not in self.subscriptions:
            return False
        slots = self._slots.pop(id)
        self._index.delete(np.arange(slots.start, slots.stop, dtype=np.int32))
        for slot in slots:
            del self._clause[slot], self._owner[slot]
        del self.subscriptions[id]
        return True

    def match(self, events: EventColumns, values: Callable[[int], Values]) -> list[tuple[int, Subscription]]:
        """(event row, subscription) of every match, each once, in any order."""
        found: dict[tuple[int, str], Subscription] = {}
        for event, slot in zip(*(part.tolist() for part in self._index.match_batch(events)), strict=True):
            if all(residue.test(values(event)) for residue in self._clause[slot].residue):
                found[event, self._owner[slot].id] = self._owner[slot]
        return [(event, subscription) for (event, _), subscription in found.items()]


def only_moved(before: Subscription, after: Subscription) -> bool:
    """Whether the clauses are the very same but for their boxes, told by identity; other fields may differ."""
    if len(before.clauses) != len(after.clauses) or before.similarity != after.similarity:
        return False
    parts = ("ranges", "within", "without", "nulls", "present", "words", "residue")
    return all(
        all(getattr(old, part) is getattr(new, part) for part in parts)
        for old, new in zip(before.clauses, after.clauses, strict=True)
    )
