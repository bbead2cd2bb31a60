"""Who serves what, and the numbers of notes."""

from __future__ import annotations

import struct
import zlib

from tidings.serve.gateway.handing import assigned, zone_of_id
from tidings.serve.gateway.zone import LAST, number_of


def test_numbers_ascend_and_ids_have_zones():
    assert zone_of_id("bob", 7) == zlib.crc32(b"bob") % 7
    assert number_of(5, LAST) < number_of(6) < number_of(6, 1)


def test_a_members_assignment_is_read():
    topics = {"flats.messages": [0, 2, 5], "flats.notes": [1], "none": []}
    body = struct.pack("!hi", 3, len(topics))
    for name, partitions in topics.items():
        body += struct.pack(f"!h{len(name)}si{len(partitions)}i", len(name), name.encode(), len(partitions), *partitions)
    assert assigned(body + b"\0\0\0\0") == topics
    assert assigned(b"") == {}
