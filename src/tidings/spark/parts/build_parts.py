"""Building a topic in parts (`cut`): cut by a sample of the subscriptions, write them to Parquet by part, build each part as
a topic of its own.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType

from tidings.durable.manifest import load_manifest
from tidings.errors import SubscriptionError
from tidings.match.store.segment import Segment
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import subscriptions_from_arrow
from tidings.model.values.schema import Schema
from tidings.spark.frames.arrow_stage import Batches, map_arrow, widened
from tidings.spark.parts.cut import PART, Cut, Floats, check_cut, cut_by, extents, part_folder, save_cut

SAMPLED = 20_000
"""Subscriptions of a partition by which cells are cut."""
CENTRE = {"x": pa.float64(), "y": pa.float64()}


def build_parts(
    subscriptions: DataFrame, folder: Path, schema: Schema, by: str, parts: int, make: Callable[[DataFrame, Path], int]
) -> int:
    """`make` builds the topic of one part. Until all are built there is no topic."""
    check_cut(schema, by, parts)
    work = folder / f"building-{uuid.uuid4().hex}"
    built: list[int] = []
    try:
        cut = cut_by(schema, by, parts, centres_of(subscriptions, schema, by))
        widened(subscriptions, Router(schema, cut), {PART: LongType()}).write.partitionBy(PART).parquet(str(work))
        count = 0
        with ExitStack() as unfinished:
            for part in sorted(int(path.name.partition("=")[2]) for path in work.glob(f"{PART}=*")):
                built.append(part)
                unfinished.callback(shutil.rmtree, part_folder(folder, part), ignore_errors=True)
                given = subscriptions.sparkSession.read.schema(subscriptions.schema).parquet(str(work / f"{PART}={part}"))
                count += make(given, part_folder(folder, part))
            refuse_repeated_ids([segment for part in built for segment in segments_of(schema, part_folder(folder, part))])
            save_cut(folder, cut, built)
            unfinished.pop_all()
        return count
    finally:
        shutil.rmtree(work, ignore_errors=True)


def segments_of(schema: Schema, folder: Path) -> list[Segment]:
    return [Segment.open(schema, folder / file, verify=False) for file, _ in load_manifest(folder).segments]


def centres_of(subscriptions: DataFrame, schema: Schema, by: str) -> Floats:
    """Where a sample of the subscriptions lies on the attribute (n x 2); none for a hash."""
    if by not in schema:
        return np.empty((0, 2))

    def sample(batches: Batches) -> Iterator[pa.RecordBatch]:
        left = SAMPLED
        for batch in batches:
            if left > 0:
                read = subscriptions_from_arrow(schema, Vocabularies(schema), batch.slice(0, left), on_error="skip")
                ends = extents(schema, by, read.clauses)
                ends = ends[np.isfinite(ends).all(axis=1)]
                left -= len(batch)
                yield pa.record_batch([(ends[:, 0] + ends[:, 2]) / 2, (ends[:, 1] + ends[:, 3]) / 2], names=list(CENTRE))

    found = map_arrow(subscriptions, sample, CENTRE).toArrow()
    return np.stack([found[name].to_numpy() for name in CENTRE], axis=1)


@dataclass(frozen=True, slots=True)
class Router:
    """Says which part a subscription stands in; one that cannot be read goes to the last, where building it refuses it."""

    schema: Schema
    cut: Cut

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            read = subscriptions_from_arrow(self.schema, Vocabularies(self.schema), batch, on_error="skip")
            part = np.full(len(batch), self.cut.everywhere)
            part[read.rows] = self.cut.subscriptions(self.schema, read)
            yield batch.append_column(PART, pa.array(part))


def refuse_repeated_ids(segments: list[Segment]) -> None:
    """Within a partition repeats are refused as in any bulk load; this finds those of different partitions."""
    ids = pa.chunked_array([segment.names.strings for segment in segments], pa.string())
    if len(segments) > 1 and len(ids.unique()) < len(ids):
        counts = ids.value_counts()
        twice = counts.filter(pc.greater(pc.struct_field(counts, 1), 1))
        raise SubscriptionError(
            f"id is {str(twice[0]['values'])!r} in {twice[0]['counts']} rows: an id stands once, nothing was built"
        )
