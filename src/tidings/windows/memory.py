"""The memory behind `Windows`: the arrays that say who stands in each subscription's list and who has been told.

A *candidate* is a live match of a subscription. It leaves at an instant, min(time + duration, expires), or when a publication
number, number + count, is reached. Best first means (relevance desc, time asc, id asc, number asc), which is total.

Layout. n subscriptions (slots), e events (handles), c places for candidates. NEVER is the largest int64.
Groups are record arrays: `lists.k` below is field k of `lists`. Kernels take one `Memory`, which compiles several times faster
than thirty plain arrays would.

| array                        | shape, dtype | meaning |
|------------------------------|--------------|---------|
| `events.time`                | e, int64     | instant of publishing |
| `events.expires`             | e, int64     | first instant at which it is not live, NEVER for none |
| `events.number`              | e, int64     | 1 for the topic's first publication |
| `events.id_start`, `id_end`  | e, int64     | the id's UTF-8 is id_bytes[id_start:id_end]; it orders as str does |
| `id_bytes`                   | -, uint8     | ids, one after the other |
| `lists.k`                    | n, int64     | 0: hears nothing (also a free slot); ALL: hears everything and keeps nothing |
| `lists.duration`, `counted`  | n, int64     | the window; NEVER where it has no such side |
| `lists.since`                | n, int64     | activation: candidates are younger |
| `lists.after`                | n, int64     | publications before the activation: candidates have greater numbers |
| `lists.limit`                | n, int64     | the longest view |
| `lists.bounded`              | n, int64     | 1: probabilistic queue, what falls off the view is forgotten |
| `lists.start`, `room`        | n, int64     | its places are [start, start + room) |
| `lists.viewed`, `size`       | n, int64     | up to start + viewed the view, best first; from there to start + size the reserve |
| `lists.changed`              | n, int64     | 1: touched since last asked |
| `pool.relevance`, `event`    | c, f8 and i4 | a candidate and its event's handle |
| `pool.told`                  | c, int32     | 1: has been notified |
| `instants`, `numbers`        | n, records   | indexed heaps: nobody watched leaves before `key`; `place` inverts `heap` |
| `out.*`                      | -            | notifications of this pass, in order of `at` |
| `meter`                      | 15, int64    | counters, and the place where a pass that ran out of room resumes |

Invariants. Everything in the view ranks before everything in the reserve. Exact lists: a reserve is empty or the view holds at
least k; the first k of the view are alive; `key` is at most their first leaving. Bounded lists have no reserve and watch the
whole view. A candidate that k better ones outlive is never needed again, so pruning forgets it: what stays is the k-skyband
over (rank, leaving), of expected size k (1 + ln(m / k)) where a window holds m independent matches.

Cost of a match: O(1) when it falls below the view, else a binary search and a shift of at most `limit` entries; pruning is
amortised over the doubling of the slot's room; a leaver costs O(limit), and O(log n) in the heap. Nothing is spent on
subscriptions that neither match nor lose a member of their list.

Deviations. Queues are sorted arrays, not two linked lists. The exact mode keeps the k-skyband (the reserve) behind a short
sorted view, instead of everything alive. Of two clocks (a count window, and an event that expires) only an event without expiry
counts as outliving another, which keeps slightly more than necessary and is exact.

[topkw, Sections 2 and 3]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import inlined, kernel

NEVER = np.iinfo(np.int64).max
BEGINNING = np.iinfo(np.int64).min
# As NumPy numbers, not literals: Numba compiles a kernel anew for every literal argument.
ALL: Any = np.int64(-1)
NONE: Any = np.int64(-1)
ENTERED: Any = np.int64(0)
PROMOTED: Any = np.int64(1)
UNRANKED: Any = np.int64(0)
DONE, OUT_FULL, POOL_FULL = 0, 1, 2
CLOCK, NUMBER, USED, WRITTEN, ROW, PAIR, JOINING, REFILLS, PRUNES, TOUCHED, STORED, PLACE, FOUND, FALLEN_USED, GRIDDED = range(15)
METERS = 15
"""The last four are of `near_memory` alone."""

Records = NDArray[np.void]

EVENT = np.dtype([("time", "i8"), ("expires", "i8"), ("number", "i8"), ("id_start", "i8"), ("id_end", "i8")])
LIST_FIELDS = "k duration counted since after limit bounded start room viewed size changed"
LIST = np.dtype([(name, "i8") for name in LIST_FIELDS.split()])
CANDIDATE = np.dtype([("relevance", "f8"), ("event", "i4"), ("told", "i4")])
DEADLINE = np.dtype([("key", "i8"), ("heap", "i8"), ("place", "i8")])
NOTICE = np.dtype(
    [("slot", "i4"), ("event", "i4"), ("relevance", "f8"), ("rank", "i4"), ("why", "i4"), ("at", "i8"), ("number", "i8")]
)


class Memory(NamedTuple):
    events: Records
    id_bytes: NDArray[np.uint8]
    lists: Records
    pool: Records
    instants: Records
    numbers: Records
    out: Records
    meter: NDArray[np.int64]


def deadlines(n: int) -> Records:
    result = np.zeros(n, DEADLINE)
    result["key"] = NEVER
    result["heap"] = result["place"] = np.arange(n)
    return result


def empty_memory() -> Memory:
    """Small on purpose: every array grows by doubling, so a topic without windows costs a few kilobytes."""
    return Memory(
        np.zeros(16, EVENT),
        np.zeros(256, np.uint8),
        np.zeros(8, LIST),
        np.zeros(64, CANDIDATE),
        deadlines(8),
        deadlines(8),
        np.zeros(64, NOTICE),
        new_meter(),
    )


def new_meter() -> NDArray[np.int64]:
    meter = np.zeros(METERS, np.int64)
    meter[CLOCK] = BEGINNING
    return meter


def padded(array: NDArray[Any], length: int) -> NDArray[Any]:
    """A longer copy; new entries are 0."""
    result = np.zeros(length, array.dtype)
    result[: len(array)] = array
    return result


def widened(old: Records, length: int) -> Records:
    """The same heap over more slots; the new ones never come due, so they go to its end."""
    new = deadlines(length)
    new[: len(old)] = old
    return new


def packed_events(
    events: Records, id_bytes: NDArray[np.uint8], used: NDArray[np.bool_], wanted: int, wanted_bytes: int
) -> tuple[Records, NDArray[np.uint8]]:
    """The events that are `used`, with places for as many again and those wanted, and their ids."""
    kept = events[: len(used)][used]
    lengths = kept["id_end"] - kept["id_start"]
    ends = np.cumsum(lengths)
    total = int(lengths.sum())
    ids = id_bytes[np.repeat(kept["id_end"] - ends, lengths) + np.arange(total)]
    kept["id_start"], kept["id_end"] = ends - lengths, ends
    return padded(kept, 2 * (len(kept) + wanted) + 16), padded(ids, 2 * (total + wanted_bytes) + 256)


@inlined
def fits(out: Any, meter: Any, most: Any) -> bool:
    """Whether `out` has places for a new event and `most` others."""
    return bool(meter[WRITTEN] + max(most, 0) + 1 <= out.size)


@inlined
def tell(out: Any, meter: Any, slot: Any, event: Any, relevance: float, rank: Any, why: Any) -> None:
    row = out[meter[WRITTEN]]
    row.slot, row.event, row.relevance, row.rank, row.why = slot, event, relevance, rank, why
    row.at, row.number = meter[CLOCK], meter[NUMBER]
    meter[WRITTEN] += 1


@kernel
def mark_events(m: Any, used: Any) -> None:
    """used[event] = 1 for every event that some candidate refers to."""
    for slot in range(m.lists.size):
        for place in range(m.lists[slot].start, m.lists[slot].start + m.lists[slot].size):
            used[m.pool[place].event] = 1


@kernel
def rename_events(m: Any, new_name: Any) -> None:
    for slot in range(m.lists.size):
        for place in range(m.lists[slot].start, m.lists[slot].start + m.lists[slot].size):
            m.pool[place].event = new_name[m.pool[place].event]


@kernel
def repack(m: Any, target: Any) -> int:
    """Copy every slot's places to the front of another pool, without the gaps; the number of places in use."""
    used = 0
    for slot in range(m.lists.size):
        own = m.lists[slot]
        for i in range(own.size):
            target[used + i].relevance = m.pool[own.start + i].relevance
            target[used + i].event = m.pool[own.start + i].event
            target[used + i].told = m.pool[own.start + i].told
        own.start = used
        used += own.room
    return used
