"""What stands in Kafka's records comes back as it was."""

from __future__ import annotations

import math

import numpy as np

import tidings as td
from tidings.boards.messages.family import Family
from tidings.boards.paint.zones import Zones
from tidings.kafka.layout import Plan
from tidings.kafka.records import Origin, Watcher
from tidings.kafka.sketch import boxes_from, boxes_json

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
