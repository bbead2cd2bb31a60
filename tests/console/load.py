"""Load for the console: a topic with people who wait, and a thread that publishes so many events a second."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time

import httpx

from tidings.console import demo

BATCHES = 5
"""A second."""
SCHEMA = {"price": {"type": "number", "lo": 0, "hi": 2000}, "brand": "category", "place": "place", "about": "words"}
LINES = {"Content-Type": "application/x-ndjson"}


def prepared(client: httpx.Client, name: str, people: int) -> None:
    """A topic whose events live for half a minute, with so many of the demo's people."""
    assert client.put(f"/topics/{name}", json={"schema": SCHEMA, "retention": "30 seconds"}).is_success
    some = itertools.islice(demo.people(random.Random(7)), people)
    lines = "\n".join(json.dumps({"id": id, **said}) for id, said in some)
    assert client.post(f"/topics/{name}/subscriptions", content=lines, headers=LINES).is_success


class Load(threading.Thread):
    """`with Load(url, topic, 5000) as load:`; `published` and `told` say how far it is, `late` how far behind it was at most."""

    def __init__(self, url: str, topic: str, rate: int, seconds: float = float("inf")) -> None:
        super().__init__(name="load", daemon=True)
        self.path, self.size = f"{url}/topics/{topic}/events", rate // BATCHES
        self.most = seconds * BATCHES
        self.published = self.told = 0
        self.late = 0.0
        self.over = threading.Event()
        stream = demo.batches(random.Random(2026))
        events = itertools.chain.from_iterable(events for events, _ in stream)
        drawn = [dict(event, id=f"@{number}") for number, event in enumerate(itertools.islice(events, self.size))]
        self.lines = "\n".join(map(json.dumps, drawn)).encode()

    def run(self) -> None:
        began = time.monotonic()
        with httpx.Client(timeout=60) as client:
            for number in itertools.count():
                if self.over.wait(max(0.0, began + number / BATCHES - time.monotonic())) or number >= self.most:
                    return
                self.late = max(self.late, time.monotonic() - began - number / BATCHES)
                answer = client.post(self.path, content=self.lines.replace(b'"@', b'"%d-' % number), headers=LINES)
                self.told += answer.json()["told"]
                self.published += self.size

    def __enter__(self) -> Load:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.over.set()
        self.join()
