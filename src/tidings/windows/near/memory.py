"""The memory behind `BallWindows`: lists of ideal points, which every event concerns.

Relevance is minus the weighted distance to the list's centre. Nothing is kept of an event that cannot enter the *view*: the view
is complete up to its *edge*, so every live event that ranks before the edge is in it. When fewer than k are left, it is filled
again from the points of all stored events. What was told and then fell off the view is remembered as *fallen*, so that it is not
told again when a refill brings it back. Best first means (distance asc, time asc, id asc, number asc), which is total.

Layout. n places of subscriptions, e events (handles, ascending by publication number), v places of views, f of fallen, blocks of
64. NEVER is the largest int64, NONE is -1. A list lies at the place of its ball in `index.ball_index`, and moves with it; views
lie in the same order. So neighbours in space are neighbours in memory: what an event touches, and what a batch turned round
reads of the grid, is close together.

| array                          | shape, dtype | meaning |
|--------------------------------|--------------|---------|
| `events`, `id_bytes`           | e, records   | as in `window_memory` |
| `points`                       | d x e + 64   | where each event lies, f8; NaN for one that concerns nobody |
| `lists.k`                      | n, int64     | 0: hears nothing (also a free place); ALL: hears everything and keeps nothing |
| `lists.duration`, `counted`    | n, int64     | the window; NEVER where it has no such side |
| `lists.since`, `after`         | n, int64     | candidates are younger than the activation, and have greater numbers |
| `lists.limit`                  | n, int64     | the longest view |
| `lists.bounded`                | n, int64     | 1: probabilistic queue, what falls off the view is forgotten |
| `lists.start`, `viewed`        | n, int64     | the view, best first, is [start, start + viewed); limit + 1 places are its own |
| `lists.edge`, `edge_distance`  | n, i8 and f8 | the best event that fell off the view; NONE: all that live are in it |
| `lists.fallen_start`, `fallen` | n, int64     | its fallen are [fallen_start, fallen_start + fallen), room for `fallen_room` |
| `lists.changed`                | n, int64     | 1: touched since last asked |
| `distance`                     | v + 64, f8   | of a candidate |
| `mark`                         | v + 64, int32| twice its event's handle, plus 1 once it has been told |
| `leaves`                       | v + 64, int64| if the list is `timed`: when it is no longer a candidate, NEVER for none |
| `lists.timed`                  | n, int64     | 0: none of the view leaves at an instant, and `leaves` says nothing |
| `fallen`                       | f, int32     | handles of events that were told and are not in the view |
| `instant_due`, `number_due`    | n, int64     | nobody watched leaves before; n is a multiple of 64 |
| `instant_first`, `number_first`| n / 64, int64| at most the least due of the block |
| `balls`                        | -            | the arrays of `index.ball_index`: centres, weights and radii, and whose they are |
| `grid`                         | -            | `index.point_grid` over the events up to handle meter[GRIDDED] |
| `rows`                         | -            | `index.point_grid` over the events of the batch that is turned round |
| `near_rows`, `near_points`     | NEAR, d x NEAR | those of them that a block of balls may hold, ascending; NaN after the last |
| `point`                        | d, f8        | room for the event that is being published |
| `hits`, `squares`              | -, i4 and f8 | room for what one question finds: balls of an event, or rows of a batch |
| `sought`, `sought_squares`     | e + 64       | room for what a refill finds, i4 and f8 |
| `out.*`                        | -            | notifications of this pass; `number` is the count of publications at that time |
| `meter`                        | int64        | counters, and the place where a pass that ran out of room resumes |

Invariants. The first k of a view are alive and told; `*_due` is at most their first leaving (of the whole view in bounded
queues). Exact lists: a view shorter than k has no edge. A ball's radius says how far an event may lie and still change the list:
the edge's distance, or that of the last in a full bounded queue, or infinite while everything fits.

Cost of a match within the radius: a binary search and a shift of at most `limit` places; a leaver is one pass over the view; a
refill looks at the stored events around the centre through a grid. Nothing is spent on the others.

Deviations. Queues are sorted arrays, not two linked lists; exact lists keep a short view and no k-skyband.

[topkw, Sections 2 to 4]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.packed.simd import LANES
from tidings.index.points.ball_index import Balls
from tidings.index.points.grid import PointGrid, empty_grid
from tidings.windows.memory import CLOCK, EVENT, FALLEN_USED, NEVER, NONE, NOTICE, NUMBER, STORED, USED, Records, new_meter

BLOCK = 64
NEAR = 256
"""As many events of a batch may the balls of a block share, a multiple of LANES."""
LIST_FIELDS = "k duration counted since after limit bounded start viewed timed edge fallen_start fallen_room fallen changed"
NEAR_LIST = np.dtype([*((name, "i8") for name in LIST_FIELDS.split()), ("edge_distance", "f8")])


class NearMemory(NamedTuple):
    events: Records
    id_bytes: NDArray[np.uint8]
    points: NDArray[np.float64]
    lists: Records
    distance: NDArray[np.float64]
    mark: NDArray[np.int32]
    leaves: NDArray[np.int64]
    fallen: NDArray[np.int32]
    instant_due: NDArray[np.int64]
    number_due: NDArray[np.int64]
    instant_first: NDArray[np.int64]
    number_first: NDArray[np.int64]
    balls: Balls
    grid: PointGrid
    rows: PointGrid
    near_rows: NDArray[np.int32]
    near_points: NDArray[np.float64]
    point: NDArray[np.float64]
    hits: NDArray[np.int32]
    squares: NDArray[np.float64]
    sought: NDArray[np.int32]
    sought_squares: NDArray[np.float64]
    out: Records
    meter: NDArray[np.int64]


def empty_near_memory(balls: Balls) -> NearMemory:
    dimensions, room = len(balls.centre), 16
    return NearMemory(
        np.zeros(room, EVENT),
        np.zeros(256, np.uint8),
        np.zeros((dimensions, room + LANES)),
        np.zeros(BLOCK, NEAR_LIST),
        np.zeros(room + LANES),
        np.zeros(room + LANES, np.int32),
        np.zeros(room + LANES, np.int64),
        np.zeros(room, np.int32),
        np.full(BLOCK, NEVER),
        np.full(BLOCK, NEVER),
        np.full(1, NEVER),
        np.full(1, NEVER),
        balls,
        empty_grid(dimensions),
        empty_grid(dimensions),
        np.zeros(NEAR, np.int32),
        np.zeros((dimensions, NEAR)),
        np.zeros(dimensions),
        np.zeros(NEAR, np.int32),
        np.zeros(NEAR),
        np.zeros(NEAR + LANES, np.int32),
        np.zeros(NEAR + LANES),
        np.zeros(64, NOTICE),
        new_meter(),
    )


def with_views(memory: NearMemory, length: int) -> NearMemory:
    """The views in order of their lists, without gaps, in arrays of `length` places."""
    length += LANES
    views = np.zeros(length), np.zeros(length, np.int32), np.zeros(length, np.int64)
    repack_views(memory, *views)
    return memory._replace(distance=views[0], mark=views[1], leaves=views[2])


def moved_with(memory: NearMemory, balls: Balls) -> NearMemory:
    """The lists at the places of their balls, which may have moved since."""
    if balls.ball is not memory.balls.ball:
        moved = balls.ball[balls.ball != NONE]
        moved = moved[moved < len(memory.balls.place)]
        moved = moved[memory.balls.place[moved] != NONE]
        old, new = memory.balls.place[moved], balls.place[moved]
        lists, dues = np.zeros(len(balls.ball), NEAR_LIST), np.full((2, len(balls.ball)), NEVER)
        lists[new], dues[0, new], dues[1, new] = memory.lists[old], memory.instant_due[old], memory.number_due[old]
        first = dues.reshape(2, -1, BLOCK).min(axis=2)
        memory = memory._replace(
            lists=lists, instant_due=dues[0], number_due=dues[1], instant_first=first[0], number_first=first[1]
        )
        memory = with_views(memory, len(memory.mark) - LANES)
    return memory._replace(balls=balls)


def is_live(memory: NearMemory) -> NDArray[np.bool_]:
    """What the widest windows hold of the stored events: a refill may want it."""
    stored = memory.events[: memory.meter[STORED]]
    clock, number = max(int(memory.meter[CLOCK]), -(2**61)), int(memory.meter[NUMBER])
    duration, counted = widest_windows(memory.lists)
    live: NDArray[np.bool_] = (stored["number"] > number - counted) if counted else np.zeros(len(stored), np.bool_)
    if duration:
        live |= stored["time"] > clock - duration
    live &= stored["expires"] > clock
    return live


@kernel
def widest_windows(lists: Any) -> tuple[int, int]:
    """The greatest duration and the greatest count of any window; 0 for none."""
    duration = counted = 0
    for place in range(lists.size):
        own = lists[place]
        if own.k != 0:
            duration = max(duration, 0 if own.duration == NEVER else own.duration)
            counted = max(counted, 0 if own.counted == NEVER else own.counted)
    return duration, counted


@kernel
def mark_near_events(m: Any, used: Any) -> None:
    """used[event] = 1 for every event that some view, fallen or edge refers to."""
    for place in range(m.lists.size):
        own = m.lists[place]
        if own.k > 0 and own.edge != NONE:
            used[own.edge] = 1
        for at in range(own.start, own.start + own.viewed):
            used[m.mark[at] >> 1] = 1
        for at in range(own.fallen_start, own.fallen_start + own.fallen):
            used[m.fallen[at]] = 1


@kernel
def rename_near_events(m: Any, new_name: Any) -> None:
    for place in range(m.lists.size):
        own = m.lists[place]
        if own.k > 0 and own.edge != NONE:
            own.edge = new_name[own.edge]
        for at in range(own.start, own.start + own.viewed):
            m.mark[at] = 2 * new_name[m.mark[at] >> 1] + (m.mark[at] & 1)
        for at in range(own.fallen_start, own.fallen_start + own.fallen):
            m.fallen[at] = new_name[m.fallen[at]]


@kernel
def repack_views(m: Any, distance: Any, mark: Any, leaves: Any) -> None:
    """Copy every view to the front of other arrays, without the gaps."""
    used = 0
    for place in range(m.lists.size):
        own = m.lists[place]
        if own.k > 0:
            for i in range(own.viewed):
                distance[used + i], mark[used + i] = m.distance[own.start + i], m.mark[own.start + i]
                leaves[used + i] = m.leaves[own.start + i]
            own.start = used
            used += own.limit + 1
    m.meter[USED] = used


@kernel
def repack_fallen(m: Any, fallen: Any) -> None:
    used = 0
    for place in range(m.lists.size):
        own = m.lists[place]
        for i in range(own.fallen):
            fallen[used + i] = m.fallen[own.fallen_start + i]
        own.fallen_start = used
        used += own.fallen_room
    m.meter[FALLEN_USED] = used
