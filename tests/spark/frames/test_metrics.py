"""Transforms have names in plans and figures in a query's progress, for whoever uses them as a library."""

from __future__ import annotations

import pyarrow.parquet as pq

import tidings as td
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, subscriptions
from tidings.spark import match

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
    assert observed == {"tidings match metered": {"matched": want, "refused": 0}, "tidings match metered (2)": {"matched": want}}
