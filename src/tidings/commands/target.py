"""Where a topic is: a folder, or `http://host:port/topic` of a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer

import tidings as td
from tidings.client.connecting import connect
from tidings.client.remote_topic import RemoteTopic
from tidings.client.service import Service
from tidings.durable.opening import DurableTopic
from tidings.errors import TidingsError

Where = Annotated[str, typer.Argument(help="The topic: its folder, or http://host:port/NAME at a service.")]
Place = Annotated[str, typer.Argument(help="A folder of topics, or http://host:port of a service.")]
Key = Annotated[str | None, typer.Option(envvar="TIDINGS_KEY", help="The key for a service.")]
AnyTopic = DurableTopic | RemoteTopic


def is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


@contextmanager
def topic_at(where: str, key: str | None = None, *, reading: bool = False) -> Iterator[AnyTopic]:
    """The topic; `reading` leaves a folder to its writer and looks at it beside."""
    if is_url(where):
        url, name = split(where)
        with connect(url, key) as service:
            yield service[name]
        return
    topic = opened(where, "r" if reading else "w")
    with closing(topic):
        yield topic


def opened(where: str, mode: str) -> DurableTopic:
    topic = td.open(where, mode=mode)
    assert isinstance(topic, DurableTopic)
    return topic


@contextmanager
def service_at(where: str, key: str | None) -> Iterator[Service]:
    if not is_url(where):
        raise TidingsError(f"{where!r} is a folder: this is asked of a service that runs, as http://127.0.0.1:8080")
    with connect(where, key) as service:
        yield service


def split(where: str) -> tuple[str, str]:
    """The service's address and the topic's name."""
    parts = urlsplit(where)
    root, _, name = parts.path.rstrip("/").rpartition("/")
    if not name:
        raise TidingsError(f"{where!r} names no topic: http://host:port/NAME is accepted")
    return f"{parts.scheme}://{parts.netloc}{root.removesuffix('/topics')}", unquote(name)


def folders(where: str) -> list[Path]:
    """The folders of topics in a folder, or the folder itself if it is one."""
    root = Path(where)
    if not root.is_dir():
        raise TidingsError(f"{where!r} is no folder")
    return [root] if (root / "registry.sqlite").is_file() else sorted(p.parent for p in root.glob("*/registry.sqlite"))
