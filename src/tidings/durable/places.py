"""Topics wherever they are: `open` takes a folder's path or a URL, `pull` makes a folder of what is at a URL.

A topic at a URL is read by `mode="r"`: its newest manifest is mapped from the machine's cache, and matches, searches and lists as
any topic does; it changes nothing and needs no registry. It is written through a registry of this machine (`root/writers/`, in
the cache's folder): every call is committed there, and what is packed by `flush`, or in the background, is then pushed; `close`
pushes the rest. Until it is pushed a change is kept by this machine alone. One writer at a time: of two, one is told that it
lost.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, overload

from tidings.durable.lake.address import Url, folder_of, place_of
from tidings.durable.lake.lake import MANIFESTS, Lake, LostRace
from tidings.durable.lake.lake_topic import LakeTopic
from tidings.durable.lake.machine_cache import machine_cache
from tidings.durable.lake.objects import FolderObjects, objects_at
from tidings.durable.lake.pull import pull_lake
from tidings.durable.lake.push import LINK, WRITER
from tidings.durable.opening import DurableTopic, lock_folder, open_topic
from tidings.durable.registry import REGISTRY, Registry
from tidings.errors import StorageError
from tidings.model.values.schema import Attribute, Schema

Given = Schema | Mapping[str, Attribute] | None


@overload
def open(
    path: str | os.PathLike[str],
    name: str | None = None,
    schema: Given = None,
    *,
    key: str | None = None,
    mode: Literal["w"] = "w",
    retention: str | timedelta | None = None,
    outbox_limit: int | None = None,
) -> DurableTopic: ...


@overload
def open(
    path: str | os.PathLike[str],
    name: str | None = None,
    schema: Given = None,
    *,
    key: str | None = None,
    mode: str,
    retention: str | timedelta | None = None,
    outbox_limit: int | None = None,
) -> DurableTopic | LakeTopic: ...


def open(
    path: str | os.PathLike[str],
    name: str | None = None,
    schema: Given = None,
    *,
    key: str | None = None,
    mode: str = "w",
    retention: str | timedelta | None = None,
    outbox_limit: int | None = None,
) -> DurableTopic | LakeTopic:
    """The topic at `path`, a folder or a URL, made if there is none; `mode="r"` only reads.

    Without a schema it opens what is there. With `retention`, as "7 days", events without `expires` end so long after they were
    published, and with `outbox_limit` at most so many notifications wait, of which the oldest are dropped; both are kept with the
    topic until others are given.

    >>> import tempfile
    >>> import tidings as td
    >>> folder = tempfile.mkdtemp()
    >>> with td.open(folder, "deals", {"price": td.Number()}, retention="7 days") as deals:
    ...     notes = deals.subscribe("ann", "price < 5")
    >>> with td.open(folder) as again:
    ...     again.subscription("ann").filter
    'price < 5'
    """
    place = place_of(path)
    lake = None
    if isinstance(place, Url):
        lake = Lake(objects_at(place))
    elif (place / MANIFESTS).is_dir():
        lake = Lake(FolderObjects(place.absolute()))
    if lake is None:
        return open_topic(path, name, schema, key=key, mode=mode, retention=retention, outbox_limit=outbox_limit)
    if mode == "r":
        return read_lake(lake, name)
    return write_lake(lake, name, schema, key, mode, {"retention": retention, "outbox_limit": outbox_limit})


def read_lake(lake: Lake, name: str | None) -> LakeTopic:
    manifest = lake.must_have()
    if name is not None and name != manifest.topic:
        raise StorageError(f"{lake.title} holds topic {manifest.topic!r}, not {name!r}")
    return LakeTopic(lake, manifest)


def write_lake(
    lake: Lake, name: str | None, schema: Given, key: str | None, mode: str, settings: Mapping[str, Any]
) -> DurableTopic:
    """Through the registry that this machine keeps for the URL, brought up to what is there."""
    folder = machine_cache().root / "writers" / hashlib.sha256(lake.title.encode()).hexdigest()[:32]
    with one_at_a_time(folder):
        bring_up(lake, folder)
        topic = open_topic(folder, name, schema, key=key, mode=mode, **settings)
    try:
        topic.keep_in(lake)
    except BaseException:
        topic.abandon()
        raise
    return topic


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def bring_up(lake: Lake, folder: Path) -> None:
    """Pull what the lake has if this machine has nothing of it, or only what it pushed before."""
    newest = lake.newest()
    if newest is not None and newest.cut is not None:
        raise StorageError(f"{lake.title} holds a topic in parts: follow changes it, mode='r' reads it")
    if (folder / REGISTRY).exists():
        lock_folder(folder).close()
        registry = Registry(folder / REGISTRY)
        try:
            meta, last = registry.meta(), registry.last_seq()
        finally:
            registry.close()
        link = meta.get(LINK)
        if newest is None and link is not None:
            raise StorageError(
                f"{lake.title} holds no topic any more, but {folder} has what was pushed there: remove it, or push it "
                "to another place"
            )
        if newest is None or link is None or link["number"] == newest.number or meta.get(WRITER) == newest.writer:
            return
        if last > link["seq"]:
            raise LostRace(
                f"{lake.title} is at manifest {newest.number} of another writer, and {folder} has changes that were not pushed "
                f"after {link['number']}: read them with tidings.open of that folder and mode='r', then remove it"
            )
        shutil.rmtree(folder)
    if newest is not None:
        pull_lake(lake, folder)


def pull(url: str | os.PathLike[str], folder: str | os.PathLike[str], number: int | None = None) -> int:
    """Make `folder` a topic's folder of what is at `url`, by its newest manifest or an older one; the manifest's number.

    >>> import tempfile
    >>> place, copy = tempfile.mkdtemp() + "/there", tempfile.mkdtemp()
    >>> import tidings as td
    >>> deals = td.open(tempfile.mkdtemp(), "deals", {"price": td.Number()})
    >>> notes = deals.subscribe("ann", "price < 5", time=0)
    >>> deals.push(place)
    1
    >>> td.pull(place, copy)
    1
    >>> with td.open(copy) as again:
    ...     [subscription.id for subscription in again]
    ['ann']
    >>> deals.close()
    """
    return pull_lake(Lake(objects_at(place_of(url))), folder_of(folder, "pull"), number).number
