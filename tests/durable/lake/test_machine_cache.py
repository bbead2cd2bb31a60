"""The machine's cache over objects that are not files here: `obstore` itself, on a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidings as td
from tests.durable.lake.samples import SCHEMA, START, answers, fill
from tidings.durable.lake.address import Url
from tidings.durable.lake.lake import Lake
from tidings.durable.lake.lake_topic import LakeTopic
from tidings.durable.lake.machine_cache import MachineCache, content_hash
from tidings.durable.lake.objects import CloudObjects, MissingObject
from tidings.durable.snapshots import LakeSnapshots, view_of
from tidings.errors import StorageError


@pytest.fixture
def bucket(tmp_path):
    (tmp_path / "bucket").mkdir()
    return CloudObjects(Url("file", f"file://{tmp_path}/bucket"))


@pytest.fixture
def pushed(tmp_path, monkeypatch, bucket):
    monkeypatch.setenv("TIDINGS_CACHE", str(tmp_path / "cache"))
    with td.open(tmp_path / "source", "offers", SCHEMA) as topic:
        fill(topic)
        topic.push(f"file://{tmp_path}/bucket")
        yield topic


def put(bucket: CloudObjects, tmp_path: Path, body: bytes) -> tuple[str, int]:
    """An object named by its content."""
    path = tmp_path / "body"
    path.write_bytes(body)
    name = f"objects/{content_hash(path)}.segment"
    bucket.put(name, body)
    return name, len(body)


def held(cache: MachineCache) -> set[str]:
    return {f"objects/{path.name}" for path in (cache.root / "objects").iterdir()}


def test_objects_are_put_once_listed_and_gone(bucket):
    assert bucket.put_new("manifests/1.json", b"one")
    assert not bucket.put_new("manifests/1.json", b"two")
    assert bucket.put_new("manifests/1.json", b"one"), "whose answer was lost finds its own body"
    assert bucket.get("manifests/1.json") == b"one"
    assert [(one.name, one.size) for one in bucket.listed("manifests/")] == [("manifests/1.json", 3)]
    bucket.delete(["manifests/1.json"])
    with pytest.raises(MissingObject, match=r"has no manifests/1.json"):
        bucket.get("manifests/1.json")
    assert bucket.listed("manifests/") == []


def test_what_is_asked_for_longest_ago_goes_first(tmp_path, bucket):
    cache = MachineCache(tmp_path / "cache", 250)
    names = dict(put(bucket, tmp_path, bytes([i]) * 100) for i in range(4))
    one, two, three, four = names
    for at, name in enumerate((one, two)):
        cache.take(bucket, {name: 100})
        os.utime(cache.root / name, (at, at))
    cache.take(bucket, {one: 100})
    cache.take(bucket, {three: 100})
    assert held(cache) == {one, three}, "two was asked for longest ago"
    cache.take(bucket, {three: 100, four: 100})
    assert held(cache) == {three, four}
    with pytest.raises(StorageError, match=r"has 300 bytes, the cache .* holds 250"):
        cache.take(bucket, {one: 100, two: 100, three: 100})


def test_a_damaged_object_gets_no_name(tmp_path, bucket):
    cache = MachineCache(tmp_path / "cache", 1000)
    name, size = put(bucket, tmp_path, b"whole")
    for body in (b"whol", b"whole!", b"whale"):
        bucket.put(name, body)
        with pytest.raises(StorageError, match="its content is not what its name says"):
            cache.take(bucket, {name: size})
        assert held(cache) == set()
    bucket.put(name, b"whole")
    assert (cache.take(bucket, {name: size}) / name).read_bytes() == b"whole"


@pytest.mark.parametrize("harm", ["cut", "other"])
def test_a_file_that_is_damaged_here_is_fetched_again(tmp_path, bucket, pushed, harm):
    topic = LakeSnapshots(Lake(bucket))
    manifest = topic.manifest(1)
    folder = topic.lake.take(manifest, manifest.snapshot().files)
    victim = folder / manifest.segments[0].file
    body = victim.read_bytes()
    victim.write_bytes(body[:-5] if harm == "cut" else b"x" * len(body))
    assert len(view_of(topic, 1)) == len(pushed.store)
    assert victim.read_bytes() == body


def test_a_reader_maps_from_the_cache_and_fetches_what_changed_alone(tmp_path, bucket, pushed):
    cache = tmp_path / "cache" / "objects"
    with LakeTopic(Lake(bucket), Lake(bucket).must_have()) as read:
        assert answers(read) == answers(pushed)
    first = {path.name for path in cache.iterdir()}
    pushed.subscribe("one", "price < 3", time=START)
    pushed.push(f"file://{tmp_path}/bucket")
    view_of(LakeSnapshots(Lake(bucket)), 2)
    fetched = [path for path in cache.iterdir() if path.name not in first]
    assert [path.suffix for path in fetched] == [".segment"]


MANY = """
import sys
from tidings.durable.lake.address import Url
from tidings.durable.lake.machine_cache import MachineCache
from tidings.durable.lake.objects import CloudObjects
from pathlib import Path
bucket, root, *names = sys.argv[1:]
cache = MachineCache(Path(root), 350)
for turn in range(30):
    for name in names[turn % 2 :]:
        path = cache.take(CloudObjects(Url("file", bucket)), {name: 100}) / name
        try:
            assert len(path.read_bytes()) == 100
        except FileNotFoundError:
            pass
"""


def test_many_processes_share_it(tmp_path, bucket):
    """Four processes fetch and evict the same objects; each file that is there is whole, and none is left behind."""
    names = [put(bucket, tmp_path, bytes([i]) * 100)[0] for i in range(6)]
    arguments = [sys.executable, "-c", MANY, bucket.url.text, str(tmp_path / "cache"), *names]
    running = [subprocess.Popen(arguments, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) for _ in range(4)]
    assert [process.wait(120) for process in running] == [0] * 4
    files = list((tmp_path / "cache" / "objects").iterdir())
    assert sum(path.stat().st_size for path in files) <= 350
    assert all(path.read_bytes() in [bytes([i]) * 100 for i in range(6)] for path in files)


def test_a_limit_that_is_no_number(tmp_path, monkeypatch, pushed, bucket):
    monkeypatch.setenv("TIDINGS_CACHE_BYTES", "much")
    with pytest.raises(StorageError, match=r"TIDINGS_CACHE_BYTES is 'much'"):
        LakeTopic(Lake(bucket), Lake(bucket).must_have())
