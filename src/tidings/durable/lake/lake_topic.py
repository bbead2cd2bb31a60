"""A topic at a URL, to be read: its newest manifest, mapped from the machine's cache, with the live events and windows it was
pushed with. It answers as any topic does and takes no change. It stays as it was when it was opened.
"""

from __future__ import annotations

import json
from pathlib import Path

from tidings.durable.lake.lake import Lake
from tidings.durable.lake.lake_manifest import LakeManifest
from tidings.durable.lake.record_objects import rows_of
from tidings.durable.manifest import Manifest, load_segment, load_vocabularies
from tidings.durable.recovery import restored_publisher
from tidings.errors import StorageError
from tidings.match.store.reader import Snapshot
from tidings.topic.journal import Journal
from tidings.topic.topic import Topic

RESTORED = ("event", "event_batch", "event_gone", "state")


class Unwritten(Journal):
    def __init__(self, title: str) -> None:
        self.title = title

    def must_be_writable(self) -> None:
        raise StorageError(f"{self.title} was opened with mode='r': it can be read, not changed")


class LakeTopic(Topic):
    def __init__(self, lake: Lake, manifest: LakeManifest) -> None:
        super().__init__(manifest.topic, manifest.schema_read, key=manifest.key)
        self.lake = lake
        self.manifest = manifest
        self.journal = Unwritten(lake.title)
        snapshot = manifest.snapshot()
        lake.mapped(manifest, [*snapshot.files, *manifest.record.values()], lambda folder: self._open(folder, snapshot))

    def _open(self, folder: Path, snapshot: Manifest) -> None:
        manifest = self.manifest
        vocabularies = load_vocabularies(self.schema, folder / snapshot.vocabulary, manifest.sums.get(snapshot.vocabulary))
        segments = [
            load_segment(self.schema, vocabularies, folder, file, live, manifest.sums, verify=self.lake.objects.local is not None)
            for file, live in snapshot.segments
        ]
        self.use(vocabularies)
        self.store.adopt(Snapshot(tuple(segments), manifest.seq))
        record = {name: rows_of(folder / file, name) for name, file in manifest.record.items() if name in RESTORED}
        events = [json.loads(body) for _, _, body in record.get("event", [])]
        batches = [body for *_, body in record.get("event_batch", [])], [number for (number,) in record.get("event_gone", [])]
        states = [(name, body) for name, body in record.get("state", [])]
        self.publisher = restored_publisher(self.new_publisher(), self.store, manifest.facts, batches, events, states)
