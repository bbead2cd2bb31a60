"""From a registry's folder to a lake: the segments of a snapshot, their rows, the codes, and what else the registry holds.

Segments that the lake's newest manifest names are there already and do not go again. The registry remembers which manifest it
pushed last and what it is as a writer, so it knows whether the lake has gone on without it: then it does not push, and says so.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidings.durable.lake.changing import ChangedPart
from tidings.durable.lake.lake import Lake, LostRace
from tidings.durable.lake.lake_manifest import LakeManifest, LakeSegment
from tidings.durable.lake.record_objects import record_tables
from tidings.durable.lake.subscription_objects import rows_in_registry, write_rows
from tidings.durable.manifest import save_live, save_vocabularies
from tidings.durable.registry import Registry, set_meta
from tidings.errors import StorageError
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.reader import Snapshot
from tidings.match.store.segment import Segment
from tidings.model.columns.arrays import Vocabularies

LINK, WRITER = "lake", "writer"
"""In the registry's meta: the lake it is of (`title`, `number` of the manifest it last pushed or pulled, `seq`), and who it is."""


@dataclass(frozen=True, slots=True)
class Pusher:
    lake: Lake
    registry: Registry
    form: LakeManifest
    """a manifest with name, schema and key alone"""

    def push(self, snapshot: Snapshot, vocabularies: Vocabularies, files: Mapping[Segment, Path], record: bool) -> LakeManifest:
        """`files` are where segments were written. `record`: with live events, windows and outbox as they stand now."""
        base = self.base()
        made = ChangedPart([])
        there = {} if base is None else base.sizes
        known = {} if base is None else {segment.file: segment for segment in base.segments}
        for live in snapshot.segments:
            file = made.take(self.lake.upload(files[live.segment], "segment", there))
            before = known.get(file)
            if before is None:
                rows = tuple(self._rows(live, snapshot.seq, there, made))
            else:
                rows = before.rows
                made.sizes |= {name: there[name] for name in rows}
            made.segments.append(self._with_bitmap(LakeSegment(file, None, rows, len(live)), live, snapshot.seq, there, made))
        codes = made.take(self.lake.make("vocabulary", lambda path: save_vocabularies(path, vocabularies), there))
        kept, facts = ({}, {}) if base is None else (base.record, base.facts)
        if record:
            kept, facts = self._record(there, made)
        made.sizes |= {name: there[name] for name in kept.values() if name in there}
        manifest = LakeManifest(
            1 if base is None else base.number + 1,
            max(snapshot.seq, 0 if base is None else base.seq),
            self.form.topic,
            self.form.schema,
            self.form.key,
            {0: tuple(made.segments)} if made.segments else {},
            codes,
            made.sizes,
            made.sums,
            self.writer(),
            record=kept,
            facts=facts,
            applied={} if base is None else base.applied,
        )
        if base is not None and is_as(manifest, base):
            return base
        done = self.lake.commit(manifest)
        self.link(done, snapshot.seq)
        return done

    def base(self) -> LakeManifest | None:
        """The lake's newest manifest, which must be the one that this registry pushed or pulled last."""
        newest, link = self.lake.newest(), self.registry.meta().get(LINK) or {}
        if newest is None:
            return None
        if newest.writer == self.writer():
            return newest
        if link.get("title") != self.lake.title:
            raise StorageError(
                f"{self.lake.title} holds topic {newest.topic!r}, which this one was not pulled from: "
                "push to a place where nothing is"
            )
        if link["number"] != newest.number:
            raise LostRace(
                f"{self.lake.title} is at manifest {newest.number} of another writer, this topic was pushed or pulled at "
                f"{link['number']}: its changes since then are not there; pull the topic anew and make them again"
            )
        return newest

    def writer(self) -> str:
        """Who this registry is; made up when first asked."""
        known = self.registry.meta().get(WRITER)
        if known is None:
            known = uuid.uuid4().hex
            with self.registry.transaction() as db:
                set_meta(db, **{WRITER: known})
        return str(known)

    def link(self, manifest: LakeManifest, seq: int) -> None:
        with self.registry.transaction() as db:
            set_meta(db, **{LINK: link_to(self.lake, manifest, seq)})

    def _rows(self, live: LiveSegment, seq: int, there: Mapping[str, int], made: ChangedPart) -> list[str]:
        tables = rows_in_registry(self.registry, live, seq)
        return [made.take(self.lake.make("parquet", lambda path, t=table: write_rows(t, path), there)) for table in tables]  # type: ignore[misc]

    def _with_bitmap(
        self, segment: LakeSegment, live: LiveSegment, seq: int, there: Mapping[str, int], made: ChangedPart
    ) -> LakeSegment:
        left = len(live.live(seq))
        if left == len(live):
            return segment
        bitmap = made.take(self.lake.make("live", lambda path: save_live(path, live, seq), there))
        return LakeSegment(segment.file, bitmap, segment.rows, segment.count, segment.count - left)

    def _record(self, there: Mapping[str, int], made: ChangedPart) -> tuple[dict[str, str], dict[str, Any]]:
        tables, facts = record_tables(self.registry)
        named = {}
        for name, table in tables.items():
            named[name] = made.take(self.lake.make("parquet", lambda path, t=table: write_rows(t, path), there))  # type: ignore[misc]
        return named, facts


def is_as(manifest: LakeManifest, base: LakeManifest) -> bool:
    """Whether it says nothing new."""
    said = ("seq", "parts", "vocabulary", "record", "facts")
    return all(getattr(manifest, name) == getattr(base, name) for name in said)


def link_to(lake: Lake, manifest: LakeManifest, seq: int) -> dict[str, Any]:
    """`seq` is the registry's change number that the manifest stands at."""
    return {"title": lake.title, "number": manifest.number, "seq": seq}
