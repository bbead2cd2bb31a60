"""Transforms have names in plans and figures in a query's progress, for whoever uses them as a library."""

from __future__ import annotations

import pyarrow.parquet as pq

import tidings as td
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, subscriptions
from tidings.spark import match, notify

pytestmark = SPARK


def test_matches_are_counted_in_the_progress(spark, tmp_path, capsys):
    with td.open(tmp_path / "topic", "metered", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(40, windows=False), time=START)
        topic.flush()
        want = len(topic.match_batch(EVENTS))
    (tmp_path / "events").mkdir()
    pq.write_table(EVENTS, tmp_path / "events" / "0.parquet")
    stream = spark.readStream.schema(spark.read.parquet(str(tmp_path / "events")).schema).parquet(str(tmp_path / "events"))
    found = match(stream, tmp_path / "topic", corrupt=True)
    again = match(stream, tmp_path / "topic")
    found.explain()
    assert "tidings match metered" in capsys.readouterr().out
    both = found.select("event").union(again.select("event"))
    writer = both.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    observed = {name: row.asDict() for name, row in query.lastProgress["observedMetrics"].items()}
    assert observed == {
        "tidings match metered": {"matched": want, "refused": 0, "manifest": 1},
        "tidings match metered (2)": {"matched": want, "manifest": 1},
    }


def test_windows_tell_of_their_manifest_and_shards(spark, tmp_path, capsys):
    """Matching and packing are one stage, and there is one exchange."""
    with td.open(tmp_path / "topic", "shards", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(40), time=START)
        topic.flush()
        matched = len(topic.match_batch(EVENTS))
        topic.subscribe("one more", "price < 0")
        topic.flush()
        told = len(topic.publish_batch(EVENTS))
    (tmp_path / "events").mkdir()
    pq.write_table(EVENTS, tmp_path / "events" / "0.parquet")
    stream = spark.readStream.schema(spark.read.parquet(str(tmp_path / "events")).schema).parquet(str(tmp_path / "events"))
    notes = notify(match(stream, tmp_path / "topic", corrupt=True, ranking=True), tmp_path / "topic", shards=2)
    writer = notes.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    observed = {name: row.asDict() for name, row in query.lastProgress["observedMetrics"].items()}
    assert observed["tidings match shards"] == {"matched": matched, "refused": 0, "manifest": 2}
    assert observed["tidings shards shards"]["rows"] == matched
    assert 1.0 <= observed["tidings shards shards"]["skew"] <= 2.0
    assert observed["tidings notify shards"]["told"] == told
    assert observed["tidings notify shards"]["manifest"] == 2
    query.explain()
    plan = capsys.readouterr().out
    assert plan.count("Exchange") == 1
    assert plan.count("MapInArrow tidings match shards, pack") == 1
