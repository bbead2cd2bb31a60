"""Consumers of the outbox, each by a name and with a cursor of its own: against a list, across reopening, from other processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tidings as td
from tidings.durable import event_batches, waiting
from tidings.durable.waiting import OutboxPages
from tidings.errors import OutboxError, StorageError

SCHEMA = {"price": td.Number()}
NAMES = st.sampled_from([None, "mail", "push"])


def numbers(topic, consumer=None, **asked):
    return [number for number, _ in topic.outbox(consumer=consumer, **asked)]


class Consumers(RuleBasedStateMachine):
    """`done` is the cursor of each consumer, None that of whoever gives no name; `waiting` are the numbers that are kept."""

    @initialize(fewest=st.sampled_from([1, 2, 64]))
    def begin(self, fewest: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(waiting, "FEWEST", fewest)
        self.patch.setattr(waiting, "LARGEST", 2)
        self.folder = Path(tempfile.mkdtemp())
        self.topic = td.open(self.folder, "t", SCHEMA)
        self.topic.subscribe("all", time=0)
        self.done: dict[str | None, int] = {}
        self.waiting: list[int] = []
        self.newest = 0

    def teardown(self) -> None:
        if hasattr(self, "topic"):
            self.patch.undo()
            self.topic.close()
            shutil.rmtree(self.folder)

    def forget(self) -> None:
        if self.done:
            self.waiting = [number for number in self.waiting if number > min(self.done.values())]

    @rule(count=st.integers(1, 3))
    def publish(self, count: int) -> None:
        for _ in range(count):
            self.newest += 1
            self.topic.publish({"id": f"e{self.newest}"}, time=self.newest)
            self.waiting.append(self.newest)

    @rule(count=st.integers(1, 5))
    def publish_batch(self, count: int) -> None:
        fresh = range(self.newest + 1, self.newest + count + 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(event_batches, "FEWEST", 1)
            self.topic.publish_batch([{"id": f"e{number}"} for number in fresh], time=self.newest)
        self.waiting += fresh
        self.newest = fresh[-1]

    @rule(name=st.sampled_from(["mail", "push"]), after=st.none() | st.integers(0, 5))
    def add(self, name: str, after: int | None) -> None:
        self.topic.add_consumer(name, after=after)
        self.done.setdefault(name, min(after or 0, self.newest))

    @rule(name=st.sampled_from(["mail", "push"]))
    def remove(self, name: str) -> None:
        if name in self.done:
            self.topic.remove_consumer(name)
            del self.done[name]
            self.forget()
        else:
            with pytest.raises(OutboxError, match=r"^there is no consumer"):
                self.topic.remove_consumer(name)

    @rule(name=NAMES, number=st.integers(0, 12), reader=st.booleans())
    def acknowledge(self, name: str | None, number: int, reader: bool) -> None:
        topic = td.open(self.folder, mode="r") if reader else self.topic
        if number > self.newest:
            with pytest.raises(OutboxError, match=f"^number is {number}: the newest notification of this topic has number"):
                topic.acknowledge(number, consumer=name)
        elif name is not None and name not in self.done:
            with pytest.raises(OutboxError, match=f"add_consumer\\('{name}'\\) makes one$"):
                topic.acknowledge(number, consumer=name)
        else:
            topic.acknowledge(number, consumer=name)
            self.done[name] = max(self.done.get(name, 0), number)
            self.forget()
        if reader:
            topic.close()

    @rule(name=NAMES, after=st.integers(0, 12), limit=st.integers(0, 4))
    def read(self, name: str | None, after: int, limit: int) -> None:
        if name is None or name in self.done:
            due = [number for number in self.waiting if number > max(after, self.done.get(name, 0))]
            assert numbers(self.topic, name, after=after, limit=limit) == due[:limit]
        else:
            with pytest.raises(OutboxError, match=r"^there is no consumer"):
                self.topic.outbox(consumer=name)

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        self.topic.close() if clean else self.topic.abandon()
        self.topic = td.open(self.folder)

    @invariant()
    def cursors_are_kept(self) -> None:
        if hasattr(self, "topic"):
            assert self.topic.consumers() == {name: done for name, done in sorted(self.done.items(), key=str) if name is not None}
            assert [waiting.number for waiting in OutboxPages(self.topic.registry).after(0, 1000)] == self.waiting
            assert OutboxPages(self.topic.registry).ends() == (min(self.waiting, default=self.newest + 1) - 1, self.newest)


Consumers.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestConsumers = Consumers.TestCase

CHILD = """
import sys
import tidings as td
with td.open(sys.argv[1], mode="r") as topic:
    for number, note in topic.outbox(consumer="mail"):
        print(number, note.event)
        topic.acknowledge(number, consumer="mail")
"""


def test_another_process_reads_and_acknowledges(tmp_path):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("all", time=0)
        topic.add_consumer("mail")
        topic.add_consumer("push")
        for n in range(1, 4):
            topic.publish({"id": f"e{n}"}, time=n)
        child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=True)
        assert child.stdout.split() == ["1", "e1", "2", "e2", "3", "e3"]
        assert topic.consumers() == {"mail": 3, "push": 0}
        topic.publish({"id": "e4"}, time=4)
        assert numbers(topic, "mail") == [4]
        assert numbers(topic, "push") == [1, 2, 3, 4]


def test_a_reader_sees_what_the_writer_did_when_it_looks_again(tmp_path):
    with td.open(tmp_path, "t", SCHEMA) as writer:
        writer.subscribe("a", "price < 5", time=0)
        with td.open(tmp_path, mode="r") as reader:
            assert not reader.refresh()
            for n in range(30):
                writer.subscribe(f"s{n}", f"price < {n}", time=0)
                writer.publish({"id": f"e{n}", "price": n}, time=n)
                if n % 7 == 0:
                    writer.flush()
                if n % 10 == 9:
                    writer.unsubscribe(f"s{n - 1}")
                    writer.merge()
                assert reader.refresh()
                assert not reader.refresh()
                for price in (0, n, 40):
                    assert reader.match({"id": "q", "price": price}, time=0) == writer.match({"id": "q", "price": price}, time=0)
                assert reader.search(time=0).equals(writer.search(time=0))
                assert numbers(reader) == numbers(writer)
            kept = reader.store.snapshot.segments
            writer.subscribe("z", time=0)
            assert reader.refresh()
            assert [live.segment for live in reader.store.snapshot.segments] == [live.segment for live in kept], "mapped once"
        assert not writer.refresh()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda topic: topic.acknowledge(999), "number is 999: the newest notification of this topic has number 0"),
        (lambda topic: topic.acknowledge(-1), "number is -1: a whole number of 0 or more is accepted"),
        (lambda topic: topic.acknowledge("3"), "number is '3': a whole number of 0 or more is accepted"),
        (lambda topic: topic.outbox(limit=1.5), "limit is 1.5: a whole number of 0 or more is accepted"),
        (lambda topic: topic.add_consumer(""), "consumer is '': a string that is not empty is accepted"),
        (lambda topic: topic.outbox(consumer="x"), r"there is no consumer 'x' \(there are: none\): add_consumer\('x'\) makes one"),
    ],
)
def test_what_the_outbox_does_not_know_is_said(tmp_path, wrong, sentence):
    with td.open(tmp_path, "t", SCHEMA) as topic, pytest.raises(OutboxError, match=f"^{sentence}$"):
        wrong(topic)


def test_a_closed_topic_has_no_outbox(tmp_path):
    topic = td.open(tmp_path, "t", SCHEMA)
    topic.close()
    for act in (lambda: topic.acknowledge(0), topic.outbox, topic.consumers):
        with pytest.raises(StorageError, match=f"^{tmp_path} was closed: open it again$"):
            act()
