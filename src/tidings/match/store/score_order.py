"""The memtable in order of score: an IR-tree of its clauses, while each subscription is one range on the same attribute.

Changes only wait here; they enter the tree when the k best are asked for, so whoever never asks pays nothing. A subscription that
is anything else (several clauses or predicates, another attribute, an expiry, a score that depends on the event) stands *apart*,
and while one does, or while all scores are alike, the k best are selected from all matches. [ranked, section 3.1]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tidings.index.scored.ir_tree import IRTree
from tidings.model.columns.arrays import EventColumns
from tidings.model.door.subscription import Subscription
from tidings.model.values.schema import Schema


class ScoreOrder:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._tree = IRTree()
        self._name: str | None = None
        self._score: dict[int, float] = {}
        self._kinds: Counter[float] = Counter()
        """how many have each score"""
        self._apart: set[int] = set()
        self._waiting: set[int] = set()

    def note(self, slots: Iterable[int]) -> None:
        """Slots whose subscription came, changed or went."""
        self._waiting.update(slots)

    def best(self, events: EventColumns, k: int, owner: Mapping[int, Subscription]) -> list[tuple[int, int]] | None:
        """(event row, slot) of each event's k best and of all that tie with the last; None if the order does not stand."""
        if self.why_not(owner) is not None:
            return None
        assert self._name is not None
        value = events.value[:, self._schema.dimension[self._name]]
        return [(row, slot) for row in range(len(events)) for slot in self._first(float(value[row]), k)]

    def why_not(self, owner: Mapping[int, Subscription]) -> str | None:
        """Why the order does not stand; None if it does."""
        self._take_in(owner)
        if self._apart or self._name is None:
            return "subscriptions are more than one range on one attribute with a plain score"
        return "all scores are alike" if len(self._kinds) < 2 else None

    def _first(self, q: float, k: int) -> Iterable[int]:
        given, last = 0, 0.0
        for slot in self._tree.getnext(q) if k and q == q else ():
            if given >= k and self._score[slot] < last:
                return
            given, last = given + 1, self._score[slot]
            yield slot

    def _take_in(self, owner: Mapping[int, Subscription]) -> None:
        for slot in self._waiting:
            self._apart.discard(slot)
            if slot in self._score:
                self._leave(slot)
            if slot in owner:
                self._enter(slot, owner[slot])
        self._waiting.clear()
        if not self._score:
            self._name, self._waiting = None, set(self._apart)

    def _leave(self, slot: int) -> None:
        score = self._score.pop(slot)
        self._kinds[score] -= 1
        if not self._kinds[score]:
            del self._kinds[score]
        self._tree.delete(slot)

    def _enter(self, slot: int, subscription: Subscription) -> None:
        name = range_alone(subscription)
        if name is None or self._name not in (None, name):
            self._apart.add(slot)
            return
        self._name, self._score[slot] = name, subscription.score
        self._kinds[subscription.score] += 1
        self._tree.insert(slot, *subscription.clauses[0].ranges[name], subscription.score)


def range_alone(subscription: Subscription) -> str | None:
    """The attribute, if the subscription is one range on it with a plain score, for good."""
    if len(subscription.clauses) != 1 or subscription.terms or subscription.expires is not None:
        return None
    clause = subscription.clauses[0]
    others = (clause.within, clause.without, clause.nulls, clause.present, clause.words, clause.residue)
    return next(iter(clause.ranges)) if len(clause.ranges) == 1 and clause.box is None and not any(others) else None
