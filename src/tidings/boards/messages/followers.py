"""The receiver of messages: the lists of many watchers of one family, kept of messages alone, and what each has to be told.

A watcher begins with its list as of some sequence (`FamilyObjects.first_lists`), follows what comes after it, and knows objects by
what messages say of them: those that concern nobody here are never heard of. Watchers that are `told` have their last list kept, so
that what changed with a sequence is the difference of two lists, by the definition.

| array  | shape, dtype   | meaning                                                                                              |
|--------|----------------|------------------------------------------------------------------------------------------------------|
| `k`    | m, int32       | how much of its list the watcher sees; the list itself has the family's k                            |
| `told` | m, bool        | whether it is told of changes                                                                        |
| `x`    | n, float64     | a known object's value of the attribute, by number                                                   |

A row is a watcher, a number an object; both are used again. Cost: `watch_lists`, and some microseconds a watcher that is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.boards.key_order import KeyOrder
from tidings.boards.messages.objects import FamilyObjects, Floats
from tidings.boards.messages.record import Said
from tidings.boards.messages.table import rows_of
from tidings.boards.paint.tiles import MOVED, MOVED_X, OBJECT, Messages, X
from tidings.boards.paint.watch_lists import WatchLists
from tidings.index.packed.sentinels import NONE
from tidings.index.points.watchers import WatchIndex

ENTERED, UPDATED, LEFT = "entered", "updated", "left"
SWEPT = 1024
"""Objects that are known beyond twice those in lists before the others are forgotten."""


class Entry(NamedTuple):
    number: int
    x: float
    y: float


class Told(NamedTuple):
    """A change of one list. What has left has no rank, and the score that it had."""

    watcher: str
    key: str
    x: float
    score: float
    rank: int | None
    why: str


class Followers:
    def __init__(self, k: int) -> None:
        self.row: dict[str, int] = {}
        self.sequence = 0
        """up to which lists are what they should be"""
        self._name: list[str | None] = []
        self._lists = WatchLists(k)
        self._tree = WatchIndex()
        self._k, self._told = np.zeros(16, np.int32), np.zeros(16, np.bool_)
        self._free: list[int] = []
        self._last: dict[int, list[Entry]] = {}
        self._waiting: list[tuple[int, int]] = []
        """(since, row) of watchers whose list is of a sequence that messages have not reached"""
        self._keys: KeyOrder[str] = KeyOrder()
        self._x = np.zeros(16)
        self._swept = SWEPT

    def __len__(self) -> int:
        return len(self.row)

    def __contains__(self, watcher: str) -> bool:
        return watcher in self.row

    @property
    def nbytes(self) -> int:
        """Of lists and of the tree, without names."""
        return self._lists.nbytes + self._tree.nbytes + self._k.nbytes + self._told.nbytes

    @property
    def deliveries(self) -> int:
        """How often a message has reached a watcher."""
        return self._lists.deliveries

    def begin(
        self, ids: Sequence[str], points: Floats, ks: Sequence[int], told: Sequence[bool], objects: FamilyObjects, since: int
    ) -> None:
        """Watchers of [l, r] (m x 2), with their lists as of the objects, which are those of sequence `since`."""
        held, heights, size = objects.first_lists(points, self._lists.k)
        known = np.full(len(objects.keys.key), NONE, np.int64)
        seen = np.unique(held[np.arange(held.shape[1]) < size[:, None]])
        for number in seen.tolist():
            known[number] = self._know(objects.keys.key[number])
            self._x[known[number]] = objects.index.arrays.x[number]
        rows = self._rows(ids)
        a = self._lists.arrays
        a.span[rows], a.size[rows], a.held[rows], a.y[rows] = points, size, known[held], heights
        self._k[rows] = ks
        for id, row, heard in zip(ids, rows.tolist(), told, strict=True):
            self.row[id], self._name[row] = row, id
            if heard:
                self._told[row] = True
                self._last[row] = self._seen(row)
        if since > self.sequence:
            self._waiting += [(since, row) for row in rows.tolist()]
        else:
            self._enter(rows)

    def end(self, watcher: str) -> None:
        row = self.row.pop(watcher)
        self._name[row] = None
        self._told[row] = False
        self._last.pop(row, None)
        if row in self._tree:
            self._tree.delete(row)
        else:
            self._waiting = [(since, other) for since, other in self._waiting if other != row]
        self._lists.arrays.size[row] = 0
        self._free.append(row)

    def top(self, watcher: str) -> list[tuple[str, float]]:
        """(key, score) of its list, best first."""
        return [(self._keys.key[number], 0.0 - y) for number, _, y in self._seen(self.row[watcher])]

    def points(self) -> Floats:
        """All watchers' (l, r)."""
        return self._lists.arrays.span[np.fromiter(self.row.values(), np.int64, len(self.row))]

    def point(self, watcher: str) -> tuple[float, float]:
        l, r = self._lists.arrays.span[self.row[watcher]].tolist()
        return l, r

    def limit(self, watcher: str) -> int:
        """How much of its list it sees."""
        return int(self._k[self.row[watcher]])

    def sketch(self, rectangles: int) -> Floats:
        """A cover of all watchers by at most so many rectangles (n x 2 x 2)."""
        points = self.points()
        return WatchIndex.build(np.arange(len(points), dtype=np.int32), points).sketch(rectangles).cover()

    def follow(self, table: pa.Table, sequence: int) -> list[Told]:
        """All messages of one sequence: what those who are told have to hear of it."""
        return self._follow(lambda: self._numbered(table), sequence)

    def hear(self, said: Said, sequence: int) -> list[Told]:
        """The same of what records say."""
        return self._follow(lambda: said.rows(self._numbers(said.object), self._numbers(said.moved)), sequence)

    def _follow(self, numbered: Callable[[], Messages], sequence: int) -> list[Told]:
        if sequence <= self.sequence:
            return []
        self._enter(np.array([row for since, row in self._waiting if since < sequence], np.int64))
        self._waiting = [(since, row) for since, row in self._waiting if since >= sequence]
        self.sequence = sequence
        rows = numbered()
        mentioned = self._take_places(rows)
        changes = self._lists.apply(rows, self._tree, self._keys.tie)
        touched = np.unique(changes[:, 0])
        told = [note for row in touched[self._told[touched]].tolist() for note in self._difference(row, mentioned)]
        if len(self._keys.number) > self._swept:
            self._sweep()
        return told

    def check(self) -> None:
        self._lists.check(self._keys.tie)
        self._keys.check()
        assert len(self._tree) + len(self._waiting) == len(self.row)
        for watcher, row in self.row.items():
            assert self._name[row] == watcher
            assert self._told[row] == (row in self._last)
            if row in self._last:
                assert [(number, y) for number, _, y in self._last[row]] == self._lists.top(row)[: self._k[row]]

    # Inside

    def _seen(self, row: int) -> list[Entry]:
        return [Entry(number, float(self._x[number]), y) for number, y in self._lists.top(row)[: self._k[row]]]

    def _rows(self, ids: Sequence[str]) -> NDArray[np.int64]:
        reused = [self._free.pop() for _ in range(min(len(ids), len(self._free)))]
        fresh = range(len(self._name), len(self._name) + len(ids) - len(reused))
        self._name += [None] * len(fresh)
        self._lists.reserve(len(self._name))
        if len(self._name) > len(self._k):
            count = max(len(self._name), 2 * len(self._k))
            self._k = np.concatenate([self._k, np.zeros(count - len(self._k), np.int32)])
            self._told = np.concatenate([self._told, np.zeros(count - len(self._told), np.bool_)])
        return np.array([*reused, *fresh], np.int64)

    def _enter(self, rows: NDArray[np.int64]) -> None:
        """From now on they are found by messages."""
        points = self._lists.arrays.span[rows]
        if len(rows) > max(64, len(self._tree)):
            numbers, there = self._tree.points()
            self._tree = WatchIndex.build(np.concatenate([numbers, rows.astype(np.int32)]), np.concatenate([there, points]))
            return
        for row, (l, r) in zip(rows.tolist(), points.tolist(), strict=True):
            self._tree.insert(row, (l, r))

    def _know(self, key: str) -> int:
        number = self._keys.add(key)
        if number >= len(self._x):
            self._x = np.concatenate([self._x, np.zeros(len(self._keys.tie) - len(self._x))])
        return number

    def _numbers(self, keys: NDArray[np.object_]) -> NDArray[np.int64]:
        return np.array([NONE if key is None else self._know(key) for key in keys], np.int64)

    def _numbered(self, table: pa.Table) -> Messages:
        told, moved = table["object"].combine_chunks(), table["moved"].combine_chunks()
        keys = pc.unique(pa.concat_arrays([told, moved])).drop_null()
        numbers = np.array([self._know(key) for key in keys.to_pylist()], np.int64)
        places = [pc.index_in(column, keys).fill_null(NONE).to_numpy(zero_copy_only=False) for column in (told, moved)]
        found = [np.where(place >= 0, numbers[place], NONE) if len(numbers) else place for place in places]
        return rows_of(table, *found)

    def _take_places(self, rows: Messages) -> set[int]:
        """Where objects stand now; which are named. The last row of an object counts: before it, it may be said to have gone."""
        named: set[int] = set()
        for at, x in ((MOVED, MOVED_X), (OBJECT, X)):
            numbers = rows[:, at].astype(np.int64)
            self._x[numbers[numbers >= 0]] = rows[numbers >= 0, x]
            named.update(numbers[numbers >= 0].tolist())
        return named

    def _difference(self, row: int, mentioned: set[int]) -> list[Told]:
        watcher, key = self._name[row], self._keys.key
        assert watcher is not None
        was = {entry.number: entry for entry in self._last[row]}
        new = [entry if entry.number in mentioned else was.get(entry.number, entry) for entry in self._seen(row)]
        there = {entry.number for entry in new}
        told = [Told(watcher, key[n], x, 0.0 - y, None, LEFT) for n, x, y in self._last[row] if n not in there]
        for rank, entry in enumerate(new, 1):
            before = was.get(entry.number)
            if before != entry:
                why = ENTERED if before is None else UPDATED
                told.append(Told(watcher, key[entry.number], entry.x, 0.0 - entry.y, rank, why))
        self._last[row] = new
        return told

    def _sweep(self) -> None:
        """Forget objects that are in no list."""
        a = self._lists.arrays
        held = np.zeros(len(self._keys.key), np.bool_)
        for column in range(a.held.shape[1]):
            held[a.held[a.size > column, column]] = True
        for last in self._last.values():
            held[[entry.number for entry in last]] = True
        for key, number in list(self._keys.number.items()):
            if not held[number]:
                self._keys.remove(key)
        self._swept = 2 * len(self._keys.number) + SWEPT
