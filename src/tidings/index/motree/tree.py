"""MO-Tree over subscriptions: which clauses does an event satisfy, when clauses come, go and move all the time?

Each clause lives in one bucket, named by the narrowest overlapping cell that contains its interval on each of H indexing
attributes (`cells`); buckets in use hang in a radix directory (`directory`); the clause itself lies in a row (`rows`). An
event visits the buckets all of whose cells its values stab (`walk`), compares steps, and verifies what is left exactly. Place is
two of the indexing attributes, the sides of the box.

Cost, n clauses, cells c_i, stab limit eta: match O(n (eta / sum c_i)^H) steps compared, of which few are verified; insert, delete,
update and move O(H + predicates), amortised.

Symbols: A_I -> `axes`, H -> `height`, StabCell -> `Walk.visit`, BucketList -> `Walk.bucket`.

Deviations: those of `cells` and `directory`; a name that is inserted again replaces its clause; and few attributes are
stacked: comparing steps is cheaper than reaching a bucket, so that beyond two the tree is slower, not faster (the paper has six).
Not thread-safe: whoever writes keeps readers out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tidings._jit import borrowing_kernel, kernel
from tidings.index.motree import inspection
from tidings.index.motree.cells import Axis, Cells, asking, event_steps, interval_cells, key_of, make_cells, with_prefixes
from tidings.index.motree.directory import (
    ITEMS,
    Directory,
    has_room,
    insert,
    leave_slot,
    look_ahead,
    new_directory,
    next_slot,
    position,
    remove,
    roomier,
    take_slot,
    with_slots,
)
from tidings.index.motree.rows import (
    ClauseRows,
    clause_steps,
    code_total,
    erase_clause,
    holds,
    new_clause_rows,
    room_for_clauses,
    write_clause,
)
from tidings.index.motree.slots import find, scatter
from tidings.index.motree.walk import (
    AHEAD,
    COUNTERS,
    MATCHES,
    QUERIES,
    Tree,
    count_work,
    listed,
    members_in,
    new_walk,
    next_buckets,
    scan,
    start_walk,
)
from tidings.index.packed.packing import as_clauses, as_events
from tidings.index.packed.record import Clauses, Events
from tidings.index.packed.sentinels import NEVER
from tidings.index.packed.simd import prefetch, wide
from tidings.index.packed.types import Float64, Int32, Int64, Uint64
from tidings.model.columns.arrays import ClauseColumns, EventColumns

Names = Int32
GROUP = 16
"""Clauses whose paths are walked side by side when they are inserted."""


class MOTree:
    def __init__(self, axes: Sequence[Axis], height: int = 2) -> None:
        """`axes` are the indexing attributes, the most selective first; the first `height` are stacked, all are compared."""
        self.axes = tuple(axes)
        self.height = min(height, len(self.axes))
        self._cells = make_cells(self.axes, [interval_cells(axis) for axis in self.axes])
        self._directory = new_directory(expiring=False)
        self._rows = new_clause_rows()
        self._counter = np.zeros(len(COUNTERS), np.int64)
        self._ahead = np.zeros((5, GROUP), np.uint64)

    def __len__(self) -> int:
        return int(self._directory.tally[ITEMS])

    def __contains__(self, name: int) -> bool:
        return bool(find(self._directory.table, name) >= 0)

    def insert(self, names: Names, clauses: ClauseColumns) -> None:
        """Add clauses; one whose name is held replaces the old one."""
        names = checked_names(names)
        batch = as_clauses(clauses)
        self._cells = current_cells(self._cells, self.axes)
        self._directory = with_slots(self._directory, len(names))
        self._rows = room_for_clauses(self._rows, len(self._directory.slot), len(batch.pred_dim), code_total(batch))
        done = 0
        while done < len(names):
            args = (self._cells, self._directory, self._rows, self.height, names, batch)
            done = place_clauses(*args, done, self._ahead)
            if done < len(names):
                self._directory = roomier(self._directory, self.height)

    def update(self, name: int, clause: ClauseColumns) -> None:
        """Replace the clause of a name that is held; in place when the bucket stays."""
        one = np.array([name], np.int32)
        slots_of(self._directory, one)
        self.insert(one, clause)

    def move(self, name: int, box: ArrayLike) -> None:
        """Give a clause another box."""
        self.move_batch(np.array([name], np.int32), np.array([box], np.float64))

    def move_batch(self, names: Names, boxes: Float64) -> None:
        """Give clauses other boxes, one row (xmin, ymin, xmax, ymax) each."""
        slots = slots_of(self._directory, names)
        done = 0
        while (done := move_clauses(self._cells, self._directory, self._rows, self.height, slots, boxes, done)) < len(slots):
            self._directory = roomier(self._directory, self.height)

    def delete(self, names: Names) -> None:
        """Remove clauses; KeyError, and nothing is removed, if one is not held."""
        delete_clauses(self._directory, self._rows, slots_of(self._directory, names))

    def match_batch(self, events: EventColumns) -> tuple[Names, Names]:
        """(event row, clause name) of every match, each once. [motree, Alg. 2]"""
        return match_rows(self._tree(), self._rows, as_events(events), 0, len(events))

    def match_one(self, events: Events, row: int) -> Names:
        """The names of the clauses that one event satisfies: the short way. `events` are read-only arrays (`as_events`)."""
        return match_rows(self._tree(), self._rows, events, row, row + 1)[1]

    def _tree(self) -> Tree:
        self._cells = current_cells(self._cells, self.axes)
        return Tree(self._cells, self._directory, self.height, self._counter)

    @property
    def stats(self) -> dict[str, int]:
        """Work done since the tree was made."""
        return dict(zip(COUNTERS, self._counter.tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for arrays in (self._cells, self._directory, self._rows) for array in arrays)

    def bucket_sizes(self) -> Int64:
        """How many clauses each bucket in use holds."""
        return inspection.bucket_sizes(self._directory)

    def cell_totals(self, axis: int) -> Int64:
        """How many clauses live in each cell of a stacked axis, the narrowest level first."""
        return inspection.cell_totals(self._directory, self.height, axis)

    def check(self) -> None:
        """Every clause lies where its steps say, and the directory and the pools are sound."""
        inspection.check(self._directory, self._cells, self.height)
        for slot in inspection.held_slots(self._directory).tolist():
            at = position(self._directory, slot)
            assert (self._directory.near[at], self._directory.far[at]) == clause_steps(self._cells, self._rows, slot)
        row, used = self._rows.row, self._rows.used
        assert row["preds"].sum() == used[0] - used[1]
        assert row["codes"].sum() + row["words"].sum() == used[2] - used[3]


def checked_names(names: ArrayLike) -> Names:
    checked = np.ascontiguousarray(names, np.int32)
    if checked.size and checked.min() < 0:
        raise ValueError(f"name {checked.min()}: a name is 0 or more")
    return checked


def current_cells(cells: Cells, axes: Sequence[Axis]) -> Cells:
    """The cells, knowing all strings of the vocabularies; codes beyond them cannot occur afterwards."""
    known = sum(len(axis.vocabulary) for axis in axes if axis.vocabulary is not None)
    return cells if known == len(cells.prefix) else with_prefixes(cells, axes)


def slots_of(directory: Directory, names: ArrayLike) -> Names:
    checked = checked_names(names)
    slots = find_all(directory, checked)
    if len(slots) and slots.min() < 0:
        raise KeyError(f"name {checked[slots.argmin()]} is not held")
    return slots


@kernel
def find_all(directory: Directory, names: Names) -> Names:
    slots = np.empty(names.size, np.int32)
    for i in range(names.size):
        slots[i] = find(directory.table, names[i])
    return slots


@borrowing_kernel
def settle(directory: Directory, cells: Cells, slot: int, key: np.uint64, near: np.uint64, far: np.uint64, height: int) -> None:
    """Bring a clause whose row was written into the bucket of its steps; in place when it is there already. [motree, 4.6.2]"""
    if directory.slot[slot].leaf >= 0:
        at = position(directory, slot)
        if key_of(cells, directory.near[at], directory.far[at], height) == key:
            directory.near[at], directory.far[at] = near, far
            return
        remove(directory, slot)
    insert(directory, slot, key, near, far, NEVER, height)


@borrowing_kernel
def place_clauses(
    cells: Cells, directory: Directory, rows: ClauseRows, height: int, names: Names, clauses: Clauses, begin: int, ahead: Uint64
) -> int:
    """Insert the clauses from `begin` on; how many of the batch are done when the directory has no more room.

    Rows are written and keys made for a few at a time, their paths through the directory are walked side by side so that
    memory answers for all of them at once, and then they are put in place. `ahead` is scratch: slot, key, near, far, node.
    """
    for first in range(begin, names.size, GROUP):
        count = min(GROUP, names.size - first)
        for i in range(count):
            if first + i + AHEAD < names.size:
                prefetch(directory.table, scatter(names[first + i + AHEAD], directory.table.size))
            slot = find(directory.table, names[first + i])
            if slot < 0:
                slot = take_slot(directory, names[first + i])
                prefetch(rows.row, next_slot(directory))
            write_clause(rows, slot, clauses, first + i)
            near, far = clause_steps(cells, rows, slot)
            ahead[0, i], ahead[1, i] = slot, key_of(cells, near, far, height)
            ahead[2, i], ahead[3, i] = near, far
        look_ahead(directory, ahead[1], ahead[4], count, height)
        for i in range(count):
            if not has_room(directory, height):
                return first + i
            settle(directory, cells, wide(ahead[0, i]), ahead[1, i], ahead[2, i], ahead[3, i], height)
    return names.size


@borrowing_kernel
def move_clauses(
    cells: Cells, directory: Directory, rows: ClauseRows, height: int, slots: Names, boxes: Float64, begin: int
) -> int:
    for i in range(begin, slots.size):
        if not has_room(directory, height):
            return i
        row = rows.row[slots[i]]
        row.xmin, row.ymin, row.xmax, row.ymax = boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3]
        near, far = clause_steps(cells, rows, slots[i])
        settle(directory, cells, slots[i], key_of(cells, near, far, height), near, far, height)
    return slots.size


@borrowing_kernel
def delete_clauses(directory: Directory, rows: ClauseRows, slots: Names) -> None:
    """A slot given twice is left once."""
    for slot in slots:
        if directory.slot[slot].leaf >= 0:
            remove(directory, slot)
            leave_slot(directory, slot)
            erase_clause(rows, slot)


@kernel
def match_rows(tree: Tree, rows: ClauseRows, events: Events, begin: int, end: int) -> tuple[Names, Names]:
    """(event, name) of the matches of the events begin .. end - 1. [motree, Alg. 2]"""
    cells, directory, counter = tree.cells, tree.directory, tree.counter
    walk = new_walk(tree.height)
    met = np.empty(64, np.int32)
    event, name = np.empty(64, np.int32), np.empty(64, np.int32)
    matches = 0
    for e in range(begin, end):
        near, far = event_steps(cells, events.value[e], events.box[e])
        start_walk(walk, cells, directory, near, far)
        near, far = asking(near), asking(far)
        count = next_buckets(walk, directory)
        while count:
            candidates = members_in(walk, directory, count)
            if candidates > met.size:
                met = np.empty(2 * candidates, np.int32)
            found = scan(walk, directory, count, near, far, met)
            count_work(counter, count, candidates, found)
            kept = verify(rows, events, e, met, found)
            event, name, matches = listed(directory, met, kept, e, event, name, matches)
            count = next_buckets(walk, directory)
    counter[QUERIES] += end - begin
    counter[MATCHES] += matches
    return event[:matches], name[:matches]


@borrowing_kernel
def verify(rows: ClauseRows, events: Events, e: int, met: Names, found: int) -> int:
    """Keep, at the front of `met`, the slots whose clauses hold on an event; how many. [motree, Alg. 2, lines 9-12]"""
    row, pred, value = rows.row, rows.pred, events.value[e]
    word = events.word[events.word_start[e] : events.word_start[e + 1]]
    x, y, x2, y2 = events.box[e, 0], events.box[e, 1], events.box[e, 2], events.box[e, 3]
    kept = 0
    for i in range(found):
        if i + 2 * AHEAD < found:
            prefetch(row, met[i + 2 * AHEAD])
            prefetch(pred, row[met[i + AHEAD]].at)
        if holds(rows, met[i], value, x, y, x2, y2, word):
            met[kept] = met[i]
            kept += 1
    return kept
