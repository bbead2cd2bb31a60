"""A topic pushed to a lake and pulled, read or written there answers as the one it came from."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import tidings as td
from tests.durable.lake.samples import EVENTS, SCHEMA, START, answers, bulk, fill
from tidings.durable.lake import lake as lakes
from tidings.durable.lake.lake import Lake, LostRace
from tidings.durable.lake.objects import FolderObjects
from tidings.durable.leases import LEASE
from tidings.durable.snapshots import snapshots_at, view_of
from tidings.errors import StorageError, StorageWarning


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDINGS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path):
    with td.open(tmp_path / "source", "offers", SCHEMA) as topic:
        fill(topic)
        yield topic


def lake_of(tmp_path: Path) -> Lake:
    return Lake(FolderObjects(tmp_path / "lake"))


def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/lake"


@pytest.mark.parametrize("wrong", ["hdfs://host/deals", "s4://bucket/deals", "http://host/deals"])
def test_an_unknown_scheme_is_refused_everywhere(tmp_path, monkeypatch, source, wrong):
    monkeypatch.chdir(tmp_path)
    for act in (
        lambda: td.open(wrong, "deals", SCHEMA),
        lambda: td.open(wrong, mode="r"),
        lambda: source.push(wrong),
        lambda: td.pull(wrong, tmp_path / "folder"),
        lambda: snapshots_at(wrong),
    ):
        with pytest.raises(StorageError, match=r"has the scheme '\w+': the path of a folder, or a URL of s3"):
            act()
    assert not [path for path in tmp_path.iterdir() if ":" in path.name]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [(Path("s3://bucket/deals"), "lost a slash"), ("s3://", "names no bucket"), ("file://deals", "no absolute path")],
)
def test_a_url_that_says_too_little(wrong, sentence):
    with pytest.raises(StorageError, match=sentence):
        td.open(wrong, "deals", SCHEMA)


def test_what_was_pushed_answers_the_same_wherever_it_is_opened(tmp_path, source):
    want = answers(source)
    assert source.push(url(tmp_path)) == 1
    assert td.pull(url(tmp_path), tmp_path / "pulled") == 1
    with td.open(tmp_path / "pulled") as pulled:
        assert answers(pulled) == want
        assert [note.id for _, note in pulled.outbox()] == [note.id for _, note in source.outbox()]
        assert [repr(pulled.subscription(id)) for id in ("text", "s7", "s8")] == [
            repr(source.subscription(id)) for id in ("text", "s7", "s8")
        ]
    with td.open(url(tmp_path), mode="r") as read:
        assert answers(read) == want
        with pytest.raises(StorageError, match="mode='r'"):
            read.subscribe("new", "price < 5")


def test_a_topic_is_rebuilt_from_its_rows_without_sqlite_or_segments(tmp_path, source):
    want = answers(source)
    source.push(url(tmp_path))
    for segment in (tmp_path / "lake" / "objects").glob("*.segment"):
        segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    with pytest.warns(StorageWarning, match="built from the rows"):
        td.pull(url(tmp_path), tmp_path / "pulled")
    with td.open(tmp_path / "pulled") as pulled:
        assert answers(pulled) == want


def test_what_both_sides_did_after_goes_on(tmp_path, source):
    """Published to both from here on, they tell the same: windows came along."""
    source.push(url(tmp_path))
    td.pull(url(tmp_path), tmp_path / "pulled")
    with td.open(tmp_path / "pulled") as pulled:
        for event in EVENTS[30:]:
            assert list(pulled.publish(event)) == list(source.publish(event))
        source.unsubscribe("text")
        pulled.unsubscribe("text")
        pulled.flush()
        assert answers(pulled) == answers(source)


def test_only_what_is_new_is_sent(tmp_path, source):
    source.push(url(tmp_path))
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "lake" / "objects").iterdir()}
    assert source.push(url(tmp_path)) == 1, "nothing is new"
    source.subscribe("one", "price < 3", time=START)
    assert source.push(url(tmp_path)) == 2
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "lake" / "objects").iterdir()}
    assert {name: after[name] for name in before} == before
    kinds = sorted(Path(name).suffix for name in set(after) - set(before))
    assert kinds == [".parquet", ".segment"], "a segment and its rows; nobody's codes changed"


def test_one_of_two_writers_loses_and_says_so(tmp_path, source):
    source.push(url(tmp_path))
    td.pull(url(tmp_path), tmp_path / "other")
    with td.open(tmp_path / "other") as other:
        other.subscribe("theirs", "price < 3", time=START)
        assert other.push(url(tmp_path)) == 2
    source.subscribe("ours", "price < 3", time=START)
    with pytest.raises(LostRace, match="at manifest 2 of another writer"):
        source.push(url(tmp_path))
    with td.open(tmp_path / "third", "offers", SCHEMA) as third, pytest.raises(StorageError, match="was not pulled from"):
        third.push(url(tmp_path))
    with td.open(url(tmp_path), mode="r") as read:
        assert "theirs" in read.store
        assert "ours" not in read.store


def test_a_topic_at_a_url_is_written_through_this_machine(tmp_path):
    with td.open(url(tmp_path), "offers", SCHEMA) as topic:
        fill(topic)
        topic.subscribe("late", "price < 3", time=START)
        topic.flush()
        with td.open(url(tmp_path), mode="r") as read:
            assert "late" in read.store, "a flush pushes"
        topic.publish(EVENTS[31])
        want = answers(topic)
    with td.open(url(tmp_path), mode="r") as read:
        assert answers(read) == want, "closing pushes events and windows too"
    with td.open(url(tmp_path)) as again:
        assert answers(again) == want
    # Another machine, which has nothing of it, goes on; then this one takes that in.
    here = tmp_path / "cache"
    here.rename(tmp_path / "set aside")
    with td.open(url(tmp_path)) as other:
        assert answers(other) == want
        other.subscribe_many(bulk(500, 10), time=START)
        want = answers(other)
    (tmp_path / "cache").rename(tmp_path / "other machine")
    (tmp_path / "set aside").rename(here)
    with td.open(url(tmp_path)) as again:
        assert answers(again) == want


def test_the_writer_cleans_up_what_no_lease_holds(tmp_path, source, monkeypatch):
    monkeypatch.setattr(lakes, "GRACE", -1.0)
    lake = lake_of(tmp_path)
    source.push(url(tmp_path))
    lake.objects.put("pins/query/3.json", b'{"manifest": 1, "time": 0, "until": 99999999999}')
    lake.objects.put("pins/query/4.json", b'{"manifest": 2, "time": 0, "until": 5}')
    lake.objects.put("pins/query/5.json", b"")
    kept = lake.manifest(1)
    for turn in range(lakes.KEPT + 2):
        source.subscribe(f"turn{turn}", "price < 3", time=START)
        source.push(url(tmp_path))
    assert lake.numbers() == [1, *range(4, lakes.KEPT + 4)]
    there = {one.name for one in lake.objects.listed("objects/")}
    assert kept.objects <= there, "what a lease holds stays"
    assert there == {name for number in lake.numbers() for name in lake.manifest(number).objects}
    assert len(view_of(snapshots_at(url(tmp_path)), 1)) == len(source.store) - lakes.KEPT - 2


def test_pins_of_earlier_versions_hold_as_long_as_they_did(tmp_path):
    from tidings.durable.leases import held

    assert held(b'{"manifest": 7, "time": 0}', 1000.0, 1000.0 + LEASE - 1) == 7
    assert held(b'{"manifest": 7, "time": 0}', 1000.0, 1000.0 + LEASE + 1) is None
    assert held(b"", 1000.0, 1000.0) is None


def test_a_damaged_manifest_is_told_by_its_name(tmp_path, source):
    source.push(url(tmp_path))
    path = tmp_path / "lake" / "manifests" / "00000001.json"
    path.write_bytes(path.read_bytes().replace(b'"seq"', b'"sex"'))
    with pytest.raises(StorageError, match=r"manifests/00000001.json is damaged"):
        td.open(url(tmp_path), mode="r")
    with warnings.catch_warnings(), pytest.raises(StorageError, match="damaged"):
        td.pull(url(tmp_path), tmp_path / "pulled")
    assert not (tmp_path / "pulled").exists()
