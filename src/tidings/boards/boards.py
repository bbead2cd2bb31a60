"""Boards: on a keyed topic, every watcher's list of the k best current objects within its filter, and each change of it.

The order is (relevance desc, key asc), where relevance is the `by` expression of an object's values. An object for which `by` has
no value (an attribute is missing, a division by zero) is in no list; one that lacks a filtered attribute does not match. A watcher
hears `entered`, `left` and `updated` (the object stays in the list and any of its values has changed), one change an object and
publication; a batch gives the net changes.

Three ways to one answer:
- a filter of one closed interval on one attribute, `by` one attribute or its negative: painted (`paint`). Such watchers are grouped
  by attributes and by k. Without a filter, `by`'s own attribute serves as the interval's, unbounded;
- the same with a second, one-sided interval: painted in 1.5 dimensions (`paint_15`);
- anything else, and k = None (every matching object): a sorted list of all its matches for each watcher (`plain_boards`).

Cost: a painted publication is sublinear in the watchers that it does not concern; a plain one asks `matching` (the topic's
index), or else tries every plain watcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidings.boards.changes import Change, changes_of
from tidings.boards.families import INF, AnyFamily, Axis, Family, Family15, Group, Move, Rows, painted_axis
from tidings.boards.key_order import KeyOrder
from tidings.boards.plain import PlainBoard
from tidings.errors import SubscriptionError
from tidings.model.filter.clause import Clause, Values
from tidings.model.filter.operands import compile_number
from tidings.model.values.schema import Schema

Relevance = Callable[[Values], float]


class Boards:
    """`x` names the only attribute whose intervals are painted; None lets every attribute's be."""

    def __init__(self, schema: Schema, x: str | None = None, matching: Callable[[Values], Iterable[str]] | None = None) -> None:
        """`matching(values)` gives the subscriptions (at least the plain ones) whose clauses the values satisfy."""
        self.schema, self.x = schema, x
        self._matching = matching
        self._objects: dict[str, Values] = {}
        self._keys: KeyOrder[str] = KeyOrder()
        self._spread = 0
        self._families: dict[Axis, AnyFamily] = {}
        self._plain: dict[str, PlainBoard] = {}
        self._home: dict[str, tuple[AnyFamily, Group]] = {}

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._home or subscription in self._plain

    def watch(
        self, subscription: str, clauses: Sequence[Clause], k: int | None, by: str | None, relevance: Relevance | None = None
    ) -> list[Change]:
        """Start a watcher and give its list. `relevance` is used in place of `by`, which may then be None."""
        if subscription in self:
            raise SubscriptionError(f"subscription {subscription!r} already watches")
        if by is None and relevance is None:
            raise SubscriptionError(f"subscription {subscription!r}: a watcher needs by, as '-price'")
        expression = compile_number(self.schema, by) if relevance is None and by is not None else None
        painted = painted_axis(self.schema, clauses, expression) if k and expression is not None else None
        if k and painted is not None and self.x in (None, painted[0].x):
            family = self._family(painted[0])
            self._home[subscription] = family, family.add(subscription, k, painted[1])
        else:
            value = relevance if expression is None else expression.value
            assert value is not None
            board = self._plain[subscription] = PlainBoard(subscription, tuple(clauses), k, value)
            for key, values in self._objects.items():
                board.put(key, values if board.matches(self.schema, values) else None)
        return [Change(subscription, key, score, rank, "entered") for rank, (key, score) in enumerate(self.top(subscription), 1)]

    def unwatch(self, subscription: str) -> None:
        if subscription in self._plain:
            del self._plain[subscription]
            return
        family, group = self._home.pop(subscription)
        group.remove(subscription)
        if not any(group.number for group in family.groups.values()):
            del self._families[family.axis]

    def publish(self, key: str, values: Values | None, time: int = 0) -> list[Change]:
        """Put an object in place of the one of the same key; None takes it away. `time` is the caller's: nothing here expires."""
        return self._publish({key: values})

    def publish_batch(self, changes: Iterable[tuple[str, Values | None]], time: int = 0) -> list[Change]:
        """Many publications at once, the last of a key counting: their net changes."""
        return self._publish(dict(changes))

    def top(self, subscription: str) -> list[tuple[str, float]]:
        """(key, relevance) of a watcher's list, best first."""
        if subscription in self._plain:
            return self._plain[subscription].top()
        _, group = self._home[subscription]
        return [(self._keys.key[number], 0.0 - rank) for number, rank in group.lists.top(group.number[subscription])]

    def check(self) -> None:
        self._keys.check()
        assert set(self._keys.number) == set(self._objects)
        for family in self._families.values():
            family.check()

    def _publish(self, latest: dict[str, Values | None]) -> list[Change]:
        net = {key: values for key, values in latest.items() if self._objects.get(key) != values}
        moves = [Move(self._keys.add(key), self._objects.get(key), values) for key, values in net.items()]
        self._spread_ties()
        changes: list[Change] = []
        for family in self._families.values():
            parts = family.move(moves[0], self._keys.tie) if len(moves) == 1 else family.move_batch(moves, self._keys.tie)
            for group, rows in parts:
                changes += self._changes(family, group, rows, moves)
        changes += self._publish_plain(net)
        for key, values in net.items():
            self._settle(key, values)
        return changes

    def _family(self, axis: Axis) -> AnyFamily:
        if axis not in self._families:
            family = self._families[axis] = Family(axis) if axis.z is None else Family15(axis)
            moves = [Move(self._keys.number[key], None, values) for key, values in self._objects.items()]
            for move in moves:
                list(family.move(move, self._keys.tie))
        return self._families[axis]

    def _spread_ties(self) -> None:
        """When all keys have got new ties, tell the families that remember them."""
        if self._spread != self._keys.version:
            self._spread = self._keys.version
            for family in self._families.values():
                if isinstance(family, Family15):
                    family.objects.retie(self._keys.tie)

    def _changes(self, family: AnyFamily, group: Group, rows: Rows, moves: Sequence[Move]) -> list[Change]:
        """Rows of (watcher, object, was, is) as net changes."""
        old = {move.number: family.axis.place(move.old)[2] for move in moves}
        return changes_of(
            rows,
            old.keys(),
            lambda watcher: group.name[watcher],
            lambda number: self._keys.key[number],
            lambda number: 0.0 - (old[number] if old.get(number, INF) < INF else family.rank(number)),
            lambda watcher: [(number, 0.0 - rank) for number, rank in group.lists.top(watcher)],
        )

    def _publish_plain(self, net: dict[str, Values | None]) -> list[Change]:
        if not self._plain:
            return []
        concerned: dict[str, dict[str, Values | None]] = {}
        for key, values in net.items():
            for id in self._concerned(key, values):
                board = self._plain[id]
                concerned.setdefault(id, {})[key] = values if values is not None and board.matches(self.schema, values) else None
        return [change for id, puts in concerned.items() for change in self._plain[id].put_many(puts)]

    def _concerned(self, key: str, values: Values | None) -> set[str]:
        """Plain watchers that may hold the key or gain it."""
        found = {id for id, board in self._plain.items() if key in board}
        if values is not None:
            found |= set(self._plain) if self._matching is None else set(self._matching(values)) & set(self._plain)
        return found

    def _settle(self, key: str, values: Values | None) -> None:
        if values is None:
            self._objects.pop(key, None)
            self._keys.remove(key)
        else:
            self._objects[key] = dict(values)
