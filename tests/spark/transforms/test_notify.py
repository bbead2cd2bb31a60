"""`notify` on a real local Spark gives the notifications of the embedded engine, in batch and streaming."""

from __future__ import annotations

import os
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.hostile import hostile, ordinary
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, drain, rows_of, subscribe_paced, subscriptions, told
from tidings.errors import EventError, StorageError
from tidings.spark import match, notify

pytestmark = SPARK
CHANGES = [
    lambda topic, at: topic.unsubscribe("s9"),
    lambda topic, at: topic.subscribe("s10", "price <= 80", k=2, window="25 s", by="-price", time=at),
    lambda topic, at: topic.update("s11", k=3),
    lambda topic, at: [topic.update("s13", score=7.0), topic.update("few", budget="30 per day")],
]


@pytest.mark.parametrize("partitions", [1, 3])
def test_batch_replays_event_time(spark, tmp_path, partitions):
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(150), time=START)
        subscribe_paced(topic)
        for id, ranking in hostile("price", START).items():
            topic.subscribe(id, **ranking, time=START)
        topic.flush()
        matches = match(spark.createDataFrame(EVENTS).repartition(partitions), topic.folder, ranking=True)
        got = rows_of(notify(matches, topic.folder, shards=3))
        want = told(topic.publish_batch(EVENTS))
    assert ordinary(got) == ordinary(want)
    assert {row[5] for row in want} == {"matched", "entered", "promoted", "digest"}


def test_matches_that_somebody_looked_at_are_told_of_as_others(spark, tmp_path):
    """By rows of Spark's, where `match` and `notify` are else one stage; refused events concern nobody either way."""
    bad = EVENTS.slice(0, 1).set_column(0, "id", pa.array(["bad"])).set_column(1, "price", pa.array([float("nan")]))
    frame = spark.createDataFrame(pa.concat_tables([EVENTS, bad])).repartition(2)
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(60), time=START)
        topic.flush()
        found = match(frame, topic.folder, corrupt=True, ranking=True)
        want = told(topic.publish_batch(EVENTS))
    for matches in (found, found.where("score >= 0 OR subscription IS NULL")):
        assert rows_of(notify(matches, tmp_path / "offers", shards=3)) == want


@pytest.mark.deep
def test_streaming_with_changes_in_between_equals_the_embedded_engine(spark, tmp_path):
    """Every turn is another run of the query from its checkpoint, with other subscriptions and events, some of them late."""
    source, form = tmp_path / "events", spark.createDataFrame(EVENTS).schema
    order = [*range(60), *range(70, 90), *range(60, 70), *range(90, 120)]
    shuffled = EVENTS.take(pa.array(order))
    want = []
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(150), time=START)
        subscribe_paced(topic)
        for turn, change in enumerate(CHANGES):
            topic.flush()
            part = shuffled.slice(turn * 30, 30).sort_by([("time", "ascending"), ("id", "ascending")])
            spark.createDataFrame(part).repartition(2).write.mode("append").parquet(str(source))
            stream = spark.readStream.schema(form).parquet(str(source))
            notes = notify(match(stream, topic.folder, ranking=True), topic.folder, shards=3)
            drain(notes, tmp_path / "sink", tmp_path / "checkpoint")
            want += topic.publish_batch(part)
            change(topic, part["time"][-1].as_py())
    assert rows_of(spark.read.parquet(str(tmp_path / "sink"))) == told(want)


def write_as_of(table, folder, number):
    """A file whose age says its place: Spark takes files in the order of their times, which may be one millisecond."""
    pq.write_table(table, folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)


@pytest.mark.deep
def test_streaming_by_event_time_equals_a_replay_in_order(spark, tmp_path):
    """Events come up to fifteen seconds late, the query restarts in the middle; timers tell what the watermark has passed."""
    source, form = tmp_path / "events", spark.createDataFrame(EVENTS).schema
    source.mkdir()
    late = np.random.default_rng(3).integers(0, 15_000_000, len(EVENTS))
    arrival = np.argsort(EVENTS["time"].cast(pa.int64()).to_numpy() + late)
    last = EVENTS.slice(0, 1).set_column(0, "id", pa.array(["last"]))
    end = EVENTS["time"][-1].as_py() + timedelta(hours=1)
    last = last.set_column(last.column_names.index("time"), "time", pa.array([end], pa.timestamp("us", "UTC")))
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(100), time=START)
        subscribe_paced(topic)
        topic.flush()
        for number in range(6):
            part = EVENTS.take(pa.array(arrival[number * 20 : number * 20 + 20]))
            write_as_of(part, source, number)
            if number == 2 or number == 5:
                if number == 5:
                    write_as_of(last, source, 6)
                stream = spark.readStream.schema(form).option("maxFilesPerTrigger", "1").parquet(str(source))
                notes = notify(match(stream, topic.folder, ranking=True), topic.folder, shards=2, delay="15 seconds")
                drain(notes, tmp_path / "sink", tmp_path / "checkpoint")
        want = told([*topic.publish_batch(EVENTS), *topic.advance(end - timedelta(seconds=15))])
    got = [row for row in rows_of(spark.read.parquet(str(tmp_path / "sink"))) if row[2] != "last"]
    assert got == want


def test_in_foreach_batch_it_would_forget_and_is_refused(spark, tmp_path):
    source, form = tmp_path / "events", spark.createDataFrame(EVENTS).schema
    spark.createDataFrame(EVENTS).write.parquet(str(source))
    said = []

    def ask(frame, batch):
        with pytest.raises(StorageError, match="notify in foreachBatch forgets its windows with every batch") as told:
            notify(match(frame, topic.folder, ranking=True), topic.folder)
        said.append(told.value)

    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(20), time=START)
        topic.flush()
        stream = spark.readStream.schema(form).parquet(str(source)).writeStream.foreachBatch(ask)
        stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
        assert len(said) == 1
        assert rows_of(notify(match(spark.createDataFrame(EVENTS), topic.folder, ranking=True), topic.folder))


def test_matches_without_their_ranking_are_refused(spark, tmp_path):
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe("a", "price <= 9", time=START)
        topic.flush()
        matches = match(spark.createDataFrame(EVENTS), tmp_path)
    with pytest.raises(EventError, match="no column 'relevance'"):
        notify(matches, tmp_path)
