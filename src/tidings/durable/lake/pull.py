"""From a lake to a folder with a registry: what `push` wrote, or Spark, as a topic that `open` opens.

The registry is made of the rows, so a lake is enough to have a topic again. Segments come along, for opening to be quick; if one
of them is damaged that is said, none is taken, and opening builds them anew. Everything is written under another name first: the
folder is whole or not there. A topic in parts becomes one without.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.durable.lake.lake import Lake
from tidings.durable.lake.lake_manifest import LakeManifest, LakeSegment
from tidings.durable.lake.push import LINK, link_to
from tidings.durable.lake.record_objects import put_facts, put_record, rows_of
from tidings.durable.lake.subscription_objects import ORDINAL, RECORD, SINCE, by_form, read_rows
from tidings.durable.manifest import Manifest, save_manifest
from tidings.durable.registry import FORMAT, REGISTRY, Registry, put_chunk, put_subscriptions, set_meta
from tidings.durable.registry_journal import chunk_body
from tidings.errors import StorageError, StorageWarning
from tidings.match.store.array_files import read_arrays

pc = lazily("pyarrow.compute")


def pull_lake(lake: Lake, folder: Path, number: int | None = None) -> LakeManifest:
    """The topic as manifest `number` has it, the newest without one, in a folder that is empty or not there."""
    manifest = lake.must_have() if number is None else lake.manifest(number)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StorageError(f"{folder} is not empty: a topic is pulled into a folder of its own")
    work = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    try:
        (work / "segments").mkdir(parents=True, mode=0o700)
        work.chmod(0o700)
        seq = fill_registry(lake, manifest, work)
        take_segments(lake, manifest, work, seq)
        work.rename(folder)
    except OSError as error:
        raise StorageError(f"cannot pull {lake.title} into {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return manifest


def fill_registry(lake: Lake, manifest: LakeManifest, work: Path) -> int:
    """A registry of the rows and the record; the change number it stands at."""
    tables = by_form(table for segment in manifest.segments for table in live_rows_of(lake, manifest, segment))
    loads: list[tuple[int, pa.Table]] = []
    singles: list[tuple[str, str]] = []
    for table in tables:
        if RECORD in table.column_names:
            singles += zip(table["id"].to_pylist(), table[RECORD].to_pylist(), strict=True)
            continue
        for since in table[SINCE].unique().to_pylist():
            loads.append((since, table.filter(pc.equal(table[SINCE], since)).drop_columns([SINCE])))
    seq = manifest.seq + len(loads)
    registry = Registry(work / REGISTRY)
    try:
        with registry.transaction() as db:
            set_meta(db, format=FORMAT, name=manifest.topic, schema=manifest.schema, key=manifest.key, seq=seq)
            for at, (since, table) in enumerate(loads, manifest.seq + 1):
                put_chunk(db, at, len(table), chunk_body(table, since).to_pybytes())
            put_subscriptions(db, seq, singles)
            for name, file in manifest.record.items():
                put_record(db, name, rows_of(lake.take(manifest, [file]) / file, name))
            put_facts(db, manifest.facts)
            set_meta(db, **{LINK: link_to(lake, manifest, seq)})
    finally:
        registry.close()
    return seq


def live_rows_of(lake: Lake, manifest: LakeManifest, segment: LakeSegment) -> list[pa.Table]:
    """The rows of those who live, without their ordinals; records with their ids."""
    names = [*segment.rows, *([segment.live] if segment.live else [])]
    folder = lake.take(manifest, names)
    alive: NDArray[np.bool_] = np.ones(segment.count, np.bool_)
    if segment.live is not None:
        _, arrays = read_arrays(folder / segment.live, sum=manifest.sums.get(segment.live))
        alive = np.unpackbits(arrays["live"], count=segment.count).astype(np.bool_)
    found = []
    for name in segment.rows:
        table = read_rows(folder / name)
        table = table.filter(pa.array(alive[table[ORDINAL].to_numpy()]))
        if RECORD in table.column_names:
            ids = [json.loads(body)["id"] for body in table[RECORD].to_pylist()]
            table = table.append_column("id", pa.array(ids, pa.string()))
        found.append(table.drop_columns([ORDINAL]))
    return found


def take_segments(lake: Lake, manifest: LakeManifest, work: Path, seq: int) -> None:
    """The segments as files of the folder, and a manifest that names them; neither if one is damaged."""
    snapshot = manifest.snapshot()
    try:
        folder = lake.take(manifest, snapshot.files)
        named = {}
        for place, (file, live) in enumerate(snapshot.segments):
            named[file] = f"segments/{1:08d}-{place}.segment"
            if live is not None:
                named[live] = f"segments/{1:08d}-{place}.live"
        named[snapshot.vocabulary] = f"segments/{1:08d}.vocabulary"
        for name, file in named.items():
            read_arrays(folder / name, sum=manifest.sums.get(name))
            shared(folder / name, work / file)
    except StorageError as error:
        warnings.warn(f"{error}; the segments are built from the rows when the topic is opened", StorageWarning, stacklevel=2)
        for path in (work / "segments").iterdir():
            path.unlink()
        return
    segments = tuple((named[file], None if live is None else named[live]) for file, live in snapshot.segments)
    local = Manifest(1, seq, manifest.topic, manifest.schema, manifest.key, segments, named[manifest.vocabulary])
    save_manifest(work, local)


def shared(source: Path, target: Path) -> None:
    """The same file under another name, or a copy where that cannot be; neither is ever written to."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
