"""Matching a topic in parts (`cut`): each event visits the parts that it touches, in one of two ways.

*In place*, where a machine can hold all parts (they are at most IN_PLACE of its cache): a task takes its events from part to part
and merges the k best itself; nothing is shuffled. *Fanned out*, where it cannot: each event goes to the parts it must visit, each
part a task of the next stage, so that a machine needs only some. With k, the best of several parts are then merged by another
shuffle on the event's number. Both are without state, so they serve streams too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tidings.durable.lake.machine_cache import machine_cache
from tidings.durable.snapshots import LakeSnapshots, Snapshots
from tidings.match.answers.ordering import ROW, best
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import arrow_schema, events_from_arrow
from tidings.model.values.schema import Schema
from tidings.spark.frames import arrow_stage
from tidings.spark.frames.answer_columns import REASON
from tidings.spark.frames.arrow_stage import Batches, given_out, map_arrow, together, widened
from tidings.spark.frames.match_task import MatchTask
from tidings.spark.frames.pins import Pin, current
from tidings.spark.frames.topic_view import task_view
from tidings.spark.parts.cut import PART, Cut

IN_PLACE = 0.5
NUMBER_BITS = 40
"""Bits of an event's number below those of its task."""


@dataclass(frozen=True, slots=True)
class Fan:
    """Events with the parts they visit, a row a visit, and a number by which an event's visits are known.

    A row that cannot be read visits the last part only, and is refused there.
    """

    topic: LakeSnapshots
    pin: Pin
    everywhere: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        visits, task = visits_now(self.topic, self.pin), TaskContext.get()
        number = (0 if task is None else task.partitionId()) << NUMBER_BITS
        for batch in batches:
            row, part = visits.of(batch, self.everywhere, True)
            taken = batch.take(pa.array(row))
            yield taken.append_column(PART, pa.array(part)).append_column(ROW, pa.array(number + row))
            number += len(batch)


@dataclass(frozen=True, slots=True)
class Visits:
    schema: Schema
    key: str | None
    cut: Cut
    there: list[int]

    def of(self, batch: pa.RecordBatch, everywhere: bool, careful: bool) -> tuple[np.ndarray, np.ndarray]:
        """(row, part) of every visit. `careful` reads all of an event: one that cannot be read then visits the last part alone."""
        attributes = [self.cut.attribute] if self.cut.attribute else []
        known = set(arrow_schema(self.schema, self.key).names) if careful else {self.key or "id", *attributes}
        named = batch[self.key or "id"].is_valid()
        fair = pc.and_(named, batch[REASON].is_null()) if REASON in batch.schema.names else named
        kept = np.flatnonzero(fair.to_numpy(zero_copy_only=False))
        own = batch.select([name for name in batch.schema.names if name in known]).take(pa.array(kept))
        read = events_from_arrow(self.schema, Vocabularies(self.schema), own, self.key, on_error="skip")
        row, part = self.cut.events(self.schema, read.columns, everywhere)
        # Where nobody stands nobody is asked; but of an event that meets nobody a row may be wanted, which the last part gives.
        here = np.isin(part, self.there) | (part == self.cut.everywhere)
        bad = np.setdiff1d(np.arange(len(batch)), kept[read.rows])
        return np.concatenate([kept[read.rows][row[here]], bad]), np.concatenate(
            [part[here], np.full(len(bad), self.cut.everywhere)]
        )


def visits_now(topic: LakeSnapshots, otherwise: Pin) -> Visits:
    """By the manifest of this micro-batch: its parts may be others than when the query was planned."""
    pin = current(topic, otherwise)
    manifest = topic.manifest(pin.manifest, pin.identity)
    assert manifest.cut is not None, "a topic in parts stays one"
    return Visits(manifest.schema_read, manifest.key, Cut(**manifest.cut), sorted(manifest.parts))


def in_place(topic: LakeSnapshots, task: MatchTask) -> InPlace | None:
    """The stage that takes events from part to part; None where a machine cannot hold them all."""
    manifest = topic.manifest(task.pin.manifest, task.pin.identity)
    held = sum(manifest.sizes[name] for name in manifest.snapshot().files)
    return InPlace(topic, task) if held <= IN_PLACE * machine_cache().limit else None


@dataclass(frozen=True, slots=True)
class InPlace:
    """The visits of a task's events, part by part."""

    topic: LakeSnapshots
    task: MatchTask

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        visits = visits_now(self.topic, self.task.pin)
        most = arrow_stage.HELD_ROWS if not self.task.k else max(arrow_stage.HELD_ROWS // (self.task.k * visits.cut.parts), 1)
        for batch in batches:
            for first in range(0, len(batch), most):
                yield from self.match(visits, batch.slice(first, most))

    def match(self, visits: Visits, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """With k, the best of all parts; without, the matches of each part as they come."""
        row, part = visits.of(batch, self.task.relaxed, self.task.corrupt)
        each = replace(self.task, numbered=self.task.k is not None)
        if each.numbered:
            batch = batch.append_column(ROW, pa.array(np.arange(len(batch))))
        found: list[pa.RecordBatch] = []
        for one in np.unique(part).tolist():
            view, time = task_view(self.topic, self.task.pin, one)
            matched = each.match(view, batch.take(pa.array(row[part == one])), time)
            if self.task.k is None:
                yield from matched
            else:
                found += matched
        if found and self.task.k is not None:
            yield from Merger(self.task.k)(found)


def fanned_out(events: DataFrame, topic: Snapshots, task: MatchTask, only: list[str]) -> DataFrame:
    """The rows of `match` by `only` these columns of the events, each part by a task of its own."""
    assert isinstance(topic, LakeSnapshots), "of a topic in parts"
    manifest = topic.manifest(task.pin.manifest, task.pin.identity)
    assert manifest.cut is not None, "of a topic in parts"
    cut = Cut(**manifest.cut)
    given = events.select(*(f"`{name}`" for name in only))
    fanned = widened(given, Fan(topic, task.pin, task.relaxed), {PART: LongType(), ROW: LongType()})
    visits = fanned.repartitionById(cut.parts, F.pmod(F.col(PART), F.lit(cut.parts)).cast("int"))
    each = replace(task, numbered=task.k is not None)

    def match_visits(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch[PART].unique().to_pylist():
                visit = batch.filter(pc.equal(batch[PART], part)).drop_columns([PART] if each.numbered else [PART, ROW])
                there, time = task_view(topic, task.pin, part)
                yield from each.match(there, visit, time)

    found = map_arrow(visits, match_visits, each.columns)
    return found if task.k is None else map_arrow(found.repartition(ROW), Merger(task.k), task.columns)


@dataclass(frozen=True, slots=True)
class Merger:
    """The k best of each event, of all parts."""

    k: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in together(batches):
            told = table.filter(table[ROW].is_null())
            merged = best(table.filter(table[ROW].is_valid()), self.k)
            yield from given_out(pa.concat_tables([merged, told]).drop_columns([ROW]))
