"""Keyed topics against the boards' oracle: objects replaced, deleted and expiring, watchers of every kind, reopened from disk."""

from __future__ import annotations

import math
import shutil
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import tidings as td
from tests.hostile import hostile
from tests.oracle.boards import BoardsOracle
from tests.oracle.gates import GateOracle
from tests.oracle.windows import period_end
from tidings.model.door.event import read_event
from tidings.model.door.subscription import make_subscription
from tidings.model.values.window import parse_window
from tidings.rank.relevance import relevance_of

SCHEMA = td.Schema(
    {
        "x": td.Number(0, 8),
        "price": td.Number(),
        "brand": td.Category(),
        "place": td.Place(plane=True),
        "about": td.Words(language="english"),
    }
)
EIGHTHS = st.integers(0, 64).map(lambda n: n / 8)
IDS = st.sampled_from([f"s{i}" for i in range(6)])
SECOND = 1_000_000
KEYS = st.sampled_from([f"o{i}" for i in range(6)])
FILTERS = st.one_of(
    st.none(),
    st.tuples(EIGHTHS, EIGHTHS).map(lambda p: f"x BETWEEN {min(p)} AND {max(p)}"),
    st.tuples(EIGHTHS, EIGHTHS).map(lambda p: f"x BETWEEN {min(p)} AND {max(p)} AND price <= {p[0]}"),
    st.tuples(EIGHTHS, st.sampled_from("ab")).map(lambda p: f"x <= {p[0]} AND brand = '{p[1]}'"),
    st.tuples(EIGHTHS, EIGHTHS).map(lambda p: f"x < {p[0]} OR price > {p[1]}"),
    st.sampled_from(["A_CONTAINS(about, ('red bikes'))", "A_OVERLAPS(about, ('a red cars', 'blu*'))"]),
    st.sampled_from(["A_CONTAINS(about, ('red'))", "S_INTERSECTS(place, BBOX(0, 0, 2, 2))", "price IS NULL", "x * price > 4"]),
    st.sampled_from(
        [
            "price <= 0.5 * PREV(price)",
            "x >= 1 AND price < PREV(price)",
            "brand <> PREV(brand) OR x < 1",
            "NOT (PREV(x) > 2)",
            "x / PREV(price) > 1",
        ]
    ),
)
K = st.sampled_from([None, 0, 1, 2, 3, 50, 100_000, 2**31 - 1])
BY = ["-price", "price", "price + x", "price / x", "PREV(price) - price", "price * 1e308", '{"near": {"price": 3, "x": 2}}', None]
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "x": EIGHTHS,
        "price": EIGHTHS,
        "brand": st.sampled_from("abc"),
        "place": st.tuples(EIGHTHS, EIGHTHS),
        "about": st.sampled_from(["red bike", "blue", "a red car"]),
    },
)


PACES = [
    {"dwell": "2 s"},
    {"dwell": "1 s", "budget": "3 per hour"},
    {"budget": "2 per day"},
    {"cooldown": "2 s"},
    {"digest": "day"},
    {"digest": "at 06:00"},
]
POISON = {id: ranking for id, ranking in hostile("price").items() if "expires" not in ranking}


class KeyedMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.oracle = BoardsOracle(SCHEMA)
        self.gates: dict[str, GateOracle] = {}
        self.expires: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.time = 0

    @initialize(poison=st.lists(st.sampled_from([*POISON]), max_size=6, unique=True))
    def start(self, poison) -> None:
        """Some of those who mean harm are there from the beginning; none has expired."""
        self.topic = td.open(self.folder, "objects", SCHEMA, key="sku")
        for id in poison:
            self.subscribe(id, lives=None, **{"filter": None, "k": None, "by": None} | POISON[id])

    def teardown(self) -> None:
        self.topic.close()
        shutil.rmtree(self.folder)

    @rule(
        id=IDS,
        filter=FILTERS,
        k=K,
        by=st.sampled_from(BY),
        lives=st.sampled_from([None, None, 0, 1, 3]),
        score=st.sampled_from([None, None, 2.0, "1 + price", "x - price"]),
        window=st.sampled_from([None, None, "2 s", "PT5S", "day", "month"]),
        tz=st.sampled_from([None, "Europe/Berlin"]),
        per=st.sampled_from([None, None, "brand", "x", "id"]),
        pace=st.sampled_from([{}, {}, {}, *PACES]),
    )
    def subscribe_any(self, id, filter, k, by, lives, score, window, tz, per, pace) -> None:
        window = None if "digest" in pace else window
        per = None if "cooldown" in pace and per != "id" else per
        self.subscribe(id, filter, k, by, lives, score=score, window=window, tz=tz, per=per, **pace)

    def subscribe(self, id, filter, k, by, lives, **others) -> None:
        """Watchers of every shape, some of whom have expired before they begin."""
        self._forget(id)
        self.gates.pop(id, None)
        expires = None if lives is None else self.time + lives
        notes = self.topic.subscribe(id, filter, k=k, by=by, expires=expires, time=self.time, **others)
        expected = []
        if lives != 0:
            s = make_subscription(SCHEMA, id, filter, k=k, by=by, **others)
            by = s.by
            relevance = s.score_of if by is None else self._relevance(s, by)
            ends = None if s.window is None or s.window.count else self._ends(s)
            expected = self.oracle.watch(id, s.clauses, s.listed, relevance, ends, s.per)
            if s.paced:
                self.gates[id] = self._gate(s, expires)
        if lives:
            self.ends[id] = expires
        assert [n[:5] for n in notes] == self._heard([(change, self.time) for change in expected], begun=id)
        self._compare()

    def _gate(self, s, expires):
        pace = {"budget": None if s.budget is None else (int(s.budget.split()[0]), s.budget.split()[2]), "digest": s.digest}
        pace |= {name: getattr(s, name) and parse_window(getattr(s, name)).duration for name in ("cooldown", "dwell")}
        end = None if expires is None else expires * SECOND
        return GateOracle(True, s.k, **pace, tz=s.tz or "UTC", per=s.per is not None, expires=end)

    def _heard(self, told, begun=None):
        """What is heard of (change, second), which are in order of time: by all up to now, or by one that has just begun."""
        heard = [change for change, _ in told if change[0] not in self.gates]
        for (id, key, score, rank, why), at in told:
            if id in self.gates:
                self.gates[id].history.append(((key, score, rank, why, at * SECOND), self._value(id, key)))
        for id, gate in self.gates.items():
            if begun is None or id == begun:
                heard += [(id, *note[:4]) for note, _ in gate.heard(self.time * SECOND)]
        return heard

    def _value(self, id, key):
        """By what a watcher's digest takes one of each: an object that is gone stands for itself."""
        per = self.oracle.watchers[id].per if id in self.oracle.watchers else None
        return key if per in (None, "id") or key not in self.oracle.objects else self.oracle.objects[key].get(per)

    def _ends(self, s):
        if s.window.calendar is None:
            return lambda at: at + s.window.duration // SECOND
        # Seconds are enough: no zone's day ends within one.
        return lambda at: period_end(at * SECOND, s.window.calendar, s.tz or "UTC") // SECOND

    def _relevance(self, s, by):
        judge = relevance_of(SCHEMA, by)

        def relevance(values):
            value = judge(values, 0)
            return math.nan if value is None or not math.isfinite(s.score_of(values)) else value

        return relevance

    def _forget(self, id) -> None:
        self.ends.pop(id, None)
        if id in self.oracle.watchers:
            self.oracle.unwatch(id)

    @rule(id=IDS, filter=FILTERS)
    def update(self, id, filter) -> None:
        """What is told is what differs."""
        if id in self.oracle.watchers:
            notes = self.topic.update(id, filter=filter, time=self.time)
            clauses = make_subscription(SCHEMA, id, filter).clauses
            told = [(change, self.time) for change in self.oracle.change(id, clauses=clauses)]
            assert [n[:5] for n in notes] == (self._heard(told, begun=id) if told else [])
            self._compare()

    @rule(id=IDS)
    def unsubscribe(self, id) -> None:
        if id in self.oracle.watchers:
            self.topic.unsubscribe(id)
            self._forget(id)
            self.gates.pop(id, None)

    @rule(
        changes=st.lists(
            st.tuples(KEYS, st.none() | VALUES, st.none() | st.integers(-1, 9)),
            min_size=1,
            max_size=4,
            unique_by=lambda change: change[0],
        ),
        later=st.integers(0, 2),
    )
    def publish(self, changes, later) -> None:
        expected = self._pass_time(later)
        events, net = [], []
        for key, values, lives in changes:
            event = {"sku": key, "deleted": True} if values is None else {"sku": key, **values}
            self.expires.pop(key, None)
            if values is not None and lives is not None:
                event["expires"] = self.time + lives
                if lives > 0:
                    self.expires[key] = self.time + lives
            events.append(event)
            there = values is not None and (lives is None or lives > 0)
            net.append((key, read_event(SCHEMA, event, "sku").values if there else None))
        told = expected + [(change, self.time) for change in self.oracle.published(net)]
        notes = (
            self.topic.publish_batch(events, time=self.time) if len(events) > 1 else self.topic.publish(events[0], time=self.time)
        )
        assert sorted((n[:5] for n in notes), key=repr) == sorted(self._heard(told), key=repr)
        self._compare()

    def _pass_time(self, later) -> list[tuple]:
        """Objects and watchers expire in the order of their times; of one instant, watchers first."""
        self.time += later
        expected: list[tuple] = []
        ends = [(at, 0, id) for id, at in self.ends.items()] + [(at, 1, key) for key, at in self.expires.items()]
        for at, kind, name in sorted(ends):
            if at > self.time:
                break
            expected += self.oracle.advance(at - 1)
            if kind == 0:
                self._forget(name)
            else:
                expected += [(change, at) for change in self.oracle.published([(name, None)])]
                del self.expires[name]
        return expected + self.oracle.advance(self.time)

    @rule(later=st.one_of(st.integers(0, 4), st.integers(0, 4), st.sampled_from([3 * 3600, 86_400, 20 * 86_400])))
    def advance(self, later) -> None:
        expected = self._heard(self._pass_time(later))
        assert sorted((n[:5] for n in self.topic.advance(self.time)), key=repr) == sorted(expected, key=repr)

    @rule()
    def reopen(self) -> None:
        self.topic.close()
        self.topic = td.open(self.folder)
        self._compare()

    def _compare(self) -> None:
        for id in self.oracle.watchers:
            assert [(m.event, m.score) for m in self.topic.top(id, time=self.time)] == self.oracle.top(id)

    @rule(later=st.integers(1, 6))
    def look_ahead(self, later) -> None:
        """`top` at a time to come leaves out what has expired by then, and changes nothing."""
        time, held = self.time + later, self.oracle.objects
        self.oracle.objects = {key: values for key, values in held.items() if self.expires.get(key, time + 1) > time}
        for id in self.oracle.watchers:
            expected = self.oracle.top(id, time) if self.ends.get(id, time + 1) > time else []
            assert [(m.event, m.score) for m in self.topic.top(id, time=time)] == expected
        self.oracle.objects = held
        self._compare()


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


def test_memory_follows_what_a_list_holds_and_not_its_k():
    topic = td.Topic("objects", SCHEMA, key="sku")
    topic.publish_batch([{"sku": f"o{i:03}", "x": 1.0, "price": float(i)} for i in range(200)], time=0)
    tracemalloc.start()
    for n in range(50):
        notes = topic.subscribe(f"s{n}", "x BETWEEN 0 AND 2", k=100_000 + n, by="-price", time=1)
        assert len(notes) == 200
    topic.publish({"sku": "o000", "x": 1.0, "price": 500.0}, time=2)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50_000_000
    assert [m.event for m in topic.top("s0", time=3)][:2] == ["o001", "o002"]
    assert len(topic.top("s49", time=3)) == 200


def test_a_watcher_that_has_expired_hears_nothing_and_has_no_list():
    topic = td.Topic("objects", SCHEMA, key="sku")
    for n, filter in enumerate([None, "x >= 0", "brand = 'a'"]):
        topic.subscribe(f"s{n}", filter, k=2, by="-price", expires=10, time=0)
    told = topic.publish({"sku": "o", "x": 1.0, "price": 1.0, "brand": "a", "expires": 10}, time=9)
    assert {n.subscription for n in told} == {"s0", "s1", "s2"}
    assert topic.top("s1", time=10) == []
    assert topic.publish({"sku": "p", "x": 1.0, "price": 1.0, "brand": "a"}, time=11) == []
    assert topic.top("s1", time=11) == []
    assert topic.update("s1", expires=None, time=12)[0].event == "p"


def test_an_object_that_has_expired_when_it_is_published_enters_no_list(tmp_path):
    with td.open(tmp_path, "objects", SCHEMA, key="sku") as topic:
        topic.subscribe("s", k=2, by="-price", time=0)
        topic.publish({"sku": "o", "price": 1.0}, time=1)
        assert [n.why for n in topic.publish({"sku": "o", "price": 2.0, "expires": 1}, time=2)] == ["left"]
        assert topic.publish({"sku": "p", "price": 2.0, "expires": 2}, time=2) == []
    with td.open(tmp_path) as topic:
        assert topic.top("s", time=2) == []
        assert topic.advance(100) == []


def test_the_expiry_heap_of_objects_that_are_replaced_is_bounded():
    topic = td.Topic("objects", SCHEMA, key="sku")
    for n in range(5_000):
        topic.publish({"sku": "o", "price": 1.0, "expires": 10_000 + n}, time=n)
    assert len(topic.publisher.events._expiry) <= 2_000
    assert len(topic.publisher.events) == 1


def test_a_relevance_without_a_finite_value_is_nobody_elses_concern():
    topic = td.Topic("objects", SCHEMA, key="sku")
    poison = ["price / x", "price * 1e308", "price % x", "(price - 20) ^ 0.5", '{"near": {"price": 1e300}}']
    for n, by in enumerate(poison):
        topic.subscribe(f"poison{n}", k=2, by=by, time=0)
    topic.subscribe("steep", score="1e308 * price + 1e308 * x", k=2, time=0)
    topic.subscribe("fair", k=2, by="-price", time=0)
    for sku, x in (("o", 0.0), ("p", 0.0), ("q", 8.0)):
        told = topic.publish({"sku": sku, "x": x, "price": 10.0}, time=1)
        assert all(math.isfinite(n.score) for n in told)
        assert sku == "q" or [n.subscription for n in told] == ["fair"]
    assert [m.event for m in topic.top("fair", time=1)] == ["o", "p"]
    assert [m.event for m in topic.top("poison0", time=1)] == ["q"]
    assert topic.top("steep", time=1) == []


@pytest.mark.parametrize("by", ["-x", "x + 1", '{"near": {"x": 3}}'])
def test_an_object_without_a_score_is_no_candidate_whatever_it_is_ranked_by(tmp_path, by):
    with td.open(tmp_path, "objects", SCHEMA, key="sku") as topic:
        topic.publish({"sku": "before", "x": 1.0}, time=0)
        topic.subscribe("s", "x >= 0", score="1 + price", k=3, by=by, time=0)
        topic.publish_batch([{"sku": "lacks", "x": 2.0}, {"sku": "has", "x": 3.0, "price": 1.0}], time=1)
        assert [m.event for m in topic.top("s", time=1)] == ["has"]
    with td.open(tmp_path) as topic:
        assert [m.event for m in topic.top("s", time=1)] == ["has"]


def test_an_object_that_lacks_the_scores_attribute_is_no_candidate():
    """As `by` says of an attribute that is missing; see docs/ranking.md."""
    topic = td.Topic("objects", SCHEMA, key="sku")
    topic.subscribe("s", score="1 + price", k=2, time=0)
    assert topic.publish({"sku": "o", "x": 1.0}, time=1) == []
    assert [n.event for n in topic.publish({"sku": "p", "price": 1.0}, time=1)] == ["p"]


TestKeyedTopic = KeyedMachine.TestCase
TestKeyedTopic.settings = settings(max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
