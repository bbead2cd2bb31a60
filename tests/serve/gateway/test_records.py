"""What stands in Kafka's records comes back as it was."""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np

import tidings as td
from tidings.boards.messages.family import Family
from tidings.boards.paint.zones import Zones
from tidings.serve.gateway.handing import assigned, zone_of_id
from tidings.serve.gateway.layout import Plan
from tidings.serve.gateway.records import Origin, Watcher
from tidings.serve.gateway.sketch import boxes_from, boxes_json
from tidings.serve.gateway.zone import LAST, number_of

SCHEMA = td.Schema({"price": td.Number(), "stars": td.Number()})
FAMILY = Family("price", "stars", 3)
SAMPLE = np.sort(np.random.default_rng(1).random((500, 2)), 1)


def test_plans_watchers_and_sketches_come_back():
    plan = Plan("flats", SCHEMA, "flat", (FAMILY, Family("stars", "-price", 2, 0.5)), (Zones.balanced(SAMPLE, 4),) * 2, True, 3, 17)
    again = Plan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    assert (again.families, again.partitions, dict(again.schema)) == (plan.families, 4, dict(SCHEMA))
    split = plan.split(1, 0, SAMPLE[plan.zones[0].owners(SAMPLE) == 1], 18)
    assert (split.partitions, split.epoch, split.since, len(split.zones[1])) == (5, 4, 18, 4)
    origin = Origin(1, 2, 3, 4, 5, Origin(0, 1, 2, 3, 4))
    for watcher in (
        Watcher("ann", "f", -math.inf, 3.5, 2, 9),
        Watcher(
            "bob",
            "f",
            0.0,
            math.inf,
            1,
            0,
            False,
            "o",
            "http://x/",
            "whsec_",
            {"a": "b"},
            origin,
        ),
    ):
        assert Watcher.from_json(watcher.to_json()) == watcher
    boxes = np.array([[[-math.inf, 1.0], [2.0, math.inf]], [[0.0, 0.0], [0.5, 0.5]]])
    assert (boxes_from(boxes_json(boxes)) == boxes).all()
    assert zone_of_id("bob", 7) == zlib.crc32(b"bob") % 7
    assert number_of(5, LAST) < number_of(6) < number_of(6, 1)


def test_a_members_assignment_is_read():
    topics = {"flats.messages": [0, 2, 5], "flats.notes": [1], "none": []}
    body = struct.pack("!hi", 3, len(topics))
    for name, partitions in topics.items():
        body += struct.pack(f"!h{len(name)}si{len(partitions)}i", len(name), name.encode(), len(partitions), *partitions)
    assert assigned(body + b"\0\0\0\0") == topics
    assert assigned(b"") == {}
