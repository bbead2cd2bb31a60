"""Boards of ranges, four ways, on the same updates: microseconds of process time an update, at 1,000 to 100,000 watchers.

| way      | what                                                                                                          |
|----------|---------------------------------------------------------------------------------------------------------------|
| columns  | `boards.ranges`, which topics use: blocks of columns, lists followed, net changes as columns                  |
| painted  | Paint-Sparse (in 1.5 dimensions `Paint15`), its messages delivered to `WatchLists`: lists followed, changed rows |
| scan     | every watcher's columns, branch-free: only who is concerned, nobody's list                                    |
| plain    | `PlainBoard`, all matches sorted in Python, every watcher tried; at 1,000 watchers alone                      |

5,000 objects, k = 10; an update gives an object another place and rank. At the end painted lists must equal those of the columns. A
keyed topic, with an object a notification, is measured last, in single calls and in batches of 100.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import tidings as td
from experiments.baselines.watcher_scan import scan
from experiments.report import provenance
from experiments.structures.one_and_a_half import Objects15, Paint15
from tidings.boards.paint.paint import PaintSparse, paint_each
from tidings.boards.paint.watch_lists import WatchLists
from tidings.boards.plain import PlainBoard
from tidings.boards.ranges import Axis, Move, RangeBoards
from tidings.index.points.objects import ObjectIndex
from tidings.index.points.watchers import WatchIndex
from tidings.model.filter.clause import Clause
from tidings.model.values.schema import Number, Schema

RESULT = Path(__file__).parent / "results" / "range_topk_boards.json"
OBJECTS, K = 5_000, 10
SIZES = {1: (1_000, 10_000, 100_000), 2: (1_000, 10_000, 100_000)}


class Workload:
    """Watchers of x in [l, r], in 1.5 dimensions also of z <= c; `updates` gives an object's number and new (x, z, y)."""

    def __init__(self, watchers: int, attributes: int, updates: int) -> None:
        rng = np.random.default_rng(7)
        self.attributes = attributes
        low = rng.random(watchers) * 0.9
        self.points = np.column_stack([low, low + rng.random(watchers) * 0.2, rng.random(watchers)])
        self.first = rng.random((OBJECTS, 3))
        self.numbers, self.new = rng.integers(0, OBJECTS, updates), rng.random((updates, 3))

    def ranges(self, row: int) -> np.ndarray:
        l, r, c = self.points[row]
        return np.array([[l, r], [-np.inf, c]])[: self.attributes]

    def values(self, place) -> dict[str, float]:
        return dict(zip(("x", "z", "y"), map(float, place), strict=True))


def timed(work, updates: int) -> tuple[float, int]:
    """Microseconds an update, and what the work counted an update. The first, which may compile, is not measured."""
    work(0)
    start = time.process_time()
    counted = sum(work(i) for i in range(1, updates))
    return (time.process_time() - start) / (updates - 1) * 1e6, counted / (updates - 1)


def columns(w: Workload) -> tuple[RangeBoards, np.ndarray]:
    boards, ties = RangeBoards(Axis(("x", "z")[: w.attributes], "y", -1.0)), np.arange(float(OBJECTS))
    boards.move([Move(i, None, w.values(place)) for i, place in enumerate(w.first)], ties)
    for row in range(len(w.points)):
        boards.add(str(row), K, w.ranges(row))
    return boards, ties


def follow_columns(boards: RangeBoards, ties: np.ndarray, w: Workload):
    return lambda i: len(boards.move([Move(int(w.numbers[i]), None, w.values(w.new[i]))], ties).watcher)


def lists_of(boards: RangeBoards, w: Workload) -> WatchLists:
    made = WatchLists(K, len(w.points))
    for row, (l, r, _) in enumerate(w.points):
        top = boards.top(str(row))
        made.reset(row, l, r, [number for number, _ in top], [y for _, y in top])
    return made


def follow_painted(lists: WatchLists, w: Workload):
    """One attribute."""
    objects = ObjectIndex(OBJECTS)
    objects.insert_many(np.arange(OBJECTS), w.first[:, 0].copy(), w.first[:, 2].copy())
    index = WatchIndex.build(np.arange(len(w.points), dtype=np.int32), w.points[:, :2].copy())
    painter = PaintSparse(objects, K, index)

    def work(i: int) -> int:
        messages = paint_each(objects, [painter], int(w.numbers[i]), float(w.new[i, 0]), float(w.new[i, 2]))[0]
        return len(lists.apply(messages, index, objects.arrays.tie))

    return work


def follow_painted_15(lists: WatchLists, w: Workload):
    objects, ties = Objects15(), np.arange(float(OBJECTS))
    for i, place in enumerate(w.first.tolist()):
        objects.insert(i, tuple(place), float(i))
    index = WatchIndex.build(np.arange(len(w.points), dtype=np.int32), w.points)
    painter = Paint15(objects, K, index)

    def work(i: int) -> int:
        number, new = int(w.numbers[i]), tuple(w.new[i].tolist())
        old = objects.place[number]
        objects.delete(number)
        boxes, messages = painter.paint(number, old, new, float(number))
        objects.insert(number, new, float(number))
        return len(lists.apply(messages, index, ties, boxes))

    return work


def follow_scan(boards: RangeBoards, w: Workload):
    points = np.ascontiguousarray(w.points.T)
    bound, now = np.full(len(w.points), np.inf), w.first.copy()
    for row in range(len(w.points)):
        top = boards.top(str(row))
        bound[row] = top[-1][1] if len(top) == K else np.inf

    def work(i: int) -> int:
        old = now[w.numbers[i]].copy()
        now[w.numbers[i]] = w.new[i]
        return int(scan(points, bound, old, w.new[i], w.attributes))

    return work


def follow_plain(w: Workload):
    schema = Schema({"x": Number(), "z": Number(), "y": Number()})
    boards = []
    for row in range(len(w.points)):
        clause = Clause(ranges=dict(zip(("x", "z"), map(tuple, w.ranges(row).tolist()), strict=False)))
        boards.append(PlainBoard(str(row), (clause,), K, lambda values: -values["y"]))
        for i, place in enumerate(w.first):
            values = w.values(place)
            boards[-1].put(str(i), values if clause.holds(schema, values) else None)

    def work(i: int) -> int:
        key, values, told = str(w.numbers[i]), w.values(w.new[i]), 0
        for board in boards:
            before = dict(board.top())
            board.put(key, values if board.matches(schema, values) else None)
            told += len(board.changes(before, {key}))
        return told

    return work


def keyed_topic(watchers: int, updates: int) -> dict[str, float]:
    """What a user sees, an object a notification."""
    w = Workload(watchers, 1, 2 * updates + 1)
    topic = td.Topic("objects", {"x": td.Number(0, 2), "z": td.Number(), "y": td.Number()}, key="id")
    ids = [f"s{row}" for row in range(watchers)]
    by = {"k": pa.array([K] * watchers, pa.int32()), "by": ["-y"] * watchers}
    topic.publish_batch([{"id": f"o{i}"} | w.values(place) for i, place in enumerate(w.first)], time=0)
    topic.subscribe_many(pa.table({"id": ids, **by, "x.lo": w.points[:, 0], "x.hi": w.points[:, 1]}), time=1)
    events = [{"id": f"o{number}"} | w.values(place) for number, place in zip(w.numbers, w.new, strict=True)]
    single, told = timed(lambda i: len(topic.publish(events[i], time=2 + i)), updates)
    start, notes = time.process_time(), 0
    for i in range(updates, 2 * updates, 100):
        notes += len(topic.publish_batch(events[i : i + 100], time=2 + i))
    batch = (time.process_time() - start) / updates * 1e6
    return {"single us": single, "notifications": told, "batch us": batch, "batch notifications": notes / updates}


def beside(watchers: int, attributes: int, updates: int) -> dict[str, float]:
    w = Workload(watchers, attributes, updates)
    boards, ties = columns(w)
    lists = lists_of(boards, w)
    ways = {
        "scan": follow_scan(boards, w),
        "painted": follow_painted(lists, w) if attributes == 1 else follow_painted_15(lists, w),
        "columns": follow_columns(boards, ties, w),
    }
    if watchers <= 1_000:
        ways["plain"] = follow_plain(w)
    row: dict[str, float] = {"watchers": watchers}
    for name, work in ways.items():
        row[f"{name} us"], row[f"{name} counted"] = timed(work, updates)
    assert all(lists.top(i) == boards.top(str(i)) for i in range(0, watchers, 97)), "painted lists are not those of the columns"
    row["columns bytes a watcher"] = boards.nbytes / watchers
    return row


def main() -> None:
    results: dict[str, object] = {}
    for attributes, sizes in SIZES.items():
        rows = [beside(size, attributes, 400 if attributes == 1 else 60) for size in sizes]
        results["one range" if attributes == 1 else "1.5 dimensions"] = rows
        for row in rows:
            print(attributes, {name: round(value, 1) for name, value in row.items()}, flush=True)
    results["keyed topic, 100,000 watchers"] = keyed = keyed_topic(100_000, 200)
    print({name: round(value, 1) for name, value in keyed.items()})
    RESULT.write_text(json.dumps({"run": provenance(), "objects": OBJECTS, "k": K, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
