"""Manifests: which files make a snapshot of a topic's subscriptions.

`manifest-N.json` names the segments, the removals in each (a bitmap of the live), the vocabularies and the change number;
`manifest.json` is a copy of the newest. Everything is derived from the registry. A reader needs only the folder and, to see the
same subscriptions again, N. The files of the last KEPT manifests stay; a reader that has mapped an older one keeps its pages. A
number is used once, also when what it was given to never became a manifest. `sums` are the check sums of the files it names,
`crc` is the CRC-32 of all other fields.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.durable.leases import held_in
from tidings.errors import StorageError
from tidings.match.store.array_files import private, read_arrays, sum_of, sync_folder, write_arrays
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.segment import Segment
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.vocabulary import Vocabulary
from tidings.model.values.schema import Schema

FORMAT = 4
READABLE = (1, 2, 3, 4)
"""Format 1 has no `sums`; segments of format 2 have no tags, and not the text of filters."""
KEPT = 8
NEWEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """`segments` are (file, bitmap file or None); `vocabulary` a file; `seq` the change number all of it stands at."""

    number: int
    seq: int
    topic: str
    schema: dict[str, Any]
    key: str | None
    segments: tuple[tuple[str, str | None], ...]
    vocabulary: str
    format: int = FORMAT
    sums: dict[str, int] = field(default_factory=dict)
    crc: int = field(default=0, compare=False)

    @property
    def identity(self) -> int:
        """Another number for every manifest, also where a topic was built anew and its manifests count from one again."""
        return self.number << 32 | self.crc

    @property
    def files(self) -> list[str]:
        return [*(name for pair in self.segments for name in pair if name), self.vocabulary]


def save_manifest(folder: Path, manifest: Manifest) -> None:
    """Make `manifest` the newest, and drop files that only manifests older than the last KEPT name."""
    fields = asdict(replace(manifest, sums={name: sum_of(folder / name) for name in manifest.files}))
    del fields["crc"]
    text = json.dumps({**fields, "crc": _checksum(fields)})
    for name in (f"manifest-{manifest.number:08d}.json", NEWEST):
        partial = folder / f"{name}.partial"
        try:
            with private(partial, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(folder / name)
            sync_folder(folder)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise StorageError(f"cannot write {folder / name}: {error.strerror or error}") from error
    try:
        _drop_unused(folder)
    except OSError as error:
        raise StorageError(f"cannot remove what is no longer used from {folder}: {error.strerror or error}") from error


def load_manifest(folder: Path, number: int | None = None) -> Manifest:
    path = folder / (NEWEST if number is None else f"manifest-{number:08d}.json")
    try:
        return _manifest(path)
    except OSError as error:
        raise StorageError(f"{folder} holds no {path.name}: {error.strerror}; is it the folder of a topic?") from error


def _manifest(path: Path) -> Manifest:
    try:
        fields = json.loads(path.read_bytes())
        crc = fields.pop("crc")
    except (ValueError, TypeError, AttributeError, KeyError):
        raise StorageError(f"{path} is damaged: it is not a manifest with a check sum") from None
    if crc != _checksum(fields):
        raise StorageError(f"{path} is damaged: it does not have the check sum it was written with")
    if fields["format"] not in READABLE:
        raise StorageError(f"{path} has format {fields['format']}; this version of tidings reads up to format {FORMAT}")
    return Manifest(**{**fields, "segments": tuple((file, live) for file, live in fields["segments"]), "crc": crc})


def _checksum(fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def last_number(folder: Path) -> int:
    """The highest number that any file here was given."""
    names = [path.name for place in (folder, folder / "segments") for path in place.iterdir()]
    return max((int(found[1]) for name in names if (found := re.match(r"(?:manifest-)?(\d{8})\b", name))), default=0)


def _drop_unused(folder: Path) -> None:
    numbered = sorted(folder.glob("manifest-*.json"))
    kept = {*numbered[-KEPT:], *(folder / f"manifest-{number:08d}.json" for number in held_in(folder))}
    used = set()
    for path in numbered:
        try:
            manifest = _manifest(path) if path in kept else None
        except StorageError:
            manifest = None
        if manifest is None:
            path.unlink()
        else:
            used.update(manifest.files)
    for path in folder.glob("manifest*.partial"):
        path.unlink()
    for path in (folder / "segments").iterdir():
        if f"segments/{path.name}" not in used:
            path.unlink()


def save_live(path: Path, segment: LiveSegment, seq: int) -> None:
    """The removals of `segment` up to `seq`, as a bitmap of the live."""
    live = np.zeros(len(segment), np.bool_)
    live[segment.live(seq)] = True
    write_arrays(path, {"subscriptions": len(segment)}, {"live": np.packbits(live)})


def load_segment(
    schema: Schema,
    vocabularies: Vocabularies,
    folder: Path,
    file: str,
    live: str | None,
    sums: Mapping[str, int],
    *,
    verify: bool = True,
    known: LiveSegment | None = None,
) -> LiveSegment:
    """A segment with the removals that the bitmap file `live` has; `known` is the same segment, mapped already."""
    segment = LiveSegment(
        Segment.open(schema, folder / file, verify=verify, sum=sums.get(file)) if known is None else known.segment,
        vocabularies,
        known,
    )
    if live is not None:
        _, arrays = read_arrays(folder / live, verify=verify, sum=sums.get(live))
        alive: NDArray[np.bool_] = np.unpackbits(arrays["live"], count=len(segment)).astype(np.bool_)
        segment.bury(np.flatnonzero(~alive), segment.segment.born)
    return segment


def save_vocabularies(path: Path, vocabularies: Vocabularies) -> None:
    texts = {name: v.strings for name, v in (*vocabularies.categories.items(), ("", vocabularies.words))}
    write_arrays(
        path, {}, {name or "words": np.frombuffer(json.dumps(strings).encode(), np.uint8) for name, strings in texts.items()}
    )


def load_vocabularies(schema: Schema, path: Path, sum: int | None = None) -> Vocabularies:
    vocabularies = Vocabularies(schema)
    _, arrays = read_arrays(path, sum=sum)
    for name in vocabularies.categories:
        vocabularies.categories[name] = Vocabulary(json.loads(arrays[name].tobytes()))
    vocabularies.words = Vocabulary(json.loads(arrays["words"].tobytes()))
    return vocabularies
