"""The ways of harming a topic. Each takes a seed, raises if a promise is broken, and gives counts by name.

Most of them are the tests of `tests/durable`, with other seeds; what is here alone is damage drawn at random over every file of a
folder, churn, and inputs by the million (`fuzz`).
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tidings as td
from tests.durable import test_crash, test_guards, test_readers, test_storage
from tests.durable.formats import make
from tests.serve.faults import world
from tests.soak import fuzz as inputs_by_the_million
from tidings.errors import StorageError
from tidings.match.store import housekeeping, merging

Counts = dict[str, int]
TOPICS = {"plain": make.plain, "keyed": make.keyed, "windows": make.windows}
KINDS_OF_FILE = {"registry.sqlite": "registry", "manifest.json": "manifest", "writer.lock": "lock"}
HARMS = ("flipped", "overwritten", "cut", "emptied", "deleted", "swapped")


@contextmanager
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=test_crash.memory_disk()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


# Ends that come at any moment


def kills(seed: int) -> Counts:
    test_crash.survive(seed, 10, test_crash.memory_disk())
    return {"kills": 10}


def memory(seed: int) -> Counts:
    test_crash.survive(seed, 5, test_crash.memory_disk(), "RLIMIT_AS")
    return {"writers that were refused memory": 5}


def descriptors(seed: int) -> Counts:
    test_crash.survive(seed, 5, test_crash.memory_disk(), "RLIMIT_NOFILE")
    return {"writers that were refused file descriptors": 5}


def service(seed: int) -> Counts:
    """A whole service under load: writer, readers, receiver and clients are killed."""
    return world.faults(seed, 10)


# Files


@cache
def sound(name: str) -> tuple[Path, Any]:
    """A closed topic, to be copied, and its answers. It lies there until the process ends."""
    folder = Path(tempfile.mkdtemp(dir=test_crash.memory_disk())) / name
    TOPICS[name](folder).close()
    with td.open(folder, mode="r") as topic:
        answers = make.answers(topic)
    for path in folder.glob("*-???"):
        path.unlink()
    return folder, answers


def damage(seed: int, times: int = 60) -> Counts:
    draw, counts = random.Random(seed), dict[str, int]()
    for _ in range(times):
        name = draw.choice(sorted(TOPICS))
        origin, expected = sound(name)
        with place() as folder:
            shutil.copytree(origin, folder / name)
            path = draw.choice(sorted(p for p in (folder / name).rglob("*") if p.is_file()))
            harm = draw.choice(HARMS)
            spoil(draw, path, harm)
            kind = KINDS_OF_FILE.get(path.name, path.suffix[1:] if path.suffix != ".json" else "older manifest")
            end = answered_or_refused(folder / name, expected, draw.choice("rw"), kind, f"{name}, {path.name}, {harm}")
            for counted in (f"damaged files: {kind}", f"damaged files that were {end}"):
                counts[counted] = counts.get(counted, 0) + 1
    return counts


def spoil(draw: random.Random, path: Path, harm: str) -> None:
    raw = bytearray(path.read_bytes())
    others = sorted(p for p in path.parent.glob(f"*{path.suffix}") if p.is_file() and p != path)
    if harm == "deleted":
        path.unlink()
    elif harm == "swapped" and others:
        other = draw.choice(others)
        path.write_bytes(other.read_bytes())
        other.write_bytes(raw)
    elif harm in ("cut", "emptied") or not raw:
        os.truncate(path, draw.randrange(len(raw)) if raw and harm == "cut" else 0)
    else:
        at = draw.randrange(len(raw))
        raw[at : at + 1] = bytes([raw[at] ^ 1 << draw.randrange(8)]) if harm == "flipped" else draw.randbytes(64)
        path.write_bytes(raw)


def answered_or_refused(folder: Path, expected: Any, mode: str, kind: str, what: str) -> str:
    """What became of it. Derived files never change an answer; a damaged registry may be refused, a window may
    begin anew, aloud."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with td.open(folder, mode=mode) as topic:
                answers = make.answers(topic)
        except StorageError:
            assert kind == "registry", f"{what}: refused, though it could have been rebuilt"
            return "refused"
    if any("begins anew" in str(warning.message) for warning in said):
        answers["top"] = expected["top"]
    assert answers == expected, f"{what}: {[(k, answers[k], expected[k]) for k in expected if answers[k] != expected[k]]}"
    return "reported and rebuilt" if said else "not needed"


def full_disk(seed: int) -> Counts:
    counts = {"full disks": 0}
    for full in (test_storage.no_space_left, test_storage.no_long_files):
        with place() as folder:
            try:
                test_storage.test_a_full_disk_refuses_and_goes_on(folder, full)
                counts["full disks"] += 1
            except pytest.skip.Exception:
                pass
    return counts


# Others at the same time


def forks(seed: int) -> Counts:
    with warnings.catch_warnings(), place() as folder:
        warnings.simplefilter("ignore", DeprecationWarning)
        test_guards.test_a_forked_child_may_read_and_not_change(folder)
        test_guards.test_a_forked_child_of_a_topic_in_memory_goes_its_own_way()
    return {"forks": 6}


@contextmanager
def tidied_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "FLUSH_AT", 4)
        patch.setattr(merging, "MERGE_WIDTH", 3)
        patch.setattr(housekeeping, "QUIET", 0.01)
        yield


def readers(seed: int) -> Counts:
    """Threads over a topic in memory and a durable one, and a process beside a writer."""
    with tidied_often(), place() as folder:
        for topic in (td.Topic("t", test_readers.SCHEMA), td.open(folder / "threads", "t", test_readers.SCHEMA)):
            with topic:
                test_readers.swap(topic, 0)
                test_readers.test_threads_see_only_states_that_existed(topic)
        test_readers.test_another_process_sees_only_states_that_existed(folder / "process", None)
    return {"states watched by threads": 2 * test_readers.STATES, "states watched by a process": test_readers.STATES}


# Years in minutes


def churn(seed: int, rounds: int = 30) -> Counts:
    """Everything is replaced again and again: memory, descriptors and files must stand still after the first third."""
    draw, measured = random.Random(seed), []
    with place() as folder, td.open(folder / "topic", "t", test_crash.SCHEMA) as topic:
        for n in range(rounds):
            for i in range(40):
                word = f"w{draw.randrange(10**9)}"
                topic.subscribe(f"s{i}", f"A_CONTAINS(about, ('{word}')) OR brand = '{word}'", k=2, window="3 s", time=n)
            events = [test_crash.event(draw, f"e{draw.randrange(10**9)}", n) | {"expires": n + 2} for _ in range(20)]
            topic.publish_batch([*events, {"id": f"x{n}", "about": word, "brand": word, "expires": n + 1}], time=n)
            topic.acknowledge(max((number for number, _ in topic.outbox(limit=10**6)), default=0))
            topic.merge()
            measured.append(held(topic, folder))
    first, last = measured[rounds // 3], measured[-1]
    for what, slack in {"descriptors": 4, "files": 8, "bytes on disk": 1 << 20, "codes": 400, "resident bytes": 64 << 20}.items():
        assert last[what] <= 1.5 * first[what] + slack, f"{what} grew from {first[what]} to {last[what]}"
    return {"subscriptions replaced in churn": 40 * rounds}


def held(topic: Any, folder: Path) -> Counts:
    files = [path for path in folder.rglob("*") if path.is_file()]
    vocabularies = topic.vocabularies
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "files": len(files),
        "bytes on disk": sum(path.stat().st_size for path in files),
        "codes": len(vocabularies.words) + sum(map(len, vocabularies.categories.values())),
        "resident bytes": 4096 * int(Path("/proc/self/statm").read_text().split()[1]),
    }


# Inputs


def fuzz(seed: int, inputs: int = 20_000, rounds: int = 4) -> Counts:
    with place() as folder:
        return inputs_by_the_million.fuzz(seed, folder, inputs, rounds)


def pipeline(seed: int) -> Counts:
    """On a cluster, with Kafka and an S3 server."""
    from tests.soak.pipeline import pipeline as run

    return run(seed)


def gateways(seed: int) -> Counts:
    """A painted topic on a real broker: gateways join, leave and are killed, the broker restarts, zones are split."""
    from tests.serve.gateway.faults import faults

    return faults(seed, 25)


KINDS: dict[str, tuple[Callable[[int], Counts], float]] = {
    "kills": (kills, 12),
    "service": (service, 12),
    "fuzz": (fuzz, 40),
    "damage": (damage, 3),
    "memory": (memory, 2),
    "descriptors": (descriptors, 2),
    "readers": (readers, 2),
    "churn": (churn, 2),
    "disk full": (full_disk, 1),
    "forks": (forks, 1),
    "pipeline": (pipeline, 12),
    "gateways": (gateways, 8),
}
"""Each with its share of the time."""
