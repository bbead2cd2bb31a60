"""MO-Tree over live events: which events that are not expired satisfy a clause?

The same tree as `mo_tree` with the roles exchanged: an event lives in the bucket of its disjoint cells, a clause visits the buckets
whose cells meet its intervals. Events that have expired are removed from the buckets that a search visits, and from nowhere else;
`expire` removes all of them. An event is live while time < expires.

Cost, n events: search O(n x the product of the widths of the clause's intervals on the stacked axes) steps compared; insert and
delete O(H + attributes), amortised.

Events lie here as codes. Whoever inserts an event has its strings in the vocabularies before it is encoded, or clauses that
name them later will not find it.

Deviations: those of `mo_cells` and `mo_directory`; and an event whose box spans cells lives in the wide cell, which every search
visits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, kernel
from tidings.index.motree import directory as mo_directory
from tidings.index.motree import inspection as mo_inspect
from tidings.index.motree.cells import Axis, Cells, asking, event_steps, key_of, make_cells, value_cells
from tidings.index.motree.directory import (
    Directory,
    has_room,
    insert,
    leave_seat,
    new_directory,
    position,
    remove,
    roomier,
    seated,
    take_seat,
)
from tidings.index.motree.rows import (
    ClauseRows,
    Clauses,
    EventRows,
    clause_steps,
    clauses_of,
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
from tidings.index.motree.seats import find
from tidings.index.motree.tree import (
    BUCKETS,
    CANDIDATES,
    COUNTERS,
    MATCHES,
    QUERIES,
    VERIFIED,
    Names,
    checked_names,
    current_cells,
    doubled,
    seats_of,
)
from tidings.index.motree.walk import AHEAD, members_in, new_walk, next_buckets, scan_live, start_walk
from tidings.index.packed.packing import as_events
from tidings.index.packed.record import Events
from tidings.index.packed.simd import prefetch
from tidings.model.columns.arrays import ClauseColumns, EventColumns

Times = NDArray[np.int64]


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
        return int(self._directory.tally[mo_directory.ITEMS])

    def __contains__(self, name: int) -> bool:
        return bool(find(self._directory.table, name) >= 0)

    def insert(self, names: Names, events: EventColumns, expires: Times) -> None:
        """Add events, live before `expires`; one whose name is held replaces the old one."""
        names = checked_names(names)
        batch = as_events(events)
        self._cells = current_cells(self._cells, self.axes)
        self._directory = seated(self._directory, len(names))
        self._rows = room_for_events(self._rows, len(self._directory.seat), len(batch.word))
        done = 0
        while (done := place_events(self._cells, self._directory, self._rows, self.height, names, batch, expires, done)) < len(
            names
        ):
            self._directory = roomier(self._directory, self.height)

    def delete(self, names: Names) -> None:
        """Remove events; KeyError, and nothing is removed, if one is not held."""
        delete_events(self._directory, self._rows, seats_of(self._directory, names))

    def expire(self, time: int) -> Names:
        """Remove all events that are expired at `time`; their names."""
        held = mo_inspect.held_seats(self._directory)
        seat = self._directory.seat[held]
        until = self._directory.until[self._directory.node["start"][seat["leaf"]] + seat["place"]]
        expired = held[until <= time].astype(np.int32)
        names: Names = self._directory.seat["name"][expired]
        delete_events(self._directory, self._rows, expired)
        return names

    def search(self, clause: ClauseColumns, time: int) -> Names:
        """The names of the events live at `time` that satisfy a clause."""
        return self.search_batch(clause, time)[1]

    def search_batch(self, clauses: ClauseColumns, time: int) -> tuple[Names, Names]:
        """(clause row, event name) of every match among the events live at `time`. [motree, Alg. 1]"""
        self._cells = current_cells(self._cells, self.axes)
        batch = clauses_of(clauses)
        query = room_for_clauses(new_clause_rows(), 1, len(batch.pred_dim), code_total(batch))
        return search_clauses(self._cells, self._directory, self._rows, self.height, batch, query, time, self._counter)

    @property
    def stats(self) -> dict[str, int]:
        """Work done since the tree was made."""
        return dict(zip(COUNTERS, self._counter.tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for arrays in (self._cells, self._directory, self._rows) for array in arrays)

    def bucket_sizes(self) -> NDArray[np.int64]:
        """How many events each bucket in use holds."""
        return mo_inspect.bucket_sizes(self._directory)

    def check(self) -> None:
        """Every event lies where its steps say, and the directory and the pool are sound."""
        mo_inspect.check(self._directory, self._cells, self.height)
        row, used = self._rows.row, self._rows.used
        for seat in mo_inspect.held_seats(self._directory).tolist():
            at = position(self._directory, seat)
            box = np.array([row[seat][side] for side in ("xmin", "ymin", "xmax", "ymax")])
            assert (self._directory.near[at], self._directory.far[at]) == event_steps(self._cells, self._rows.value[seat], box)
        assert row["words"].sum() == used[2] - used[3]


@borrowing_kernel
def place_events(
    cells: Cells, directory: Directory, rows: EventRows, height: int, names: Names, events: Events, expires: Times, begin: int
) -> int:
    """Insert the events from `begin` on; how many of the batch are done when the directory has no more room. [motree, 4.6.1]"""
    for e in range(begin, names.size):
        if not has_room(directory, height):
            return e
        seat = find(directory.table, names[e])
        if seat >= 0:
            remove(directory, seat)
        else:
            seat = take_seat(directory, names[e])
        write_event(rows, seat, events, e)
        near, far = event_steps(cells, events.value[e], events.box[e])
        insert(directory, seat, key_of(cells, near, far, height), near, far, expires[e], height)
    return names.size


@borrowing_kernel
def delete_events(directory: Directory, rows: EventRows, seats: Names) -> None:
    """A seat given twice is left once."""
    for seat in seats:
        if directory.seat[seat].leaf >= 0:
            remove(directory, seat)
            leave_seat(directory, seat)
            erase_event(rows, seat)


@kernel
def search_clauses(
    cells: Cells,
    directory: Directory,
    rows: EventRows,
    height: int,
    clauses: Clauses,
    query: ClauseRows,
    now: int,
    counter: NDArray[np.int64],
) -> tuple[Names, Names]:
    """`query` is scratch: the clause at hand is its row 0. [motree, Alg. 1]

    Expired events leave after their lot was scanned. Nodes that become empty by that have no children left to walk to, so
    the walk stays sound.
    """
    walk = new_walk(height)
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
            counter[BUCKETS] += count
            counter[CANDIDATES] += candidates
            counter[VERIFIED] += found
            for i in range(verify(query, rows, met, found)):
                if matches == clause.size:
                    clause, name = doubled(clause), doubled(name)
                clause[matches], name[matches] = c, directory.seat[met[i]].name
                matches += 1
            delete_events(directory, rows, expired[:old])
            count = next_buckets(walk, directory)
    counter[QUERIES] += clauses.box.shape[0]
    counter[MATCHES] += matches
    return clause[:matches], name[:matches]


@borrowing_kernel
def verify(query: ClauseRows, rows: EventRows, met: Names, found: int) -> int:
    """Keep, at the front of `met`, the seats whose events satisfy the query; how many. [motree, Alg. 1, lines 16-17]"""
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
