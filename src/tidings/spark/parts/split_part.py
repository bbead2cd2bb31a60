"""A part that has grown too large becomes two, and what lies across their edge goes to the part that every event visits.

Only that part is packed anew; the parts after it get the next numbers, and the manifest that says so also says how the topic is
cut, so nobody ever sees the one without the other.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa

from tidings.durable.lake.changing import ChangedPart, PartChanger, live_segments
from tidings.durable.lake.lake import Lake
from tidings.durable.lake.lake_manifest import LakeManifest
from tidings.durable.lake.subscription_objects import ORDINAL, by_form, moved_rows, read_rows
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.segment import Segment
from tidings.match.store.sorted_ids import ABSENT
from tidings.match.store.store import live_rows
from tidings.model.columns.arrays import Vocabularies
from tidings.spark.parts.cut import Cut, extents


def split_parts(lake: Lake, manifest: LakeManifest, vocabularies: Vocabularies) -> LakeManifest:
    """The manifest, not committed yet, with every part divided that has more than it should; whose objects are there."""
    while manifest.cut is not None:
        cut = Cut(**manifest.cut)
        if cut.attribute is None or not cut.most:
            break
        living = {part: sum(segment.living for segment in segments) for part, segments in manifest.parts.items()}
        full = [part for part in sorted(living) if part != cut.everywhere and living[part] > cut.most]
        if not full:
            break
        divided = split_part(lake, manifest, cut, full[0], vocabularies)
        if divided is None:
            # All stand in one place: ask again when they have become twice as many.
            divided = replace(manifest, cut=asdict(replace(cut, most=2 * living[full[0]])))
        manifest = divided
    return manifest


def split_part(lake: Lake, manifest: LakeManifest, cut: Cut, part: int, vocabularies: Vocabularies) -> LakeManifest | None:
    """The manifest with this part divided; None if no edge divides it."""
    assert cut.attribute is not None, "by cells"
    schema, held = manifest.schema_read, manifest.parts[part]
    lives = live_segments(lake, manifest, held, vocabularies)
    rows = live_rows(lives, manifest.seq)
    assert rows is not None, "somebody lives in it"
    finer = cut.split(part, extents(schema, cut.attribute, rows.clauses))
    if finer is None:
        return None
    folder = lake.take(manifest, {name for segment in held for name in segment.rows})
    tables = [[read_rows(folder / name) for name in segment.rows] for segment in held]
    changer, made = PartChanger(lake, manifest, manifest.seq, vocabularies), ChangedPart([])
    place = finer.subscriptions(schema, rows)
    parts = {number if number < part else number + 1: segments for number, segments in manifest.parts.items() if number != part}
    for number in np.unique(place).tolist():
        built = Segment.build(schema, rows.take(np.flatnonzero(place == number)), Statistics(), manifest.seq)
        given = by_form(table for live, of in zip(lives, tables, strict=True) for table in taken(of, live, manifest.seq, built))
        parts[number] = (*parts.get(number, ()), changer.uploaded(built, given, made))
    sizes, sums = {**manifest.sizes, **made.sizes}, {**manifest.sums, **made.sums}
    return replace(manifest, parts=parts, sizes=sizes, sums=sums, cut=asdict(finer))


def taken(tables: list[pa.Table], live: LiveSegment, seq: int, to: Segment) -> list[pa.Table]:
    """The rows of those who stand in `to` now."""
    return [table.filter(pa.array(table[ORDINAL].to_numpy() != ABSENT)) for table in moved_rows(tables, live, seq, to.names)]
