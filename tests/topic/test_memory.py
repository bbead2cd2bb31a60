"""An amount of memory that cannot be had is refused before anything is registered, and the topic goes on."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tidings as td
from tests.durable.crash_child import allow
from tests.durable.test_guards import in_child

SCHEMA = {"price": td.Number()}
RIGHT = (False, True, True, True, True)
RANKING: dict[str, Any] = {"k": 100_000, "window": "1 day", "by": {"near": {"price": 5.0}}}


def until_refused(topic: td.Topic, more: int) -> tuple[Any, ...]:
    """In a child with so much `more` memory: subscribe until it does not suffice; then, with enough, what the topic says."""
    allow("RLIMIT_AS", more)
    taken = 0
    try:
        while True:
            topic.subscribe(f"s{taken}", **RANKING, time=2)
            taken += 1
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    notes = topic.publish({"id": "new", "price": 7.0}, time=3)
    heard = {note.subscription for note in notes}
    return (
        f"s{taken}" in topic,
        len(topic) == taken + 1,
        taken > 0,
        "calm" in heard,
        heard <= {"calm", *(f"s{n}" for n in range(taken))},
    )


def begun(keyed: bool) -> td.Topic:
    topic = td.Topic("t", SCHEMA, key="id" if keyed else None)
    topic.subscribe("calm", "price >= 0", time=0)
    topic.publish_batch([{"id": f"e{i}", "price": float(i % 9)} for i in range(4_000)], time=1)
    topic.top("calm", time=1) if keyed else topic.match({"id": "e", "price": 1.0}, time=1)
    return topic


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_what_cannot_be_had_is_refused_and_nothing_is_registered():
    topic = begun(keyed=False)
    assert in_child(lambda: until_refused(topic, 48 << 20)) == repr(RIGHT)


@pytest.mark.deep
def test_what_cannot_be_had_is_refused_by_a_keyed_topic():
    """In a process of its own, not a fork: what other long tests have loaded need not survive without memory."""
    code = "from tests.topic.test_memory import begun, until_refused; print(until_refused(begun(keyed=True), 48 << 20))"
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join(map(str, (root / "src", root)))
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == repr(RIGHT)
