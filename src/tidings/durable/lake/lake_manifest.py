"""What makes a snapshot of a topic in a lake: one small object that names all others.

A topic has one part, or is cut into several (`cut` says how; the parts that nobody stands in are left out). Parts share their
codes, so the segments of all of them, of one or of some, are a snapshot that one reader can have. `seq` is the change number that
all of it stands at. `sizes` has every object that is named, `sums` the check sums of those that are array files. `applied` says
which micro-batch of a query was applied last, so that one which runs again changes nothing. `record` names what else a registry
holds, as Parquet. `writer` is who made it. `crc` is the CRC-32 of all other fields.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from tidings.durable.manifest import Manifest
from tidings.errors import StorageError
from tidings.model.values.schema import Schema

FORMAT = 1


@dataclass(frozen=True, slots=True)
class LakeSegment:
    """`rows` are Parquet objects of the same subscriptions, each with its ordinal; `count` of them stand here, dead or alive."""

    file: str
    live: str | None
    rows: tuple[str, ...]
    count: int
    dead: int = 0

    @property
    def files(self) -> list[str]:
        return [self.file, *([self.live] if self.live else [])]

    @property
    def living(self) -> int:
        return self.count - self.dead


@dataclass(frozen=True, slots=True)
class LakeManifest:
    number: int
    seq: int
    topic: str
    schema: dict[str, Any]
    key: str | None
    parts: dict[int, tuple[LakeSegment, ...]]
    vocabulary: str
    sizes: dict[str, int]
    sums: dict[str, int]
    writer: str
    cut: dict[str, Any] | None = None
    record: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    applied: dict[str, int] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def schema_read(self) -> Schema:
        return Schema.from_dict(self.schema)

    @property
    def segments(self) -> list[LakeSegment]:
        return [segment for part in sorted(self.parts) for segment in self.parts[part]]

    @property
    def objects(self) -> set[str]:
        """Everything that it names."""
        named = {name for segment in self.segments for name in (*segment.files, *segment.rows)}
        return named | {self.vocabulary, *self.record.values()}

    def snapshot(self, parts: Iterable[int] | None = None) -> Manifest:
        """These parts, or all, as a view reads them."""
        wanted = sorted(self.parts) if parts is None else list(parts)
        chosen = [segment for part in wanted for segment in self.parts.get(part, ())]
        segments = tuple((segment.file, segment.live) for segment in chosen)
        return Manifest(
            self.number,
            self.seq,
            self.topic,
            self.schema,
            self.key,
            segments,
            self.vocabulary,
            sums=dict(self.sums),
            crc=zlib.crc32(self.writer.encode()),
        )

    @property
    def identity(self) -> int:
        return self.snapshot(()).identity

    def trimmed(self) -> LakeManifest:
        """Without sizes and sums of what it does not name."""
        named = self.objects
        kept = {name: {file: fact for file, fact in getattr(self, name).items() if file in named} for name in ("sizes", "sums")}
        return LakeManifest(**{**{name: getattr(self, name) for name in self.__dataclass_fields__}, **kept})


def to_body(manifest: LakeManifest) -> bytes:
    fields = asdict(manifest)
    fields["parts"] = {str(part): segments for part, segments in fields["parts"].items()}
    return json.dumps({**fields, "crc": _checksum(fields)}).encode()


def from_body(body: bytes, title: str) -> LakeManifest:
    """`title` names the object in a sentence."""
    try:
        fields = json.loads(body)
        crc = fields.pop("crc")
    except (ValueError, TypeError, AttributeError, KeyError):
        raise StorageError(f"{title} is damaged: it is not a manifest with a check sum") from None
    if crc != _checksum(fields):
        raise StorageError(f"{title} is damaged: it does not have the check sum it was written with")
    if fields["format"] != FORMAT:
        raise StorageError(f"{title} has format {fields['format']}; this version of tidings reads format {FORMAT}")
    parts = {
        int(part): tuple(LakeSegment(**{**segment, "rows": tuple(segment["rows"])}) for segment in segments)
        for part, segments in fields["parts"].items()
    }
    return LakeManifest(**{**fields, "parts": parts})


def _checksum(fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())
