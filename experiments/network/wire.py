"""Frames between a server and its gateways: kind, sequence number, and a table of doubles.

A frame is 17 bytes (kind: 1, sequence: 8, rows: 4, columns: 4; big-endian) and rows x columns doubles, little-endian.

| kind       | from    | sequence                       | table                                                        |
|------------|---------|--------------------------------|--------------------------------------------------------------|
| `HELLO`    | gateway | the last one it has, 0 if none | its zone, 2 x 2                                              |
| `SNAPSHOT` | server  | what the snapshot includes     | one object a row: number, x, y                               |
| `MESSAGES` | server  | that of the last row's event   | rows of `paint_tiles`; none tells that nothing is missing    |
"""

from __future__ import annotations

import socket
import struct

import numpy as np
from numpy.typing import NDArray

HELLO, SNAPSHOT, MESSAGES = 1, 2, 3
_HEAD = struct.Struct("!BqII")
Frame = tuple[int, int, NDArray[np.float64]]


def send_frame(connection: socket.socket, kind: int, sequence: int, table: NDArray[np.float64]) -> None:
    rows = np.ascontiguousarray(table, "<f8")
    connection.sendall(_HEAD.pack(kind, sequence, *rows.shape) + rows.tobytes())


def receive_frame(connection: socket.socket) -> Frame | None:
    """None when the other side has closed."""
    head = _exactly(connection, _HEAD.size)
    if head is None:
        return None
    kind, sequence, rows, columns = _HEAD.unpack(head)
    body = _exactly(connection, 8 * rows * columns)
    return None if body is None else (kind, sequence, np.frombuffer(body, "<f8").reshape(rows, columns))


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
