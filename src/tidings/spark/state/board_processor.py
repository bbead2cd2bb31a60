"""Boards as Spark state: `shard_log` for `ShardBoards`.

A step is JSON, object id -> its record, null for one that is gone; a packed chunk is the same of CHUNK objects. The later of two
entries holds. Under `shard_boards.STATES` stand what boards recall, and gates. The facts of a head: `clock`, and `manifest`, whose
watchers the boards had.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from tidings.durable.manifest_view import View
from tidings.durable.snapshots import Snapshots
from tidings.errors import StorageError
from tidings.model.door.event import Event
from tidings.spark.frames.pins import Pin, micro_batch, was_adopted
from tidings.spark.frames.topic_view import task_view, view_at
from tidings.spark.state.notification_rows import notes_table
from tidings.spark.state.shard_boards import Objects, ShardBoards
from tidings.spark.state.shard_log import ShardLog
from tidings.spark.state.state_format import Facts, from_bytes, to_bytes

CHUNK = 2000


class BoardProcessor(StatefulProcessor):  # type: ignore[misc]
    held = ShardBoards

    def __init__(self, topic: Snapshots, pin: Pin, shards: int) -> None:
        self.topic = topic
        self.pin = pin
        self.shards = shards

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.log: ShardLog[ShardBoards] = ShardLog(handle, self, "board")

    def handleInputRows(self, key: tuple[int], rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        boards = self.log.open(int(key[0]))
        view, time = task_view(self.topic, self.pin)
        events = in_order(view, [(row.partition, bytes(row.body)) for row in rows], time)
        notes = boards.follow(view)
        latest = max(time if event.time is None else event.time for event in events)
        notes += boards.replace(events, max(latest, boards.clock or latest))
        step = json.dumps(boards.changes()).encode()
        self.log.add(int(key[0]), boards, step, {"clock": boards.clock, "manifest": view.manifest.number})
        if notes:
            yield Row(body=to_bytes(notes_table(notes)))

    def restore(self, shard: int, packed: Sequence[bytes], steps: Sequence[bytes], facts: Facts) -> ShardBoards:
        """With the watchers of the last step alone: older manifests need not be there."""
        if "manifest" not in facts:
            return self.held(task_view(self.topic, self.pin)[0], shard, self.shards)
        objects = latest_of([*packed, *steps])
        return self.held.restore(self._before(facts), shard, self.shards, facts["clock"], objects)

    def repeat(self, held: ShardBoards, steps: Sequence[bytes], facts: Facts) -> None:
        held.repeat(self._before(facts), latest_of(steps), facts["clock"] or 0)

    def pack(self, held: ShardBoards) -> Iterator[bytes]:
        objects = held.packed()
        while some := list(islice(objects, CHUNK)):
            yield json.dumps(dict(some)).encode()

    def _before(self, facts: Facts) -> View:
        """The watchers of the last micro-batch; of a query that was told to go on without them, those of this one."""
        try:
            return view_at(self.topic, facts["manifest"] or 0)
        except StorageError:
            where = micro_batch()
            if where is None or not was_adopted(self.topic, where[0]):
                raise
            return task_view(self.topic, self.pin)[0]


def latest_of(entries: Iterable[bytes]) -> Objects:
    objects: Objects = {}
    for entry in entries:
        objects |= json.loads(entry)
    return objects


def in_order(view: View, records: Iterable[tuple[int, bytes]], time: int) -> list[Event]:
    """The updates by time; of one time by partition and row."""
    events = [event for _, body in sorted(records) for event in view.read(from_bytes(body)).events()]
    return sorted(events, key=lambda event: time if event.time is None else event.time)
