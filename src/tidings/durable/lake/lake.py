"""A lake: the manifests, objects and pins below a URL, or in a folder.

Who changes a topic uploads what is new, then puts the next manifest if there is none of that number: of two who try, one is told
that it lost, and what it uploaded is named by nobody. The winner cleans up (`clean`): manifests but the last KEPT and those that a
lease holds, then objects that no manifest left names. What another writer has just uploaded is named by no manifest either, so
objects younger than GRACE stay, by the clock of the place itself.
"""

from __future__ import annotations

import re
import tempfile
import time as wall_clock
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tidings.durable.lake.lake_manifest import LakeManifest, from_body, to_body
from tidings.durable.lake.machine_cache import OBJECTS, content_name, machine_cache
from tidings.durable.lake.objects import MissingObject, Objects
from tidings.durable.leases import FRAME, PINS, held
from tidings.errors import StorageError
from tidings.match.store.array_files import sum_of

Opened = TypeVar("Opened")

MANIFESTS = "manifests"
KEPT = 8
GRACE = 3600.0
"""Seconds for which an object that nobody names is left: longer than a push takes."""
TRIES = 3
SUMMED = ("segment", "live", "vocabulary")
"""Kinds of objects that are array files."""


class LostRace(StorageError):
    """Another writer's manifest has the number that this one was to have."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """An object that is there now."""

    name: str
    size: int
    sum: int | None


@dataclass(frozen=True, slots=True)
class Lake:
    """Travels to workers pickled: a URL."""

    objects: Objects

    @property
    def title(self) -> str:
        return self.objects.title

    # Manifests

    def numbers(self) -> list[int]:
        """Of the manifests that are there, ascending."""
        found = (re.fullmatch(rf"{MANIFESTS}/(\d{{8}})\.json", one.name) for one in self.objects.listed(f"{MANIFESTS}/"))
        return sorted(int(one[1]) for one in found if one is not None)

    def newest(self) -> LakeManifest | None:
        """The newest manifest; None if there is none."""
        for number in reversed(self.numbers()):
            with suppress(MissingObject):
                return self.manifest(number)
        return None

    def must_have(self) -> LakeManifest:
        manifest = self.newest()
        if manifest is None:
            raise StorageError(f"{self.title} holds no topic; to make one give a name and a schema, or push one there")
        return manifest

    def manifest(self, number: int) -> LakeManifest:
        name = manifest_name(number)
        return from_body(self.objects.get(name), f"{self.title}/{name}")

    def commit(self, manifest: LakeManifest) -> LakeManifest:
        """Make it the newest, or raise LostRace; everything that it names is there."""
        kept = manifest.trimmed()
        if not self.objects.put_new(manifest_name(kept.number), to_body(kept)):
            raise LostRace(
                f"{self.title} has a manifest {kept.number} of another writer: what this one was about to commit is not there; "
                "open the topic again, which takes the other's changes in, and make the change again"
            )
        with suppress(StorageError):
            # It is committed, whatever becomes of this; the next one to commit cleans up too.
            self.clean(kept)
        return kept

    # Objects

    def upload(self, path: Path, kind: str, there: Mapping[str, int]) -> Uploaded:
        """A file, under the name of its content. `there` are objects that a kept manifest names: those need not go again."""
        name = content_name(path, kind)
        if name not in there:
            self.objects.put(name, path)
        return Uploaded(name, path.stat().st_size, sum_of(path) if kind in SUMMED else None)

    def make(self, kind: str, write: Callable[[Path], object], there: Mapping[str, int]) -> Uploaded:
        """What `write` writes to a file, uploaded."""
        with tempfile.TemporaryDirectory(prefix="tidings-") as folder:
            path = Path(folder) / kind
            write(path)
            return self.upload(path, kind, there)

    def take(self, manifest: LakeManifest, names: Iterable[str]) -> Path:
        """The folder in which these objects are files of this machine."""
        return machine_cache().take(self.objects, {name: manifest.sizes[name] for name in names})

    def mapped(self, manifest: LakeManifest, names: Iterable[str], opened: Callable[[Path], Opened]) -> Opened:
        """What `opened` makes of these objects as files.

        A file of the machine's cache may go, or be found damaged, between fetching and mapping it; then it is fetched again.
        """
        wanted = list(names)
        for _ in range(TRIES - 1):
            folder = self.take(manifest, wanted)
            try:
                return opened(folder)
            except StorageError:
                if self.objects.local is not None:
                    raise
                for name in wanted:
                    (folder / name).unlink(missing_ok=True)
        return opened(self.take(manifest, wanted))

    # Cleaning up

    def clean(self, newest: LakeManifest) -> None:
        """Remove manifests and objects that nobody needs."""
        listed = self.objects.listed(f"{MANIFESTS}/")
        now = max((one.modified for one in listed if one.name == manifest_name(newest.number)), default=0.0)
        numbers = sorted(int(Path(one.name).stem) for one in listed if Path(one.name).stem.isdecimal())
        kept = {*numbers[-KEPT:], *self.held()}
        used = set(newest.objects)
        for number in kept & set(numbers) - {newest.number}:
            with suppress(MissingObject):
                used |= self.manifest(number).objects
        self.objects.delete(manifest_name(number) for number in numbers if number not in kept)
        unused = [one for one in self.objects.listed(f"{OBJECTS}/") if one.name not in used and one.modified < now - GRACE]
        self.objects.delete(one.name for one in unused)

    def held(self) -> set[int]:
        """The manifests that a lease holds. A DataFrame's pin goes when its lease has ended; a query's says that it read here."""
        now, found, ended = wall_clock.time(), set[int](), list[str]()
        for one in self.objects.listed(f"{PINS}/"):
            if one.name.endswith(".json"):
                with suppress(MissingObject):
                    number = held(self.objects.get(one.name), one.modified, now)
                    if number is not None:
                        found.add(number)
                    elif one.name.startswith(f"{PINS}/{FRAME}"):
                        ended.append(one.name)
        self.objects.delete(ended)
        return found


def manifest_name(number: int) -> str:
    return f"{MANIFESTS}/{number:08d}.json"
