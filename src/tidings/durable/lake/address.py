"""Where a topic is: the path of a folder, or a URL. Any other scheme is refused, so that no folder is ever named `s3a:`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tidings.errors import StorageError

SPELLINGS = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfs": "abfs", "abfss": "abfss", "file": "file"}
"""Schemes, and the one that `obstore` knows each by; Hadoop's spellings are taken too."""
ACCEPTED = "the path of a folder, or a URL of s3, s3a, gs, az, abfs, abfss or file, is accepted"


@dataclass(frozen=True, slots=True)
class Url:
    """`text` has the scheme that `obstore` knows and no slash at its end, so that one place has one text."""

    scheme: str
    text: str

    def __str__(self) -> str:
        return self.text

    def __truediv__(self, name: str) -> Url:
        return Url(self.scheme, f"{self.text}/{name}")


def place_of(path: str | os.PathLike[str] | Url) -> Path | Url:
    """The folder or the URL that a caller means."""
    if isinstance(path, Url):
        return path
    text = os.fspath(path)
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(/{1,2})", text)
    if found is None:
        return Path(text)
    scheme = found[1].lower()
    if scheme not in SPELLINGS:
        raise StorageError(f"{text!r} has the scheme {scheme!r}: {ACCEPTED}")
    if found[2] != "//":
        raise StorageError(f"{text!r} is a URL that lost a slash, as in pathlib's hands: give it as text; {ACCEPTED}")
    rest = text[found.end() :].rstrip("/")
    if not rest.strip("/"):
        raise StorageError(f"{text!r} names no {'folder' if scheme == 'file' else 'bucket'}: {ACCEPTED}")
    if scheme == "file" and not rest.startswith("/"):
        raise StorageError(f"{text!r} has no absolute path: file:///data/deals is accepted")
    return Url(SPELLINGS[scheme], f"{SPELLINGS[scheme]}://{rest}")


def folder_of(path: str | os.PathLike[str], what: str) -> Path:
    """A path that must be a folder's."""
    place = place_of(path)
    if isinstance(place, Url):
        raise StorageError(f"{str(path)!r} is a URL: {what} takes the path of a folder")
    return place
