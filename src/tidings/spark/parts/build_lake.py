"""Building a topic in a lake, whole or in parts (`cut`): executors pack and upload, the driver commits the first manifest.

In parts, the cells are cut by a sample; then every row goes to the task of its part, which packs the part into segments of at most
SEGMENT_ROWS each, so a task holds no more than that at once. Until the commit there is no topic. A task that runs twice uploads the
same objects twice.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from tidings.durable.lake.changing import ChangedPart, PartChanger, added_batch
from tidings.durable.lake.lake import Lake
from tidings.durable.lake.lake_manifest import LakeManifest, LakeSegment
from tidings.durable.manifest import load_vocabularies, save_vocabularies
from tidings.errors import BulkError, StorageError, SubscriptionError
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.segment import Segment
from tidings.match.store.subscription_rows import rows_of_batch
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.values.schema import Schema
from tidings.spark.frames.arrow_stage import Batches, map_arrow
from tidings.spark.frames.parquet_files import Given, frame_of, map_given
from tidings.spark.frames.session import bounded_batches
from tidings.spark.parts.cut import PART, Cut, Floats, check_cut, cut_by, extents
from tidings.spark.parts.gather_codes import gather_vocabularies
from tidings.spark.state.state_format import from_bytes, to_bytes

SAMPLED = 20_000
"""Subscriptions of a partition by which cells are cut."""
SEGMENT_ROWS = 1_000_000
GROWN, SMALLEST = 2, 100_000
"""A part is split when it has grown to so many times the largest at first, but not below so many subscriptions."""
BODY = "body"
ROUTED = {PART: pa.int64(), BODY: pa.binary()}
CENTRE = {"x": pa.float64(), "y": pa.float64()}
MADE = {"part": pa.int64(), "made": pa.string(), "rows": pa.int64(), "refused": pa.int64(), "reason": pa.string()}


@dataclass(frozen=True, slots=True)
class LakeBuild:
    """What a topic is to be."""

    lake: Lake
    name: str
    schema: Schema
    key: str | None
    since: int
    skip: bool

    def build(self, given: Given, by: str | None, parts: int) -> int:
        """The topic of these subscriptions, in parts if `by` says so; how many were taken."""
        if by is not None:
            check_cut(self.schema, by, parts)
        if self.lake.numbers():
            raise StorageError(f"{self.lake.title} holds a topic already: build makes a new one, follow changes one that is there")
        refuse_repeated_ids(given)
        cut = None if by is None else cut_by(self.schema, by, parts, centres_of(given, self.schema, by))
        vocabularies = gather_vocabularies(given, self.schema)
        codes = self.lake.make("vocabulary", lambda path: save_vocabularies(path, vocabularies), {})
        sums = {} if codes.sum is None else {codes.name: codes.sum}
        base = LakeManifest(
            0, 0, self.name, self.schema.to_dict(), self.key, {}, codes.name, {codes.name: codes.size}, sums, uuid.uuid4().hex
        )
        packer = LakePacker(self.lake, base, self.since, self.skip)
        if cut is None:
            made = map_given(given, packer, MADE).toArrow()
        else:
            routed = map_given(given, Router(self.schema, cut), ROUTED)
            parts_made = map_arrow(routed.repartitionById(cut.parts, F.col(PART).cast("int")), packer, MADE)
            with bounded_batches(routed.sparkSession):
                made = parts_made.toArrow()
        return self.commit(base, cut, made)

    def commit(self, base: LakeManifest, cut: Cut | None, made: pa.Table) -> int:
        changed = [
            (part, changed_from(text)) for part, text in zip(made["part"].to_pylist(), made["made"].to_pylist(), strict=True)
        ]
        refused = pc.sum(made["refused"]).as_py() or 0
        if refused and not self.skip:
            self.lake.objects.delete({name for _, one in changed for name in one.sizes} | {base.vocabulary})
            reason = made["reason"].drop_null()[0]
            raise SubscriptionError(f"{refused} subscriptions refused, nothing was built; {reason}")
        parts: dict[int, tuple[LakeSegment, ...]] = {}
        sizes, sums = dict(base.sizes), dict(base.sums)
        for part, one in sorted(changed, key=lambda pair: pair[0]):
            if one.segments:
                parts[part] = (*parts.get(part, ()), *one.segments)
            sizes |= one.sizes
            sums |= one.sums
        how = None
        if cut is not None:
            largest = max((sum(segment.count for segment in parts[part]) for part in parts if part != cut.everywhere), default=0)
            how = asdict(replace(cut, most=max(GROWN * largest, SMALLEST)))
        self.lake.commit(replace(base, number=1, seq=1, parts=parts, sizes=sizes, sums=sums, cut=how))
        return int(pc.sum(made["rows"]).as_py() or 0)


@dataclass(frozen=True, slots=True)
class LakePacker:
    """Packs the subscriptions of a task, part by part, and uploads them."""

    lake: Lake
    base: LakeManifest
    since: int
    skip: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        held: dict[int, list[pa.Table]] = {}
        for part, table in given_to_parts(batches):
            here = held.setdefault(part, [])
            here.append(table)
            if sum(map(len, here)) >= SEGMENT_ROWS:
                yield self.pack(part, pa.concat_tables(held.pop(part)))
        for part, tables in held.items():
            yield self.pack(part, pa.concat_tables(tables))

    def pack(self, part: int, table: pa.Table) -> pa.RecordBatch:
        changer = PartChanger(self.lake, self.base, 1, codes_of(self.lake, self.base))
        batch = subscriptions_from_arrow(self.base.schema_read, changer.vocabularies, table, on_error="skip")
        made = ChangedPart([])
        if len(batch) and (self.skip or not batch.refused):
            added = added_batch(batch, self.since)
            built = Segment.build(self.base.schema_read, added.rows, Statistics(), 1)
            made.segments.append(changer.uploaded(built, added.tables(built), made))
        refused = batch.refused
        reason = str(BulkError("subscriptions", refused[: BulkError.SHOWN])) if refused else None
        row = [[part], [json.dumps(asdict(made))], [len(batch)], [len(refused)], [reason]]
        return pa.record_batch(row, schema=pa.schema(list(MADE.items())))


def given_to_parts(batches: Batches) -> Iterator[tuple[int, pa.Table]]:
    """Rows with the part they are for: as a `Router` packed them, or, where there is one part, as they come."""
    for batch in batches:
        if PART not in batch.schema.names:
            if len(batch):
                yield 0, pa.Table.from_batches([batch])
            continue
        for part, body in zip(batch[PART].to_pylist(), batch[BODY], strict=True):
            yield part, from_bytes(body.as_buffer())


def codes_of(lake: Lake, manifest: LakeManifest) -> Vocabularies:
    folder = lake.take(manifest, [manifest.vocabulary])
    return load_vocabularies(manifest.schema_read, folder / manifest.vocabulary, manifest.sums.get(manifest.vocabulary))


def changed_from(text: str) -> ChangedPart:
    """What a task said of the part that it made."""
    fields = json.loads(text)
    segments = [LakeSegment(**{**segment, "rows": tuple(segment["rows"])}) for segment in fields.pop("segments")]
    return ChangedPart(segments, **fields)


def refuse_repeated_ids(given: Given) -> None:
    """Before anything is made: within a task repeats are refused as in any bulk load, this finds those of different tasks."""
    twice = frame_of(given).select("id").where("id IS NOT NULL").groupBy("id").count().where("count > 1").limit(1).collect()
    if twice:
        raise SubscriptionError(f"id is {twice[0]['id']!r} in {twice[0]['count']} rows: an id stands once, nothing was built")


def centres_of(given: Given, schema: Schema, by: str) -> Floats:
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

    found = map_given(given, sample, CENTRE).toArrow()
    return np.stack([found[name].to_numpy() for name in CENTRE], axis=1)


@dataclass(frozen=True, slots=True)
class Router:
    """Subscriptions packed for the part they stand in, a record for each part: a row that Spark shuffled would cross the JVM three
    times, cell by cell. One that cannot be read goes to the last part, where building it refuses it."""

    schema: Schema
    cut: Cut

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            read = subscriptions_from_arrow(self.schema, Vocabularies(self.schema), batch, on_error="skip")
            part = np.full(len(batch), self.cut.everywhere)
            part[read.rows] = self.cut.subscriptions(self.schema, rows_of_batch(read, 0))
            there = np.unique(part)
            bodies = [to_bytes(pa.Table.from_batches([batch.filter(pa.array(part == one))])) for one in there.tolist()]
            yield pa.record_batch([pa.array(there, pa.int64()), pa.array(bodies, pa.binary())], names=list(ROUTED))
