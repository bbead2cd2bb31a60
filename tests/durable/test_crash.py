"""A process that writes and publishes is killed at random moments: what it acknowledged is there, what it did not acknowledge is
there wholly or not at all, and every answer is the oracles'."""

from __future__ import annotations

import atexit
import copy
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tidings as td
from tests.durable.crash_child import SCHEMA
from tests.hostile import hostile, ordinary
from tests.oracle.topic import OracleMatch, TopicOracle
from tests.oracle.windows import Published, WindowsOracle
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.rank.relevance import relevance_of

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000
BRANDS = ["a", "b", "c"]
WORDS = ["red", "green", "blue"]
ACTS = 60


class Model:
    """What the topic must hold after the acts it was given."""

    def __init__(self) -> None:
        self.oracle = TopicOracle(SCHEMA)
        self.windows = WindowsOracle()
        self.time = 0
        self.published: dict[str, tuple[int, int]] = {}
        """as the how-manieth, and when"""
        self.numbered: list[tuple[int, tuple[Any, ...]]] = []
        """The outbox as it was last read, and then what has come."""
        self.fresh: list[tuple[Any, ...]] = []

    def after(self, name: str, *arguments: Any) -> Model:
        other = copy.deepcopy(self)
        getattr(other, name)(*arguments)
        return other

    def subscribe(self, id: str, filter: str | None, ranking: dict[str, Any], time: int) -> None:
        self.time = time
        self.oracle.subscribe(id, filter, **ranking)
        self._restart(id)

    def subscribe_many(self, columns: dict[str, Any], time: int) -> None:
        self.time = time
        k = columns.get("k", [None] * len(columns["id"]))
        for id, lo, score, limit in zip(columns["id"], columns["price.lo"], columns["score"], k, strict=True):
            self.oracle.subscribe(id, f"price >= {lo}", score=score, k=limit)
            self._restart(id)

    def update(self, id: str, changes: dict[str, Any], time: int) -> None:
        self.time, before = time, self.oracle.subscriptions[id]
        self.oracle.update(id, score=changes["score"])
        if before.by is None and before.k is not None and before.score != changes["score"]:
            reached = [match.number for match in self._live(before)]
            self._tell(self.windows.change(id, {}, self._live(self.oracle.subscriptions[id]), reached, time * SECOND))

    def _live(self, s: Subscription) -> list[Published]:
        """The live events that a subscription without a `by` matches."""
        events, now = self.oracle.events.values(), self.time * SECOND
        live = [e for e in events if (e.expires is None or now < e.expires) and any(c.holds(SCHEMA, e.values) for c in s.clauses)]
        return [Published(e.id, s.score, self.published[e.id][1], e.expires, self.published[e.id][0]) for e in live]

    def unsubscribe(self, id: str) -> None:
        self.oracle.unsubscribe(id)
        self._restart(id)

    def _restart(self, id: str) -> None:
        if id in self.windows.interests:
            self.windows.deactivate(id)
        s = self.oracle.subscriptions.get(id)
        if s is not None and (s.k is not None or s.window is not None):
            window = (s.window.duration, s.window.count) if s.window is not None else (None, None)
            self.windows.activate(id, s.k, *window, self.time * SECOND)

    def publish(self, event: dict[str, Any], time: int) -> None:
        self.time, now = time, time * SECOND
        matches = self.oracle.match(event, time=now)
        read = self.oracle.publish(event, now)
        ranked = [(m.subscription, self._judged(read, m, now)) for m in matches if m.subscription in self.windows.interests]
        ranked = [(id, relevance) for id, relevance in ranked if relevance is not None]
        self.fresh += [(*m_fields(m), "matched", now) for m in matches if m.subscription not in self.windows.interests]
        self._tell(self.windows.publish(read.id, now, read.expires, ranked))
        self.published[read.id] = self.windows.number, now

    def _judged(self, event: Event, match: OracleMatch, now: int) -> float | None:
        by = self.oracle.subscriptions[match.subscription].by
        return match.score if by is None else relevance_of(SCHEMA, by)(event.values, now)

    def publish_batch(self, events: list[dict[str, Any]], time: int) -> None:
        for event in events:
            self.publish(event, time)

    def advance(self, time: int) -> None:
        self.time = time
        self._tell(self.windows.advance(time * SECOND))

    def _tell(self, notices: list[Any]) -> None:
        self.fresh += [(s, e, score, rank or None, why, at) for s, e, score, rank, why, at in notices]

    def acknowledge(self, number: int) -> None:
        self.numbered = [(n, note) for n, note in self.numbered if n > number]

    def flush(self) -> None:
        pass

    merge = flush

    def answers(self, probes: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "subscriptions": len(self.oracle.subscriptions),
            "matches": [[tuple(m) for m in self.oracle.match(probe, time=self.time * SECOND)] for probe in probes],
            "live": self.oracle.search("price IS NULL OR price IS NOT NULL", time=self.time * SECOND),
            "tops": {id: self.windows.top(id, self.time * SECOND) for id in self.lists()},
            "since": {id: interest.since for id, interest in self.windows.interests.items()},
            "clock": (self.windows.clock if self.windows.clock > 0 else None, self.windows.number),
            # An event that was published twice may be told of twice in the same words: that is one notification.
            "outbox": sorted({note for _, note in self.numbered} | set(self.fresh), key=repr),
        }

    def lists(self) -> list[str]:
        return sorted(id for id, interest in self.windows.interests.items() if interest.k is not None)


def m_fields(match: Any) -> tuple[Any, ...]:
    return match.subscription, match.event, match.score, None


def answers_of(topic: Any, model: Model, probes: list[dict[str, Any]]) -> dict[str, Any]:
    """What the topic says where `model` says `answers`."""
    return {
        "subscriptions": len(topic) - sum(id in topic.store for id in hostile("price")),
        "matches": [[tuple(m) for m in ordinary(topic.match(probe, time=model.time))] for probe in probes],
        "live": topic.search(None, time=model.time)["id"].to_pylist(),
        "tops": {id: [(m.event, m.score) for m in topic.top(id, time=model.time)] for id in model.lists() if id in topic.store},
        "since": {id: topic.subscription(id).since for id in model.windows.interests if id in topic.store},
        "clock": (topic.publisher.clock, topic.publisher.windows.publications),
        "outbox": sorted(set(ordinary(note for _, note in outbox(topic))), key=repr),
    }


def outbox(topic: Any) -> list[tuple[int, tuple[Any, ...]]]:
    return [(number, (*note[:5], round(note.at.timestamp() * SECOND))) for number, note in topic.outbox(limit=10**9)]


def event(random: random.Random, id: str, time: int) -> dict[str, Any]:
    made: dict[str, Any] = {"id": id, "price": random.randrange(65) / 8, "brand": random.choice(BRANDS)}
    made["about"] = " ".join(random.sample(WORDS, random.randrange(3)))
    if random.random() < 0.4:
        made["expires"] = time + random.randrange(1, 6)
    return made


def script(random: random.Random, model: Model, length: int) -> Iterator[list[Any]]:
    """Acts that can follow `model`, one after the other."""
    known, time = set(model.oracle.subscriptions), model.time
    waiting = [number for number, _ in model.numbered]
    for _ in range(length):
        time += random.choice([0, 0, 1, 2])
        id = f"s{random.randrange(30)}"
        draw = random.random()
        if draw < 0.3:
            filter = random.choice(
                [
                    f"price <= {random.randrange(65) / 8}",
                    f"brand = '{random.choice(BRANDS)}'",
                    f"A_CONTAINS(about, ('{random.choice(WORDS)}'))",
                ]
            )
            ranking: dict[str, Any] = {"score": float(random.randrange(4))}
            if random.random() < 0.5:
                ranking |= {"k": random.randrange(1, 3), "window": random.choice(["3 s", "4 events", None])}
            if random.random() < 0.3:
                filter = None
                near = json.dumps({"near": {"price": random.randrange(65) / 8}})
                ranking |= {"k": random.randrange(1, 3), "window": random.choice(["3 s", "4 events"]), "by": near}
            known.add(id)
            yield ["subscribe", id, filter, ranking, time]
        elif draw < 0.4:
            ids = [f"s{i}" for i in random.sample(range(30), random.randrange(1, 10))]
            columns: dict[str, Any] = {"id": ids, "price.lo": [random.randrange(65) / 8 for _ in ids]}
            columns["score"] = [float(random.randrange(4)) for _ in ids]
            if random.random() < 0.3:
                columns["k"] = [2] * len(ids)
            known |= set(ids)
            yield ["subscribe_many", columns, time]
        elif draw < 0.5 and id in known:
            yield ["update", id, {"score": float(random.randrange(4))}, time]
        elif draw < 0.6 and id in known:
            known.remove(id)
            yield ["unsubscribe", id]
        elif draw < 0.8:
            time += 1
            yield ["publish", event(random, f"e{random.randrange(40)}", time), time]
        elif draw < 0.86:
            time += 1
            names = random.sample(range(40), random.randrange(1, 5))
            yield ["publish_batch", [event(random, f"e{name}", time) for name in names], time]
        elif draw < 0.9:
            time += 1
            yield ["advance", time]
        elif draw < 0.93 and waiting:
            yield ["acknowledge", random.choice(waiting)]
        elif draw < 0.97:
            yield ["flush"]
        else:
            yield ["merge"]


REFUSAL = re.compile(
    r"^(MemoryError|OSError|ImportError|LLVM ERROR|RuntimeError: can't start new thread"
    r"|.*\b(StorageError|ArrowMemoryError|ArrowException|_ArrayMemoryError))\b",
    re.MULTILINE,
)
LIMITS = {"RLIMIT_AS": 64 << 20, "RLIMIT_NOFILE": 6}
"""How much more than it has a child may be given at most."""


@cache
def server() -> subprocess.Popen[str]:
    """The process whose children are killed. It ends when this one does."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.durable.crash_child"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(started.communicate)
    ask(started, warm=list(script(random.Random(0), Model(), 2 * ACTS)))
    return started


def ask(server: subprocess.Popen[str], **asked: Any) -> dict[str, Any]:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(asked) + "\n")
    server.stdin.flush()
    answer: dict[str, Any] = json.loads(server.stdout.readline())
    return answer


def run_and_kill(folder: Path, acts: list[list[Any]], random: random.Random, limit: str | None = None) -> int:
    """How many acts a child acknowledged before it was killed: while it opened the topic, at a moment, or after a count; or, with
    a `limit`, before it was refused memory or files."""
    ended = ask(
        server(),
        folder=str(folder),
        acts=acts,
        wanted=random.randrange(len(acts) + 1),
        most=random.uniform(0.0, 0.3) if random.random() < 0.3 else 120,
        then=random.choice([0.0, random.uniform(0.0, 0.003), random.uniform(0.0, 0.05)]),
        limit=None if limit is None else [limit, random.randrange(LIMITS[limit])],
    )
    refused = limit is not None and (ended["status"] < 0 or REFUSAL.search(ended["complaint"]))
    assert ended["status"] == -9 or refused, f"the child failed by itself: {ended['complaint']}"
    return int(ended["done"])


def survive(seed: int, kills: int, place: str | None, limit: str | None = None) -> None:
    draw = random.Random(seed)
    folder = Path(tempfile.mkdtemp(dir=place)) / "topic"
    model = Model()
    try:
        for kill in range(kills):
            acts = list(script(draw, model, ACTS))
            done = run_and_kill(folder, acts, draw, limit)
            for name, *arguments in acts[:done]:
                getattr(model, name)(*arguments)
            states = [model, model.after(*acts[done])] if done < len(acts) else [model]
            if (folder / "registry.sqlite").exists():
                model = recognised(folder, states, draw, f"seed {seed}, kill {kill}, after {done} acts")
            else:
                assert not done
    finally:
        shutil.rmtree(folder.parent)


def recognised(folder: Path, states: list[Model], draw: random.Random, when: str) -> Model:
    """Which of the states that may be is the one that is."""
    probes = [event(draw, f"p{i}", 0) for i in range(12)]
    with td.open(folder, "t", SCHEMA) as topic:
        found = [(answers_of(topic, state, probes), state.answers(probes), state) for state in states]
        same = [state for answers, expected, state in found if answers == expected]
        assert same, f"{when}: {[{k: (a[k], e[k]) for k in e if a[k] != e[k]} for a, e, _ in found]}"
        for segment in topic.store.snapshot.segments:
            segment.check()
        same[0].numbered, same[0].fresh = [(n, note) for n, note in outbox(topic) if ordinary([note])], []
        if draw.random() < 0.5:
            topic.abandon()
    return same[0]


def memory_disk() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_writer_loses_and_halves_nothing(seed):
    survive(seed, 3, memory_disk())


@pytest.mark.parametrize("limit", LIMITS)
def test_a_writer_that_is_refused_memory_or_files_loses_and_halves_nothing(limit):
    survive(3, 2, memory_disk(), limit)
