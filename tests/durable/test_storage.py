"""Files that are damaged, disks that are full, folders that cannot be written: said in one sentence, and no answer changes."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import tidings as td
from tests.oracle.topic import TopicOracle
from tidings.durable.manifest import KEPT, load_manifest
from tidings.errors import StorageError, StorageWarning
from tidings.match.store import merging
from tidings.match.store.array_files import ALIGN, read_arrays

SCHEMA = td.Schema({"price": td.Number(0, 8), "brand": td.Category(), "about": td.Words()})
WORDS = ["red", "green", "blue"]
DRAW = random.Random(7)
EVENTS = [
    {"id": f"e{i}", "price": DRAW.randrange(65) / 8, "brand": DRAW.choice("abc"), "about": " ".join(DRAW.sample(WORDS, 2))}
    for i in range(40)
]


def rows(first: int, count: int) -> dict[str, list[object]]:
    draw = random.Random(first)
    ids = [f"s{i:05d}" for i in range(first, first + count)]
    lo = [draw.randrange(65) / 8 for _ in ids]
    words = [[draw.choice(WORDS)] if draw.random() < 0.5 else None for _ in ids]
    return {"id": ids, "price.lo": lo, "about.all": words, "score": [float(draw.randrange(4)) for _ in ids]}


class Pair:
    """A topic and the oracle, changed together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.topic = td.open(folder, "t", SCHEMA)
        self.oracle = TopicOracle(SCHEMA)

    def load(self, first: int, count: int) -> None:
        columns = rows(first, count)
        self.topic.subscribe_many(pa.table(columns), time=0)
        for id, lo, words, score in zip(*columns.values(), strict=True):
            extra = f" AND A_CONTAINS(about, ('{words[0]}'))" if words else ""
            self.oracle.subscribe(id, f"price >= {lo}{extra}", score=score)

    def subscribe(self, id: str, filter: str, **ranking: object) -> None:
        self.topic.subscribe(id, filter, time=0, **ranking)
        self.oracle.subscribe(id, filter, **ranking)

    def unsubscribe(self, id: str) -> None:
        self.topic.unsubscribe(id)
        self.oracle.unsubscribe(id)

    def agree(self, topic: td.Topic | None = None) -> None:
        topic = topic or self.topic
        assert len(topic) == len(self.oracle.subscriptions)
        for event in EVENTS:
            assert topic.match(event, time=0) == self.oracle.match(event)


def fill(folder: Path) -> Pair:
    pair = Pair(folder)
    pair.load(0, 60)
    for i, brand in enumerate("abcabc"):
        pair.subscribe(f"one{i}", f"brand = '{brand}' AND price < {i + 2}", score=2.0)
    pair.topic.flush()
    pair.unsubscribe("s00003")
    pair.subscribe("s00004", "price > 1")
    pair.topic.flush()
    return pair


@pytest.fixture(scope="module")
def made() -> Iterator[Pair]:
    """A closed topic of several segments, with removals."""
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    pair = fill(place / "topic")
    pair.topic.close()
    yield pair
    shutil.rmtree(place)


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A copy of it, to spoil."""
    shutil.copytree(made.folder, tmp_path / "topic")
    return tmp_path / "topic"


def parts(path: Path) -> dict[str, int]:
    """Where each part of an array file begins, as the header of `files` lays it out."""
    raw = path.read_bytes()
    at = 20 + int.from_bytes(raw[8:16], "little")
    found = {"magic": 0, "length": 8, "header": 20}
    for name, array in read_arrays(path)[1].items():
        at += -at % ALIGN
        if array.nbytes:
            found[name] = at
        at += array.nbytes
    return found


def flip(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1 << (at % 8)
    path.write_bytes(raw)


def named(folder: Path) -> dict[str, Path]:
    manifest = load_manifest(folder)
    file, live = max(manifest.segments, key=lambda pair: pair[1] is not None)
    paths = {"segment": file, "live": live, "vocabulary": manifest.vocabulary}
    return {name: folder / path for name, path in paths.items() if path is not None}


def recovers(pair: Pair, folder: Path, sentence: str) -> None:
    """Reading and writing openers say it and answer right; after the next flush the files are sound."""
    before = contents(folder)
    with pytest.warns(StorageWarning, match=rf"^[^;]*{sentence}[^;]*; rebuilding the segments from the registry$") as said:
        reader = td.open(folder, mode="r")
    assert len(said) == 1
    pair.agree(reader)
    reader.close()
    assert contents(folder) == before
    with pytest.warns(StorageWarning, match=sentence):
        topic = td.open(folder)
    pair.agree(topic)
    topic.flush()
    topic.abandon()
    with td.open(folder) as topic:
        assert topic.store.snapshot.segments
        assert not len(topic.store.memtable)
        pair.agree(topic)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the two that SQLite keeps for those who are reading."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {str(path): path.read_bytes() for path in files}


def test_every_flipped_bit_is_found(made, folder):
    for kind, path in named(folder).items():
        whole = path.read_bytes()
        for at in parts(path).values():
            flip(path, at)
            with pytest.raises(StorageError, match=path.name):
                read_arrays(path)
            path.write_bytes(whole)
        assert len(parts(path)) >= {"segment": 8, "live": 4, "vocabulary": 5}[kind]


@pytest.mark.parametrize("kind", ["segment", "live", "vocabulary"])
@pytest.mark.parametrize("harm", ["flipped", "header", "cut", "emptied", "missing"])
def test_a_damaged_file_is_rebuilt(made, folder, kind, harm):
    path = named(folder)[kind]
    if harm == "flipped":
        flip(path, list(parts(path).values())[-1])
    elif harm == "header":
        flip(path, 30)
    elif harm == "missing":
        path.unlink()
    else:
        os.truncate(path, 0 if harm == "emptied" else path.stat().st_size * 3 // 4)
    recovers(made, folder, path.name)


@pytest.mark.parametrize("harm", ["flipped", "cut", "emptied", "another", "older", "newer"])
def test_a_damaged_manifest_is_rebuilt(made, folder, harm):
    path = folder / "manifest.json"
    text = path.read_text()
    if harm == "flipped":
        path.write_text(text.replace('"seq": ', '"seq": 1'))
    elif harm == "another":
        path.write_text("[]")
    elif harm == "older":
        shutil.copy(folder / "manifest-00000001.json", path)
    elif harm == "newer":
        shutil.copy(made.folder / "registry.sqlite", folder)
        with td.open(folder) as ahead:
            ahead.unsubscribe("s00005")
        shutil.copy(made.folder / "registry.sqlite", folder)
    else:
        os.truncate(path, 0 if harm == "emptied" else 40)
    recovers(made, folder, "manifest.json")


def test_a_rebuilt_topic_outlives_the_manifests_before(tmp_path):
    """Numbers go on, so what is written after a rebuild is not taken for older than what was there."""
    pair = fill(tmp_path)
    for i in range(KEPT + 2):
        pair.subscribe(f"more{i}", f"price > {i / 2}")
        pair.topic.flush()
    pair.topic.close()
    flip(named(tmp_path)["vocabulary"], 200)
    flip(sorted(tmp_path.glob("manifest-*.json"))[0], 10)
    recovers(pair, tmp_path, "vocabulary")


def test_a_topic_that_nobody_asks_has_a_manifest_once_it_is_closed(tmp_path):
    with td.open(tmp_path, "deals", SCHEMA, key="sku"):
        pass
    found = load_manifest(tmp_path)
    assert (found.topic, found.key, found.segments) == ("deals", "sku", ())
    with td.open(tmp_path) as deals:
        deals.subscribe("ann", "price < 5")
    assert load_manifest(tmp_path).number == found.number + 1
    with td.open(tmp_path) as deals:
        assert "ann" in deals
    assert load_manifest(tmp_path).number == found.number + 1


def test_nothing_is_left_over(tmp_path):
    pair = fill(tmp_path)
    for i in range(2 * KEPT):
        pair.subscribe(f"more{i}", f"price > {i / 2}")
        pair.topic.merge()
        pair.topic.flush()
    pair.topic.close()
    manifests = sorted(tmp_path.glob("manifest-*.json"))
    assert len(manifests) == KEPT
    loaded = [load_manifest(tmp_path, int(path.stem[9:])) for path in manifests]
    used = {name for manifest in loaded for pair in manifest.segments for name in pair if name} | {m.vocabulary for m in loaded}
    assert {f"segments/{path.name}" for path in (tmp_path / "segments").iterdir()} == used
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("manifest-")) == [
        "manifest.json",
        "registry.sqlite",
        "segments",
        "writer.lock",
    ]


# Disks


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted only by root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def no_space_left(folder: Path) -> Iterator[None]:
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        size = 65536
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2
    yield
    ballast.unlink()


@contextmanager
def no_long_files(folder: Path) -> Iterator[None]:
    """No file can be written beyond its first byte."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("full", [no_space_left, no_long_files])
def test_a_full_disk_refuses_and_goes_on(tmp_path, full):
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk) if full is no_space_left else tempfile.TemporaryDirectory():
        pair = fill(disk / "topic")
        topic = pair.topic
        pair.subscribe("best", "price > 1", k=1, window="10 s")
        topic.publish(EVENTS[0] | {"price": 8.0}, time=1)
        waiting, tops = topic.outbox(), topic.top("best", time=2)
        with full(disk):
            refused_everything(pair)
            assert topic.outbox() == waiting
            assert topic.top("best", time=2) == tops
            pair.agree()
        pair.agree()
        pair.load(500, 20)
        noted = topic.publish(EVENTS[1] | {"price": 8.0}, time=3)
        assert [note for _, note in topic.outbox()] == [note for _, note in waiting] + noted
        topic.close()
        with td.open(disk / "topic") as topic:
            pair.agree(topic)
            assert [note for _, note in topic.outbox()] == [note for _, note in waiting] + noted


def subscribe_until_refused(pair: Pair) -> None:
    """A full disk may still have room in a page that is there already."""
    for i in range(200):
        pair.subscribe(f"late{i}", f"price > {i / 100} AND A_CONTAINS(about, ('red'))")


def refused_everything(pair: Pair) -> None:
    topic, registry = pair.topic, "registry.sqlite did not take the change, nothing was applied: "
    with pytest.raises(StorageError, match=registry):
        topic.subscribe_many(pa.table(rows(1000, 20_000)), time=0)
    with pytest.raises(StorageError, match=registry):
        subscribe_until_refused(pair)
    with pytest.raises(StorageError, match=registry):
        topic.publish_batch([{**event, "id": f"big{i}", "about": "red " * 500} for i, event in enumerate(EVENTS)], time=2)
    with pytest.raises(StorageError, match=f"cannot write {pair.folder}/segments/"):
        topic.flush()
    pair.agree()


def test_a_background_save_that_fails_is_raised_and_made_good(tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "FLUSH_AT", 8)
    pair = fill(tmp_path)
    (tmp_path / "segments").rename(tmp_path / "away")
    for i in range(30):
        pair.subscribe(f"more{i}", f"price > {i / 8}")
        pair.agree()
    for wait in (pair.topic.housekeeping.settle, pair.topic.flush):
        with pytest.raises(StorageError, match=f"cannot write {tmp_path}/segments/.*: No such file or directory"):
            wait()
    (tmp_path / "away").rename(tmp_path / "segments")
    pair.topic.flush()
    pair.agree()
    (tmp_path / "segments").rename(tmp_path / "away")
    pair.subscribe("last", "price > 2")
    with pytest.raises(StorageError, match="cannot write"):
        pair.topic.close()
    (tmp_path / "away").rename(tmp_path / "segments")
    with td.open(tmp_path) as topic:
        pair.agree(topic)


@contextmanager
def without_rights() -> Iterator[None]:
    """Root may write anywhere, so be nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_written_can_be_read(made):
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    folder = Path(shutil.copytree(made.folder, place / "topic"))
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        before = contents(folder)
        with without_rights():
            with pytest.raises(StorageError, match=f"cannot write in {folder}: Permission denied; open it with mode='r' to read"):
                td.open(folder)
            with pytest.raises(StorageError, match=f"cannot make a topic in {folder}/new: Permission denied"):
                td.open(folder / "new", "t", SCHEMA)
            reader = td.open(folder, mode="r")
            made.agree(reader)
            reader.close()
        assert contents(folder) == before
        assert {path.name for path in folder.iterdir()} == {path.name for path in made.folder.iterdir()}
    finally:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
        shutil.rmtree(place)


def test_a_reader_changes_nothing(made, folder):
    before = contents(folder)
    with td.open(folder, mode="r") as reader:
        refusals = [
            lambda: reader.subscribe("x", "price > 1"),
            lambda: reader.subscribe_many(pa.table(rows(0, 3))),
            lambda: reader.update("s00005", score=2.0),
            lambda: reader.unsubscribe("s00005"),
            lambda: reader.publish(EVENTS[0]),
            lambda: reader.publish_batch(EVENTS),
            lambda: reader.advance(10),
        ]
        for refusal in refusals:
            with pytest.raises(StorageError, match=f"^{folder} was opened with mode='r': it can be read, not changed$"):
                refusal()
        made.agree(reader)
    assert contents(folder) == before


def test_what_is_no_topic_is_not_opened(tmp_path):
    (tmp_path / "registry.sqlite").touch()
    for mode in ("r", "w"):
        with pytest.raises(StorageError, match=r"holds no topic|no such table"):
            td.open(tmp_path, mode=mode)
    (tmp_path / "registry.sqlite").write_text("something else entirely, and long enough to be looked at" * 10)
    with pytest.raises(StorageError, match=r"cannot open the registry .*registry.sqlite: file is not a database"):
        td.open(tmp_path, "t", SCHEMA)
    with pytest.raises(StorageError, match=r"cannot open the registry .*file is not a database"):
        td.open(tmp_path, mode="r")


# Registry growth


def tables(topic: td.Topic) -> dict[str, int]:
    counts = {name: topic.registry.read(f"SELECT count(*) FROM {name}")[0][0] for name in ("gone", "subscription", "chunk")}
    return counts | {"rows": topic.registry.read("SELECT ifnull(sum(rows), 0) FROM chunk")[0][0]}


def test_the_registry_forgets_what_no_longer_matters(tmp_path):
    pair = Pair(tmp_path)
    for i in range(20):
        pair.subscribe(f"one{i % 10}", f"price > {i / 8}")
    pair.topic.flush()
    assert tables(pair.topic) == {"gone": 0, "subscription": 10, "chunk": 0, "rows": 0}
    pair.load(0, 40)
    pair.load(20, 10)
    for i in range(6):
        pair.unsubscribe(f"s{i:05d}")
    pair.topic.flush()
    assert tables(pair.topic) == {"gone": 16, "subscription": 10, "chunk": 2, "rows": 50}
    for i in range(20, 40):
        pair.unsubscribe(f"s{i:05d}")
    pair.topic.flush()
    assert tables(pair.topic) == {"gone": 0, "subscription": 10, "chunk": 1, "rows": 14}
    pair.topic.close()
    (tmp_path / "manifest.json").unlink()
    with td.open(tmp_path) as topic:
        pair.agree(topic)


def test_a_window_outlives_an_update_and_a_crash(tmp_path):
    """An update that keeps the window must not lose what the registry knows of it."""
    topic = td.open(tmp_path, "t", SCHEMA)
    topic.subscribe("best", "price > 0", k=1, window="10 s", time=0)
    topic.publish({"id": "high", "price": 4}, time=1)
    topic.publish({"id": "low", "price": 3}, time=2)
    topic.update("best", filter="price > 1", time=2)
    topic.abandon()
    with td.open(tmp_path) as topic:
        assert [(m.event, m.score) for m in topic.top("best", time=3)] == [("high", 1.0)]
        assert [(n.event, n.why) for n in topic.advance(11)] == [("low", "promoted")]


# Two processes


SECOND_PROCESS = """
import sys, tidings as td
try:
    td.open(sys.argv[1])
except td.errors.StorageError as error:
    print(error)
with td.open(sys.argv[1], mode="r") as topic:
    print(len(topic))
"""


def test_a_second_writer_is_refused(tmp_path):
    with Pair(tmp_path).topic as topic:
        topic.subscribe("a", "price > 1", time=0)
        said = subprocess.run([sys.executable, "-c", SECOND_PROCESS, tmp_path], capture_output=True, text=True, check=True).stdout
        refusal = f"{tmp_path} is being written by process {os.getpid()}; open it with mode='r' to read beside it"
        assert said.splitlines() == [refusal, "1"]
        with pytest.raises(StorageError, match=r"is being written by process"):
            td.open(tmp_path)
    td.open(tmp_path).close()


def test_the_outbox_is_read_in_parts_and_acknowledged(tmp_path):
    with Pair(tmp_path).topic as topic:
        topic.subscribe("a", "price > 1", time=0)
        notes = [topic.publish({"id": f"e{i}", "price": 2}, time=i)[0] for i in range(5)]
        assert [note for _, note in topic.outbox()] == notes
        first = topic.outbox(limit=2)
        assert first == [(1, notes[0]), (2, notes[1])]
        assert topic.outbox(after=first[-1][0], limit=2) == [(3, notes[2]), (4, notes[3])]
        topic.acknowledge(4)
        assert topic.outbox() == [(5, notes[4])]
        topic.acknowledge(5)
        [note] = topic.publish({"id": "e9", "price": 2}, time=9)
        assert topic.outbox() == [(6, note)]
        assert json.loads(topic.registry.read("SELECT body FROM outbox")[0][0])[:2] == ["a", "e9"]


def test_what_subscribing_and_updating_bring_waits_in_the_outbox(tmp_path):
    topic = td.open(tmp_path / "stream", "t", SCHEMA)
    topic.publish({"id": "e1", "price": 1, "expires": 100}, time=1)
    noted = topic.subscribe("late", "price < 4", replay=True, time=2)
    assert [(note.event, note.why) for note in noted] == [("e1", "matched")]
    topic.abandon()
    with td.open(tmp_path / "stream") as again:
        assert [note for _, note in again.outbox()] == noted
    with td.open(tmp_path / "table", "t", {"price": td.Number()}, key="sku") as topic:
        topic.publish_batch([{"sku": "a", "price": 1}, {"sku": "b", "price": 2}], time=1)
        noted = topic.subscribe("best", "price < 4", k=1, by="-price", time=2)
        noted += topic.update("best", k=2, time=3)
        topic.subscribe_many(pa.table({"id": ["bulk"], "price.hi": [1.5]}), time=4)
        waiting = [note for _, note in topic.outbox()]
        assert waiting[: len(noted)] == noted
        assert [(note.subscription, note.event, note.why) for note in waiting[len(noted) :]] == [("bulk", "a", "entered")]


def test_a_change_that_fails_in_any_way_is_undone(tmp_path, monkeypatch):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("best", "price < 4", k=1, window="10 s", by="-price", time=0)
        topic.publish({"id": "e1", "price": 2}, time=1)
        before = topic.top("best", time=1)

        def fail(*_):
            raise RuntimeError("out of luck")

        monkeypatch.setattr(topic.journal, "published", fail)
        with pytest.raises(RuntimeError, match="out of luck"):
            topic.publish({"id": "e2", "price": 1}, time=2)
        assert topic.top("best", time=1) == before
        monkeypatch.undo()
        assert [note.event for note in topic.publish({"id": "e3", "price": 1}, time=2)] == ["e3"]
