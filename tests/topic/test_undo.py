"""A topic in memory beside the oracle, with expiry, replay and hostile neighbours: a change that fails leaves nothing behind."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import tidings as td
from tests.hostile import hostile, ordinary
from tests.oracle.windows import Published, WindowsOracle
from tidings.boards.boards import Boards
from tidings.match.store import housekeeping, merging
from tidings.match.store.housekeeping import Housekeeping
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.memtable import Memtable
from tidings.match.store.similar import Similar
from tidings.match.store.store import Store
from tidings.topic import publisher, undo
from tidings.topic.live.live_events import LiveEvents
from tidings.topic.topic import Topic
from tidings.windows.near.ideal_points import IdealPoints
from tidings.windows.slots import SlotWindows
from tidings.windows.windows import Windows

SECOND = 1_000_000
SCHEMA = td.Schema({"price": td.Number(0, 8), "size": td.Number()})
PLACES = [
    (publisher, "in_order"),
    (SlotWindows, "_run"),
    (SlotWindows, "_told"),
    (SlotWindows, "_make_room"),
    (Windows, "activate"),
    (IdealPoints, "publish"),
    (LiveEvents, "_append"),
    (LiveEvents, "expire"),
    (Memtable, "put"),
    (Memtable, "_append"),
    (LiveSegment, "bury"),
    (Similar, "put"),
    (Store, "pack"),
]
BY = {None: lambda e: 1.0, "-price": lambda e: -e["price"], "size": lambda e: e.get("size")}
NEAR = {"near": {"price": 4.0}}


class Lost(BaseException):
    """Like Ctrl-C, nothing that anybody catches."""


class Model:
    """What is heard, from the definition."""

    def __init__(self) -> None:
        self.windows = WindowsOracle()
        self.terms: dict[str, dict[str, Any]] = {}
        self.live: dict[str, tuple[dict[str, Any], int, int]] = {}

    def subscribe(self, id: str, terms: dict[str, Any], replay: bool, time: int) -> list[Any]:
        self.terms[id] = terms
        self.windows.interests.pop(id, None)
        replay = replay and not self.ended(id, time)
        if terms["k"] is None and terms["window"] is None:
            matches = [e for e, _, _ in self.live_at(time) if e["price"] >= terms["lo"]]
            return [(id, e["id"], 1.0, None, "matched", time) for e in sorted(matches, key=lambda e: e["id"])] if replay else []
        duration, count = terms["span"]
        self.windows.activate(id, terms["k"], duration, count, time)
        if not replay:
            return []
        live = [
            Published(e["id"], relevance, at, expires_of(e), number)
            for e, at, number in self.live_at(time)
            if e["price"] >= terms["lo"] and (relevance := self.relevance(id, e)) is not None
        ]
        return plain(self.windows.replay(id, live, time))

    def live_at(self, time: int) -> list[tuple[dict[str, Any], int, int]]:
        now = max(time, self.windows.clock)
        return [one for one in self.live.values() if expires_of(one[0]) is None or now < expires_of(one[0])]

    def ended(self, id: str, time: int) -> bool:
        end = self.terms[id]["expires"]
        return end is not None and end * SECOND <= max(time, self.windows.clock)

    def publish(self, event: dict[str, Any], time: int) -> list[Any]:
        hears = [id for id, t in self.terms.items() if event["price"] >= t["lo"] and not self.ended(id, time)]
        ranked = [(id, self.relevance(id, event)) for id in hears if id in self.windows.interests]
        notes = self.windows.publish(event["id"], time, expires_of(event), [(id, r) for id, r in ranked if r is not None])
        self.live[event["id"]] = (event, time, self.windows.number)
        matched = [(id, event["id"], 1.0, None, "matched", time) for id in hears if id not in self.windows.interests]
        return matched + self.heard(notes)

    def relevance(self, id: str, event: dict[str, Any]) -> float | None:
        by = self.terms[id]["by"]
        return -abs(event["price"] - 4.0) if by == "near" else BY[by](event)

    def advance(self, time: int) -> list[Any]:
        return self.heard(self.windows.advance(time))

    def heard(self, notices: list[Any]) -> list[Any]:
        ends = {id: t["expires"] * SECOND for id, t in self.terms.items() if t["expires"] is not None}
        return plain(n for n in notices if n[0] not in ends or n[5] < ends[n[0]])


def plain(notices: Any) -> list[Any]:
    return [(s, e, score, rank or None, why, at) for s, e, score, rank, why, at in notices]


def expires_of(event: dict[str, Any]) -> int | None:
    return event["expires"] * SECOND if "expires" in event else None


def terms(draw: random.Random, time: int) -> dict[str, Any]:
    window, span = draw.choice([(None, (None, None)), ("3 s", (3 * SECOND, None)), ("4 events", (None, 4))])
    end = time + draw.randrange(5) if draw.random() < 0.4 else None
    by = draw.choice([None, "-price", "size"])
    made = {"k": draw.choice([None, 0, 1, 2, 5]), "window": window, "span": span, "by": by, "expires": end}
    if draw.random() < 0.2:
        near = {"k": draw.choice([1, 2]), "window": "3 s", "span": (3 * SECOND, None), "by": "near"}
        return {**made, **near, "expires": None, "lo": -9.0}
    return {**made, "lo": draw.randrange(40) / 8}


class Pair:
    """The topic and the model, given the same acts; the topic may be made to fail first."""

    def __init__(self, seed: int, failing: bool) -> None:
        self.draw = random.Random(seed)
        self.topic = Topic("t", SCHEMA)
        self.model = Model()
        self.failing, self.failed = failing, 0
        for id, ranking in hostile("price", 1).items():
            self.topic.subscribe(id, **ranking, time=0)

    def both(self, act: Any, expected: list[Any]) -> None:
        if self.failing and self.draw.random() < 0.5:
            self.fail(act)
        notes = ordinary(act())
        assert sorted([(*n[:5], round(n.at.timestamp() * SECOND)) for n in notes], key=repr) == sorted(expected, key=repr)

    def fail(self, act: Any) -> None:
        """Let it fail at the n-th passing of a place, before or after what is done there."""
        owner, name = self.draw.choice(PLACES)
        done, left, late = getattr(owner, name), [self.draw.randrange(3)], self.draw.random() < 0.5

        def lose(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] == -1 and not late:
                raise Lost
            result = done(*arguments)
            if left[0] == -1:
                raise Lost
            return result

        clock = self.topic.publisher.clock
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, lose)
            try:
                patch.setattr(self.topic.journal, "published", failing_at_last)
                act()
            except Lost:
                self.failed += 1
        self.topic.search(time=0)
        assert self.topic.publisher.clock == clock, "also if undoing was interrupted: it is done at the next call"

    def run(self, acts: int) -> None:
        time, draw, model, topic = 1, self.draw, self.model, self.topic
        for n in range(acts):
            time += draw.choice([0, 0, 1, 1, 2])
            what = draw.random()
            if what < 0.05 and model.terms:
                self.unsubscribe(draw.choice(sorted(model.terms)))
            elif what < 0.3:
                id, made = f"s{draw.randrange(8)}", terms(draw, time)
                self.subscribe(id, made, draw.random() < 0.6, time)
            elif what < 0.85:
                events = [self.event(f"e{n}.{i}", time) for i in range(draw.choice([1, 1, 3]))]
                expected = [note for event in events for note in model.publish(event, time * SECOND)]
                self.both(lambda events=events, at=time: topic.publish_batch(events, time=at), expected)
            else:
                self.both(lambda at=time: topic.advance(at), model.advance(time * SECOND))
            probe = {"id": "probe", "price": draw.randrange(65) / 8}
            hears = [id for id, t in model.terms.items() if probe["price"] >= t["lo"] and not model.ended(id, time * SECOND)]
            heard = [m.subscription for m in ordinary(topic.match(probe, time=max(time, model.windows.clock // SECOND)))]
            assert heard == sorted(hears)
            for id, t in model.terms.items():
                if t["k"]:
                    wanted = [] if model.ended(id, time * SECOND) else model.windows.top(id, time * SECOND)
                    assert [(m.event, m.score) for m in topic.top(id, time=time)] == wanted, id

    def subscribe(self, id: str, made: dict[str, Any], replay: bool, time: int) -> None:
        if made["k"] is None and made["window"] is None:
            made["by"] = None
        by = NEAR if made["by"] == "near" else made["by"]
        filter = None if made["by"] == "near" else f"price >= {made['lo']}"
        ranking = {name: made[name] for name in ("k", "window", "expires")} | ({"by": by} if by else {})
        told = self.model.subscribe(id, made, replay, time * SECOND)
        self.both(lambda: self.topic.subscribe(id, filter, **ranking, replay=replay, time=time), told)

    def unsubscribe(self, id: str) -> None:
        del self.model.terms[id]
        self.model.windows.interests.pop(id, None)
        if self.failing and self.draw.random() < 0.5:
            self.fail(lambda: self.topic.unsubscribe(id))
        if id in self.topic:
            self.topic.unsubscribe(id)

    def event(self, id: str, time: int) -> dict[str, Any]:
        made: dict[str, Any] = {"id": id, "price": self.draw.randrange(65) / 8}
        if self.draw.random() < 0.7:
            made["size"] = float(self.draw.randrange(4))
        if self.draw.random() < 0.4:
            made["expires"] = time + self.draw.randrange(1, 6)
        return made


def failing_at_last(*_: Any) -> None:
    raise Lost


@pytest.mark.parametrize("seed", range(6))
def test_lists_expiry_and_replay_are_the_oracle_s(seed):
    Pair(seed, failing=False).run(60)


@pytest.mark.parametrize("seed", range(6))
def test_a_change_that_fails_anywhere_leaves_nothing_behind(seed, monkeypatch):
    monkeypatch.setattr(undo, "FEWEST", 4 if seed % 2 else 256)
    monkeypatch.setattr(undo, "SHARE", 0 if seed % 2 else 40)
    monkeypatch.setattr(merging, "FLUSH_AT", 5)
    pair = Pair(seed, failing=True)
    pair.run(60)
    assert pair.failed > 5


@pytest.mark.parametrize(
    "place", [(Memtable, "put"), (LiveSegment, "bury"), (Similar, "put"), (Store, "pack"), (Housekeeping, "_background")]
)
@pytest.mark.parametrize("late", [False, True])
def test_a_failed_change_of_subscriptions_is_undone(place, late, monkeypatch):
    def made() -> td.Topic:
        topic = td.Topic("t", SCHEMA)
        topic.subscribe_many(pa.table({"id": [f"s{i}" for i in range(9)], "price.lo": [i / 2 for i in range(9)]}), time=0)
        topic.subscribe("fresh", "price >= 1", score=3.0, time=0)
        topic.subscribe("near", k=1, window="9 s", by=NEAR, time=0)
        topic.publish({"id": "e", "price": 4.5}, time=1)
        return topic

    acts = [
        lambda topic: topic.subscribe("s3", "price >= 4", score=2.0, time=2),
        lambda topic: topic.subscribe("new", "price >= 0", time=2),
        lambda topic: topic.subscribe("near", k=2, window="9 s", by=NEAR, time=2),
        lambda topic: topic.update("fresh", score=5.0, time=2),
        lambda topic: topic.unsubscribe("s5"),
        lambda topic: topic.unsubscribe_many(["s1", "s2", "fresh"]),
        lambda topic: topic.subscribe_many(pa.table({"id": ["s1", "fresh", "more"], "price.lo": [0.0, 0.0, 0.0]}), time=2),
    ]
    monkeypatch.setattr(merging, "FLUSH_AT", 3)
    # What a quiet topic does by itself is not what fails here.
    monkeypatch.setattr(housekeeping, "QUIET", 3600.0)
    topic, twin, done = made(), made(), getattr(*place)

    def lose(*arguments: Any) -> Any:
        if late:
            done(*arguments)
        raise Lost

    for act in acts:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*place, lose)
            try:
                act(topic)
                lost = False
            except Lost:
                lost = True
        if not lost:
            act(twin)
        topic.search(time=0)
        for price in (0.0, 2.5, 8.0):
            assert topic.match({"id": "p", "price": price}, time=2) == twin.match({"id": "p", "price": price}, time=2)
        assert sorted(s.id for s in topic) == sorted(s.id for s in twin)
        assert topic.top("near", time=2) == twin.top("near", time=2)
    assert topic.publish({"id": "f", "price": 4.0}, time=3) == twin.publish({"id": "f", "price": 4.0}, time=3)


@pytest.mark.parametrize("place", [(Boards, "publish_batch"), (LiveEvents, "put"), (Boards, "expire")])
def test_a_failed_change_of_objects_is_undone(place, monkeypatch):
    def made() -> td.Topic:
        topic = td.Topic("t", SCHEMA, key="sku")
        topic.subscribe("best", "price >= 1", k=2, by="-price", time=0)
        topic.subscribe("ends", "price >= 1", k=2, by="-price", expires=4, time=0)
        topic.publish_batch([{"sku": f"o{i}", "price": i, "expires": 4 if i == 2 else None} for i in range(5)], time=1)
        return topic

    topic, twin = made(), made()
    done = getattr(*place)

    def lose(*arguments: Any) -> Any:
        done(*arguments)
        raise Lost

    monkeypatch.setattr(*place, lose)
    with pytest.raises(Lost):
        topic.publish_batch([{"sku": "o1", "price": 0.5}, {"sku": "new", "price": 1.5}], time=5)
    monkeypatch.undo()
    topic.search(time=0)
    assert topic.publisher.clock == twin.publisher.clock
    for id in ("best", "ends"):
        assert topic.top(id, time=1) == twin.top(id, time=1) != []
    assert topic.publish({"sku": "o1", "price": 3}, time=6) == twin.publish({"sku": "o1", "price": 3}, time=6) != []


def test_the_clock_of_nothing_is_the_beginning():
    topic = Topic("t", SCHEMA)
    assert topic.publisher.clock is None
    topic.publish({"price": 1}, time=-7)
    assert topic.publisher.clock == -7_000_000
    topic.publish_batch([{"price": 1}, {"price": 2}], time=-8)
    assert topic.publisher.clock == -7_000_000
