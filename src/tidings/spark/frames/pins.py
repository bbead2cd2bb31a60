"""Which manifest a task reads: one for a whole micro-batch, the same when any of it runs again.

A batch DataFrame names its manifest when it is made, and pins it for as long as a lease holds. A micro-batch has no such moment
on the driver, since a transform is planned once and runs many times, so its tasks agree through the topic's own place: the first
to come puts

    pins/<query id>/<batch id>.json      {"manifest": N, "time": microseconds, "until": seconds}

if there is none yet, which succeeds for exactly one; all the others, now and in every retry, read it. The query's id comes from its
checkpoint, so a restarted query finds the pin of the batch it repeats; one that finds none of its pins, or a newer one than the
topic's manifest, has a checkpoint that does not belong to this topic, and stops, unless it was told to (`adopt`). `time` stands
in for the wall clock wherever a batch needs one. A query keeps the pins of its last PINS_KEPT batches; a pinned manifest's files
are not dropped before its lease ends (`durable.leases`).
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import time as wall_clock
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark import TaskContext

from tidings.durable.lake.address import place_of
from tidings.durable.lake.objects import FolderObjects, MissingObject, objects_at
from tidings.durable.leases import FRAME, LEASE, PINS, lease_from
from tidings.durable.manifest import KEPT
from tidings.durable.snapshots import Snapshots, once
from tidings.errors import StorageError
from tidings.model.values.times import parse_time

PINS_KEPT = 4
ADOPTED = "adopted"
"""The pin that says a query may go on with a topic that it has not read, or not lately."""
REMEMBERED = 8

_seen: dict[tuple[str, str | None, str, int], Pin] = {}
"""Pins that this worker has read; a run of a query meets each many times."""
_frames: dict[tuple[str, int], float] = {}
"""The manifests that batch DataFrames of this process have pinned, and until when."""
_reader = f"{FRAME}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


class Pin(NamedTuple):
    """`identity` is the manifest's, 0 in a pin of earlier versions."""

    manifest: int
    time: int
    identity: int = 0


def instant(time: Any = None) -> int:
    """Microseconds; the only place of the pipeline that looks at the wall clock."""
    return wall_clock.time_ns() // 1000 if time is None else parse_time(time)


def newest(topic: Snapshots) -> Pin:
    manifest = topic.newest()
    return Pin(manifest.number, instant(), manifest.identity)


def frame_pin(topic: Snapshots) -> Pin:
    """The newest, pinned for a batch DataFrame. Where nothing can be written, nothing is pinned."""
    pin = newest(topic)
    if _frames.get((topic.title, pin.manifest), 0.0) < wall_clock.time() + LEASE / 2:
        try:
            pin, name = hold_newest(topic, "")
        except StorageError:
            return pin
        key = topic.title, pin.manifest
        if key not in _frames:
            atexit.register(_let_go, topic, name)
        _frames[key] = lease_from(wall_clock.time())
    return pin


def hold_newest(topic: Snapshots, suffix: str) -> tuple[Pin, str]:
    """The newest manifest, and the name of a pin of this process that holds it.

    While it is read and pinned, others commit, and clean up by the pins that they see. Who drops a manifest has committed the
    KEPT after it and then listed the pins: if there are not half as many when the pin is there, whoever drops it will see the pin.
    """
    while True:
        pin = newest(topic)
        name = f"{PINS}/{_reader}/{pin.manifest}{suffix}.json"
        topic.notes.put(name, pin_body(pin))
        if topic.newest().number <= pin.manifest + KEPT // 2:
            return pin, name
        topic.notes.delete([name])


def _let_go(topic: Snapshots, name: str) -> None:
    with suppress(StorageError):
        topic.notes.delete([name])
        if isinstance(topic.notes, FolderObjects):
            with suppress(OSError):
                (topic.notes.root / name).parent.rmdir()


def pin_body(pin: Pin) -> bytes:
    return json.dumps({**pin._asdict(), "until": lease_from(wall_clock.time())}).encode()


def current(topic: Snapshots, otherwise: Pin) -> Pin:
    """The pin of the micro-batch that this task is of; `otherwise` in a batch query."""
    where = micro_batch()
    return otherwise if where is None else pinned(topic, *where)


def micro_batch() -> tuple[str, int] | None:
    """(query id, batch id) of this task; None in a batch query."""
    batch, query = local_property("streaming.sql.batchId"), local_property("sql.streaming.queryId")
    return None if batch is None or query is None else (query, int(batch))


def local_property(name: str) -> str | None:
    task = TaskContext.get()
    value: str | None = None if task is None else task.getLocalProperty(name)
    return value


def pinned(topic: Snapshots, query: str, batch: int) -> Pin:
    """The pin of a query's micro-batch, made by the first who asks."""
    # The job group is of one run of the query: a later one may have adopted another topic.
    known = (topic.title, local_property("spark.jobGroup.id"), query, batch)
    if known not in _seen:
        found = json.loads(_agreed(topic, query, batch))
        if len(_seen) >= REMEMBERED:
            _seen.clear()
        _seen[known] = Pin(found["manifest"], found["time"], found.get("identity", 0))
    return _seen[known]


def _agreed(topic: Snapshots, query: str, batch: int) -> bytes:
    """The body of the pin; while this process makes one, another holds what it will name."""
    held: list[str] = []
    try:
        return once(topic.notes, f"{PINS}/{query}/{batch}.json", partial(_next, topic, query, batch, held))
    finally:
        for name in held:
            _let_go(topic, name)


def _next(topic: Snapshots, query: str, batch: int, held: list[str]) -> bytes:
    """The newest, which must not be older than what the micro-batch before had; that one's pin holds it, or one in `held`."""
    pins = {Path(one.name).stem: one.name for one in topic.notes.listed(f"{PINS}/{query}/")}
    # The first micro-batch may have had no events (Spark's rate source begins so): then it ran nothing, and pinned nothing.
    if batch > 1 and not pins:
        raise StorageError(
            f"this checkpoint is of a query that has not read {topic.title}: give the query a checkpoint of its own, or let it "
            "go over to this topic by tidings.spark.adopt(topic, checkpoint)"
        )
    pin, before = newest(topic), pins.get(str(batch - 1))
    seen = 0
    if before is not None:
        with suppress(MissingObject):
            seen = json.loads(topic.notes.get(before))["manifest"]
    if seen > pin.manifest:
        raise StorageError(
            f"{topic.title} is at manifest {pin.manifest}, older than {seen}, which this query has read: give it a checkpoint of "
            "its own, or let it go on with what is there by tidings.spark.adopt(topic, checkpoint)"
        )
    if seen != pin.manifest:
        pin, name = hold_newest(topic, f"-{uuid.uuid4().hex[:8]}")
        held.append(name)
    topic.notes.delete(name for stem, name in pins.items() if stem.isdecimal() and int(stem) <= batch - PINS_KEPT)
    return pin_body(pin)


def query_of(checkpoint: str | os.PathLike[str]) -> str:
    """The id that Spark gave the query when the checkpoint was made."""
    try:
        return str(json.loads(objects_at(place_of(checkpoint)).get("metadata"))["id"])
    except (MissingObject, ValueError, KeyError, TypeError):
        raise StorageError(
            f"{checkpoint} is no checkpoint of a streaming query: one that has a file 'metadata' is accepted"
        ) from None


def was_adopted(topic: Snapshots, query: str) -> bool:
    """Whether this query was told to go on with this topic."""
    try:
        topic.notes.get(f"{PINS}/{query}/{ADOPTED}.json")
    except MissingObject:
        return False
    return True


def once_in_folder(path: Path, write: Callable[[Path], object]) -> None:
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
