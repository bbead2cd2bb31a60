"""A topic's messages lead from any state of it that was asked for to the next: lists of them alone are the topic's own."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tidings as td
from tidings.boards.messages.followers import Followers
from tidings.boards.messages.objects import FamilyObjects
from tidings.errors import SchemaError
from tidings.topic.journal import Journal

SCHEMA = {"price": td.Number(), "stars": td.Number()}
RANGES = [(0, 3), (1, 8), (4, 4), (6, 20)]
K = 3


def flat(draw: random.Random, time: int) -> dict:
    said = {"flat": f"f{draw.randrange(9)}"}
    if draw.random() < 0.15:
        return said | {"deleted": True}
    ends = {"expires": time + draw.randrange(1, 6)} if draw.random() < 0.3 else {}
    return said | {"price": draw.randrange(80) / 8, "stars": draw.randrange(16) / 8} | ends


class Receiver:
    """Knows nothing but tables of messages."""

    def __init__(self) -> None:
        self.followers, self.snapshot = Followers(K), 0
        names, points = [f"w{i}" for i in range(len(RANGES))], np.array(RANGES, float)
        self.followers.begin(names, points, [K] * len(RANGES), [True] * len(RANGES), FamilyObjects(), 0)

    def hear(self, table) -> None:
        for sequence in sorted(set(table["sequence"].to_pylist())):
            assert set(table["snapshot"].to_pylist()) == {sequence - 1}
            self.followers.follow(table, sequence)

    def lists(self) -> list:
        return [self.followers.top(f"w{i}") for i in range(len(RANGES))]


def lists_of(topic: td.Topic, time: int) -> list:
    return [[(m.event, m.score) for m in topic.top(f"w{i}", time=time)] for i in range(len(RANGES))]


@pytest.mark.parametrize("seed", range(3))
def test_lists_rebuilt_from_messages_are_the_topics_own(seed, tmp_path):
    draw, receiver = random.Random(seed), Receiver()
    with td.open(tmp_path / "flats", "flats", SCHEMA, key="flat") as topic:
        for i, (l, r) in enumerate(RANGES):
            topic.subscribe(f"w{i}", f"price BETWEEN {l} AND {r}", k=K, by="stars", time=0)
        topic.publish_batch([flat(draw, 0) for _ in range(6)], time=0)
        assert topic.add_family("price", by="stars", k=K) == "price:stars:3"
        for time in range(1, 40):
            act = draw.randrange(4)
            if act == 0:
                topic.publish(flat(draw, time), time=time)  # told with the next that asks
                continue
            if act == 1:
                topic.advance(time)
                told = topic.messages()
            elif act == 2:
                told = topic.publish_batch([flat(draw, time) for _ in range(draw.randrange(5))], time=time, as_messages=True)
            else:
                told = topic.publish(flat(draw, time), time=time, as_messages=True)
            receiver.hear(told)
            assert receiver.lists() == lists_of(topic, time)
        assert len(topic.messages()) == 0


def test_a_change_that_failed_is_in_no_message(monkeypatch):
    topic, receiver = td.Topic("flats", SCHEMA, key="flat"), Receiver()
    topic.add_family("price", by="stars", k=K)
    receiver.hear(topic.publish({"flat": "a", "price": 1, "stars": 1}, time=0, as_messages=True))
    topic.publish({"flat": "b", "price": 2, "stars": 2}, time=1)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "published", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            topic.publish({"flat": "c", "price": 2, "stars": 3}, time=2, as_messages=True)
    receiver.hear(topic.messages())
    assert receiver.lists()[0] == [("b", 2.0), ("a", 1.0)]


def test_a_topic_without_a_key_paints_nothing():
    with pytest.raises(SchemaError, match="has no key"):
        td.Topic("t", SCHEMA).add_family("price", by="stars", k=3)
