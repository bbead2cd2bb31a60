"""Objects of lakes as files of this machine, which every process of it maps.

    root/objects/<sha256>.<kind>     as in the lake: a name holds one content, whatever the topic
    root/locks/                      one fetches an object while others wait for it

The name of an object is the hash of its content, and what is fetched is checked against it, so a damaged or cut object never gets a
name here. Beyond `limit` bytes the files that were asked for longest ago go (a file's mtime says when it last was); never those of
the snapshot that is asked for. A file that goes while a process has it mapped keeps its pages until that process lets go of them.

`TIDINGS_CACHE` names the root, `TIDINGS_CACHE_BYTES` the limit; without them it is `~/.cache/tidings/lake` and 20 GB.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tidings.durable.lake.objects import Objects
from tidings.errors import StorageError

OBJECTS = "objects"
LIMIT = 20 * 10**9
LOCKS = 64
BLOCK = 1 << 20
LEFT_BEHIND = 3600.0
"""Seconds after which a file that is not whole belongs to nobody who lives."""


@dataclass(frozen=True, slots=True)
class MachineCache:
    root: Path
    limit: int

    def take(self, objects: Objects, sizes: Mapping[str, int]) -> Path:
        """The folder in which all these objects are files now. `sizes` is how many bytes each has."""
        if objects.local is not None:
            return objects.local
        if sum(sizes.values()) > self.limit:
            raise StorageError(
                f"a snapshot of {objects.title} has {sum(sizes.values()):,} bytes, the cache {self.root} holds {self.limit:,}: "
                "let TIDINGS_CACHE_BYTES be more"
            )
        try:
            (self.root / OBJECTS).mkdir(mode=0o700, parents=True, exist_ok=True)
            fetched = [name for name in sizes if self._there(objects, name, sizes[name])]
            if fetched:
                self._evict(set(sizes))
        except OSError as error:
            raise StorageError(f"cannot keep objects of {objects.title} in {self.root}: {error.strerror or error}") from error
        return self.root

    def _there(self, objects: Objects, name: str, size: int) -> bool:
        """Make sure that an object is a file here; whether it had to be fetched."""
        path = self.root / name
        if self._touched(path, size):
            return False
        with self._alone(int(hashlib.sha256(name.encode()).hexdigest(), 16) % LOCKS):
            if self._touched(path, size):
                return False
            partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
            try:
                objects.fetch(name, partial)
                if partial.stat().st_size != size or not is_named_by_content(partial, name):
                    raise StorageError(f"{objects.title}/{name} is damaged: its content is not what its name says")
                partial.rename(path)
            finally:
                partial.unlink(missing_ok=True)
        return True

    def _touched(self, path: Path, size: int) -> bool:
        try:
            os.utime(path)
            return path.stat().st_size == size
        except FileNotFoundError:
            return False

    def _evict(self, wanted: set[str]) -> None:
        """Remove what was asked for longest ago, until no more than `limit` is left."""
        with self._alone(LOCKS):
            found = []
            for entry in os.scandir(self.root / OBJECTS):
                with suppress(FileNotFoundError):
                    facts = entry.stat()
                    found.append((facts.st_mtime, facts.st_size, entry.name))
            total = sum(size for _, size, _ in found)
            now = max((at for at, _, _ in found), default=0.0)
            for at, size, name in sorted(found):
                left_behind = name.endswith(".partial") and at < now - LEFT_BEHIND
                if total <= self.limit and not left_behind:
                    continue
                if left_behind or (f"{OBJECTS}/{name}" not in wanted and not name.endswith(".partial")):
                    (self.root / OBJECTS / name).unlink(missing_ok=True)
                    total -= size

    @contextmanager
    def _alone(self, number: int) -> Iterator[None]:
        """One process and thread at a time; a killed one lets go."""
        (self.root / "locks").mkdir(mode=0o700, exist_ok=True)
        with (self.root / "locks" / f"{number:02d}").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def machine_cache() -> MachineCache:
    root = os.environ.get("TIDINGS_CACHE") or Path.home() / ".cache" / "tidings" / "lake"
    given = os.environ.get("TIDINGS_CACHE_BYTES") or str(LIMIT)
    if not given.isdecimal():
        raise StorageError(f"TIDINGS_CACHE_BYTES is {given!r}: a whole number of bytes is accepted")
    return MachineCache(Path(root).absolute(), int(given))


def content_name(path: Path, kind: str) -> str:
    """The name under which a file's content is kept."""
    return f"{OBJECTS}/{content_hash(path)}.{kind}"


def is_named_by_content(path: Path, name: str) -> bool:
    return name.startswith(f"{OBJECTS}/{content_hash(path)}.")


def content_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
