"""Topics in parts and at a URL are changed by `follow`, and answer `match`, `notify` and `board` as the embedded engine does."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.spark.parts.test_parts import events, table
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, drain, rows_of, subscriptions
from tidings.durable.lake.lake import LostRace
from tidings.durable.snapshots import snapshots_at
from tidings.spark import build, follow, match, notify
from tidings.spark.parts import build_lake
from tidings.spark.transforms.follow import apply_changes
from tidings.spark.transforms.follow_lake import LakeFollower, RefusedChanges

pytestmark = SPARK


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDINGS_CACHE", str(tmp_path / "cache"))


def turns() -> list[pa.Table]:
    """Changes: who moves to another cell, who is new (with words and brands that nobody had), who goes, who comes back."""
    given = table()
    moved = given.slice(0, 60).set_column(given.column_names.index("price.lo"), "price.lo", pa.array([80.0] * 60))
    moved = moved.set_column(given.column_names.index("price.hi"), "price.hi", pa.array([80.5] * 60))
    fresh = given.slice(60, 30).set_column(0, "id", pa.array([f"new{i}" for i in range(30)]))
    fresh = fresh.set_column(given.column_names.index("about.all"), "about.all", pa.array([["w1"], ["unheard"]] * 15))
    fresh = fresh.set_column(given.column_names.index("brand.in"), "brand.in", pa.array([["b1", "brandnew"]] * 30))
    first = pa.concat_tables([moved, fresh])
    gone = pa.table({"id": [f"s{i}" for i in range(40, 90)], "op": ["delete"] * 50})
    return [
        pa.concat_tables([first, gone.slice(25)], promote_options="default").append_column("seq", pa.array(range(115))),
        pa.concat_tables([given.slice(70, 5), gone.slice(0, 30)], promote_options="default").append_column(
            "seq", pa.array(range(35))
        ),
    ]


@pytest.mark.parametrize("by", ["place", pytest.param("hash", marks=pytest.mark.deep), None])
def test_changes_reach_the_parts(spark, tmp_path, by):
    place = f"file://{tmp_path}/lake" if by is None else tmp_path / "parts"
    build(spark.createDataFrame(table()).repartition(2), place, "offers", SCHEMA, time=START, part_by=by, parts=4)
    frame, source = spark.createDataFrame(events()), tmp_path / "changes"
    source.mkdir()
    with td.open(tmp_path / "topic", "offers", SCHEMA) as topic:
        topic.subscribe_many(table(), time=START)
        for number, turn in enumerate(turns()):
            pq.write_table(turn, source / f"{number}.parquet")
            stream = spark.readStream.schema(spark.createDataFrame(turn).schema).parquet(str(source))
            follow(stream, place, tmp_path / "checkpoint", trigger={"availableNow": True}).awaitTermination()
            apply_changes(topic, turn, 1_000_000)
            assert rows_of(match(frame, place)) == rows_of(topic.match_batch(events()))
            assert rows_of(match(frame, place, 3)) == rows_of(topic.match_batch(events(), k=3))
            newest = snapshots_at(place).newest()
            assert newest.number == number + 2
            assert sum(segment.living for segment in newest.segments) == len(topic)
    td.pull(f"file://{tmp_path}/{'lake' if by is None else 'parts'}", tmp_path / "pulled")
    with td.open(tmp_path / "pulled") as pulled:
        assert rows_of(pulled.match_batch(events())) == rows_of(match(frame, place))


@pytest.mark.deep
@pytest.mark.parametrize("by", ["place", "price"])
def test_a_part_that_has_grown_is_split(spark, tmp_path, monkeypatch, by):
    """Again and again, while changes come; and the pieces are what a build of all would answer."""
    monkeypatch.setattr(build_lake, "SMALLEST", 1)
    place, frame = tmp_path / "parts", spark.createDataFrame(events())
    build(spark.createDataFrame(table().slice(0, 40)), place, "offers", SCHEMA, time=START, part_by=by, parts=2)
    follower = LakeFollower(snapshots_at(place), RefusedChanges(tmp_path / "checkpoint", "raise"))
    built = follower.topic.newest()
    assert built.cut is not None
    for turn in range(2):
        follower(spark.createDataFrame(table().slice(40 + turn * 80, 80)), turn)
    newest = follower.topic.newest()
    assert newest.cut["parts"] > built.cut["parts"] + 1
    most, everywhere = newest.cut["most"], newest.cut["parts"] - 1
    assert all(sum(one.living for one in newest.parts[part]) <= most for part in newest.parts if part != everywhere)
    with td.Topic("offers", SCHEMA) as topic:
        topic.subscribe_many(table(), time=START)
        want = rows_of(topic.match_batch(events()))
        assert rows_of(match(frame, place)) == want
        assert rows_of(match(frame, place, 2)) == rows_of(topic.match_batch(events(), k=2))
    td.pull(f"file://{place}", tmp_path / "pulled")
    with td.open(tmp_path / "pulled") as pulled:
        assert rows_of(pulled.match_batch(events())) == want


def test_a_micro_batch_that_runs_again_changes_nothing(spark, tmp_path):
    place = tmp_path / "parts"
    build(spark.createDataFrame(table()), place, "offers", SCHEMA, time=START, part_by="hash", parts=2)
    follower = LakeFollower(snapshots_at(place), RefusedChanges(tmp_path / "checkpoint", "skip"))
    bad = pa.table({"key": ["a", "b"], "value": ['{"filter": "price < 5"}', "{"]})
    follower(spark.createDataFrame(bad), 0)
    assert follower.topic.newest().number == 2
    follower(spark.createDataFrame(bad), 0)
    assert follower.topic.newest().number == 2
    (refused,) = json.loads((tmp_path / "checkpoint" / "refused" / "0.json").read_text())
    assert refused["id"] == "b"
    base = follower.topic.newest()
    work, _ = follower.work(base, pa.table({"key": ["c"], "value": ["{}"]}), 1_000_000)
    follower(spark.createDataFrame(pa.table({"key": ["d"], "value": ["{}"]})), 1)
    from tidings.spark.transforms.follow_lake import next_manifest

    with pytest.raises(LostRace, match="of another writer"):
        follower.topic.lake.commit(next_manifest(work, [(0, work.change(0))], {}))


@pytest.mark.deep
def test_windows_on_parts_tell_what_they_tell_on_one_topic(spark, tmp_path):
    """A stream, changed in the middle; a part that is first visited late is read as the pin at the root says."""
    given, source = spark.createDataFrame(subscriptions(60)), tmp_path / "events"
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    build(given, whole, "offers", SCHEMA, time=START)
    build(given, parts, "offers", SCHEMA, time=START, part_by="price", parts=4)
    source.mkdir()
    form = spark.createDataFrame(EVENTS).schema
    change = pa.table({"id": ["s1", "s2", "s3"], "op": ["delete", "delete", "upsert"], "price.hi": [None, None, 50.0]})
    for turn in range(2):
        pq.write_table(EVENTS.slice(turn * 60, 60), source / f"{turn}.parquet")
        for place in (whole, parts):
            stream = spark.readStream.schema(form).parquet(str(source))
            notes = notify(match(stream, place, ranking=True), place, shards=3)
            drain(notes, tmp_path / f"sink-{place.name}", tmp_path / f"checkpoint-{place.name}")
            (tmp_path / "changes").mkdir(exist_ok=True)
            pq.write_table(change, tmp_path / "changes" / "0.parquet")
            changes = spark.readStream.schema(spark.createDataFrame(change).schema).parquet(str(tmp_path / "changes"))
            follow(changes, place, tmp_path / f"follow-{place.name}", trigger={"availableNow": True}).awaitTermination()
    want, got = (rows_of(spark.read.parquet(str(tmp_path / f"sink-{place.name}")).drop("id")) for place in (whole, parts))
    assert got == want
    assert want
    static = spark.createDataFrame(EVENTS)
    assert rows_of(notify(match(static, parts, ranking=True), parts).drop("id")) == rows_of(
        notify(match(static, whole, ranking=True), whole).drop("id")
    )
