"""Topics on a real S3 server: races, kills, damage, and a server that goes away in the middle."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tidings as td
from tests.durable.lake.s3_server import S3Server
from tests.durable.lake.samples import SCHEMA, START, answers, bulk, fill
from tidings.durable.lake.address import place_of
from tidings.durable.lake.lake import Lake
from tidings.durable.lake.objects import objects_at
from tidings.errors import StorageError

pytestmark = [pytest.mark.lake, pytest.mark.xdist_group("lake")]
URL = "s3://bucket/deals"
WRITERS, KEYS = 8, 20
KILLS = 5


@pytest.fixture
def server(tmp_path, monkeypatch):
    made = S3Server(tmp_path / "s3")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TIDINGS_CACHE", str(tmp_path / "cache"))
    yield made
    made.stop()


@pytest.fixture
def source(tmp_path, server):
    with td.open(tmp_path / "source", "offers", SCHEMA) as topic:
        fill(topic)
        yield topic


def lake() -> Lake:
    return Lake(objects_at(place_of(URL)))


def test_a_topic_at_a_url_answers_as_the_one_it_came_from(tmp_path, source):
    want = answers(source)
    assert source.push("s3a://bucket/deals") == 1
    with td.open(URL, mode="r") as read:
        assert answers(read) == want
    assert td.pull(URL, tmp_path / "pulled") == 1
    with td.open(tmp_path / "pulled") as pulled:
        assert answers(pulled) == want
    with td.open(URL) as writer:
        writer.subscribe_many(bulk(500, 20), time=START)
        writer.flush()
        with td.open(URL, mode="r") as read:
            assert answers(read) == answers(writer)
    assert lake().must_have().number > 1


def test_of_many_who_put_one_name_one_wins(server):
    objects, won = lake().objects, list[int]()

    def race(writer: int) -> None:
        for key in range(KEYS):
            if objects.put_new(f"manifests/{key:08d}.json", f"writer {writer}".encode()):
                won.append(key)

    threads = [threading.Thread(target=race, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(KEYS))


RACER = """
import sys, warnings
import tidings as td
from tidings.durable.lake.lake import LostRace
folder, name, turns = sys.argv[1:]
with td.open(folder) as topic:
    print("ready", flush=True)
    sys.stdin.readline()
    topic.subscribe(name, "price < 3")
    try:
        topic.push("s3://bucket/deals")
        print("won", flush=True)
    except LostRace as lost:
        print("lost", flush=True)
"""


def child(program: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_of_two_processes_that_write_one_loses_and_says_so(tmp_path, source):
    source.push(URL)
    for name in ("one", "two"):
        td.pull(URL, tmp_path / name)
    racers = [child(RACER, str(tmp_path / name), name, "1") for name in ("one", "two")]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    said = []
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        said.append(racer.communicate(timeout=120)[0].strip())
    assert sorted(said) == ["lost", "won"]
    winner = ("one", "two")[said.index("won")]
    with td.open(URL, mode="r") as read:
        assert [name for name in ("one", "two") if name in read.store] == [winner]


PUSHER = """
import sys
import tidings as td
with td.open(sys.argv[1]) as topic:
    print("ready", flush=True)
    for turn in range(1000):
        topic.subscribe_many(topic_rows(turn))
        print(topic.push("s3://bucket/deals"), turn, flush=True)
"""


def test_a_writer_killed_in_the_middle_of_a_push_leaves_a_state_that_was(tmp_path, source):
    """Killed at random instants; what is there is always whole, and the writer goes on where it was."""
    source.push(URL)
    td.pull(URL, tmp_path / "writer")
    program = "from tests.durable.lake.samples import bulk\ntopic_rows = lambda turn: bulk(1000 + 20 * turn, 20)\n" + PUSHER
    rng, pushed = random.Random(3), 0
    for _ in range(KILLS):
        process = child(program, str(tmp_path / "writer"))
        assert process.stdout.readline() == "ready\n"
        said = process.stdout.readline()
        time.sleep(rng.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate(timeout=60)
        turns = [int(line.split()[1]) for line in [said, *rest.splitlines()] if len(line.split()) == 2]
        pushed = max(pushed, *turns)
        with td.open(URL, mode="r") as read:
            assert all(f"s{1000 + 20 * turn}" in read.store for turn in turns), "what was said to be pushed is there"
            added = [int(s.id[1:]) - 1000 for s in read.store.subscriptions() if s.id[1:].isdecimal() and int(s.id[1:]) >= 1000]
            assert len(added) % 20 == 0, "a load is whole or not there"
            assert set(added) == set(range(len(added)))
    with td.open(tmp_path / "writer") as writer:
        writer.push(URL)
        with td.open(URL, mode="r") as read:
            assert answers(read) == answers(writer)
    assert pushed > 0


def test_a_server_that_goes_away_comes_back(tmp_path, server, source):
    """A push waits for a server that is away for a moment; one that stays away is told in a sentence, and nothing is lost."""
    source.push(URL)
    source.subscribe_many(bulk(300, 50), time=START)
    server.stop()
    back = threading.Timer(3.0, server.start)
    back.start()
    assert source.push(URL) == 2
    back.join()
    with td.open(URL, mode="r") as read:
        assert answers(read) == answers(source)


def test_a_damaged_object_is_told_by_its_name(tmp_path, server, source):
    source.push(URL)
    victim = next(Path(server.folder, "bucket", "deals", "objects").glob("*.segment"))
    victim.write_bytes(victim.read_bytes()[:-3] + b"xyz")
    with pytest.raises(StorageError, match=rf"{victim.name} is damaged"):
        td.open(URL, mode="r")
    with pytest.warns(td.errors.StorageWarning, match="built from the rows"):
        td.pull(URL, tmp_path / "pulled")
    with td.open(tmp_path / "pulled") as pulled:
        assert answers(pulled) == answers(source)


def test_an_evicted_snapshot_is_fetched_again(tmp_path, monkeypatch, source):
    source.push(URL)
    td.pull(URL, tmp_path / "other")
    with td.open(tmp_path / "other") as other:
        other.subscribe_many(bulk(5000, 300), time=START)
        other.merge()
        other.push("s3://bucket/other")
        wanted = sum(Lake(objects_at(place_of("s3://bucket/other"))).must_have().sizes.values())
    monkeypatch.setenv("TIDINGS_CACHE_BYTES", str(wanted + 1000))
    for url in (URL, "s3://bucket/other", URL):
        with td.open(url, mode="r") as read:
            assert len(read.match_batch([{"id": "e", "price": 10.0}])) > 0
    assert sum(path.stat().st_size for path in (tmp_path / "cache" / "objects").iterdir()) <= wanted + 1000


def test_a_url_without_a_bucket_or_a_server(monkeypatch, server):
    with pytest.raises(StorageError, match=r"s3://nowhere/deals"):
        td.open("s3://nowhere/deals", mode="r")
    with pytest.raises(StorageError, match="holds no topic"):
        td.open(URL, mode="r")
