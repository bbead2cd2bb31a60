"""What is asked of a place for objects: a bucket, by `obstore`, or a folder.

An object is written whole or not at all. `put_new` succeeds for one of many who try the same name at a time; that is all the
agreement that topics at a URL need. Requests that fail by a lost connection or a busy server are tried again (PATIENCE); a
`put_new` whose answer was lost finds its own body there, and has won.

`obstore` reads endpoints and credentials from the environment (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `GOOGLE_SERVICE_ACCOUNT`,
`AZURE_STORAGE_ACCOUNT_NAME`, ...), so a topic's URL is all that travels to a worker.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tidings.durable.lake.address import Url
from tidings.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = {"max_retries": 1000, "retry_timeout": timedelta(minutes=1), "backoff": {"max_backoff": timedelta(seconds=5)}}
"""A minute: a server that is started again is back by then, and one that is not there at all is told soon enough."""
SETTINGS = ("AWS_", "GOOGLE_", "AZURE_", "AZURITE_")
"""The beginnings of what obstore reads from the environment."""
DELETED_AT_ONCE = 1000


class MissingObject(StorageError):
    """There is no object of that name."""


class Listed(NamedTuple):
    """`modified` in seconds, by the clock of the place."""

    name: str
    size: int
    modified: float


class Objects(Protocol):
    @property
    def title(self) -> str:
        """As sentences name the place."""

    @property
    def local(self) -> Path | None:
        """The folder, where objects are files that can be mapped as they are."""

    def get(self, name: str) -> bytes: ...

    def fetch(self, name: str, to: Path) -> None:
        """Write the object to a file."""

    def put(self, name: str, body: bytes | Path) -> None: ...

    def put_new(self, name: str, body: bytes) -> bool:
        """Whether it was put; False if there is one already."""

    def listed(self, prefix: str) -> list[Listed]:
        """The objects below `prefix`, which ends with a slash."""

    def delete(self, names: Iterable[str]) -> None:
        """Those that are there."""


def objects_at(place: Path | Url) -> Objects:
    if isinstance(place, Path):
        return FolderObjects(place)
    return FolderObjects(Path(place.text.removeprefix("file://"))) if place.scheme == "file" else CloudObjects(place)


@dataclass(frozen=True, slots=True)
class FolderObjects:
    root: Path

    @property
    def title(self) -> str:
        return str(self.root)

    @property
    def local(self) -> Path | None:
        return self.root

    def get(self, name: str) -> bytes:
        with self._told(name, "read"):
            return (self.root / name).read_bytes()

    def fetch(self, name: str, to: Path) -> None:
        to.write_bytes(self.get(name))

    def put(self, name: str, body: bytes | Path) -> None:
        with self._told(name, "write"):
            self._written(name, body).rename(self.root / name)

    def put_new(self, name: str, body: bytes) -> bool:
        if (self.root / name).exists():
            return False
        with self._told(name, "write"):
            partial = self._written(name, body)
            try:
                os.link(partial, self.root / name)
            except FileExistsError:
                return False
            finally:
                partial.unlink()
            return True

    def _written(self, name: str, body: bytes | Path) -> Path:
        partial = self.root / f"{name}.{uuid.uuid4().hex}.partial"
        partial.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(body if isinstance(body, bytes) else body.read_bytes())
            file.flush()
            os.fsync(file.fileno())
        return partial

    def listed(self, prefix: str) -> list[Listed]:
        """Files may go while they are listed."""
        found = []
        with self._told(prefix, "read"):
            for folder, _, files in os.walk(self.root / prefix):
                for file in files:
                    with suppress(FileNotFoundError):
                        facts = os.stat(os.path.join(folder, file))
                        name = Path(folder, file).relative_to(self.root).as_posix()
                        found.append(Listed(name, facts.st_size, facts.st_mtime))
        return [one for one in found if not one.name.endswith(".partial")]

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with self._told(name, "remove"):
                (self.root / name).unlink(missing_ok=True)

    @contextmanager
    def _told(self, name: str, act: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise MissingObject(f"{self.root} has no {name}") from error
        except OSError as error:
            raise StorageError(f"cannot {act} {self.root / name}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class CloudObjects:
    url: Url

    @property
    def title(self) -> str:
        return self.url.text

    @property
    def local(self) -> Path | None:
        return None

    def get(self, name: str) -> bytes:
        import obstore

        with self._told(name, "read"):
            return bytes(obstore.get(self._store(), name).bytes())

    def fetch(self, name: str, to: Path) -> None:
        import obstore

        with self._told(name, "read"), to.open("wb") as file:
            for chunk in obstore.get(self._store(), name).stream():
                file.write(chunk)

    def put(self, name: str, body: bytes | Path) -> None:
        import obstore

        with self._told(name, "write"):
            obstore.put(self._store(), name, body)

    def put_new(self, name: str, body: bytes) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._told(name, "write"):
            try:
                obstore.put(self._store(), name, body, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return bytes(obstore.get(self._store(), name).bytes()) == body
            return True

    def listed(self, prefix: str) -> list[Listed]:
        import obstore

        with self._told(prefix, "list"):
            pages = list(obstore.list(self._store(), prefix.rstrip("/")))
        return [Listed(one["path"], one["size"], one["last_modified"].timestamp()) for page in pages for one in page]

    def delete(self, names: Iterable[str]) -> None:
        import obstore

        every = list(names)
        for first in range(0, len(every), DELETED_AT_ONCE):
            with suppress(MissingObject), self._told(every[first], "remove"):
                obstore.delete(self._store(), every[first : first + DELETED_AT_ONCE])

    def _store(self) -> Any:
        said = frozenset((name, value) for name, value in os.environ.items() if name.startswith(SETTINGS))
        return opened(self.url.text, os.getpid(), said)

    @contextmanager
    def _told(self, name: str, act: str) -> Iterator[None]:
        try:
            from obstore.exceptions import BaseError, NotFoundError
        except ImportError:
            raise StorageError(f"{self.url} needs obstore, which is not installed: pip install 'tidings[cloud]'") from None
        try:
            yield
        except (NotFoundError, FileNotFoundError) as error:
            raise MissingObject(f"{self.url} has no {name}") from error
        except (BaseError, OSError) as error:
            raise StorageError(f"cannot {act} {self.url}/{name}: {first_line(error)}") from error


@lru_cache(maxsize=16)
def opened(url: str, process: int, environment: frozenset[tuple[str, str]]) -> Any:
    """The store of a URL, as the environment says. A forked child opens its own: threads do not survive a fork."""
    from obstore.store import from_url

    return from_url(url, retry_config=PATIENCE)


def first_line(error: BaseException) -> str:
    """What obstore says at length, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
