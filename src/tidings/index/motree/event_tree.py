"""MO-Tree over live events: which events that are not expired satisfy a clause?

The same tree as `tree` with the roles exchanged: an event lives in the bucket of its disjoint cells, a clause visits the buckets
whose cells meet its intervals. Events that have expired are removed from the buckets that a search visits, and from nowhere else;
`expire` removes all of them. An event is live while time < expires.

Cost, n events: search O(n x the product of the widths of the clause's intervals on the stacked axes) steps compared; insert and
delete O(H + attributes), amortised.

Events lie here as codes. Whoever inserts an event has its strings in the vocabularies before it is encoded, or clauses that
name them later will not find it.

Deviations: those of `cells` and `directory`; and an event whose box spans cells lives in the wide cell, which every search
visits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.index.motree import inspection
from tidings.index.motree.cells import Axis, Cells, asking, event_steps, key_of, make_cells, value_cells
from tidings.index.motree.directory import (
    ITEMS,
    Directory,
    has_room,
    insert,
    leave_slot,
    new_directory,
    position,
    remove,
    roomier,
    take_slot,
    with_slots,
)
from tidings.index.motree.rows import (
    ClauseRows,
    EventRows,
    clause_steps,
    code_total,
    erase_event,
    holds,
    new_clause_rows,
    new_event_rows,
    room_for_clauses,
    room_for_events,
    write_clause,
    write_event,
)
from tidings.index.motree.slots import find
from tidings.index.motree.tree import Names, checked_names, current_cells, slots_of
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
    scan_live,
    start_walk,
)
from tidings.index.packed.packing import as_clauses, as_events
from tidings.index.packed.record import Clauses, Events
from tidings.index.packed.simd import prefetch
from tidings.index.packed.types import Int64
from tidings.model.columns.arrays import ClauseColumns, EventColumns

Times = Int64


class MOEventTree:
    def __init__(self, axes: Sequence[Axis], dimensions: int, height: int = 3, cells: Sequence[int] | None = None) -> None:
        """`dimensions` is the width of `EventColumns.value`.

        The first `height` axes are stacked, in `cells` cells each; without them in 60 for the place and 10 for others.
        """
        self.axes = tuple(axes)
        self.height = min(height, len(self.axes))
        counts = [60 if axis.source < 0 else 10 for axis in self.axes] if cells is None else cells
        self._cells = make_cells(self.axes, [value_cells(count) for count in counts])
        self._directory = new_directory(expiring=True)
        self._rows = new_event_rows(dimensions)
        self._counter = np.zeros(len(COUNTERS), np.int64)

    def __len__(self) -> int:
        """Events held; some may have expired."""
        return int(self._directory.tally[ITEMS])

    def __contains__(self, name: int) -> bool:
        return bool(find(self._directory.table, name) >= 0)

    def insert(self, names: Names, events: EventColumns, expires: Times) -> None:
        """Add events, live before `expires`; one whose name is held replaces the old one."""
        names = checked_names(names)
        batch = as_events(events)
        self._cells = current_cells(self._cells, self.axes)
        self._directory = with_slots(self._directory, len(names))
        self._rows = room_for_events(self._rows, len(self._directory.slot), len(batch.word))
        done = 0
        while (done := place_events(self._cells, self._directory, self._rows, self.height, names, batch, expires, done)) < len(
            names
        ):
            self._directory = roomier(self._directory, self.height)

    def delete(self, names: Names) -> None:
        """Remove events; KeyError, and nothing is removed, if one is not held."""
        delete_events(self._directory, self._rows, slots_of(self._directory, names))

    def expire(self, time: int) -> Names:
        """Remove all events that are expired at `time`; their names."""
        held = inspection.held_slots(self._directory)
        slot = self._directory.slot[held]
        until = self._directory.until[self._directory.node["start"][slot["leaf"]] + slot["place"]]
        expired = held[until <= time].astype(np.int32)
        names: Names = self._directory.slot["name"][expired]
        delete_events(self._directory, self._rows, expired)
        return names

    def search(self, clause: ClauseColumns, time: int) -> Names:
        """The names of the events live at `time` that satisfy a clause."""
        return self.search_batch(clause, time)[1]

    def search_batch(self, clauses: ClauseColumns, time: int) -> tuple[Names, Names]:
        """(clause row, event name) of every match among the events live at `time`. [motree, Alg. 1]"""
        self._cells = current_cells(self._cells, self.axes)
        batch = as_clauses(clauses)
        query = room_for_clauses(new_clause_rows(), 1, len(batch.pred_dim), code_total(batch))
        tree = Tree(self._cells, self._directory, self.height, self._counter)
        return search_clauses(tree, self._rows, batch, query, time)

    @property
    def stats(self) -> dict[str, int]:
        """Work done since the tree was made."""
        return dict(zip(COUNTERS, self._counter.tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for arrays in (self._cells, self._directory, self._rows) for array in arrays)

    def bucket_sizes(self) -> Int64:
        """How many events each bucket in use holds."""
        return inspection.bucket_sizes(self._directory)

    def check(self) -> None:
        """Every event lies where its steps say, and the directory and the pool are sound."""
        inspection.check(self._directory, self._cells, self.height)
        row, used = self._rows.row, self._rows.used
        for slot in inspection.held_slots(self._directory).tolist():
            at = position(self._directory, slot)
            box = np.array([row[slot][side] for side in ("xmin", "ymin", "xmax", "ymax")])
            assert (self._directory.near[at], self._directory.far[at]) == event_steps(self._cells, self._rows.value[slot], box)
        assert row["words"].sum() == used[2] - used[3]


@borrowing_kernel
def place_events(
    cells: Cells, directory: Directory, rows: EventRows, height: int, names: Names, events: Events, expires: Times, begin: int
) -> int:
    """Insert the events from `begin` on; how many of the batch are done when the directory has no more room. [motree, 4.6.1]"""
    for e in range(begin, names.size):
        if not has_room(directory, height):
            return e
        slot = find(directory.table, names[e])
        if slot >= 0:
            remove(directory, slot)
        else:
            slot = take_slot(directory, names[e])
        write_event(rows, slot, events, e)
        near, far = event_steps(cells, events.value[e], events.box[e])
        insert(directory, slot, key_of(cells, near, far, height), near, far, expires[e], height)
    return names.size


@borrowing_kernel
def delete_events(directory: Directory, rows: EventRows, slots: Names) -> None:
    """A slot given twice is left once."""
    for slot in slots:
        if directory.slot[slot].leaf >= 0:
            remove(directory, slot)
            leave_slot(directory, slot)
            erase_event(rows, slot)


@kernel
def search_clauses(tree: Tree, rows: EventRows, clauses: Clauses, query: ClauseRows, now: int) -> tuple[Names, Names]:
    """`query` is scratch: the clause at hand is its row 0. [motree, Alg. 1]

    Expired events leave after their lot was scanned. Nodes that become empty by that have no children left to walk to, so
    the walk stays sound.
    """
    cells, directory, counter = tree.cells, tree.directory, tree.counter
    walk = new_walk(tree.height)
    met, expired = np.empty(64, np.int32), np.empty(64, np.int32)
    clause, name = np.empty(64, np.int32), np.empty(64, np.int32)
    matches = 0
    for c in range(clauses.box.shape[0]):
        write_clause(query, 0, clauses, c)
        near, far = clause_steps(cells, query, 0)
        start_walk(walk, cells, directory, near, far)
        near, far = asking(near), asking(far)
        count = next_buckets(walk, directory)
        while count:
            candidates = members_in(walk, directory, count)
            if candidates > met.size:
                met, expired = np.empty(2 * candidates, np.int32), np.empty(2 * candidates, np.int32)
            found, old = scan_live(walk, directory, count, near, far, now, met, expired)
            count_work(counter, count, candidates, found)
            kept = verify(query, rows, met, found)
            clause, name, matches = listed(directory, met, kept, c, clause, name, matches)
            delete_events(directory, rows, expired[:old])
            count = next_buckets(walk, directory)
    counter[QUERIES] += clauses.box.shape[0]
    counter[MATCHES] += matches
    return clause[:matches], name[:matches]


@borrowing_kernel
def verify(query: ClauseRows, rows: EventRows, met: Names, found: int) -> int:
    """Keep, at the front of `met`, the slots whose events satisfy the query; how many. [motree, Alg. 1, lines 16-17]"""
    width = rows.value.shape[1]
    kept = 0
    for i in range(found):
        if i + AHEAD < found:
            prefetch(rows.row, met[i + AHEAD])
            for dimension in range(0, width, 8):
                prefetch(rows.value, met[i + AHEAD] * width + dimension)
        row = rows.row[met[i]]
        word = rows.code[row.codes_at : row.codes_at + row.words]
        if holds(query, 0, rows.value[met[i]], row.xmin, row.ymin, row.xmax, row.ymax, word):
            met[kept] = met[i]
            kept += 1
    return kept
