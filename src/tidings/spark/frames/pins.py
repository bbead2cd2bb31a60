"""Which manifest a task reads: one for a whole micro-batch, the same when any of it runs again.

A batch DataFrame names its manifest when it is made. A micro-batch has no such moment on the driver, since a transform is planned
once and runs many times, so its tasks agree through the topic's folder: the first to come writes

    folder/pins/<query id>/<batch id>.json      {"manifest": N, "time": microseconds}

under another name and links it into place, which succeeds for exactly one; all the others, now and in every retry, read it. The
query's id comes from its checkpoint, so a restarted query finds the pin of the batch it repeats; one that finds none of its
pins, or a newer one than the folder's manifest, has a checkpoint that does not belong to this folder, and stops. `time` stands in
for the wall clock wherever a batch needs one. A query keeps the pins of its last PINS_KEPT batches; a pinned manifest's files are
not dropped (`manifest.pinned`).
"""

from __future__ import annotations

import json
import os
import time as wall_clock
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark import TaskContext

from tidings.durable.manifest import PINS, load_manifest
from tidings.errors import StorageError
from tidings.model.values.times import parse_time

PINS_KEPT = 4
PARTS = "parts.json"
"""The file that says a folder holds a topic in parts (`parts.cut`)."""


class Pin(NamedTuple):
    manifest: int
    time: int


def instant(time: Any = None) -> int:
    """Microseconds; the only place of the pipeline that looks at the wall clock."""
    return wall_clock.time_ns() // 1000 if time is None else parse_time(time)


def newest(folder: Path) -> Pin:
    refuse_parts(folder)
    return Pin(load_manifest(folder).number, instant())


def is_in_parts(folder: Path) -> bool:
    return (folder / PARTS).exists()


def refuse_parts(folder: Path) -> None:
    if is_in_parts(folder):
        raise StorageError(f"{folder} holds a topic in parts: match and parse take it, all else takes one built without part_by")


def current(folder: Path, otherwise: Pin) -> Pin:
    """The pin of the micro-batch that this task is of; `otherwise` in a batch query."""
    where = micro_batch()
    if where is None:
        return otherwise
    query, batch = where
    # The first micro-batch may have had no events (Spark's rate source begins so): then it ran nothing, and pinned nothing.
    if batch > 1 and not (folder / PINS / query).is_dir():
        raise StorageError(f"this checkpoint is of a query that has not read {folder}: give the query a checkpoint of its own")
    return pinned(folder, query, batch)


def micro_batch() -> tuple[str, int] | None:
    """(query id, batch id) of this task; None in a batch query."""
    task = TaskContext.get()
    batch = task.getLocalProperty("streaming.sql.batchId") if task is not None else None
    query = task.getLocalProperty("sql.streaming.queryId") if task is not None else None
    return None if batch is None or query is None else (query, int(batch))


def pinned(folder: Path, query: str, batch: int) -> Pin:
    """The pin of a query's micro-batch, made by the first who asks."""
    path = folder / PINS / query / f"{batch}.json"
    once(path, lambda partial: partial.write_text(json.dumps(_next(folder, path.with_name(f"{batch - 1}.json"))._asdict())))
    return Pin(**json.loads(path.read_text()))


def _next(folder: Path, before: Path) -> Pin:
    """The newest, which must not be older than what the micro-batch before had."""
    pin = newest(folder)
    seen = json.loads(before.read_text())["manifest"] if before.exists() else 0
    if seen > pin.manifest:
        raise StorageError(
            f"{folder} is at manifest {pin.manifest}, older than {seen}, which this query has read: give it a checkpoint of its own"
        )
    return pin


def once(path: Path, write: Callable[[Path], object]) -> None:
    """Make `path`, a file named by its batch, by what `write` writes, unless another task was first."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        write(partial)
        _link(partial, path)
    except OSError as error:
        raise StorageError(f"cannot pin what a micro-batch reads in {path.parent}: {error.strerror or error}") from error


def _link(partial: Path, path: Path) -> None:
    try:
        os.link(partial, path)
    except FileExistsError:
        return
    finally:
        partial.unlink()
    path.with_name(f"{int(path.stem) - PINS_KEPT}{path.suffix}").unlink(missing_ok=True)
