"""Who runs: a service with readers and sinks, publishers, listeners and a receiver; and who is killed when.

python -m tests.serve.faults.world [--seed 1] [--kills 10]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil

import tidings as td
from tests.serve.faults.children import lines
from tests.serve.faults.judging import Hearer, Interest, Sent, due, judge, missing, note_told, rows
from tests.serve.running import ROOT, Running
from tidings.errors import ServiceError

SCHEMA = {"price": td.Number(0, 1000)}
OWNERS = ("ann", "bob", "cat")
STANDING, PUBLISHERS, PATIENCE = 30, 2, 120.0
HEARD = ("receiver", "stream", "consumer")
WORKING = 0.75
"""How often everything works when somebody is killed; otherwise what was killed before may still be away."""
WRITER, READER, RECEIVER, CLIENT = KILLED = ("writers", "readers", "receivers", "clients")


class Child:
    def __init__(self, role: str, **settings: Any) -> None:
        self._command = [sys.executable, "-m", "tests.serve.faults.children", role, json.dumps(settings)]
        self.role, self._process = role, None
        self.start()

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        self._process = subprocess.Popen(self._command, env=environment, cwd=ROOT)

    def kill(self) -> None:
        assert self._process.poll() is None, f"a child that should {self.role} ended by itself"
        self._process.kill()
        self._process.wait()


class World:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.draw = folder, random.Random(seed)
        self.service = Running(folder / "data", "--readers", "2", "--allow", "127.0.0.1", "--log", "warning", access=())
        self.interests: dict[str, Interest] = {}
        self.killed: Counter[str] = Counter()
        self._over = Event()

    def start(self) -> None:
        self.service.start()
        url, key = self.service.url, self.service.key
        self.remote = td.connect(url, key)
        self.remote.make("deals", SCHEMA)
        keys = {owner: self._key(owner) for owner in OWNERS}
        for number in range(STANDING):
            self._subscribe(self.remote["deals"], f"s{number}", random.Random(number))
        port = free_port()
        files = [str(self.folder / name) for name in (*HEARD, *(f"p{n}" for n in range(PUBLISHERS)))]
        self.receiver = Child("receive", port=port, file=files[0])
        put = self.service.client.put
        for name, said in {"all": {"kind": "cloudevents", "batch": 5}, "ann": {"kind": "webhook", "owner": "ann"}}.items():
            put(f"/topics/deals/sinks/{name}", json=said | {"url": f"http://127.0.0.1:{port}/{name}"}).raise_for_status()
        self.remote["deals"].add_consumer("mail", owner="cat", after=0)
        time.sleep(1.1)
        self.listeners = [
            Child("listen", url=url, key=keys["bob"], file=files[1], owner="bob"),
            Child("listen", url=url, key=keys["cat"], file=files[2], consumer="mail"),
        ]
        self.publishers = [Child("publish", url=url, key=key, file=file, name=Path(file).name) for file in files[3:]]
        self.changing = Thread(target=self._keep_changing)
        self.changing.start()

    def _key(self, owner: str) -> str:
        made = self.service.client.post("/keys", json={"scopes": ["owner"], "owner": owner}).raise_for_status()
        return str(made.json()["key"])

    def _subscribe(self, topic: Any, id: str, draw: random.Random) -> None:
        lo = draw.uniform(0, 1000)
        interest = Interest(draw.choice(OWNERS), lo, lo + draw.uniform(0, 200), time.monotonic())
        self.interests[id] = interest
        said = {"filter": f"price BETWEEN {interest.lo!r} AND {interest.hi!r}", "owner": interest.owner}
        self._surely(lambda: topic.subscribe(id, **said))
        interest.made = time.monotonic()

    def _surely(self, call: Any) -> None:
        """A change that is not acknowledged is asked for again."""
        while True:
            try:
                call()
                return
            except ServiceError:
                time.sleep(0.05)

    def _keep_changing(self) -> None:
        """Subscriptions come and go while all else happens."""
        draw, number = random.Random(7), 0
        with td.connect(self.service.url, self.service.key) as service:
            topic = service["deals"]
            while not self._over.wait(0.05):
                self._subscribe(topic, f"x{number}", draw)
                number += 1
                if number > 5:
                    id = f"x{number - 5}"
                    self.interests[id].ending = time.monotonic()
                    self._surely(lambda id=id: topic.unsubscribe_many([id]))
                    self.interests[id].gone = time.monotonic()

    def kill(self, whom: str) -> None:
        """One of them, wherever it is in what it does."""
        if whom in (WRITER, READER):
            self._kill_process(whom == WRITER)
        else:
            child = self.receiver if whom == RECEIVER else self.draw.choice([*self.listeners, *self.publishers])
            child.kill()
            time.sleep(self.draw.uniform(0, 0.3))
            child.start()
        self.killed[whom] += 1

    def _kill_process(self, writer: bool) -> None:
        assert self.service.process is not None
        while True:
            children = psutil.Process(self.service.process.pid).children()
            try:
                fit = [c for c in children if (json.loads(c.cmdline()[-1])["writer"] is None) == writer]
            except (psutil.NoSuchProcess, psutil.ZombieProcess, IndexError, ValueError):
                continue
            if fit:
                self.draw.choice(fit).kill()
                return
            time.sleep(0.02)

    def must_work(self) -> None:
        """Wait until events are taken and heard again."""
        files = [[self.folder / f"p{number}" for number in range(PUBLISHERS)], *([self.folder / n] for n in HEARD)]
        sizes = [size_of(some) for some in files]
        deadline = time.monotonic() + PATIENCE
        while any(size_of(some) == size for some, size in zip(files, sizes, strict=True)):
            assert time.monotonic() < deadline, f"of {files} not all have grown for {PATIENCE:g} seconds"
            time.sleep(0.02)

    def end_load(self) -> None:
        for child in self.publishers:
            child.kill()
        self._over.set()
        self.changing.join()

    def events(self) -> dict[str, Sent]:
        found: dict[str, Sent] = {}
        for number in range(PUBLISHERS):
            for kind, *rest in lines(self.folder / f"p{number}"):
                if kind == "sent":
                    at, events = rest
                    found |= {id: Sent(price, at) for id, price in events}
                elif kind == "taken":
                    at, ids = rest
                    for id in ids:
                        found[id].taken = at
        return found

    def hearers(self) -> list[Hearer]:
        received = [*lines(self.folder / "receiver")]
        return [
            Hearer("sink of all", None, False, rows(row[1:] for row in received if row[0] == "/all")),
            Hearer("ann's sink", "ann", False, rows(row[1:] for row in received if row[0] == "/ann")),
            Hearer("bob's stream", "bob", True, rows(lines(self.folder / "stream"))),
            Hearer("cat's consumer", "cat", False, rows(lines(self.folder / "consumer"))),
        ]

    def judged(self) -> Counter[str]:
        """Wait until all is told that must be, then look at all that was."""
        events = self.events()
        deadline, lack = time.monotonic() + PATIENCE, -1
        while True:
            hearers = self.hearers()
            note_told(events, hearers)
            wanted = due(self.interests, events)
            lacking = missing(wanted, hearers)
            count = sum(map(len, lacking.values()))
            if not count:
                break
            if count != lack:
                deadline, lack = time.monotonic() + PATIENCE, count
            assert time.monotonic() < deadline, f"not told: { {name: (len(l), l[:3]) for name, l in lacking.items()} }"
            time.sleep(0.3)
        repeats = judge(self.interests, events, hearers)
        assert wanted, "nobody was to hear of anything"
        taken = sum(event.taken < float("inf") for event in events.values())
        told = sum(len(hearer.told) for hearer in hearers)
        return Counter(
            {"events acknowledged under kills": taken, "notifications heard under kills": told, "heard again, same id": repeats}
        )

    def stop(self) -> None:
        for child in [self.receiver, *self.listeners]:
            child.kill()
        self.remote.close()
        self.service.stop()


def faults(seed: int, kills: int, pace: float = 1.0) -> dict[str, int]:
    """Kill so many of each kind; counts by name."""
    folder = Path(tempfile.mkdtemp())
    world = World(folder, seed)
    try:
        world.start()
        order = [whom for whom in KILLED for _ in range(kills)]
        world.draw.shuffle(order)
        for whom in order:
            if world.draw.random() < WORKING:
                world.must_work()
            time.sleep(world.draw.uniform(0, pace))
            world.kill(whom)
        world.must_work()
        world.end_load()
        counts = world.judged()
    finally:
        world.stop()
    shutil.rmtree(folder)
    return {**{f"kills: {whom} of a service": count for whom, count in world.killed.items()}, **counts}


def size_of(files: list[Path]) -> int:
    return sum(file.stat().st_size for file in files if file.exists())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=10)
    asked = parser.parse_args()
    print(faults(asked.seed, asked.kills))
