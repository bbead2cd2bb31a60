"""Keyed topics against the boards' oracle: objects replaced, deleted and expiring, watchers of every kind, reopened from disk."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import tidings as td
from tests.oracle.boards import BoardsOracle
from tidings.model.door.event import read_event
from tidings.model.door.subscription import make_subscription
from tidings.model.filter.operands import compile_number

SCHEMA = td.Schema({"x": td.Number(0, 8), "price": td.Number(), "brand": td.Category()})
EIGHTHS = st.integers(0, 64).map(lambda n: n / 8)
IDS = st.sampled_from([f"s{i}" for i in range(6)])
KEYS = st.sampled_from([f"o{i}" for i in range(6)])
FILTERS = st.one_of(
    st.none(),
    st.tuples(EIGHTHS, EIGHTHS).map(lambda p: f"x BETWEEN {min(p)} AND {max(p)}"),
    st.tuples(EIGHTHS, st.sampled_from("ab")).map(lambda p: f"x <= {p[0]} AND brand = '{p[1]}'"),
)
SECOND = 1_000_000


class KeyedMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.oracle = BoardsOracle(SCHEMA)
        self.expires: dict[str, int] = {}
        self.time = 0

    @initialize()
    def start(self) -> None:
        self.topic = td.open(self.folder, "objects", SCHEMA, key="sku")

    def teardown(self) -> None:
        self.topic.close()
        shutil.rmtree(self.folder)

    @rule(
        id=IDS,
        filter=FILTERS,
        k=st.one_of(st.none(), st.integers(0, 3)),
        by=st.sampled_from(["-price", "price", "price + x", None]),
    )
    def subscribe(self, id, filter, k, by) -> None:
        notes = self.topic.subscribe(id, filter, k=k, by=by, time=self.time)
        s = make_subscription(SCHEMA, id, filter, k=k, by=by)
        relevance = s.score_of if by is None else compile_number(SCHEMA, by).value
        expected = self.oracle.watch(id, s.clauses, k, relevance)
        assert [n[:5] for n in notes] == expected

    @rule(id=IDS)
    def unsubscribe(self, id) -> None:
        if id in self.oracle.watchers:
            self.topic.unsubscribe(id)
            self.oracle.unwatch(id)

    @rule(
        changes=st.lists(
            st.tuples(
                KEYS,
                st.one_of(
                    st.none(), st.fixed_dictionaries({}, optional={"x": EIGHTHS, "price": EIGHTHS, "brand": st.sampled_from("abc")})
                ),
                st.one_of(st.none(), st.integers(1, 9)),
            ),
            min_size=1,
            max_size=4,
            unique_by=lambda change: change[0],
        ),
        later=st.integers(0, 2),
    )
    def publish(self, changes, later) -> None:
        self.time += later
        expected = self._expired()
        events, net = [], []
        for key, values, lives in changes:
            event = {"sku": key, "deleted": True} if values is None else {"sku": key, **values}
            self.expires.pop(key, None)
            if values is not None and lives is not None:
                event["expires"] = self.expires[key] = self.time + lives
            events.append(event)
            net.append((key, None if values is None else read_event(SCHEMA, event, "sku").values))
        expected |= self.oracle.publish_batch(net)
        notes = (
            self.topic.publish_batch(events, time=self.time) if len(events) > 1 else self.topic.publish(events[0], time=self.time)
        )
        assert {n[:5] for n in notes} == expected
        self._compare()

    def _expired(self) -> set[tuple]:
        expected: set[tuple] = set()
        for key, at in sorted(self.expires.items(), key=lambda item: (item[1], item[0])):
            if at <= self.time:
                expected |= self.oracle.publish_batch([(key, None)])
                del self.expires[key]
        return expected

    @rule(later=st.integers(0, 4))
    def advance(self, later) -> None:
        self.time += later
        expected = self._expired()
        assert {n[:5] for n in self.topic.advance(self.time)} == expected

    @rule()
    def reopen(self) -> None:
        self.topic.close()
        self.topic = td.open(self.folder)
        self._compare()

    def _compare(self) -> None:
        for id in self.oracle.watchers:
            assert [(m.event, m.score) for m in self.topic.top(id, time=self.time)] == self.oracle.top(id)


def test_two_changes_of_one_instant_both_wait_in_the_outbox(tmp_path):
    with td.open(tmp_path, "objects", SCHEMA, key="sku") as topic:
        topic.subscribe("s", k=1, by="-price", time=0)
        for price in (3.0, 2.0, 1.0):
            topic.publish({"sku": "o", "price": price}, time=1)
        assert [note.why for _, note in topic.outbox()] == ["entered", "updated", "updated"]


def test_a_batch_of_objects_may_delete(tmp_path):
    with td.open(tmp_path, "objects", SCHEMA, key="sku") as topic:
        topic.publish_batch([{"sku": "a", "price": 1.0}, {"sku": "b", "price": 2.0}], time=0)
        topic.publish_batch([{"sku": "a", "deleted": True}, {"sku": "c", "price": 3.0}], time=1)
        assert [n.event for n in topic.subscribe("s", by="-price", time=2)] == ["b", "c"]


TestKeyedTopic = KeyedMachine.TestCase
TestKeyedTopic.settings = settings(max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
