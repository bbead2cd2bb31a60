"""Matching a topic in parts (`partitions`).

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

from tidings.durable.manifest_view import view_of
from tidings.match.answers.ordering import ROW, best
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import events_from_arrow
from tidings.model.values.schema import Schema
from tidings.spark.frames.columns import Batches, check_events, frame_form, map_arrow, together, widened
from tidings.spark.frames.matcher import Matcher
from tidings.spark.frames.pins import current, newest
from tidings.spark.parts.cells import NOWHERE, PART, Cells, Cut, load_cut, part_folder

NUMBER_BITS = 40
"""Bits of an event's number below those of its task."""


@dataclass(frozen=True, slots=True)
class Fan:
    """Events with the parts they visit, a row a visit, and a number by which an event's visits are known.

    A row that cannot be read visits the last part only, and is refused there. An event without an id gets one before it is copied.
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
            corrupt = batch["_corrupt"].is_valid() if "_corrupt" in batch.schema.names else pa.array(np.zeros(len(batch), np.bool_))
            kept = np.flatnonzero(~corrupt.to_numpy(zero_copy_only=False))
            bare = batch.take(pa.array(kept)).drop_columns(["_corrupt"] if "_corrupt" in batch.schema.names else [])
            read = events_from_arrow(self.schema, Vocabularies(self.schema), bare, self.key, on_error="skip")
            good = kept[read.rows]
            row, part = self.cut.events(self.schema, read.columns, self.everywhere)
            bad = np.setdiff1d(np.arange(len(batch)), good)
            row, part = np.concatenate([good[row], bad]), np.concatenate([part, np.full(len(bad), self.there[-1])])
            here = np.isin(part, self.there)
            visits = self.named(batch, good, read.ids).take(pa.array(row[here]))
            yield visits.append_column(PART, pa.array(part[here])).append_column(ROW, pa.array(number + row[here]))
            number += len(batch)

    def named(self, batch: pa.RecordBatch, good: Cells, ids: pa.Array) -> pa.RecordBatch:
        if self.key is not None:
            return batch
        place = np.full(len(batch), NOWHERE)
        place[good] = np.arange(len(good))
        made = ids.take(pa.array(place, mask=place == NOWHERE))
        at = batch.schema.get_field_index("id")
        return batch.set_column(at, "id", pc.coalesce(made, batch["id"].cast(pa.string())))


def match_parts(events: DataFrame, folder: Path, matcher: Matcher) -> DataFrame:
    """The rows of `match`, of a topic in parts. `matcher` has the settings; its folder and pin are of no part."""
    cut, there = load_cut(folder)
    pins = {part: newest(part_folder(folder, part)) for part in there}
    view = view_of(part_folder(folder, there[0]), pins[there[0]].manifest)
    check_events(frame_form(events), view)
    if view.key is None and "id" not in events.columns:
        events = events.withColumn("id", F.lit(None).cast("string"))
    fan = Fan(view.schema, view.key, cut, there, matcher.relaxed)
    visits = widened(events, fan, {PART: LongType(), ROW: LongType()}).repartitionById(cut.parts, F.col(PART).cast("int"))
    each = replace(matcher, numbered=matcher.k is not None)

    def match_visits(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch[PART].unique().to_pylist():
                visit = batch.filter(pc.equal(batch[PART], part)).drop_columns([PART] if each.numbered else [PART, ROW])
                pin = current(part_folder(folder, part), pins[part])
                found = each.match(view_of(part_folder(folder, part), pin.manifest), visit, pin.time)
                yield from found.to_batches(max_chunksize=100_000)

    found = map_arrow(visits, match_visits, each.columns)
    return found if matcher.k is None else map_arrow(found.repartition(ROW), Merger(matcher.k), matcher.columns)


@dataclass(frozen=True, slots=True)
class Merger:
    """The k best of each event, of all parts."""

    k: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in together(batches):
            told = table.filter(table[ROW].is_null())
            merged = best(table.filter(table[ROW].is_valid()), self.k)
            yield from pa.concat_tables([merged, told]).drop_columns([ROW]).combine_chunks().to_batches(max_chunksize=100_000)
