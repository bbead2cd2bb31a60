"""Messages as records of a queue whose partitions are zones: what one sequence tells one zone, in one Arrow batch or some.

Version 2. A row is an object that is told of, with all the rectangles of those who have to hear it; rows are followed in their
order, as those of `table`, which has a row a rectangle. What all rows have in common is said once, beside the batch: the numbers
of `table` named `sequence`, `snapshot` and `at`, the family, and how many records of the same sequence are `left`.

| column                        | type                                   | meaning                                              |
|-------------------------------|----------------------------------------|------------------------------------------------------|
| `object`, `x`, `y`            | string, float64, float64               | as in `table`                                        |
| `moved`, `moved_x`, `moved_y` | the same                               | as in `table`                                        |
| `watchers`                    | list of (l_lo, r_lo, l_hi, r_hi)       | the rectangles                                       |

The batch is without its schema, which the version names: half of a small one would be schema. Version 1 was the batch of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._jit import inlined, kernel
from tidings.boards.messages.table import MESSAGE, boxes_of
from tidings.boards.paint.tiles import MOVED, MOVED_X, MOVED_Y, OBJECT, WIDTH, Messages, X, Y
from tidings.boards.paint.zones import Zones
from tidings.errors import EventError
from tidings.index.packed.types import Float64, Int64

VERSION, OLD = 2, 1
RECTANGLES = 8192
"""Of one record at most: some hundreds of kilobytes."""
_ENDS = ("l_lo", "r_lo", "l_hi", "r_hi")
_PLACES = ("x", "y", "moved_x", "moved_y")
RECORD = pa.schema(
    [
        *map(MESSAGE.field, ("object", "x", "y", "moved", "moved_x", "moved_y")),
        pa.field("watchers", pa.list_(pa.struct([pa.field(name, pa.float64(), False) for name in _ENDS])), False),
    ]
)


class Said(NamedTuple):
    """Objects, where they stand, and who has to hear it.

    | array    | shape, dtype   | meaning                                                                       |
    |----------|----------------|-------------------------------------------------------------------------------|
    | `object`, `moved` | r, str | keys; None is nobody                                                         |
    | `place`  | r x 4, float64 | x, y and those of the moved object; inf is gone                                |
    | `start`  | r + 1, int64   | object i's rectangles are box[start[i] : start[i + 1]]                          |
    | `box`    | n x 4, float64 | least l, least r, greatest l, greatest r                                        |
    """

    object: NDArray[np.object_]
    moved: NDArray[np.object_]
    place: Float64
    start: Int64
    box: Float64

    def rows(self, objects: Int64, moved: Int64) -> Messages:
        """Rows of painting, with these numbers for the keys."""
        rows, of = np.empty((len(self.box), WIDTH)), np.repeat(np.arange(len(self.object)), np.diff(self.start))
        rows[:, :OBJECT] = self.box
        rows[:, OBJECT], rows[:, MOVED] = objects[of], moved[of]
        rows[:, [X, Y, MOVED_X, MOVED_Y]] = self.place[of]
        return rows


def said_of(rows: Messages, keys: NDArray[np.object_]) -> Said:
    """Rows of painting, whose objects are numbers of `keys`."""
    start = run_starts(rows)
    first = rows[start[:-1]]
    moved = first[:, MOVED].astype(np.int64)
    names = keys[moved]
    names[moved < 0] = None
    place = first[:, [X, Y, MOVED_X, MOVED_Y]]
    return Said(keys[first[:, OBJECT].astype(np.int64)], names, place, start, rows[:, :OBJECT])


def joined(parts: Sequence[Said]) -> Said:
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([np.diff(part.start) for part in parts])
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    object, moved, place, box = (np.concatenate([part[at] for part in parts]) for at in (0, 1, 2, 4))
    return Said(object, moved, place, start, box)


class Zoned(NamedTuple):
    """A record for a zone's partition."""

    zone: int
    body: bytes
    headers: list[tuple[str, bytes]]


def zoned(said: Said, zones: Zones, common: Mapping[str, str | int]) -> Iterator[Zoned]:
    """What is said, each object to the zones that its rectangles meet and to no other, with those rectangles alone."""
    chosen, of, end = meeting(said.box, said.start, zones.low, zones.high)
    for zone, last in enumerate(end.tolist()):
        starts = range(end[zone - 1] if zone else 0, last, RECTANGLES)
        for left, first in zip(reversed(range(len(starts))), starts, strict=True):
            headers = {"version": VERSION, **common, "left": left}
            some = slice(first, min(first + RECTANGLES, last))
            body = packed(said, chosen[some], of[some])
            yield Zoned(zone, body, [(name, str(value).encode()) for name, value in headers.items()])


def whole(said: Said) -> bytes:
    """All that is said, for whoever deals it out to zones elsewhere."""
    return packed(said, np.arange(len(said.box)), np.repeat(np.arange(len(said.object)), np.diff(said.start)))


def packed(said: Said, chosen: Int64, of: Int64) -> bytes:
    """Some of the rectangles, ascending, with their objects; `of` is the object of each."""
    box, first = columns_of(said.box, chosen, of)
    runs, offsets = of[first], np.append(first, len(chosen)).astype(np.int32)
    place = said.place[runs].T.copy()
    ends = pa.StructArray.from_arrays([pa.array(end) for end in box], fields=list(RECORD.field("watchers").type.value_type))
    stays = said.moved[runs] == None  # noqa: E711
    moved = pa.nulls(len(runs), pa.string()) if stays.all() else pa.array(said.moved[runs], pa.string())
    columns = [
        pa.array(said.object[runs], pa.string()),
        pa.array(place[0]),
        pa.array(place[1], mask=place[1] == np.inf),
        moved,
        pa.array(place[2], mask=stays),
        pa.array(place[3], mask=stays | (place[3] == np.inf)),
        pa.ListArray.from_arrays(pa.array(offsets), ends, type=RECORD.field("watchers").type),
    ]
    return bytes(pa.record_batch(columns, schema=RECORD).serialize())


def unpacked(body: bytes, version: int) -> Said:
    if version not in (OLD, VERSION):
        raise EventError(f"messages are of version {version}: versions {OLD} and {VERSION} are accepted")
    batch = pa.ipc.read_record_batch(pa.py_buffer(body), RECORD if version == VERSION else MESSAGE)
    if version == OLD:
        table = pa.Table.from_batches([batch])
        start, box = np.arange(len(table) + 1), boxes_of(table).reshape(-1, len(_ENDS))
    else:
        start = batch["watchers"].offsets.to_numpy().astype(np.int64)
        box = np.column_stack([end.to_numpy() for end in batch["watchers"].values.flatten()])
    place = np.column_stack([batch[name].fill_null(np.inf).to_numpy() for name in _PLACES])
    told, moved = (np.array(batch[name].to_pylist(), object) for name in ("object", "moved"))
    return Said(told, moved, place, start, box)


def old_common(body: bytes) -> tuple[int, str]:
    """The instant and the family, which version 1 says in every row."""
    first = pa.ipc.read_record_batch(pa.py_buffer(body), MESSAGE).slice(0, 1).to_pylist()[0]
    return first["at"], first["family"]


@inlined
def meets(box: Float64, low: Float64, high: Float64) -> bool:
    """Whether a closed rectangle shares a point with a zone, whose upper ends are open, infinite ones apart."""
    west = low[0] <= box[2] and (box[0] < high[0] or high[0] == np.inf)
    return bool(west and low[1] <= box[3] and (box[1] < high[1] or high[1] == np.inf))


@kernel
def run_starts(rows: Messages) -> Int64:
    """Where rows of another object, or of another that moved, begin; and their end."""
    found, count = np.empty(len(rows) + 1, np.int64), 0
    for i in range(len(rows)):
        same = i > 0
        for column in range(OBJECT, WIDTH):
            same = same and rows[i, column] == rows[i - 1, column]
        if not same:
            found[count] = i
            count += 1
    found[count] = len(rows)
    return found[: count + 1]


@kernel
def meeting(box: Float64, start: Int64, low: Float64, high: Float64) -> tuple[Int64, Int64, Int64]:
    """Rectangles by the zone that they meet, ascending, each with its object; and where those of each zone end. An object's zones
    are first found by the box around its rectangles: where that is one, all of them meet it."""
    near, around, end = np.empty(len(low), np.int64), np.empty(4), np.zeros(len(low), np.int64)
    pair, count = np.empty((len(box) + len(low), 3), np.int64), 0
    for run in range(len(start) - 1):
        around[0], around[1], around[2], around[3] = np.inf, np.inf, -np.inf, -np.inf
        for i in range(start[run], start[run + 1]):
            for d in range(2):
                around[d], around[2 + d] = min(around[d], box[i, d]), max(around[2 + d], box[i, 2 + d])
        few = 0
        for zone in range(len(low)):
            if meets(around, low[zone], high[zone]):
                near[few] = zone
                few += 1
        for i in range(start[run], start[run + 1]):
            if count + few > len(pair):
                pair = np.concatenate((pair, np.empty_like(pair)))
            for zone in near[:few]:
                if few == 1 or meets(box[i], low[zone], high[zone]):
                    pair[count, 0], pair[count, 1], pair[count, 2] = zone, i, run
                    end[zone] += 1
                    count += 1
    end = np.cumsum(end)
    chosen, of, at = np.empty(count, np.int64), np.empty(count, np.int64), np.zeros(len(low), np.int64)
    at[1:] = end[:-1]
    for i in range(count):
        zone = pair[i, 0]
        chosen[at[zone]], of[at[zone]] = pair[i, 1], pair[i, 2]
        at[zone] += 1
    return chosen, of, end


@kernel
def columns_of(box: Float64, chosen: Int64, of: Int64) -> tuple[Float64, Int64]:
    """The ends of rectangles (4 x m), and where another object begins."""
    column, first, count = np.empty((4, len(chosen))), np.empty(len(chosen), np.int64), 0
    for i in range(len(chosen)):
        for d in range(4):
            column[d, i] = box[chosen[i], d]
        if i == 0 or of[i] != of[i - 1]:
            first[count] = i
            count += 1
    return column, first[:count]
