"""Live events that came together are kept as columns: replaced, expired and given up across reopening, beside a plain dict."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tidings as td
from tidings.durable import event_batches, waiting

SCHEMA = {"price": td.Number(), "brand": td.Category(), "at": td.Time(), "place": td.Place(plane=True), "about": td.Words()}
NAMES = st.lists(st.sampled_from([f"e{i}" for i in range(9)]), min_size=1, max_size=8, unique=True)


class LiveMachine(RuleBasedStateMachine):
    """`live` has price and end of each; the clock only grows."""

    @initialize(retention=st.sampled_from([None, "4 s"]))
    def begin(self, retention) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(event_batches, "FEWEST", 3)
        self.folder = Path(tempfile.mkdtemp())
        self.topic = td.open(self.folder, "t", SCHEMA, retention=retention)
        self.retention = retention
        self.live: dict[str, tuple[float, int | None]] = {}
        self.time, self.price = 1, 0

    def teardown(self) -> None:
        if hasattr(self, "topic"):
            self.patch.undo()
            self.topic.close()
            shutil.rmtree(self.folder)

    @rule(names=NAMES, ends=st.lists(st.none() | st.integers(-1, 6), min_size=8, max_size=8), alone=st.booleans())
    def publish(self, names, ends, alone) -> None:
        events = []
        for name, end in zip(names, ends, strict=False):
            self.price += 1
            until = None if end is None else self.time + end
            events.append({"id": name, "price": self.price, "brand": "xy"[self.price % 2], "about": f"w{self.price % 5} red"})
            events[-1] |= {"place": [self.price % 3, 1.0], "at": self.time}
            events[-1] |= {} if until is None else {"expires": until}
            if until is None and self.retention is not None:
                until = self.time + 4
            self.live[name] = (float(self.price), until)
        if alone:
            for event in events:
                self.topic.publish(event, time=self.time)
        else:
            self.topic.publish_batch(events, time=self.time)

    @rule(by=st.integers(0, 3))
    def wait(self, by) -> None:
        self.time += by
        self.topic.advance(self.time)

    @rule(clean=st.booleans())
    def reopen(self, clean) -> None:
        self.topic.close() if clean else self.topic.abandon()
        self.topic = td.open(self.folder)

    @invariant()
    def the_same_are_live(self) -> None:
        if hasattr(self, "topic"):
            self.live = {id: (price, end) for id, (price, end) in self.live.items() if end is None or end > self.time}
            found = self.topic.search(time=self.time)
            assert dict(zip(found["id"].to_pylist(), found["price"].to_pylist(), strict=True)) == {
                id: price for id, (price, _) in sorted(self.live.items())
            }
            assert self.topic.search("brand = 'x' AND A_CONTAINS(about, ('red'))", time=self.time)["id"].to_pylist() == [
                id for id, (price, _) in sorted(self.live.items()) if price % 2 == 0
            ]


TestLive = LiveMachine.TestCase
TestLive.settings = settings(max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))


def events(n: int, first: int = 0) -> pa.Table:
    return pa.table({"id": [f"e{i}" for i in range(first, first + n)], "price": np.arange(float(n))})


def counts(topic, *tables: str) -> list[int]:
    return [topic.registry.read(f"SELECT count(*) FROM {table}")[0][0] for table in tables]


def test_a_batch_is_one_row_and_is_given_up_when_most_of_it_was_replaced(tmp_path):
    with td.open(tmp_path, "t", {"price": td.Number()}) as topic:
        topic.subscribe("all", time=0)
        topic.publish_batch(events(200), time=1)
        assert counts(topic, "event", "event_batch", "outbox", "outbox_batch") == [0, 1, 0, 1]
        topic.publish_batch(events(150), time=2)
        assert counts(topic, "event_batch", "event_gone") == [0, 0]
        assert counts(topic, "event") == [200]
    with td.open(tmp_path) as topic:
        assert topic.search()["price"].to_pylist() == [float(id[1:]) for id in topic.search()["id"].to_pylist()]
        assert len(topic.outbox(limit=1000)) == 350


def test_a_batch_is_let_go_when_the_last_of_it_has_expired(tmp_path):
    with td.open(tmp_path, "t", {"price": td.Number()}, retention="10 s") as topic:
        topic.publish_batch(events(100), time=1)
        topic.publish_batch(events(100, 100), time=5)
        topic.advance(11)
        assert counts(topic, "event_batch") == [1]
        assert len(topic.search(time=11)) == 100


def test_pages_and_acknowledgement_cut_through_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(waiting, "LARGEST", 70)
    with td.open(tmp_path, "t", {"price": td.Number()}) as topic:
        topic.subscribe("all", time=0)
        told = topic.publish_batch(events(100), time=1)
        topic.publish({"id": "x"}, time=2)
        topic.publish_batch(events(100, 100), time=3)
        page = topic.outbox(after=60, limit=50)
        assert [number for number, _ in page] == list(range(61, 111))
        assert [note for _, note in page[:40]] == list(told[60:])
        topic.acknowledge(90)
        assert [number for number, _ in topic.outbox(limit=1000)] == list(range(91, 202))
    with td.open(tmp_path, mode="r") as topic:
        ids = [note.id for _, note in topic.outbox(limit=1000)]
        assert ids[0] == told[90].id
        assert len(set(ids)) == 111


def test_a_limit_of_the_outbox_holds_within_a_batch(tmp_path):
    with td.open(tmp_path, "t", {"price": td.Number()}, outbox_limit=80) as topic:
        topic.subscribe("all", time=0)
        topic.publish_batch(events(100), time=1)
        assert [number for number, _ in topic.outbox(limit=1000)] == list(range(21, 101))


def test_what_had_expired_in_a_batch_that_is_given_up_replaces_nobody(tmp_path):
    with td.open(tmp_path, "t", {"price": td.Number()}) as topic:
        topic.publish_batch([{"id": "e0", "price": 1, "expires": 1}, *({"id": f"e{i}"} for i in range(1, 80))], time=1)
        topic.publish({"id": "e0", "price": 2}, time=1)
        for i in range(1, 70):
            topic.publish({"id": f"e{i}", "price": 3}, time=1)
        assert counts(topic, "event_batch") == [0]
        topic.abandon()
    with td.open(tmp_path) as topic:
        assert topic.search("price = 2")["id"].to_pylist() == ["e0"]
        assert len(topic.search()) == 80
