"""Where the snapshots of a topic are found, and where those who read them leave word: a folder with a registry, or a lake.

`snapshots_at(path)` says which it is. Both travel to workers pickled, as a path or a URL. `view` gives a snapshot from this
process's cache: the newest KEPT_VIEWS stay mapped, and a manifest that shares segments with one of them checks and maps only the
others, so following a topic that changes costs what changed. Of a lake, what is not on this machine yet is fetched first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from tidings.durable.lake.address import place_of
from tidings.durable.lake.lake import MANIFESTS, Lake
from tidings.durable.lake.lake_manifest import LakeManifest
from tidings.durable.lake.objects import FolderObjects, MissingObject, Objects, objects_at
from tidings.durable.manifest import Manifest, load_manifest
from tidings.durable.manifest_view import View
from tidings.durable.registry import REGISTRY
from tidings.errors import StorageError

KEPT_VIEWS = 2


class Snapshots(Protocol):
    def __hash__(self) -> int: ...

    @property
    def title(self) -> str:
        """As sentences name the topic."""

    @property
    def notes(self) -> Objects:
        """Where pins are put."""

    def newest(self) -> Manifest | LakeManifest:
        """The newest manifest."""

    def opened(self, number: int, identity: int, part: int | None, known: View | None) -> View:
        """The snapshot of a manifest, of one part of it or of all; raises MissingObject if it is gone."""


@dataclass(frozen=True, slots=True)
class FolderSnapshots:
    folder: Path

    @property
    def title(self) -> str:
        return str(self.folder)

    @property
    def notes(self) -> Objects:
        return FolderObjects(self.folder)

    def newest(self) -> Manifest:
        return load_manifest(self.folder)

    def opened(self, number: int, identity: int, part: int | None, known: View | None) -> View:
        if not (self.folder / f"manifest-{number:08d}.json").exists():
            raise MissingObject(f"{self.folder} has no manifest {number}")
        return View(self.folder, load_manifest(self.folder, number), known=known)


@dataclass(frozen=True, slots=True)
class LakeSnapshots:
    lake: Lake

    @property
    def title(self) -> str:
        return self.lake.title

    @property
    def notes(self) -> Objects:
        return self.lake.objects

    def newest(self) -> LakeManifest:
        return self.lake.must_have()

    def manifest(self, number: int, identity: int = 0) -> LakeManifest:
        """From this process's cache, if that has the one of this identity (0 for any)."""
        manifest = lake_manifest(self.lake, number)
        if identity not in (0, manifest.identity):
            lake_manifest.cache_clear()
            manifest = lake_manifest(self.lake, number)
        return manifest

    def opened(self, number: int, identity: int, part: int | None, known: View | None) -> View:
        manifest = self.manifest(number, identity)
        snapshot = manifest.snapshot(None if part is None else [part])
        verify = self.lake.objects.local is not None
        return self.lake.mapped(manifest, snapshot.files, lambda folder: View(folder, snapshot, verify, known, self.title))


@lru_cache(maxsize=64)
def lake_manifest(lake: Lake, number: int) -> LakeManifest:
    """A manifest never changes, so it is read once a process."""
    return lake.manifest(number)


def snapshots_at(path: str | os.PathLike[str]) -> Snapshots:
    """The topic at a path or URL. A folder with lake manifests is a lake, as one in parts is."""
    place = place_of(path)
    if not isinstance(place, Path):
        return LakeSnapshots(Lake(objects_at(place)))
    folder = place.absolute()
    return LakeSnapshots(Lake(FolderObjects(folder))) if (folder / MANIFESTS).is_dir() else FolderSnapshots(folder)


def holds_topic(path: str | os.PathLike[str]) -> bool:
    """Whether there is a topic at a path or URL."""
    topic = snapshots_at(path)
    if isinstance(topic, LakeSnapshots):
        return bool(topic.lake.numbers())
    return (Path(topic.title) / REGISTRY).exists()


def once(notes: Objects, name: str, make: Callable[[], bytes]) -> bytes:
    """The note of that name, made by the first who asks."""
    with suppress(MissingObject):
        return notes.get(name)
    body = make()
    return body if notes.put_new(name, body) else notes.get(name)


_views: dict[tuple[str, int | None], list[View]] = {}
_lock = threading.Lock()


def view_of(topic: Snapshots, number: int, part: int | None = None, identity: int = 0) -> View:
    """The view from this process's cache, opened if it is not there; `identity` is that of the manifest, 0 if it is not known."""
    with _lock:
        kept = _views.setdefault((topic.title, part), [])
        for view in kept:
            if view.manifest.number == number and identity in (0, view.manifest.identity):
                return view
        kept[:] = [view for view in kept if view.manifest.number != number]
        try:
            view = topic.opened(number, identity, part, kept[-1] if kept else None)
        except MissingObject as error:
            raise StorageError(f"{topic.title} no longer has manifest {number} with all its files: {error}") from error
        kept.append(view)
        del kept[:-KEPT_VIEWS]
        return view


def newest_view(topic: Snapshots) -> View:
    newest = topic.newest()
    return view_of(topic, newest.number, identity=newest.identity)
