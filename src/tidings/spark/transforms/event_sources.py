"""Where `search` has its events from, and how a retry sees the same.

A DataFrame of events is written once, an Arrow file a partition, by the executors. The live events of a topic in a folder are read
from its registry into one file: once for a batch query; for a streaming one once a micro-batch,
`folder/pins/<query>/<batch>.arrow`, by the first task that comes. A file's metadata say at which `time` it was made. Those of a
topic in a lake are an object of the manifest that the DataFrame, or the micro-batch, has pinned: as they stood at the last `push`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from tidings.durable.event_batches import batch_bodies, restore_batches
from tidings.durable.lake.record_objects import rows_of
from tidings.durable.leases import PINS
from tidings.durable.registry import REGISTRY, Registry
from tidings.durable.snapshots import LakeSnapshots
from tidings.errors import StorageError
from tidings.model.columns.tables import events_to_arrow
from tidings.model.door.event import Event
from tidings.model.door.event_record import event_from_record
from tidings.model.values.schema import Schema
from tidings.spark.frames.pins import Pin, current, instant, micro_batch, once_in_folder
from tidings.topic.live.live_events import LiveEvents

LIVE = ("event", "event_batch", "event_gone")
"""The tables of a record that say which events are live."""


class EventSource(Protocol):
    """Travels to the workers pickled."""

    def which(self) -> Hashable:
        """What this task reads: the same for all of a micro-batch, and when any of it runs again."""

    def read(self) -> tuple[pa.Table, int]:
        """The events, and the instant at which they are looked at."""


@dataclass(frozen=True, slots=True)
class FileEvents:
    files: tuple[Path, ...]

    def which(self) -> Hashable:
        return self.files

    def read(self) -> tuple[pa.Table, int]:
        return read_events(self.files)


@dataclass(frozen=True, slots=True)
class FolderEvents:
    """Of a streaming query."""

    folder: Path
    time: int | None

    def which(self) -> Hashable:
        query, batch = micro_batch() or ("", 0)
        return self.folder / PINS / query / f"{batch}.arrow"

    def read(self) -> tuple[pa.Table, int]:
        file = self.which()
        assert isinstance(file, Path), "as above"
        once_in_folder(file, partial(write_live, self.folder, time=instant() if self.time is None else self.time))
        return read_events([file])


@dataclass(frozen=True, slots=True)
class LakeEvents:
    topic: LakeSnapshots
    pin: Pin
    time: int | None

    def which(self) -> Hashable:
        pin = current(self.topic, self.pin)
        return self.topic.title, pin.manifest, pin.time

    def read(self) -> tuple[pa.Table, int]:
        pin = current(self.topic, self.pin)
        manifest = self.topic.manifest(pin.manifest, pin.identity)
        schema, files = manifest.schema_read, {name: file for name, file in manifest.record.items() if name in LIVE}
        record = {name: rows_of(self.topic.lake.take(manifest, [file]) / file, name) for name, file in files.items()}
        batches = [body for *_, body in record.get("event_batch", [])], [number for (number,) in record.get("event_gone", [])]
        events = live_events(schema, manifest.facts, batches, [body for _, _, body in record.get("event", [])])
        return events_to_arrow(schema, events, manifest.key), pin.time if self.time is None else self.time


def write_events(path: Path, table: pa.Table, time: int) -> None:
    table = table.replace_schema_metadata({"time": str(time)})
    try:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    except OSError as error:
        raise StorageError(f"cannot write the events' snapshot {path}: {error}") from error


def read_events(files: Sequence[Path]) -> tuple[pa.Table, int]:
    """The mapped table of all files, and the time of the latest."""
    try:
        tables = [pa.ipc.open_file(pa.memory_map(str(file))).read_all() for file in files]
    except (OSError, pa.ArrowInvalid) as error:
        raise StorageError(f"the events' snapshot in {files[0].parent} cannot be read: {error}") from error
    time = max((int(table.schema.metadata[b"time"]) for table in tables), default=0)
    return pa.concat_tables([table.replace_schema_metadata(None) for table in tables], promote_options="default"), time


def write_live(folder: Path, path: Path, time: int) -> None:
    """The events that the topic in `folder` holds, as its registry says."""
    schema, key = topic_of(folder)
    registry = Registry(folder / REGISTRY, readonly=True)
    try:
        single = [body for (body,) in registry.read("SELECT body FROM event")]
        events = live_events(schema, registry.meta(), batch_bodies(registry), single)
    finally:
        registry.close()
    write_events(path, events_to_arrow(schema, events, key), time)


def live_events(
    schema: Schema, meta: Mapping[str, Any], batches: tuple[list[bytes], list[int]], single: Iterable[str]
) -> list[Event]:
    """By id: those that were kept in batches, but for the numbers of those that are gone, and single ones; live at the clock."""
    live = LiveEvents(schema)
    restore_batches(live, schema, *batches)
    for body in single:
        live.put(event_from_record(schema, json.loads(body)))
    if meta.get("clock") is not None:
        live.expire(meta["clock"])
    return sorted(live, key=attrgetter("id"))


def topic_of(folder: Path) -> tuple[Schema, str | None]:
    """Schema and key of the topic in `folder`; needs no manifest, since events alone make none."""
    if not (folder / REGISTRY).is_file():
        raise StorageError(f"{folder} holds no topic: search takes the folder of one, or a DataFrame of events")
    registry = Registry(folder / REGISTRY, readonly=True)
    try:
        meta = registry.meta()
    finally:
        registry.close()
    return Schema.from_dict(meta["schema"]), meta["key"]
