"""`board` on a real local Spark tells every watcher what the embedded engine tells it, in batch and streaming."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import tidings as td
from tests.hostile import hostile, ordinary
from tests.spark import samples
from tests.spark.samples import SPARK, START, drain, rows_of
from tidings.durable.snapshots import snapshots_at, view_of
from tidings.errors import EventError, SchemaError
from tidings.spark import board, match
from tidings.spark.state.shard_boards import ShardBoards

pytestmark = SPARK
SCHEMA = td.Schema({"size": td.Number(0, 100), "rent": td.Number(), "kind": td.Category()})
TURNS, EACH = 5, 32


def watchers(n: int) -> pa.Table:
    """Painted ones of two kinds and plain ones; some with windows, some count one of a kind."""
    rng = np.random.default_rng(21)
    low = rng.integers(0, 640, n) / 8
    return pa.table(
        {
            "id": [f"s{i}" for i in range(n)],
            "k": pa.array([(1, 2, 3, None)[i % 4] for i in range(n)], pa.int32()),
            "by": [("-rent", "rent", "rent + size")[i % 3] for i in range(n)],
            "size.lo": low,
            "size.hi": low + rng.integers(40, 400, n) / 8,
            "kind.in": pa.array([["flat"] if i % 5 == 0 else None for i in range(n)], pa.list_(pa.string())),
            "rent.hi": pa.array([40.0 if i % 7 == 0 else None for i in range(n)], pa.float64()),
            "window": pa.array([(None, "30 s", "day")[i % 9 // 3] if i % 3 == 1 else None for i in range(n)], pa.string()),
            "tz": pa.array(["Europe/Berlin" if i % 9 == 7 else None for i in range(n)], pa.string()),
            "per": pa.array(["kind" if i % 8 == 3 else None for i in range(n)], pa.string()),
        }
    )


def updates() -> pa.Table:
    """Objects of 30 keys, replaced, deleted, expiring; times ascend."""
    rng = np.random.default_rng(22)
    n, start = TURNS * EACH, datetime.fromisoformat(START)
    times = [start + timedelta(seconds=int(s)) for s in np.sort(rng.integers(1, 200, n))]
    ends = [at + timedelta(seconds=int(rng.integers(5, 60))) if rng.random() < 0.2 else None for at in times]
    return pa.table(
        {
            "address": [f"a{i:02d}" for i in rng.integers(0, 30, n)],
            "size": rng.integers(0, 800, n) / 8,
            "rent": pa.array([None if rng.random() < 0.1 else float(i) / 8 for i in rng.integers(0, 640, n)], pa.float64()),
            "kind": [("flat", "house")[i] for i in rng.integers(0, 2, n)],
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "expires": pa.array(ends, pa.timestamp("us", "UTC")),
            "deleted": rng.random(n) < 0.15,
        }
    )


UPDATES = updates()
CHANGES = [
    lambda topic, at: topic.unsubscribe("s4"),
    lambda topic, at: topic.subscribe("s9", "size BETWEEN 10 AND 60", k=2, by="-rent", time=at),
    lambda topic, at: [*topic.update("s9", k=4, time=at), *topic.update("stays", filter="size >= 30", time=at)],
    lambda topic, at: topic.subscribe("new", "size >= 5 AND kind = 'flat'", k=3, by="rent + size", time=at),
    lambda topic, at: [],
]


def told(notes) -> list[tuple]:
    return told_rows(samples.told(notes))


def told_rows(rows) -> list[tuple]:
    """Without their ids, which in a stream say the micro-batch."""
    return sorted(ordinary(row[1:] for row in rows), key=repr)


def rows(frame) -> list[tuple]:
    return told_rows(rows_of(frame))


@pytest.fixture
def flats(tmp_path):
    with td.open(tmp_path / "flats", "flats", SCHEMA, key="address") as topic:
        topic.subscribe_many(watchers(60), time=START)
        for id, ranking in hostile("rent", START).items():
            topic.subscribe(id, **ranking, time=START)
        topic.subscribe("stays", "size >= 40", dwell="15 s", time=START)
        topic.subscribe("seldom", "size >= 10", budget="9 per hour", cooldown="4 s", per="kind", time=START)
        topic.subscribe("cheaper", "rent <= 0.9 * PREV(rent)", time=START)
        topic.subscribe("dropped", "size >= 20", k=2, by="PREV(rent) - rent", window="60 s", time=START)
        topic.subscribe("daily", "size >= 10", k=3, by="-rent", per="kind", digest="day", tz="Europe/Berlin", time=START)
        topic.flush()
        yield topic


def test_batch_replays_event_time(spark, flats):
    want = told(flats.publish_batch(UPDATES))
    for partitions in (1, 3):
        ordered = spark.createDataFrame(UPDATES).repartitionByRange(partitions, "time").sortWithinPartitions("time")
        # Of one instant and key the last in order of partition and row counts, which the sample's rows of one time do not contest.
        assert rows(board(ordered, flats.folder, shards=2)) == want
    assert {row[4] for row in want} == {"entered", "updated", "left", "dwelt", "digest"}


@pytest.mark.deep
def test_streaming_with_changes_in_between_equals_the_embedded_engine(spark, flats, tmp_path):
    """Every turn is another run of the query from its checkpoint, with other watchers and updates."""
    source, form = tmp_path / "updates", spark.createDataFrame(UPDATES).schema
    want = []
    for turn, change in enumerate(CHANGES):
        part = UPDATES.slice(turn * EACH, EACH)
        spark.createDataFrame(part).coalesce(1).write.mode("append").parquet(str(source))
        stream = spark.readStream.schema(form).parquet(str(source))
        drain(board(stream, flats.folder, shards=3), tmp_path / "sink", tmp_path / "checkpoint")
        want += flats.publish_batch(part, time=part["time"][-1].as_py())
        want += change(flats, part["time"][-1].as_py()) or []
        flats.flush()
    got = spark.read.parquet(str(tmp_path / "sink"))
    # The last change has no micro-batch after it, and begins nothing.
    assert rows(got) == told(want)
    ids = [row.id for row in got.select("id").collect()]
    assert len(set(ids)) == len(ids)


def test_boards_go_on_from_the_objects_alone(flats):
    """Made anew between any two batches, from what `changes` wrote, they tell the same."""
    view = view_of(snapshots_at(flats.folder), 1)
    kept, objects = ShardBoards(view, 0, 2), {}
    for turn in range(TURNS):
        part = UPDATES.slice(turn * EACH, EACH)
        at = int(part["time"].cast(pa.int64())[-1].as_py())
        events = view.read(part).events()
        again = ShardBoards.restore(view, 0, 2, kept.clock, objects)
        want = told(kept.replace(events, at))
        assert told(again.replace(events, at)) == want
        assert len(want) > 0
        objects |= kept.changes()


def test_mistakes_are_said_in_one_sentence(spark, flats, tmp_path):
    frame = spark.createDataFrame(UPDATES)
    with td.open(tmp_path / "stream", "stream", SCHEMA) as topic:
        topic.subscribe("a", "size > 3", time=START)
        topic.flush()
        with pytest.raises(SchemaError, match="has no key: board takes the objects of a keyed topic"):
            board(frame, topic.folder)
    with pytest.raises(EventError, match="column '_corrupt'"):
        board(frame.withColumn("_corrupt", frame.kind), flats.folder)
    with pytest.raises(SchemaError, match="column 'colour' is unknown"):
        board(frame.withColumnRenamed("kind", "colour"), flats.folder)


def test_match_refuses_what_asks_for_a_value_before(spark, flats):
    frame = spark.createDataFrame(UPDATES)
    with pytest.raises(Exception, match="subscription 'cheaper' asks for PREV: match sees events and no objects; board keeps them"):
        match(frame, flats.folder).collect()
    flats.unsubscribe("cheaper")
    flats.flush()
    # Ranked by it, it matches all the same.
    assert {row.subscription for row in match(frame, flats.folder).collect()} >= {"stays", "dropped"}


@pytest.mark.deep
def test_a_checkpoint_of_other_shards_is_refused(spark, flats, tmp_path):
    source, form = tmp_path / "updates", spark.createDataFrame(UPDATES).schema
    for shards in (2, 3):
        spark.createDataFrame(UPDATES.slice(shards * 9, 9)).write.mode("append").parquet(str(source))
        stream = board(spark.readStream.schema(form).parquet(str(source)), flats.folder, shards=shards)
        if shards == 3:
            with pytest.raises(Exception, match="made with 2 shards, not 3"):
                drain(stream, tmp_path / "sink", tmp_path / "checkpoint")
        else:
            drain(stream, tmp_path / "sink", tmp_path / "checkpoint")
    assert {path.name for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")} == {"0"}
