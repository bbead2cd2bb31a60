"""A painted topic on a real broker, gateways as real processes, and what lists and streams should be by the definition."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from confluent_kafka import KafkaException, TopicPartition

import tidings as td
from tests.oracle.boards import BoardsOracle
from tests.spark.kafka.broker import Broker
from tidings.boards.messages.family import Family
from tidings.boards.paint.zones import Zones
from tidings.errors import TidingsError
from tidings.kafka.layout import Plan, named
from tidings.kafka.painter import Painter
from tidings.kafka.records import consumer_of
from tidings.match.answers.results import Notification, instant
from tidings.model.filter.clause import Clause
from tidings.model.filter.operands import compile_number

SCHEMA = td.Schema({"price": td.Number(), "stars": td.Number()})
FAMILY = Family("price", "stars", 4)
OTHER = Family("stars", "-price", 2)
"""Nobody watches it here; its records stand between the others."""
PATIENCE = 120.0
ROOT = Path(__file__).parents[3]


def wait_until(what: str, holds: Callable[[], Any], patience: float = PATIENCE) -> Any:
    deadline = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.05)
    return found


class Process:
    """A gateway; ended by its own handle."""

    def __init__(self, brokers: str, folder: Path, topic: str, hold: float) -> None:
        self.log = (folder.parent / f"{folder.name}.log").open("a")
        command = [sys.executable, "-m", "tidings", "gateway", "--topic", topic, "--brokers", brokers, "--folder", str(folder)]
        options = ["--port", "0", "--open", "--hold", str(hold), "--allow", "127.0.0.1"]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert " on http://" in line, f"the gateway said {line!r}: see {self.log.name}"
        self.url = line.rsplit(" on ", 1)[1].strip()

    def end(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()


class Ear:
    """Hears a watcher's stream wherever it is, and goes on after the last number when it breaks."""

    def __init__(self, world: World, watcher: str, cursor: int) -> None:
        self.world, self.watcher, self.last = world, watcher, cursor
        self.heard: list[dict[str, Any]] = []
        self.gaps: list[str] = []
        self.over = threading.Event()
        self.start()

    def start(self) -> None:
        self.over.clear()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """It hears nothing until it starts again after the last number."""
        self.over.set()
        self.thread.join(30)

    def _run(self) -> None:
        while not self.over.is_set():
            try:
                self._listen()
            except (httpx.HTTPError, IndexError):
                time.sleep(0.1)

    def _listen(self) -> None:
        url = self.world.draw_url()
        headers = {"last-event-id": str(self.last), "accept": "text/event-stream"}
        with (
            httpx.Client(timeout=httpx.Timeout(10, read=3), follow_redirects=True) as client,
            client.stream("GET", f"{url}/watchers/{self.watcher}/stream", headers=headers) as response,
        ):
            response.raise_for_status()
            fields: dict[str, str] = {}
            for line in response.iter_lines():
                if self.over.is_set():
                    return
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                    continue
                if fields.get("event") == "gap":
                    self.gaps.append(fields["data"])
                if fields.get("event") == "notification":
                    self.heard.append(json.loads(fields["data"]))
                self.last = max(self.last, int(fields.get("id", 0)))
                fields = {}


class World:
    def __init__(
        self, folder: Path, seed: int, zones: int = 4, sparse: bool = False, hold: float = 3600.0, paints: Any = Painter
    ) -> None:
        """`paints` makes the painter, of the broker's address and the plan."""
        self.folder, self.draw, self.hold = folder, random.Random(seed), hold
        self.broker = Broker(folder)
        sample = np.sort(np.random.default_rng(seed).random((200, 2)) * 10, 1)
        self.plan = Plan("flats", SCHEMA, "flat", (FAMILY, OTHER), (Zones.balanced(sample, zones),) * 2, sparse)
        try:
            self.painter = paints(self.broker.address, self.plan)
        except BaseException:
            self.broker.stop()
            raise
        self.oracle = BoardsOracle(SCHEMA)
        self.gateways: list[Process] = []
        self.ears: dict[str, Ear] = {}
        self.told: defaultdict[str, list[Notification]] = defaultdict(list)
        """by watcher, what it has to hear"""
        self.started = 0

    def draw_url(self) -> str:
        return self.draw.choice(self.gateways).url

    def join(self) -> Process:
        self.started += 1
        made = Process(self.broker.address, self.folder / f"gateway{self.started}", "flats", self.hold)
        self.gateways.append(made)
        return made

    def leave(self, number: int = signal.SIGKILL) -> None:
        self.gateways.pop(self.draw.randrange(len(self.gateways))).end(number)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Of any gateway, until one answers for it."""
        refusals: deque[str] = deque(maxlen=8)

        def answered() -> httpx.Response | None:
            try:
                with httpx.Client(timeout=20, follow_redirects=True) as client:
                    response = client.request(method, f"{self.draw_url()}{path}", **more)
            except (httpx.HTTPError, IndexError) as error:
                refusals.append(repr(error))
                return None
            refusals.append(f"{response.url} {response.status_code} {response.text}")
            return response if response.status_code < 500 and response.status_code != 404 else None

        try:
            found: httpx.Response = wait_until(f"{method} {path} is answered", answered)
        except AssertionError as error:
            raise AssertionError(f"{error}: {list(refusals)}") from error
        assert found.status_code < 300, found.text
        return found

    def watch(self, name: str, l: float, r: float, k: int = 3, hears: bool = False, **more: Any) -> dict[str, Any]:
        said = {"filter": f"price BETWEEN {l} AND {r}", "by": "stars", "k": k, **more}
        answer: dict[str, Any] = self.ask("PUT", f"/watchers/{name}", json=said).json()
        self.oracle.watch(name, [Clause(ranges={"price": (l, r)})], k, compile_number(SCHEMA, "stars").value)
        assert [tuple(entry) for entry in answer["list"]] == self.oracle.top(name)
        if hears:
            self.ears[name] = Ear(self, name, answer["cursor"])
        return answer

    def crowd(self, count: int, hears: int) -> None:
        """So many watchers at random; one in `hears` has its stream heard."""
        for i in range(count):
            l = self.draw.randrange(60) / 8
            self.watch(f"w{i}", l, l + self.draw.randrange(40) / 8, hears=i % hears == 0)

    def update(self, count: int = 1) -> None:
        """Objects come, change and go, in one sequence. A painter that is refused goes back to what Kafka has, and repeats it."""
        changes = self.drawn(count)

        def taken() -> bool:
            try:
                self.painter.publish(changes, 0)
            except (KafkaException, TidingsError):
                self.painter.load()
                return False
            return True

        wait_until("the painter is heard", taken)
        self.expect(changes)

    def drawn(self, count: int) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for _ in range(count):
            gone = self.draw.random() < 0.15
            flat = {"price": self.draw.randrange(80) / 8, "stars": self.draw.randrange(24) / 8}
            changes[f"f{self.draw.randrange(30)}"] = None if gone else flat
        return changes

    def expect(self, changes: dict[str, Any]) -> None:
        """They were published, and this has to be heard."""
        for watcher, key, score, rank, why in self.oracle.publish_batch(list(changes.items())):
            self.told[watcher].append(Notification(watcher, key, score, rank, why, instant(self.painter.last_at)))

    def ends(self) -> dict[int, int]:
        consumer, found = consumer_of(self.broker.address), {}
        for zone in range(self.painter.plan.partitions):
            found[zone] = consumer.get_watermark_offsets(TopicPartition(named("flats", "messages"), zone), timeout=30)[1]
        consumer.close()
        return found

    def caught_up(self) -> dict[str, Any]:
        """Every zone is served, and has heard everything."""
        ends = self.ends()

        def there() -> bool:
            served: dict[int, int] = {}
            for gateway in self.gateways:
                try:
                    zones = httpx.get(f"{gateway.url}/gateway", timeout=10).json().get("zones", {})
                except httpx.HTTPError:
                    return False
                served |= {int(number): zone["offset"] for number, zone in zones.items() if zone["ready"]}
            return all(served.get(zone, -1) >= end for zone, end in ends.items())

        return wait_until(f"gateways have heard everything up to {ends}", there)

    def listed(self, name: str) -> list[tuple[str, float]]:
        return [tuple(entry) for entry in self.ask("GET", f"/watchers/{name}").json()["list"]]

    def agree(self) -> None:
        """Every list is the oracle's, and every stream has all that it has to have, once each, in order."""
        self.caught_up()
        for name in self.oracle.watchers:
            wanted = self.oracle.top(name)
            # A gateway that Kafka gave up, being slow, may answer once more before it knows.
            wait_until(f"{name} has the list {wanted}", lambda name=name, wanted=wanted: self.listed(name) == wanted)
        for name, ear in self.ears.items():
            wanted = self.told[name]
            wait_until(f"{name} has heard {len(wanted)}", lambda ear=ear, wanted=wanted: len(ear.heard) >= len(wanted))
            heard = [(n["at"], n["event"]["flat"], n["why"], n["rank"], n["score"], n["id"]) for n in ear.heard]
            due = [(n.at.isoformat(), n.event, n.why, n.rank, n.score, n.id) for n in wanted]
            assert [at for at, *_ in heard] == sorted(at for at, *_ in due), name
            assert sorted(heard, key=repr) == sorted(due, key=repr), name
            assert ear.gaps == [], name

    def close(self) -> None:
        for ear in self.ears.values():
            ear.over.set()
        for gateway in self.gateways:
            gateway.end(signal.SIGTERM)
        for ear in self.ears.values():
            ear.stop()
        self.painter.close()
        self.broker.stop()


@contextmanager
def world(folder: Path, seed: int, **more: Any) -> Iterator[World]:
    made = World(folder, seed, **more)
    try:
        yield made
    finally:
        made.close()
