"""The memory of all windows: the arrays that say who stands in each subscription's list and who has been told.

A *candidate* is a live event that concerns a subscription. It leaves at an instant, min(time + duration, expires), in a window of
the calendar min(the end of its time's period, expires), or when a publication number, number + count, is reached. Its *cost* is
minus its relevance (around an ideal point: its distance). Best first means (cost asc, time asc, id asc, number asc), which is
total.

A list has a short sorted *view* of its best. The view is complete up to the list's *edge*, the best event that ever fell off
it: every candidate that ranks before the edge stands in the view. What fell off is *spare*. When fewer than k are left, the
view is filled again: a list of matches keeps all its other candidates as spare and takes them from there; a list around an
ideal point, which every event concerns, finds them among the points of all stored events (`near.seeking`), and as spare it
only remembers whom it has told, so that nobody is told twice. That is all that the two kinds differ in.

A list may count one candidate a *group* (`per`): of a group only the best stands in the view, the others are spare. Whenever one
leaves the view, all spare are offered again, since the next of its group may rank anywhere.

Layout. n rows of lists in blocks of 64, e events (handles, ascending by publication number), v places of views, s of spares.
NEVER is the largest int64, NONE is -1. The row of a list of matches is its slot, the subscription's number; that of an ideal
point is the place of its ball (`index.points.ball_index`), so that neighbours in space are neighbours in memory.

| array                          | shape, dtype  | meaning |
|--------------------------------|---------------|---------|
| `events.time`                  | e, int64      | instant of publishing |
| `events.expires`               | e, int64      | first instant at which it is not live, NEVER for none |
| `events.number`                | e, int64      | 1 for the topic's first publication |
| `events.id_start`, `id_end`    | e, int64      | the id's UTF-8 is id_bytes[id_start:id_end]; it orders as str does |
| `id_bytes`                     | -, uint8      | ids, one after the other |
| `lists.k`                      | n, int64      | 0: hears nothing (also a free row); ALL: hears everything and keeps nothing |
| `lists.duration`, `counted`    | n, int64      | the window; NEVER where it has no such side. A duration of -1 - c is calendar c |
| `lists.since`, `after`         | n, int64      | candidates are younger than the activation, and have greater numbers |
| `lists.limit`                  | n, int64      | the longest view |
| `lists.bounded`                | n, int32      | 1: probabilistic queue, what falls off the view is forgotten |
| `lists.per`                    | n, int32      | 1: one candidate a group counts; else `group` and `spare_group` say nothing |
| `lists.start`, `room`, `viewed`| n, int64      | its places are [start, start + room), the view is the first `viewed` of them |
| `lists.timed`                  | n, int32      | 0: none of the view leaves at an instant, and `leaves` says nothing |
| `lists.edge`, `edge_cost`      | n, i8 and f8  | the edge; NONE: all candidates are in the view |
| `lists.spare_start`, `spare`   | n, int64      | its spare are [spare_start, spare_start + spare), room for `spare_room` |
| `lists.changed`                | n, int32      | 1: touched since last asked |
| `cost`                         | v + 64, f8    | of a candidate in a view |
| `mark`                         | v + 64, int32 | twice its event's handle, plus 1 once it has been told |
| `leaves`                       | v + 64, int64 | when it leaves, NEVER if at no instant |
| `group`                        | v + 64, int64 | its group, 0 for one that stands for itself |
| `spare_cost`, `_mark`, `_group`| s             | the same of the spare, in any order |
| `calendar`                     | c + 1, int64  | the periods of calendar c begin at period[calendar[c]:calendar[c + 1]] |
| `period`                       | -, int64      | from that of the clock, or earlier, to the one after the last stored event |
| `instant_due`, `number_due`    | n, int64      | nobody watched leaves before |
| `instant_first`, `number_first`| n / 64, int64 | at most the least due of the block |
| `hits`                         | -, int32      | room for the rows that one step finds |
| `out.*`                        | -             | notifications of this pass; `number` is the count of publications at that time |
| `meter`                        | int64         | counters, and the place where a pass that ran out of room resumes |

Invariants (`invariants.check_lists` walks them). The first k of a view are alive and told; `*_due` is at most their first
leaving. Bounded queues have no edge and no spare, and watch the whole view. Exact lists: a view shorter than k has no edge;
where there is no edge a list of matches has no spare, but for what a better one of its group keeps out. A spare match that k better
ones outlive is never needed again, so pruning forgets it: what stays is the k-skyband over (rank, leaving), of expected size k (1 +
ln(m / k)) where a window holds m independent matches.

Cost of an event that concerns a list: O(1) when it ranks behind the edge, else a search and a shift of at most `limit` places;
pruning is amortised over the doubling of the spare's room; a leaver is one vectorised pass over the view, and finding it one
over n / 64 blocks. Lists of matches had an indexed heap before, O(log n) a leaver; the two were not measured beside each
other. A row of `lists` is two cache lines.

Deviations. Queues are sorted arrays, not two linked lists. The exact mode keeps the k-skyband (or, around an ideal point,
nothing) behind a short view, instead of everything alive. Of two clocks (a count window, and an event that expires) only an
event without expiry counts as outliving another, which keeps slightly more than necessary and is exact. [topkw, Sections 2 to
4]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, inlined, kernel
from tidings.index.packed.sentinels import NEVER as NEVER
from tidings.index.packed.simd import LANES

BEGINNING = np.iinfo(np.int64).min
# As NumPy numbers, not literals: Numba compiles a kernel anew for every literal argument.
ALL = NONE = cast(int, np.int64(-1))
ENTERED = UNRANKED = cast(int, np.int64(0))
PROMOTED = cast(int, np.int64(1))
DONE, OUT_FULL, VIEWS_FULL, SPARE_FULL = 0, 1, 2, 3
CLOCK, NUMBER, STORED, VIEW_USED, SPARE_USED, WRITTEN, NTH, PAIR, FOUND, JOINING, LIST_ROW, BALLS, GRIDDED = range(13)
REFILLS, PRUNES, TOUCHED, METERS = range(13, 17)
BLOCK = 64

Records = NDArray[np.void]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Handles = NDArray[np.int32]

EVENT = np.dtype([(name, "i8") for name in ("time", "expires", "number", "id_start", "id_end")])
LONG_FIELDS = "k duration counted since after limit start room viewed edge spare_start spare_room spare"
LIST = np.dtype(
    [
        *((name, "i8") for name in LONG_FIELDS.split()),
        ("edge_cost", "f8"),
        *((name, "i4") for name in ("bounded", "timed", "changed", "per")),
    ],
    align=True,
)
NOTICE = np.dtype(
    [("slot", "i4"), ("event", "i4"), ("relevance", "f8"), ("rank", "i4"), ("why", "i4"), ("at", "i8"), ("number", "i8")]
)


class EventRow(Protocol):
    """A record of `events`, as kernels see it."""

    time: int
    expires: int
    number: int
    id_start: int
    id_end: int


class ListRow(Protocol):
    """A record of `lists`, as kernels see it."""

    k: int
    duration: int
    counted: int
    since: int
    after: int
    limit: int
    start: int
    room: int
    viewed: int
    edge: int
    spare_start: int
    spare_room: int
    spare: int
    edge_cost: float
    bounded: int
    timed: int
    changed: int
    per: int


class Memory(NamedTuple):
    events: Records
    id_bytes: NDArray[np.uint8]
    lists: Records
    cost: Floats
    mark: Handles
    leaves: Ints
    group: Ints
    spare_cost: Floats
    spare_mark: Handles
    spare_group: Ints
    instant_due: Ints
    number_due: Ints
    instant_first: Ints
    number_first: Ints
    hits: Handles
    calendar: Ints
    period: Ints
    out: Records
    meter: Ints


def empty_memory() -> Memory:
    """Small on purpose: every array grows by doubling, so a topic without windows costs a few kilobytes."""
    meter = np.zeros(METERS, np.int64)
    meter[CLOCK] = BEGINNING
    return Memory(
        np.zeros(16, EVENT),
        np.zeros(256, np.uint8),
        np.zeros(BLOCK, LIST),
        *empty_views(16),
        *empty_spare(16),
        np.full(BLOCK, NEVER),
        np.full(BLOCK, NEVER),
        np.full(1, NEVER),
        np.full(1, NEVER),
        np.zeros(BLOCK, np.int32),
        np.zeros(1, np.int64),
        np.zeros(0, np.int64),
        np.zeros(64, NOTICE),
        meter,
    )


def empty_views(places: int) -> tuple[Floats, Handles, Ints, Ints]:
    """`cost`, `mark`, `leaves` and `group`; vectors may read LANES places beyond the last."""
    length = places + LANES
    return np.zeros(length), np.zeros(length, np.int32), np.zeros(length, np.int64), np.zeros(length, np.int64)


def empty_spare(places: int) -> tuple[Floats, Handles, Ints]:
    return np.zeros(places), np.zeros(places, np.int32), np.zeros(places, np.int64)


def padded(array: NDArray[Any], length: int) -> NDArray[Any]:
    """A longer copy; new entries are 0."""
    result = np.zeros(length, array.dtype)
    result[: len(array)] = array
    return result


def with_rows(memory: Memory, rows: int, old: NDArray[Any], new: NDArray[Any]) -> Memory:
    """Other rows for the lists: what stood in row old[i] stands in new[i]."""
    rows = BLOCK * (-(-rows // BLOCK))
    lists, dues = np.zeros(rows, LIST), np.full((2, rows), NEVER)
    lists[new], dues[0, new], dues[1, new] = memory.lists[old], memory.instant_due[old], memory.number_due[old]
    first = dues.reshape(2, -1, BLOCK).min(axis=2)
    return memory._replace(
        lists=lists,
        instant_due=dues[0],
        number_due=dues[1],
        instant_first=first[0],
        number_first=first[1],
        hits=padded(memory.hits, max(len(memory.hits), rows + BLOCK)),
    )


def with_views(memory: Memory, places: int) -> Memory:
    """The views in order of their rows, without gaps, in arrays of so many places."""
    cost, mark, leaves, group = empty_views(places)
    repack_views(memory, cost, mark, leaves, group)
    return memory._replace(cost=cost, mark=mark, leaves=leaves, group=group)


def with_spare(memory: Memory, places: int) -> Memory:
    cost, mark, group = empty_spare(places)
    repack_spare(memory, cost, mark, group)
    return memory._replace(spare_cost=cost, spare_mark=mark, spare_group=group)


def with_events(memory: Memory, used: NDArray[np.bool_], wanted: int, wanted_bytes: int) -> Memory:
    """Only the events that are `used` or in some list, with places for as many again and those wanted. `used` is completed."""
    mark_events(memory, used)
    rename_events(memory, np.cumsum(used) - 1)
    kept = memory.events[: len(used)][used]
    lengths = kept["id_end"] - kept["id_start"]
    ends, total = np.cumsum(lengths), int(lengths.sum())
    ids = memory.id_bytes[np.repeat(kept["id_end"] - ends, lengths) + np.arange(total)]
    kept["id_start"], kept["id_end"] = ends - lengths, ends
    memory.meter[STORED] = len(kept)
    return memory._replace(
        events=padded(kept, 2 * (len(kept) + wanted) + 16), id_bytes=padded(ids, 2 * (total + wanted_bytes) + 256)
    )


def with_events_between(memory: Memory, added: Records, ids: Sequence[bytes]) -> Memory:
    """These events, too, ascending by number, none of which is there; in other arrays, since notifications read the old ones."""
    stored = memory.events[: memory.meter[STORED]]
    place = np.searchsorted(stored["number"], added["number"])
    rename_events(memory, np.arange(len(stored)) + np.searchsorted(added["number"], stored["number"]))
    lengths = np.array([len(id) for id in ids], np.int64)
    starts = np.append(stored["id_start"], stored["id_end"][-1:] if len(stored) else 0)
    texts = np.insert(memory.id_bytes[: starts[-1]], np.repeat(starts[place], lengths), np.frombuffer(b"".join(ids), np.uint8))
    merged = np.insert(stored, place, added)
    ends = np.cumsum(np.insert(stored["id_end"] - stored["id_start"], place, lengths))
    merged["id_start"], merged["id_end"] = np.append(0, ends[:-1]), ends
    memory.meter[STORED] = len(merged)
    return memory._replace(events=padded(merged, 2 * len(merged) + 16), id_bytes=padded(texts, 2 * len(texts) + 256))


@inlined
def tell(m: Memory, slot: int, event: int, cost: float, rank: int, why: int) -> None:
    notice = m.out[m.meter[WRITTEN]]
    notice.slot, notice.event, notice.relevance, notice.rank, notice.why = slot, event, -cost, rank, why
    notice.at, notice.number = m.meter[CLOCK], m.meter[NUMBER]
    m.meter[WRITTEN] += 1


@kernel
def mark_events(m: Memory, used: NDArray[np.bool_]) -> None:
    """used[event] = 1 for every event that some view, spare or edge refers to."""
    for row in range(m.lists.size):
        own: ListRow = m.lists[row]
        if own.k > 0 and own.edge != NONE:
            used[own.edge] = True
        for mark in m.mark[own.start : own.start + own.viewed]:
            used[mark >> 1] = True
        for mark in m.spare_mark[own.spare_start : own.spare_start + own.spare]:
            used[mark >> 1] = True


@kernel
def rename_events(m: Memory, new_name: Ints) -> None:
    for row in range(m.lists.size):
        own: ListRow = m.lists[row]
        if own.k > 0 and own.edge != NONE:
            own.edge = new_name[own.edge]
        rename_marks(m.mark[own.start : own.start + own.viewed], new_name)
        rename_marks(m.spare_mark[own.spare_start : own.spare_start + own.spare], new_name)


@borrowing_kernel
def rename_marks(marks: Handles, new_name: Ints) -> None:
    for i in range(marks.size):
        marks[i] = 2 * new_name[marks[i] >> 1] + (marks[i] & 1)


@kernel
def repack_views(m: Memory, cost: Floats, mark: Handles, leaves: Ints, group: Ints) -> None:
    """Copy every view to the front of other arrays, without the gaps between rooms."""
    used = 0
    for row in range(m.lists.size):
        own: ListRow = m.lists[row]
        for i in range(own.viewed):
            cost[used + i], mark[used + i], leaves[used + i] = m.cost[own.start + i], m.mark[own.start + i], m.leaves[own.start + i]
        if own.per:
            for i in range(own.viewed):
                group[used + i] = m.group[own.start + i]
        own.start = used
        used += own.room
    m.meter[VIEW_USED] = used


@kernel
def repack_spare(m: Memory, cost: Floats, mark: Handles, group: Ints) -> None:
    used = 0
    for row in range(m.lists.size):
        own: ListRow = m.lists[row]
        for i in range(own.spare):
            cost[used + i], mark[used + i] = m.spare_cost[own.spare_start + i], m.spare_mark[own.spare_start + i]
            if own.per:
                group[used + i] = m.spare_group[own.spare_start + i]
        own.spare_start = used
        used += own.spare_room
    m.meter[SPARE_USED] = used
