"""`search` on a real local Spark finds what `Topic.search` finds, filter by filter."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidings as td
from tests.hostile import hostile, ordinary
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, drain, rows_of, subscriptions
from tidings.errors import EventError, SchemaError, StorageError, SubscriptionError
from tidings.model.door.subscription import make_subscription
from tidings.spark import search

pytestmark = SPARK
LATER = "2025-12-31T23:00:20Z"
FILTERS = [
    "price <= 40 AND brand IN ('b1', 'b2')",
    "price > 90 OR size < 10",
    "A_CONTAINS(about, ('w1', 'w2'))",
    "S_INTERSECTS(place, BBOX(1, 1, 6, 6)) AND NOT brand = 'b3'",
    "price + size > 120",
    "brand = 'nobody'",
    "price IS NULL",
]


def asked() -> pa.Table:
    """Filters of every kind, each with a score of its own, one that depends on the event, and one that has expired."""
    scores = ["0.5", "2", "price * 2 + 1", "1", "3", "1", "1", "1"]
    expires = pa.array([None] * len(FILTERS) + ["2025-12-31T23:00:19Z"]).cast(pa.timestamp("us", "UTC"))
    filters = [*FILTERS, "price >= 0"]
    ids = [f"q{i}" for i in range(len(filters))]
    return pa.table({"id": ids, "filter": filters, "score": scores, "expires": expires})


def expected(topic: td.Topic, table: pa.Table) -> list[tuple]:
    """By `Topic.search` for each row, and the score by the definition."""
    rows = []
    for row in table.slice(0, len(FILTERS)).to_pylist():
        subscription = make_subscription(SCHEMA, row["id"], row["filter"], score=row["score"])
        for event in topic.search(row["filter"], time=LATER).to_pylist():
            live = next((e for e in topic.publisher.events if e.id == event["id"]), None)
            rows.append((row["id"], event["id"], subscription.score_of(live.values)))
    return sorted(rows)


def test_search_in_a_topic_equals_the_topics_own(spark, tmp_path):
    table = asked()
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.publish_batch(EVENTS)
        want = expected(topic, table)
        harmful = [{"id": id, "filter": said["filter"]} for id, said in hostile("price").items() if "filter" in said]
        table = pa.concat_tables([table, pa.Table.from_pylist(harmful)], promote_options="default")
        for partitions in (1, 3):
            got = search(spark.createDataFrame(table).repartition(partitions), tmp_path, time=LATER)
            assert ordinary(rows_of(got)) == want
        assert {row[0] for row in want} == {"q0", "q1", "q2", "q3", "q4"}
        assert len(topic.search(time=LATER)) < len(EVENTS), "some have expired"


def test_columnar_subscriptions_find_the_pairs_that_match_finds(spark, tmp_path):
    """In a DataFrame of events: the same pairs as in the other direction."""
    table, events = subscriptions(120, windows=False), EVENTS.drop_columns(["time", "expires"])
    with td.Topic("offers", SCHEMA) as topic:
        topic.subscribe_many(table, time=START)
        want = sorted((s, e, score) for e, s, score in rows_of(topic.match_batch(events)))
    standing = spark.createDataFrame(events).repartition(2)
    got = search(spark.createDataFrame(table).repartition(2), standing, SCHEMA, snapshot=tmp_path / "snapshot")
    assert rows_of(got) == want


def test_streaming_sees_the_live_events_of_each_micro_batch(spark, tmp_path):
    table, source = asked().slice(0, len(FILTERS)), tmp_path / "asked"
    form = spark.createDataFrame(table).schema
    want = []
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        for turn in range(2):
            topic.publish_batch(EVENTS.slice(turn * 60, 60))
            part = table.slice(turn * 3, 4)
            spark.createDataFrame(part).repartition(2).write.mode("append").parquet(str(source))
            want += expected(topic, part)
            stream = search(spark.readStream.schema(form).parquet(str(source)), tmp_path / "offers", time=LATER)
            drain(stream, tmp_path / "sink", tmp_path / "checkpoint")
    assert rows_of(spark.read.parquet(str(tmp_path / "sink"))) == sorted(want)


def test_mistakes_are_said_in_one_sentence(spark, tmp_path):
    table = spark.createDataFrame(asked())
    with pytest.raises(StorageError, match="holds no topic"):
        search(table, tmp_path / "nowhere")
    events = spark.createDataFrame(EVENTS)
    with pytest.raises(EventError, match="needs schema, and snapshot"):
        search(table, events)
    with pytest.raises(SchemaError, match="column 'colour' is unknown"):
        search(table, events.withColumnRenamed("brand", "colour"), SCHEMA, snapshot=tmp_path / "one")
    with pytest.raises(SubscriptionError, match="column 'text' is unknown"):
        search(table.withColumnRenamed("filter", "text"), events, SCHEMA, snapshot=tmp_path / "two")
    wrong = asked().slice(0, 2).set_column(1, "filter", pa.array(["price <= 40", "colour = 1"]))
    with pytest.raises(Exception, match="colour"):
        search(spark.createDataFrame(wrong), events, SCHEMA, snapshot=tmp_path / "three").collect()
    told = search(spark.createDataFrame(wrong), events, SCHEMA, snapshot=tmp_path / "four", time=LATER, corrupt=True)
    refused = told.where("_corrupt IS NOT NULL").collect()
    assert [(row.subscription, row.event) for row in refused] == [("q1", None)]
