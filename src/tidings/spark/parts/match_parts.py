"""Matching a topic in parts (`cut`).

Each event goes to the parts it must visit, each part a task of the next stage. With k, the best of several parts are merged by
another shuffle on the event's number, without state, so it serves streams too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tidings.match.answers.ordering import ROW, best
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import arrow_schema, events_from_arrow
from tidings.model.values.schema import Schema
from tidings.spark.frames.answer_columns import REASON
from tidings.spark.frames.arrow_stage import Batches, given_out, map_arrow, together, widened
from tidings.spark.frames.match_task import MatchTask
from tidings.spark.frames.pins import newest
from tidings.spark.frames.topic_view import task_view, view_at
from tidings.spark.parts.cut import PART, Cut, load_cut, part_folder

NUMBER_BITS = 40
"""Bits of an event's number below those of its task."""


@dataclass(frozen=True, slots=True)
class Fan:
    """Events with the parts they visit, a row a visit, and a number by which an event's visits are known.

    A row that cannot be read visits the last part only, and is refused there.
    """

    schema: Schema
    key: str | None
    cut: Cut
    there: list[int]
    everywhere: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = (0 if task is None else task.partitionId()) << NUMBER_BITS
        for batch in batches:
            row, part = self.visits(batch)
            here = np.isin(part, self.there)
            visits = batch.take(pa.array(row[here]))
            yield visits.append_column(PART, pa.array(part[here])).append_column(ROW, pa.array(number + row[here]))
            number += len(batch)

    def visits(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """(row, part) of every visit."""
        known = set(arrow_schema(self.schema, self.key).names)
        named = batch[self.key or "id"].is_valid()
        fair = pc.and_(named, batch[REASON].is_null()) if REASON in batch.schema.names else named
        kept = np.flatnonzero(fair.to_numpy(zero_copy_only=False))
        own = batch.select([name for name in batch.schema.names if name in known]).take(pa.array(kept))
        read = events_from_arrow(self.schema, Vocabularies(self.schema), own, self.key, on_error="skip")
        row, part = self.cut.events(self.schema, read.columns, self.everywhere)
        bad = np.setdiff1d(np.arange(len(batch)), kept[read.rows])
        return np.concatenate([kept[read.rows][row], bad]), np.concatenate([part, np.full(len(bad), self.there[-1])])


def match_parts(events: DataFrame, folder: Path, task: MatchTask, only: list[str]) -> DataFrame:
    """The rows of `match`, of a topic in parts, by `only` these columns of the events. The task's folder and pin are of no part."""
    cut, there = load_cut(folder)
    pins = {part: newest(part_folder(folder, part)) for part in there}
    view = view_at(part_folder(folder, there[0]), pins[there[0]].manifest)
    fan = Fan(view.schema, view.key, cut, there, task.relaxed)
    given = events.select(*(f"`{name}`" for name in only))
    visits = widened(given, fan, {PART: LongType(), ROW: LongType()}).repartitionById(cut.parts, F.col(PART).cast("int"))
    each = replace(task, numbered=task.k is not None)

    def match_visits(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch[PART].unique().to_pylist():
                visit = batch.filter(pc.equal(batch[PART], part)).drop_columns([PART] if each.numbered else [PART, ROW])
                there, time = task_view(part_folder(folder, part), pins[part])
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
