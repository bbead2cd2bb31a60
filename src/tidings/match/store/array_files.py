"""Array files: a JSON header and aligned arrays, written whole, mapped back without copying.

Layout: 8 bytes magic, 8 bytes header length (little endian), the header (JSON: format version, caller's facts, and for each
array its dtype, shape, offset, CRC-32), 4 bytes CRC-32 of all that, then the arrays, each at a multiple of 64 bytes from the
file's start. A file is written under another name, flushed to the disk and renamed, so a name either holds a whole file or
nothing.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tidings.errors import StorageError

MAGIC = b"tidings\x01"
FORMAT = 1
ALIGN = 64


def write_arrays(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    packed = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    head = _header(facts, packed)
    partial = path.with_name(path.name + ".partial")
    try:
        with private(partial, "wb") as file:
            file.write(head)
            for array in packed.values():
                file.write(bytes(-file.tell() % ALIGN))
                file.write(array.reshape(-1).view(np.uint8).data if array.size else b"")
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def _header(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    entries = {
        name: {
            "dtype": array.dtype.str,
            "shape": array.shape,
            "crc": checksum(array.reshape(-1).view(np.uint8)),
        }
        for name, array in arrays.items()
    }
    header = json.dumps({"format": FORMAT, "facts": dict(facts), "arrays": entries}).encode()
    head = MAGIC + len(header).to_bytes(8, "little") + header
    return head + zlib.crc32(head).to_bytes(4, "little")


def read_arrays(path: Path, *, verify: bool = True, sum: int | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays (read-only maps). Size and header are always checked; `verify` reads every array to check its sum.

    `sum` is the `sum_of` that the file must have: so one sound file cannot stand in another's place.
    """
    try:
        whole = np.memmap(path, np.uint8, "r")
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise StorageError(f"{path} is damaged: it is empty") from error
    header, at = _read_header(path, whole)
    if sum is not None and int.from_bytes(whole[at - 4 : at].tobytes(), "little") != sum:
        raise StorageError(f"{path} is another file than the one that was written under this name")
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in header["arrays"].items():
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        at += -at % ALIGN
        size = dtype.itemsize * int(np.prod(shape))
        raw = whole[at : at + size]
        if len(raw) < size:
            raise StorageError(f"{path} is cut short: array {name} needs {at + size} bytes, the file has {len(whole)}")
        if verify and checksum(raw) != entry["crc"]:
            raise StorageError(f"{path} is damaged: array {name} does not have the check sum it was written with")
        arrays[name] = raw.view(dtype).reshape(shape)
        at += size
    return header["facts"], arrays


def _read_header(path: Path, whole: NDArray[np.uint8]) -> tuple[dict[str, Any], int]:
    head = whole[:16].tobytes()
    end = 16 + int.from_bytes(head[8:16], "little")
    if len(head) < 16 or head[:8] != MAGIC or end + 4 > len(whole):
        raise StorageError(f"{path} is not a tidings file, or is cut short")
    if checksum(whole[:end]) != int.from_bytes(whole[end : end + 4].tobytes(), "little"):
        raise StorageError(f"{path} is damaged: its header does not have the check sum it was written with")
    header: dict[str, Any] = json.loads(whole[16:end].tobytes())
    if header["format"] != FORMAT:
        raise StorageError(f"{path} has format {header['format']}; this version of tidings reads format {FORMAT}")
    return header, end + 4


def sum_of(path: Path) -> int:
    """The check sum of a file's header, which holds those of all its arrays."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(16)[8:], "little")
        file.seek(16 + length)
        return int.from_bytes(file.read(4), "little")


def private(path: Path, mode: str) -> IO[Any]:
    """Open a file for writing that is as private as its folder is: nobody else's where the folder is nobody else's."""
    allowed = path.parent.stat().st_mode & 0o666
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, allowed))


def checksum(raw: NDArray[np.uint8]) -> int:
    return zlib.crc32(raw.data)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive power loss."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
