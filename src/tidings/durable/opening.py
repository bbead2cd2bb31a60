"""A topic kept on disk: a folder with the registry (the record), and segments and manifests (derived from it).

    folder/registry.sqlite     every acknowledged change
    folder/writer.lock         held by the one process that writes
    folder/manifest.json       the newest snapshot; manifest-N.json it and the ones before
    folder/segments/           segments, their live-bitmaps, vocabularies

Opening maps the newest manifest's segments and applies what the registry holds after its change number. A file that is missing or
damaged is reported (StorageWarning), and the segments are rebuilt from the registry. One process may write; others open the same
folder with `mode="r"` and see it as it was when they opened it. docs/durability.md says what is promised.
"""

from __future__ import annotations

import fcntl
import logging
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from tidings.durable.lake.address import folder_of, place_of
from tidings.durable.lake.lake import Lake
from tidings.durable.lake.lake_manifest import LakeManifest
from tidings.durable.lake.objects import objects_at
from tidings.durable.lake.push import LINK, Pusher
from tidings.durable.manifest import (
    NEWEST,
    Manifest,
    last_number,
    load_manifest,
    load_segment,
    load_vocabularies,
    save_live,
    save_manifest,
    save_vocabularies,
)
from tidings.durable.outbox import Outbox
from tidings.durable.recovery import catch_up, restore_publisher
from tidings.durable.registry import FORMAT, READABLE, REGISTRY, Registry, set_meta
from tidings.durable.registry_cleanup import prune, pruned_to
from tidings.durable.registry_journal import RegistryJournal
from tidings.durable.turns import Turns
from tidings.errors import SchemaError, StorageError, StorageWarning, shown
from tidings.match.store.array_files import private
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.reader import Snapshot
from tidings.match.store.segment import Segment
from tidings.model.columns.arrays import Vocabularies
from tidings.model.values.schema import Attribute, Schema
from tidings.model.values.window import Window, duration
from tidings.topic.changing import Answer
from tidings.topic.topic import Topic

READER_TRIES = 4
"""A writer may replace a manifest and its files while a reader is about to map them; the reader then looks again."""


log = logging.getLogger("tidings")


def open_topic(
    path: str | os.PathLike[str],
    name: str | None = None,
    schema: Schema | Mapping[str, Attribute] | None = None,
    *,
    key: str | None = None,
    mode: str = "w",
    retention: str | timedelta | None = None,
    outbox_limit: int | None = None,
) -> DurableTopic:
    """The topic in folder `path`, made if there is none; `mode="r"` only reads. Without a schema it opens what is there. A
    `retention` and an `outbox_limit` are kept until others are given."""
    folder = folder_of(path, "open_topic")
    if mode not in ("r", "w"):
        raise StorageError(f"mode = {mode!r}: a topic is opened with 'w' to write or 'r' to read")
    there = any((folder / name).is_file() and (folder / name).stat().st_size for name in (REGISTRY, f"{REGISTRY}-wal"))
    if not there:
        refuse_lost(folder)
    if not there and (mode == "r" or schema is None or name is None):
        raise StorageError(f"{folder} holds no topic; to make one give a name and a schema")
    lock = None
    if mode == "w":
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / "segments").mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make a topic in {folder}: {error.strerror}") from error
        lock = lock_folder(folder)
    with ExitStack() as undo:
        if lock is not None:
            undo.callback(lock.close)
        registry = Registry(folder / REGISTRY, readonly=mode == "r")
        undo.callback(registry.close)
        name, schema, key = agree(registry, folder, name, schema, key)
        if mode == "w":
            keep_settings(registry, retention, outbox_limit)
        topic = DurableTopic(folder, registry, lock, name, schema, key)
        undo.pop_all()
    log.info("topic %r opened in %s, mode %r: %d subscriptions", name, folder, mode, len(topic))
    return topic


def refuse_lost(folder: Path) -> None:
    """Manifests are derived from a registry: beside them an empty one, or none, is not a new topic but a lost one."""
    if any(folder.glob("manifest*.json")):
        raise StorageError(
            f"{folder / REGISTRY} is missing or empty, but {folder} has manifests of a topic: restore the registry from a backup, "
            "or begin anew in an empty folder"
        )


def lock_folder(folder: Path) -> IO[str]:
    try:
        file = private(folder / "writer.lock", "a+")
    except OSError as error:
        raise StorageError(f"cannot write in {folder}: {error.strerror}; open it with mode='r' to read") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        file.close()
        raise StorageError(f"{folder} is being written by process {holder}; open it with mode='r' to read beside it") from None
    try:
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), str(os.getpid()).encode())
    except OSError as error:
        file.close()
        raise StorageError(f"cannot write {folder / 'writer.lock'}: {error.strerror}") from error
    return file


def agree(
    registry: Registry, folder: Path, name: str | None, schema: Schema | Mapping[str, Attribute] | None, key: str | None
) -> tuple[str, Schema, str | None]:
    """What the folder says and what the caller says of the topic, which must not differ."""
    meta = registry.meta()
    if not meta:
        if name is None or schema is None or registry.readonly:
            raise StorageError(f"{folder} holds no topic; to make one give a name and a schema")
        refuse_lost(folder)
        made = schema if isinstance(schema, Schema) else Schema(schema)
        with registry.transaction() as db:
            set_meta(db, format=FORMAT, name=name, schema=made.to_dict(), key=key, seq=0)
        return name, made, key
    if meta["format"] not in READABLE:
        raise StorageError(f"{folder} has format {meta['format']}; this version of tidings reads up to format {FORMAT}")
    if meta["format"] < FORMAT and not registry.readonly:
        with registry.transaction() as db:
            set_meta(db, format=FORMAT)
    kept = Schema.from_dict(meta["schema"])
    if name is not None and name != meta["name"]:
        raise StorageError(f"{folder} holds topic {meta['name']!r}, not {name!r}")
    if schema is not None and dict(schema) != dict(kept):
        raise SchemaError(f"{folder} holds topic {meta['name']!r} with another schema: {kept.to_json()}")
    if schema is not None and key != meta["key"]:
        raise SchemaError(f"{folder} holds topic {meta['name']!r} with key {meta['key']!r}, not {key!r}")
    return meta["name"], kept, meta["key"]


def keep_settings(registry: Registry, retention: str | timedelta | None, outbox_limit: int | None) -> None:
    given: dict[str, Any] = {}
    if retention is not None:
        given["retention"] = str(Window(duration=duration("retention", retention)))
    if outbox_limit is not None:
        if isinstance(outbox_limit, bool) or not isinstance(outbox_limit, int) or outbox_limit < 1:
            raise StorageError(f"outbox_limit is {shown(outbox_limit)}: a number of notifications from 1 on is accepted")
        given["outbox_limit"] = outbox_limit
    if given:
        with registry.transaction() as db:
            set_meta(db, **given)


class DurableTopic(Outbox, Topic):
    """A topic that is kept in a folder: what `open` gives.

    >>> import tempfile
    >>> import tidings as td
    >>> with td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()}) as deals:
    ...     notes = deals.subscribe("ann", "price < 5", time=0)
    ...     notes = deals.publish({"id": "e1", "price": 3}, time=1)
    ...     [note.event for _, note in deals.outbox()]
    ['e1']
    """

    def __init__(
        self,
        folder: Path,
        registry: Registry,
        lock: IO[str] | None,
        name: str,
        schema: Schema,
        key: str | None,
        known: Mapping[str, LiveSegment] | None = None,
    ) -> None:
        """`known` are segments that are mapped already, by file."""
        settings = registry.meta()
        super().__init__(name, schema, key=key, retention=settings.get("retention"))
        self._known_segments = dict(known or {})
        self.folder = folder
        self.registry = registry
        self.journal = self.record = RegistryJournal(registry, key is not None, settings.get("outbox_limit"))
        self.turns = Turns(self._writing, registry, self.recover)
        self._lock = lock
        self._files: dict[Segment, str] = {}
        """where each segment that is in service was written"""
        self._number = last_number(folder) if lock is not None else 0
        self._pusher: Pusher | None = None
        """of a topic that is kept in a lake"""
        self._load()

    def in_turn(self, publishing: Callable[[], Answer]) -> Answer:
        """Threads that publish at the same time share a commit."""
        return self.turns.take(publishing)

    def _load(self) -> None:
        """Map the newest manifest if all its files are sound, and apply what came after it."""
        tries = 1 if self._lock is not None else READER_TRIES
        while True:
            tries -= 1
            with self.registry.reading():
                self._version = self.registry.version()
                problem = self._map_newest()
                if problem is None or not tries:
                    mapped = self.store.snapshot
                    catch_up(self.store, self.registry)
                    self.publisher = restore_publisher(self.new_publisher(), self.store, self.registry)
                    break
        if problem is not None:
            warnings.warn(f"{problem}; rebuilding the segments from the registry", StorageWarning, stacklevel=4)
        if self._lock is not None:
            # A topic that is new has a manifest too when it is flushed: whoever maps it need not wait for a subscription.
            self.housekeeping.keep(self._save, mapped if (self.folder / NEWEST).exists() else None)

    def _map_newest(self) -> StorageError | None:
        """Why the newest manifest cannot be used, if it cannot. It is read after the registry's state was fixed, see `pruning`."""
        if (self.folder / NEWEST).exists():
            try:
                self._map(load_manifest(self.folder))
            except StorageError as error:
                return error
        return None

    def _map(self, manifest: Manifest) -> None:
        if not pruned_to(self.registry) <= manifest.seq <= self.registry.last_seq():
            raise StorageError(f"{self.folder / NEWEST} is of change {manifest.seq}, which does not fit the registry beside it")
        vocabularies = load_vocabularies(self.schema, self.folder / manifest.vocabulary, manifest.sums.get(manifest.vocabulary))
        known = self._known_segments
        segments = [
            load_segment(self.schema, vocabularies, self.folder, file, live, manifest.sums, known=known.get(file))
            for file, live in manifest.segments
        ]
        self.use(vocabularies)
        self.store.adopt(Snapshot(tuple(segments), manifest.seq))
        self._files = {live.segment: file for live, (file, _) in zip(segments, manifest.segments, strict=True)}

    def _save(self, snapshot: Snapshot) -> None:
        """Write the segments that are new and a manifest of `snapshot`, which has everything in segments."""
        self._number += 1
        entries, files = [], {}
        for place, live in enumerate(snapshot.segments):
            file = self._files.get(live.segment, f"segments/{self._number:08d}-{place}.segment")
            if live.segment not in self._files:
                live.segment.write(self.folder / file)
            files[live.segment] = file
            entries.append((file, self._save_live(live, snapshot.seq, place)))
        self._files = files
        vocabulary = f"segments/{self._number:08d}.vocabulary"
        save_vocabularies(self.folder / vocabulary, self.vocabularies)
        save_manifest(
            self.folder,
            Manifest(self._number, snapshot.seq, self.name, self.schema.to_dict(), self.key, tuple(entries), vocabulary),
        )
        if self._pusher is not None:
            self._push(self._pusher, snapshot, record=False)
        prune(self.registry, snapshot.seq)

    def keep_in(self, lake: Lake) -> None:
        """From now on what is saved is pushed; what was not pushed before is pushed now."""
        pusher = self._pusher_to(lake)
        link = self.registry.meta().get(LINK)
        if link is None or self.registry.last_seq() > link["seq"]:
            self._push_all(pusher)
        self._pusher = pusher

    def push(self, url: str | os.PathLike[str]) -> int:
        """Put the topic as it stands at `url`: subscriptions, live events, windows, outbox; the number of the manifest there.

        Only what is not there yet is sent. A place that holds another topic, or that another writer has changed since, is refused.

        >>> import tempfile
        >>> import tidings as td
        >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> deals.push(tempfile.mkdtemp() + "/there")
        1
        >>> deals.close()
        """
        manifest = self._push_all(self._pusher_to(Lake(objects_at(place_of(url)))))
        return manifest.number

    def _pusher_to(self, lake: Lake) -> Pusher:
        self.registry.must_be_writable()
        form = LakeManifest(0, 0, self.name, self.schema.to_dict(), self.key, {}, "", {}, {}, "")
        return Pusher(lake, self.registry, form)

    def _push_all(self, pusher: Pusher) -> LakeManifest:
        """Changes wait meanwhile, so that subscriptions and windows are of one state."""
        with self._writing:
            self.housekeeping.flush()
            return self.housekeeping.do(lambda: self._push(pusher, self.store.packed, record=True))

    def _push(self, pusher: Pusher, snapshot: Snapshot, record: bool) -> LakeManifest:
        files = {segment: self.folder / file for segment, file in self._files.items()}
        return pusher.push(snapshot, self.vocabularies, files, record)

    def _save_live(self, live: LiveSegment, seq: int, place: int) -> str | None:
        if len(live.live(seq)) == len(live):
            return None
        file = f"segments/{self._number:08d}-{place}.live"
        save_live(self.folder / file, live, seq)
        return file

    def refresh(self) -> bool:
        """Where the topic was opened to read: see it as it is now; whether anything was committed since it was last looked at.

        Segments that are mapped already stay so, and matching in other threads goes on with what it has.

        >>> import tempfile
        >>> import tidings as td
        >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> reader = td.open(deals.folder, mode="r")
        >>> notes = deals.subscribe("bob", "price < 9", time=1)
        >>> "bob" in reader, reader.refresh(), "bob" in reader
        (False, True, True)
        >>> reader.close(); deals.close()
        """
        with self._writing:
            if self._lock is not None or self.registry.version() == self._version:
                return False
            mapped = {self._files[live.segment]: live for live in self.store.snapshot.segments if live.segment in self._files}
            now = DurableTopic(self.folder, self.registry, None, self.name, self.schema, self.key, mapped)
            self.store, self.housekeeping, self.publisher = now.store, now.housekeeping, now.publisher
            self._files, self._version = now._files, now._version
            return True

    def abandon(self) -> None:
        """Let go of the folder as a killed process would: nothing is packed, nothing is saved."""
        self.housekeeping.let_go()
        super().close()
        if self._lock is not None:
            self._lock.close()

    def recover(self) -> None:
        """After a change that failed: memory becomes what the registry says, whether the change was committed or not."""
        if self.registry.last_seq() == self.store.snapshot.seq:
            super().recover()
            return
        self.housekeeping.let_go()
        self.housekeeping.close()
        self._files = {}
        self.use(Vocabularies(self.schema))
        self._load()
        self.half_done = False

    def close(self) -> None:
        """Pack what is new, write the manifest, and let go of the folder. In a forked child it is left to the parent.

        >>> import tempfile
        >>> import tidings as td
        >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> deals.close()
        >>> "ann" in td.open(deals.folder, mode="r")
        True
        """
        if self.registry.forked or (self._lock is not None and self._lock.closed):
            return
        try:
            if self._lock is not None:
                self.housekeeping.flush()
                if self._pusher is not None:
                    self._push_all(self._pusher)
        finally:
            self.abandon()
