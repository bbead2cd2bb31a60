"""Readers beside a writer, in threads and in processes, while segments are packed, merged and saved: every answer is of a state
that existed, and no reader goes back in time.

State n is made by one change: `left` and `right` swap places, so exactly one of them matches; both, and `every` which always
matches, carry the score n.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import tidings as td
from tidings.match.store import housekeeping, merging

SCHEMA = td.Schema({"price": td.Number(0, 8), "brand": td.Category()})
EVENT = {"id": "e", "price": 1.0, "brand": "a"}
STATES = 60


def swap(topic: td.Topic, n: int) -> None:
    lows = [0.0, 5.0] if n % 2 == 0 else [5.0, 0.0]
    columns = {"id": ["left", "right", "every"], "price.lo": [*lows, 0.0], "price.hi": [low + 2 for low in lows] + [8.0]}
    topic.subscribe_many(pa.table({**columns, "score": [float(n)] * 3}), time=0)


def state_of(found: list[tuple[str, float]]) -> int:
    """The n whose answer this is; fails if there was no such state."""
    n = int(found[0][1])
    assert found == [("every", float(n)), ("left" if n % 2 == 0 else "right", float(n))]
    return n


def by_match(topic: td.Topic) -> int:
    return state_of([(m.subscription, m.score) for m in topic.match(EVENT, time=0) if m.subscription in ("left", "right", "every")])


def by_batch(topic: td.Topic) -> int:
    table = topic.match_batch([EVENT], time=0)
    pairs = zip(table["subscription"].to_pylist(), table["score"].to_pylist(), strict=True)
    return state_of([pair for pair in pairs if pair[0] in ("left", "right", "every")])


def churn(topic: td.Topic, n: int) -> None:
    """Single changes that fill the memtable, so that it is packed often."""
    topic.subscribe(f"other{n % 20}", f"price < {n % 8} AND brand = '{'ab'[n % 2]}'", time=0)
    if n % 3 == 0:
        topic.update(f"other{n % 20}", score=float(n), time=0)
    if n % 7 == 0:
        topic.unsubscribe(f"other{n % 20}")


def watch(topic: td.Topic, look: Callable[[td.Topic], int], stop: threading.Event) -> list[int]:
    seen = []
    while not stop.is_set():
        seen.append(look(topic))
    return seen


def tidy(topic: td.Topic) -> int:
    """Beside what the background does by itself."""
    topic.merge()
    topic.flush()
    return 0


@pytest.fixture
def often(monkeypatch) -> None:
    monkeypatch.setattr(merging, "FLUSH_AT", 4)
    monkeypatch.setattr(merging, "MERGE_WIDTH", 3)
    monkeypatch.setattr(housekeeping, "QUIET", 0.01)


@pytest.fixture(params=["memory", "durable"])
def topic(request, often, tmp_path) -> Iterator[td.Topic]:
    with td.Topic("t", SCHEMA) if request.param == "memory" else td.open(tmp_path, "t", SCHEMA) as made:
        swap(made, 0)
        yield made


def test_threads_see_only_states_that_existed(topic):
    stop = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        watching = [pool.submit(watch, topic, look, stop) for look in (by_match, by_batch, tidy)]
        try:
            for n in range(1, STATES):
                churn(topic, n)
                swap(topic, n)
                assert by_match(topic) == n
        finally:
            stop.set()
    for thread in watching:
        seen = thread.result()
        assert seen == sorted(seen)
        assert seen
    ids = [id for segment in topic.store.snapshot.segments for id in segment.names(segment.live(topic.store.snapshot.seq))]
    assert len(ids) == len(set(ids)), "an id lives in one place"


def load(topic: td.Topic, first: int, last: int) -> None:
    rows = range(first, last)
    topic.subscribe_many(pa.table({"id": [f"s{i:03}" for i in rows], "price.lo": [i % 8 / 8 for i in rows]}), time=0)


def segment_sizes(topic: td.Topic) -> list[int]:
    return sorted(len(segment) for segment in topic.store.snapshot.segments)


def test_a_topic_that_is_left_alone_has_two_segments_at_most(topic):
    load(topic, 0, 100)
    load(topic, 100, 104)
    load(topic, 104, 108)
    topic.housekeeping.settle()
    assert segment_sizes(topic) == [11, 100], "the small ones are one"
    assert len(topic.match(EVENT, time=0)) == 110


def test_an_eighth_of_the_largest_segment_is_worth_a_merge_with_it(topic):
    load(topic, 0, 100)
    load(topic, 100, 110)
    topic.housekeeping.settle()
    assert segment_sizes(topic) == [113]
    assert len(topic.match(EVENT, time=0)) == 112


READER = """
import sys, tidings as td
from test_readers import by_match
while True:
    with td.open(sys.argv[1], mode="r") as topic:
        print(by_match(topic), flush=True)
"""


def test_another_process_sees_only_states_that_existed(tmp_path, often):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        swap(topic, 0)
        here = Path(__file__).parent
        command = [sys.executable, "-W", "error", "-c", READER, tmp_path]
        with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
            seen = [int(reader.stdout.readline() or -1)]
            done = threading.Event()
            listening = threading.Thread(target=lambda: (seen.extend(int(line) for line in reader.stdout), done.set()))
            listening.start()
            n = 0
            while (n < STATES or len(seen) < 12) and not done.is_set():
                n += 1
                churn(topic, n)
                swap(topic, n)
                if n % 5 == 0:
                    topic.flush()
            reader.kill()
            listening.join()
            complaint = reader.stderr.read()
    assert not complaint
    assert seen == sorted(seen)
    assert 0 <= seen[0] < seen[-1] <= n


def test_merging_in_quiet_times_has_a_limit(often):
    with td.Topic("t", SCHEMA) as topic:
        load(topic, 0, 100)
        for _ in range(20):
            topic.housekeeping.settle()
            load(topic, 0, 20)
        topic.housekeeping.settle()
        assert topic.housekeeping.rewritten <= topic.store.written == 500
        assert len(topic) == 100


def test_segments_are_merged_by_themselves_when_no_change_comes(often):
    with td.Topic("t", SCHEMA) as topic:
        load(topic, 0, 100)
        load(topic, 0, 20)
        deadline = time.monotonic() + 60
        while len(segment_sizes(topic)) > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert segment_sizes(topic) == [100]
