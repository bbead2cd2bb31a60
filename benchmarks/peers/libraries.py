"""Peers that are libraries of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import shapely

from benchmarks.peers.peer import Answers, Measured, Task, best, least


class STRtree:
    """shapely's static R-tree finds all boxes, argpartition selects; a batch is one bulk query."""

    name, version = "shapely STRtree", shapely.__version__

    def measure(self, task: Task) -> Measured:
        tree = shapely.STRtree(shapely.box(*task.corners().T))
        score = scores(task)
        events = task.events(len(task.workload.events))
        where = shapely.points([event["place"] for event in events])

        def batch() -> Answers:
            event, row = tree.query(where)
            parts = np.split(row[np.argsort(event, kind="stable")], np.cumsum(np.bincount(event, minlength=len(events)))[:-1])
            return [best(part, score, task.k) for part in parts]

        def single() -> Answers:
            return [best(tree.query(shapely.Point(event["place"])), score, task.k) for event in events[: task.few]]

        return Measured(single(), least(batch) / len(events), least(single) / task.few)


class DuckDB:
    """A query an event, and a join for a batch, over columns; one thread."""

    name, version = "DuckDB", duckdb.__version__

    def measure(self, task: Task) -> Measured:
        database = duckdb.connect()
        database.execute("SET threads = 1")
        flat = {"row": pa.array(np.arange(task.subscriptions)), "score": pa.array(scores(task))}
        flat |= {side: pa.array(corner) for side, corner in zip(("x0", "y0", "x1", "y1"), task.corners().T, strict=True)}
        database.register("given", pa.table(flat))
        database.execute("CREATE TABLE subscriptions AS SELECT * FROM given")
        events = task.events()
        order = f"ORDER BY score DESC LIMIT {task.k}" if task.k else "ORDER BY row"
        query = f"SELECT row FROM subscriptions WHERE x0 <= $1 AND x1 >= $1 AND y0 <= $2 AND y1 >= $2 {order}"

        def single() -> Answers:
            return [[row for (row,) in database.execute(query, list(event["place"])).fetchall()] for event in events]

        x, y = np.array([event["place"] for event in events]).T
        database.register("events", pa.table({"event": np.arange(len(events)), "x": x, "y": y}))
        rank = f"QUALIFY row_number() OVER (PARTITION BY event ORDER BY score DESC) <= {task.k}" if task.k else ""
        join = f"SELECT event, row FROM events JOIN subscriptions ON x BETWEEN x0 AND x1 AND y BETWEEN y0 AND y1 {rank}"

        def batch() -> pa.Table:
            return database.execute(join).to_arrow_table()

        return Measured(single(), least(batch, 1) / len(events), least(single, 1) / len(events))


class Scan:
    """Doing nothing: a scan of NumPy columns an event."""

    name, version = "NumPy scan", np.__version__

    def measure(self, task: Task) -> Measured:
        x0, y0, x1, y1 = (np.ascontiguousarray(side) for side in task.corners().T)
        score, events = scores(task), task.events()

        def single() -> Answers:
            found = []
            for event in events:
                x, y = event["place"]
                found.append(best(np.flatnonzero((x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)), score, task.k))
            return found

        spent = least(single) / len(events)
        return Measured(single(), spent, spent)


def scores(task: Task) -> np.ndarray[Any, np.dtype[np.float64]]:
    table = task.workload.subscriptions
    return table["score"].to_numpy() if "score" in table.column_names else np.ones(len(table))


LIBRARIES: tuple[Callable[[], Any], ...] = (STRtree, DuckDB, Scan)
