"""`build`: subscriptions of a DataFrame become a topic's folder; filters are compiled and segments packed on the executors.

Two passes, because all segments of a topic share their codes: the first gathers the distinct categories and words, the second
reads each partition with the complete vocabularies, packs it into one segment and writes it, with the accepted rows as the
registry keeps them (a chunk), under `path/building-<random>/`. The driver then moves the segments into place, commits the chunks to
the registry in one transaction, and writes the manifest. A task that runs twice writes two files, of which the driver takes the one
that Spark reports. Until the commit there is no topic; what a failed build leaves behind is the folder `building-...`, removed at
its end.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from tidings.durable.lake.address import place_of
from tidings.durable.lake.lake import MANIFESTS, Lake
from tidings.durable.lake.objects import objects_at
from tidings.durable.manifest import Manifest, load_vocabularies, save_manifest, save_vocabularies
from tidings.durable.opening import agree, lock_folder
from tidings.durable.registry import REGISTRY, Registry, put_chunk, set_meta
from tidings.durable.registry_journal import chunk_body
from tidings.errors import BulkError, StorageError, SubscriptionError
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.segment import Segment
from tidings.match.store.subscription_rows import rows_of_batch
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.values.schema import Attribute, Schema
from tidings.spark.frames.arrow_stage import Batches, together
from tidings.spark.frames.parquet_files import Given, given_by, map_given
from tidings.spark.frames.pins import instant
from tidings.spark.parts.build_lake import LakeBuild
from tidings.spark.parts.gather_codes import gather_vocabularies

PACKED = {"file": pa.string(), "rows": pa.int64(), "refused": pa.int64(), "reason": pa.string()}


@dataclass(frozen=True, slots=True)
class Packer:
    """Packs a partition of subscriptions into a segment."""

    folder: Path
    schema: Schema
    since: int
    skip: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from map(self.pack, together(batches))

    def pack(self, table: pa.Table) -> pa.RecordBatch:
        vocabularies = load_vocabularies(self.schema, self.folder / "vocabulary")
        batch = subscriptions_from_arrow(self.schema, vocabularies, table, on_error="skip")
        refused = batch.refused
        file = uuid.uuid4().hex if len(batch) and (self.skip or not refused) else None
        if file is not None:
            Segment.build(self.schema, rows_of_batch(batch, self.since), Statistics(), 0).write(self.folder / f"{file}.segment")
            (self.folder / f"{file}.chunk").write_bytes(chunk_body(batch.table, self.since))
        reason = str(BulkError("subscriptions", refused[: BulkError.SHOWN])) if refused else None
        return pa.record_batch([[file], [len(batch)], [len(refused)], [reason]], schema=pa.schema(list(PACKED.items())))


def build(
    subscriptions: DataFrame | str | os.PathLike[str],
    path: str | os.PathLike[str],
    name: str,
    schema: Schema | Mapping[str, Attribute],
    *,
    key: str | None = None,
    on_error: str = "raise",
    time: object = None,
    part_by: str | None = None,
    parts: int = 8,
) -> int:
    """Make the topic `name` at `path`, a folder or a URL, of these subscriptions (columnar form or a `filter` column); how many.

    `subscriptions` may also be the path of Parquet files that every worker can open; then the workers read them (`parquet_files`).
    Each partition becomes a segment. `on_error="skip"` leaves out rows that are refused. `part_by` names a
    Number, a Time or the Place by whose cells the topic is cut into about so many `parts`, or is "hash" (`parts.cut`). In parts
    and at a URL the topic is a lake (`parts.build_lake`).

    >>> import tidings as td
    >>> from tidings.spark import build
    >>> subscriptions = spark.createDataFrame([("ann", "price < 5"), ("bob", "price < 9")], "id string, filter string")
    >>> build(subscriptions, folder, "deals", {"price": td.Number()})
    2
    """
    place = place_of(path)
    made = schema if isinstance(schema, Schema) else Schema(schema)
    if on_error not in ("raise", "skip"):
        raise SubscriptionError(f"on_error is {on_error!r}: 'raise' or 'skip' is accepted")
    folder = place.absolute() if isinstance(place, Path) else None
    if folder is not None and ((folder / REGISTRY).exists() or (folder / MANIFESTS).exists()):
        raise StorageError(f"{folder} holds a topic already: build makes a new one, follow changes one that is there")
    given, since, skip = given_by(subscriptions), instant(time), on_error == "skip"
    if folder is None or part_by is not None:
        lake = Lake(objects_at(place if folder is None else folder))
        return LakeBuild(lake, name, made, key, since, skip).build(given, part_by, parts)
    return build_whole(given, folder, Packer(folder, made, since, skip), name, key)


def build_whole(given: Given, folder: Path, packer: Packer, name: str, key: str | None) -> int:
    """The topic in one folder; `packer` works in a folder in it until all is well."""
    work = folder / f"building-{uuid.uuid4().hex}"
    try:
        work.mkdir(parents=True)
    except OSError as error:
        raise StorageError(f"cannot make a topic in {folder}: {error.strerror}") from error
    try:
        vocabularies = gather_vocabularies(given, packer.schema)
        save_vocabularies(work / "vocabulary", vocabularies)
        packed = map_given(given, replace(packer, folder=work), PACKED).toArrow()
        refused = pc.sum(packed["refused"]).as_py() or 0
        if refused and not packer.skip:
            reason = packed["reason"].drop_null()[0]
            raise SubscriptionError(f"{refused} subscriptions refused, nothing was built; {reason}")
        return commit(folder, work, packed.filter(packed["file"].is_valid()), name, packer.schema, key, vocabularies)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def commit(
    folder: Path, work: Path, packed: pa.Table, name: str, schema: Schema, key: str | None, vocabularies: Vocabularies
) -> int:
    """Move the segments into place, record the subscriptions, write the first manifest."""
    files = packed["file"].to_pylist()
    refuse_repeated_ids([Segment.open(schema, work / f"{file}.segment", verify=False) for file in files])
    (folder / "segments").mkdir(exist_ok=True)
    segments = []
    for place, file in enumerate(files):
        segments.append((f"segments/{1:08d}-{place}.segment", None))
        (work / f"{file}.segment").rename(folder / segments[-1][0])
    save_vocabularies(folder / f"segments/{1:08d}.vocabulary", vocabularies)
    with lock_folder(folder):
        registry = Registry(folder / REGISTRY)
        try:
            agree(registry, folder, name, schema, key)
            with registry.transaction() as db:
                for seq, (file, rows) in enumerate(zip(files, packed["rows"].to_pylist(), strict=True), 1):
                    put_chunk(db, seq, rows, (work / f"{file}.chunk").read_bytes())
                set_meta(db, seq=len(files))
        finally:
            registry.close()
        save_manifest(folder, Manifest(1, len(files), name, schema.to_dict(), key, tuple(segments), f"segments/{1:08d}.vocabulary"))
    return int(pc.sum(packed["rows"]).as_py() or 0)


def refuse_repeated_ids(segments: list[Segment]) -> None:
    """Within a partition repeats are refused as in any bulk load; this finds those of different partitions."""
    ids = pa.chunked_array([segment.names.strings for segment in segments], pa.string())
    if len(segments) > 1 and len(ids.unique()) < len(ids):
        counts = ids.value_counts()
        twice = counts.filter(pc.greater(pc.struct_field(counts, 1), 1))
        raise SubscriptionError(
            f"id is {str(twice[0]['values'])!r} in {twice[0]['counts']} rows: an id stands once, nothing was built"
        )
