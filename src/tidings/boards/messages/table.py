"""Messages as an Arrow table: the interface between whoever paints and whoever keeps lists.

Version 1. A row tells every watcher whose (l, r) lies in the closed rectangle [l_lo, l_hi] x [r_lo, r_hi] two things, in the order
of the rows: the object `moved`, if there is one, now stands at (moved_x, moved_y), and `object` stands at (x, y). A null y is an
object gone. The watcher's protocol is `paint.watch_lists`: it takes a moved object that it holds out or to its new place, then puts
the object in its place and keeps the best k by (y, key).

| column                         | type    | meaning                                                                   |
|--------------------------------|---------|---------------------------------------------------------------------------|
| `topic`                        | string  | the topic's name                                                          |
| `family`                       | string  | `attribute:by:k`                                                          |
| `sequence`                     | int64   | the number of the change; ascends                                         |
| `snapshot`                     | int64   | the number of the change that it builds on                                |
| `at`                           | int64   | the instant of the change, in microseconds since 1970                     |
| `l_lo`, `r_lo`, `l_hi`, `r_hi` | float64 | the rectangle; infinite where it is open                                  |
| `object`                       | string  | its key                                                                   |
| `x`, `y`                       | float64 | its value of the attribute; its rank, ascending as relevance descends     |
| `moved`, `moved_x`, `moved_y`  | alike   | of the object that has given way, or null                                 |

Whoever has lists of the objects as of change q follows all rows whose snapshot is q or more, and leaves out those whose sequence is
q or less.

The version stands in the schema's metadata. Columns may be added within a version, none is taken away or given another meaning.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.boards.paint.tiles import MOVED, MOVED_X, MOVED_Y, OBJECT, WIDTH, Messages, X, Y

VERSION = 1
_NUMBERS = ("l_lo", "r_lo", "l_hi", "r_hi")
MESSAGE = pa.schema(
    [
        pa.field("topic", pa.string(), False),
        pa.field("family", pa.string(), False),
        *(pa.field(name, pa.int64(), False) for name in ("sequence", "snapshot", "at")),
        *(pa.field(name, pa.float64(), False) for name in _NUMBERS),
        pa.field("object", pa.string(), False),
        pa.field("x", pa.float64(), False),
        pa.field("y", pa.float64()),
        pa.field("moved", pa.string()),
        pa.field("moved_x", pa.float64()),
        pa.field("moved_y", pa.float64()),
    ],
    metadata={"tidings.messages": str(VERSION)},
)


def no_messages() -> pa.Table:
    return MESSAGE.empty_table()


def table_of(topic: str, family: str, sequence: int, snapshot: int, at: int, rows: Messages, keys: NDArray[np.object_]) -> pa.Table:
    """`rows` of painting, whose objects are numbers of `keys`."""
    count = len(rows)
    moved = rows[:, MOVED].astype(np.int64)
    stays = moved < 0
    columns = [
        _same(topic, pa.string(), count),
        _same(family, pa.string(), count),
        *(_same(value, pa.int64(), count) for value in (sequence, snapshot, at)),
        *(pa.array(rows[:, d]) for d in range(len(_NUMBERS))),
        _keys(keys, rows[:, OBJECT].astype(np.int64)),
        pa.array(rows[:, X]),
        pa.array(rows[:, Y], mask=rows[:, Y] == np.inf),
        pc.if_else(pa.array(stays), None, _keys(keys, moved)),
        pa.array(rows[:, MOVED_X], mask=stays),
        pa.array(rows[:, MOVED_Y], mask=stays | (rows[:, MOVED_Y] == np.inf)),
    ]
    return pa.table(columns, schema=MESSAGE)


def _keys(keys: NDArray[np.object_], numbers: NDArray[np.int64]) -> pa.Array:
    """Where there are many, each key is read once."""
    if len(numbers) < len(keys):
        return pa.array(keys[numbers], pa.string())
    return pa.array(keys, pa.string()).take(pa.array(numbers % len(keys)))


def _same(value: object, kind: pa.DataType, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)


def rows_of(table: pa.Table, numbers: NDArray[np.int64], moved: NDArray[np.int64]) -> Messages:
    """The rows of painting again, with these numbers for objects and those that moved (-1: nobody)."""
    rows = np.empty((len(table), WIDTH))
    for d, name in enumerate(_NUMBERS):
        rows[:, d] = table[name].to_numpy()
    rows[:, OBJECT], rows[:, MOVED] = numbers, moved
    for at, name in ((X, "x"), (Y, "y"), (MOVED_X, "moved_x"), (MOVED_Y, "moved_y")):
        rows[:, at] = table[name].fill_null(np.inf).to_numpy()
    return rows


def boxes_of(table: pa.Table) -> NDArray[np.float64]:
    """The rectangles, n x 2 x 2: least (l, r), greatest (l, r)."""
    return np.column_stack([table[name].to_numpy() for name in _NUMBERS]).reshape(-1, 2, 2)
