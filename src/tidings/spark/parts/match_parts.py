"""Matching a topic in parts (`cut`).

Each event goes to the parts it must visit, each part a task of the next stage. With k, the best of several parts are merged by
another shuffle on the event's number, without state, so it serves streams too.
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

from tidings.durable.snapshots import LakeSnapshots
from tidings.match.answers.ordering import ROW, best
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import arrow_schema, events_from_arrow
from tidings.model.values.schema import Schema
from tidings.spark.frames.answer_columns import REASON
from tidings.spark.frames.arrow_stage import Batches, given_out, map_arrow, together, widened
from tidings.spark.frames.match_task import MatchTask
from tidings.spark.frames.pins import Pin, current
from tidings.spark.frames.topic_view import task_view
from tidings.spark.parts.cut import PART, Cut

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
        """By the manifest of this micro-batch: parts may have been split since the query was planned."""
        manifest = self.topic.manifest(current(self.topic, self.pin).manifest)
        assert manifest.cut is not None, "a topic in parts stays one"
        yield from self.fan(Visits(manifest.schema_read, manifest.key, Cut(**manifest.cut), sorted(manifest.parts)), batches)

    def fan(self, visits: Visits, batches: Batches) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = (0 if task is None else task.partitionId()) << NUMBER_BITS
        for batch in batches:
            row, part = visits.of(batch, self.everywhere)
            taken = batch.take(pa.array(row))
            yield taken.append_column(PART, pa.array(part)).append_column(ROW, pa.array(number + row))
            number += len(batch)


@dataclass(frozen=True, slots=True)
class Visits:
    schema: Schema
    key: str | None
    cut: Cut
    there: list[int]

    def of(self, batch: pa.RecordBatch, everywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        """(row, part) of every visit."""
        known = set(arrow_schema(self.schema, self.key).names)
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


def match_parts(events: DataFrame, topic: LakeSnapshots, cut: Cut, task: MatchTask, only: list[str]) -> DataFrame:
    """The rows of `match`, of a topic in parts, by `only` these columns of the events. `cut` is that of now."""
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
