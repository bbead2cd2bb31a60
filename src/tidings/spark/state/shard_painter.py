"""One family of a keyed topic's watchers, who are elsewhere, painted as Spark state: objects in, messages out.

The state is that of boards, objects alone, and how many sequences there were. A shard paints one family, for a family needs all
objects; a micro-batch is a sequence, and a retry of it gives the same messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import TimerValues

from tidings.boards.messages.family import Family
from tidings.boards.messages.painted import Painted
from tidings.boards.messages.record import Said
from tidings.boards.messages.table import no_messages
from tidings.durable.manifest_view import View
from tidings.durable.snapshots import Snapshots
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values
from tidings.spark.frames.arrow_stage import Batches, given_out
from tidings.spark.frames.pins import Pin
from tidings.spark.frames.topic_view import task_view
from tidings.spark.state.board_processor import BoardProcessor, in_order
from tidings.spark.state.shard_boards import Objects, ShardBoards
from tidings.spark.state.state_format import from_bytes, to_bytes


class ShardPainter(ShardBoards):
    """The objects, and nobody who watches here."""

    painted: Painted | None = None

    def mine(self, view: View, known: View | None = None) -> Iterator[Subscription]:
        return iter(())

    def repeat(self, view: View, objects: Objects, clock: int) -> None:
        super().repeat(view, objects, clock)
        self.painted = None

    def paint(self, family: Family, sequence: int) -> Painted:
        """What has painted the objects that are there, up to a sequence; ask it for messages when they have changed."""
        if self.painted is None:
            self.painted = Painted(self.view.manifest.topic, self.view.schema)
            self.painted.add(family)
            self.painted.adopt(self.publisher)
        self.painted.sequence = sequence
        return self.painted

    def messages(self, family: Family, events: Sequence[Event], at: int, sequence: int) -> pa.Table:
        """Updates of one instant as one sequence, above `sequence`."""
        painted = self.paint(family, sequence)
        self.replace(events, at)
        return painted.messages(self.publisher)

    def said(self, family: Family, events: Sequence[Event], at: int, sequence: int) -> tuple[Said, dict[str, Values | None]]:
        """The same for records, and the objects that are others now."""
        painted = self.paint(family, sequence)
        self.replace(events, at)
        changes = painted.touched(self.publisher)
        painted.sequence += 1
        return painted.painters[family.name].say(changes), changes

    def replayed(self, family: Family, events: Sequence[Event], time: int) -> pa.Table:
        """Updates in order of their times, each instant a sequence."""
        painted, tables = self.paint(family, 0), [no_messages()]
        for at, group in groupby(events, key=lambda event: time if event.time is None else event.time):
            self.replace(list(group), at)
            tables.append(painted.messages(self.publisher))
        return pa.concat_tables(tables)


class PaintingProcessor(BoardProcessor):
    held = ShardPainter

    def __init__(self, topic: Snapshots, pin: Pin, families: Sequence[Family]) -> None:
        super().__init__(topic, pin, len(families))
        self.families = tuple(families)

    def handleInputRows(self, key: tuple[int], rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        shard = self.log.open(int(key[0]))
        assert isinstance(shard, ShardPainter)
        view, time = task_view(self.topic, self.pin)
        events = in_order(view, [(row.partition, bytes(row.body)) for row in rows], time)
        shard.follow(view)
        latest = max(time if event.time is None else event.time for event in events)
        told = int(self.log.head.facts.get("sequence") or 0)
        body = self.told(shard, int(key[0]), events, max(latest, shard.clock or latest), told)
        assert shard.painted is not None
        facts = {"clock": shard.clock, "manifest": view.manifest.number, "sequence": shard.painted.sequence}
        self.log.add(int(key[0]), shard, json.dumps(shard.changes()).encode(), facts)
        if body is not None:
            yield Row(body=body)

    def told(self, shard: ShardPainter, family: int, events: Sequence[Event], at: int, sequence: int) -> bytes | None:
        """What is to be told of updates of one instant, above `sequence`, and the shard with them."""
        table = shard.messages(self.families[family], events, at, sequence)
        return to_bytes(table) if len(table) else None


def unpack_messages(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for body in batch["body"]:
            yield from given_out(from_bytes(body.as_buffer()))
