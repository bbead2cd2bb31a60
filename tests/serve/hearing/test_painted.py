"""What a look at painted messages tells first: what stood there before is no change, what came since is one."""

from __future__ import annotations

from collections import Counter

from tidings.model.door.event import read_event
from tidings.model.values.schema import Number, Schema
from tidings.serve.hearing.painted import Painted

SCHEMA = Schema({"size": Number(), "price": Number()})


def event(name: str, size: float, price: float):
    return read_event(SCHEMA, {"sku": name, "size": size, "price": price}, key="sku")


def test_a_change_before_the_first_look_is_told_and_what_was_there_is_not():
    painted = Painted(SCHEMA, "size", "-price", 1)
    painted.begin([event("a", 1, 10), event("b", 2, 20)])
    painted.see([event("b", 2, 5)], Counter(), [], None)
    first = painted.taken()
    assert [change["object"] for change in first["changes"]] == ["b"]
    assert first["objects"] == 2
    assert painted.taken()["changes"] == []
