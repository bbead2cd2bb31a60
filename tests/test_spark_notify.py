"""`notify` on a real local Spark gives the notifications of the embedded engine, in batch and streaming."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidings as td
from tests.spark_samples import EVENTS, SCHEMA, START, drain, rows_of, subscriptions
from tidings.errors import EventError
from tidings.spark import match, notify, notifying
from tidings.spark.shard_windows import ShardWindows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CHANGES = [
    lambda topic, at: topic.unsubscribe("s9"),
    lambda topic, at: topic.subscribe("s10", "price <= 80", k=2, window="25 s", by="-price", time=at),
    lambda topic, at: topic.update("s11", k=3),
    lambda topic, at: topic.update("s13", score=7.0),
]


def told(notes) -> list[tuple]:
    return sorted((n.id, n.subscription, n.event, n.score, n.rank, n.why, n.at) for n in notes)


@pytest.mark.parametrize("partitions", [1, 3])
def test_batch_replays_event_time(spark, tmp_path, partitions):
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(150), time=START)
        topic.flush()
        matches = match(spark.createDataFrame(EVENTS).repartition(partitions), topic.folder, ranking=True)
        got = rows_of(notify(matches, topic.folder, shards=3))
        want = told(topic.publish_batch(EVENTS))
    assert got == want
    assert {row[5] for row in want} == {"matched", "entered", "promoted"}


def test_streaming_with_changes_in_between_equals_the_embedded_engine(spark, tmp_path):
    """Every turn is another run of the query from its checkpoint, with other subscriptions and events, some of them late."""
    source, form = tmp_path / "events", spark.createDataFrame(EVENTS).schema
    order = [*range(60), *range(70, 90), *range(60, 70), *range(90, 120)]
    shuffled = EVENTS.take(pa.array(order))
    want = []
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(150), time=START)
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


def test_a_shard_goes_on_from_its_log():
    """What is written back after each batch is enough to go on with, packed or not."""
    first, log = ShardWindows(), []
    for id, window in (("a", "20 s"), ("b", "3 events"), ("c", None)):
        first.activate(id, (2, window, None, 0, None))
    for turn in range(6):
        table = pa.table(
            {
                "event": [f"e{turn}"] * 3,
                "time": [turn * 9_000_000] * 3,
                "expires": [2**62] * 3,
                "subscription": ["a", "b", "c"],
                "score": [float(-turn), 1.0 * turn, 1.0],
                "k": pa.array([2] * 3, pa.int32()),
                "window": ["20 s", "3 events", None],
                "error": pa.nulls(3, pa.float64()),
                "since": [-1] * 3,
                "by": pa.nulls(3, pa.string()),
            }
        )
        log.append(notifying.json.dumps(first.changes()).encode())
        second = ShardWindows.restore(first.windows.clock, first.windows.publications, first.manifest, log)
        body = notifying.to_bytes(table)
        clock = turn * 9_000_000 + 1
        assert rows_of(second.publish([body], clock)) == rows_of(first.publish([body], clock))
        second.windows.check()


def test_matches_without_their_ranking_are_refused(spark, tmp_path):
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe("a", "price <= 9", time=START)
        topic.flush()
        matches = match(spark.createDataFrame(EVENTS), tmp_path)
    with pytest.raises(EventError, match="no column 'relevance'"):
        notify(matches, tmp_path)
