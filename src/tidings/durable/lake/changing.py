"""A part of a topic in a lake and changes of subscriptions become the next state of that part, without a registry.

Segments never change, so a change is: a new bitmap for each segment that loses somebody, one segment of what is new, and, as in any
store (`match.store.merging`), one of several that have become many. Everything is uploaded by whoever computes it; nobody sees it
before a manifest names it. Doing it twice uploads the same again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.durable.lake.lake import Lake, Uploaded
from tidings.durable.lake.lake_manifest import LakeManifest, LakeSegment
from tidings.durable.lake.subscription_objects import RECORD, by_form, given_rows, moved_rows, read_rows, record_rows, write_rows
from tidings.durable.manifest import load_segment, save_live
from tidings.match.store import merging
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.segment import Segment
from tidings.match.store.sorted_ids import ABSENT
from tidings.match.store.store import live_rows
from tidings.match.store.subscription_rows import Rows, rows_of, rows_of_batch
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import SubscriptionBatch
from tidings.model.door.subscription import Subscription
from tidings.model.door.subscription_record import to_record
from tidings.model.values.schema import Schema


@dataclass(frozen=True, slots=True)
class Added:
    """Subscriptions that come: as a segment packs them, and as they were given, in the same order.

    `given` is the table of a bulk load, of which `since` is the instant its windows count from, or has `_record` alone.
    """

    rows: Rows
    given: pa.Table
    since: int

    def take(self, chosen: NDArray[np.int64]) -> Added:
        return Added(self.rows.take(chosen), self.given.take(pa.array(chosen)), self.since)

    def tables(self, built: Segment) -> list[pa.Table]:
        ordinal = built.names.find_many(self.rows.ids())
        if self.given.column_names == [RECORD]:
            return [record_rows(ordinal.tolist(), self.given[RECORD].to_pylist())]
        return [given_rows(self.given, ordinal, self.since)]


def added_batch(batch: SubscriptionBatch, since: int) -> Added:
    return Added(rows_of_batch(batch, since), batch.table, since)


def added_records(schema: Schema, vocabularies: Vocabularies, subscriptions: Sequence[Subscription], since: int) -> Added:
    bodies = [json.dumps(to_record(one)) for one in subscriptions]
    return Added(rows_of(schema, vocabularies, subscriptions), pa.table({RECORD: pa.array(bodies, pa.string())}), since)


def live_segments(
    lake: Lake, manifest: LakeManifest, segments: Sequence[LakeSegment], vocabularies: Vocabularies
) -> list[LiveSegment]:
    """Some segments of a manifest, in service."""
    schema, sums = manifest.schema_read, manifest.sums

    def opened(folder: Path) -> list[LiveSegment]:
        return [load_segment(schema, vocabularies, folder, one.file, one.live, sums, verify=False) for one in segments]

    return lake.mapped(manifest, {name for segment in segments for name in segment.files}, opened)


@dataclass
class ChangedPart:
    segments: list[LakeSegment]
    sizes: dict[str, int] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    moved: int = 0
    """how many subscriptions that stood here are gone"""

    def take(self, uploaded: Uploaded) -> str:
        self.sizes[uploaded.name] = uploaded.size
        if uploaded.sum is not None:
            self.sums[uploaded.name] = uploaded.sum
        return uploaded.name


@dataclass(frozen=True, slots=True)
class PartChanger:
    """Changes one part of the state that `base` has; the new state stands at change `seq`."""

    lake: Lake
    base: LakeManifest
    seq: int
    vocabularies: Vocabularies

    def change(self, part: int, gone: pa.StringArray, added: Added | None) -> ChangedPart:
        """`gone` leave this part wherever they stand in it; `added` come to it."""
        held = self.base.parts.get(part, ())
        made = ChangedPart([])
        lives: list[LiveSegment] = []
        for segment, live in zip(held, live_segments(self.lake, self.base, held, self.vocabularies), strict=True):
            kept = self._without(segment, live, gone, made)
            if kept is not None:
                made.segments.append(kept)
                lives.append(live)
        if added is not None and len(added.rows):
            built = Segment.build(self.base.schema_read, added.rows, Statistics(), self.seq)
            made.segments.append(self.uploaded(built, added.tables(built), made))
            lives.append(LiveSegment(built, self.vocabularies))
        self._merge(made, lives)
        return made

    def _without(self, segment: LakeSegment, live: LiveSegment, gone: pa.StringArray, made: ChangedPart) -> LakeSegment | None:
        """The segment when they have left; None if nobody is left in it."""
        found = live.find_many(gone, self.base.seq)
        found = found[found != ABSENT]
        if not len(found):
            return segment
        live.bury(found, self.seq)
        made.moved += len(found)
        if not live.living:
            return None
        bitmap = self.lake.make("live", lambda path: save_live(path, live, self.seq), self.base.sizes)
        return replace(segment, live=made.take(bitmap), dead=live.dead)

    def uploaded(self, built: Segment, rows: Sequence[pa.Table], made: ChangedPart) -> LakeSegment:
        file = made.take(self.lake.make("segment", built.write, self.base.sizes))
        return LakeSegment(file, None, tuple(self._upload_rows(table, made) for table in rows), len(built))

    def _upload_rows(self, table: pa.Table, made: ChangedPart) -> str:
        return made.take(self.lake.make("parquet", lambda path: write_rows(table, path), self.base.sizes))

    def _merge(self, made: ChangedPart, lives: list[LiveSegment]) -> None:
        """Merge while merges are due."""
        while len(due := merging.due_for_merge(lives)) > 1:
            places = [lives.index(live) for live in due]
            rows = live_rows(due, self.seq)
            assert rows is not None, "somebody lives in each"
            built = Segment.build(self.base.schema_read, rows, Statistics(), self.seq)
            tables = [table for place in places for table in self._moved(made, made.segments[place], lives[place], built)]
            merged = self.uploaded(built, by_form(tables), made)
            made.segments = [segment for place, segment in enumerate(made.segments) if place not in places] + [merged]
            lives[:] = [live for place, live in enumerate(lives) if place not in places]
            lives.append(LiveSegment(built, self.vocabularies))

    def _moved(self, made: ChangedPart, segment: LakeSegment, live: LiveSegment, to: Segment) -> list[pa.Table]:
        sizes = {**self.base.sizes, **made.sizes}
        folder = self.lake.take(replace(self.base, sizes=sizes), segment.rows)
        return moved_rows([read_rows(folder / name) for name in segment.rows], live, self.seq, to.names)
