"""`match` and `build` on a real local Spark give what the embedded engine gives, row by row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.hostile import hostile
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, drain, rows_of, subscriptions
from tidings.durable.manifest_view import View
from tidings.durable.snapshots import snapshots_at, view_of
from tidings.errors import SchemaError, StorageError, SubscriptionError
from tidings.spark import build, match
from tidings.spark.frames import arrow_stage, match_task
from tidings.spark.frames.match_task import MatchTask
from tidings.spark.frames.parquet_files import given_by, shares
from tidings.spark.frames.pins import newest, pinned

pytestmark = SPARK


@pytest.fixture(scope="module")
def topic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("topic") / "offers"
    with td.open(folder, "offers", SCHEMA) as made:
        made.subscribe_many(subscriptions(400), time=START)
        made.subscribe("formula", "price <= 50", score="price * 2 + 1", time=START)
        made.subscribe("residue", "price <= 50 AND price + size > 60", time=START)
        made.subscribe("short", "price >= 0", expires="2025-12-31T22:59:50Z", time=START)
        made.unsubscribe("s7")
        for id, ranking in hostile("price", START).items():
            made.subscribe(id, **ranking, time=START)
        made.flush()
        yield made


@pytest.mark.parametrize(("k", "partitions"), [(None, 1), (None, 3), (0, 1), (1, 3), (3, 1), (1000, 3)])
def test_match_equals_the_embedded_engine(spark, topic, k, partitions):
    events = EVENTS.drop_columns(["time"])
    got = match(spark.createDataFrame(events).repartition(partitions), topic.folder, k=k)
    assert rows_of(got) == rows_of(topic.match_batch(events, k=k))


def test_workers_read_parquet_files_themselves(spark, topic, tmp_path, monkeypatch):
    events = EVENTS.drop_columns(["time"])
    monkeypatch.setattr("tidings.spark.frames.parquet_files.TASK_ROWS", 30)
    pq.write_table(events.slice(0, 70), tmp_path / "0.parquet", row_group_size=15)
    pq.write_table(events.slice(70), tmp_path / "1.parquet")
    (tmp_path / "_SUCCESS.parquet").write_bytes(b"")
    assert [share.row_groups for share in shares(given_by(tmp_path))] == [[0, 1], [2, 3], [4], [0]]
    assert rows_of(match(tmp_path, topic.folder, k=3)) == rows_of(topic.match_batch(events, k=3))
    assert rows_of(match(tmp_path / "1.parquet", topic.folder)) == rows_of(topic.match_batch(events.slice(70)))
    pq.write_table(events.append_column("colour", pa.array(["red"] * len(events))), tmp_path / "2.parquet")
    with pytest.raises(StorageError, match=r"2\.parquet has other columns than .*0\.parquet"):
        match(tmp_path, topic.folder)
    with pytest.raises(StorageError, match="nothing has no Parquet files"):
        match(tmp_path / "nothing", topic.folder)


def test_an_event_meets_the_subscriptions_of_its_own_time(spark, topic):
    got = match(spark.createDataFrame(EVENTS), topic.folder)
    want = [
        (event["id"], m.subscription, m.score)
        for event in EVENTS.to_pylist()
        for m in topic.match({name: v for name, v in event.items() if v is not None}, time=event["time"])
    ]
    assert rows_of(got) == sorted(want)
    assert 0 < sum(subscription == "short" for _, subscription, _ in want) < len(EVENTS)


def test_streaming_pins_one_manifest_a_micro_batch(spark, tmp_path):
    folder = tmp_path / "offers"
    source = tmp_path / "events"
    form = spark.createDataFrame(EVENTS).schema
    with td.open(folder, "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(200), time=START)
        topic.flush()
        want = []
        for turn in range(3):
            spark.createDataFrame(EVENTS.slice(turn * 40, 40)).repartition(2).write.mode("append").parquet(str(source))
            want += rows_of(topic.match_batch(EVENTS.slice(turn * 40, 40)))
            stream = match(spark.readStream.schema(form).parquet(str(source)), folder)
            drain(stream, tmp_path / "sink", tmp_path / "checkpoint")
            topic.unsubscribe(f"s{turn}")
            topic.subscribe(f"new{turn}", "price <= 90", score=0.5, time=START)
            topic.flush()
    assert rows_of(spark.read.parquet(str(tmp_path / "sink"))) == sorted(want)
    pins = sorted(folder.glob("pins/*/*.json"))
    assert [json.loads(pin.read_text())["manifest"] for pin in pins] == sorted(
        {p["manifest"] for p in map(json.loads, (p.read_text() for p in pins))}
    )


def test_a_pin_is_made_once_and_its_manifest_stays(tmp_path):
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe("a", "price <= 9", time=START)
        topic.flush()
        first = pinned(snapshots_at(tmp_path), "query", 0)
        for turn in range(12):
            topic.subscribe(f"b{turn}", "price <= 9", time=START)
            topic.flush()
        assert pinned(snapshots_at(tmp_path), "query", 0) == first
        assert View.open(tmp_path, first.manifest).locate(pa.array(["a", "b0"])).segment.tolist() == [0, -1]
        assert pinned(snapshots_at(tmp_path), "query", 1).manifest > first.manifest


def test_a_removal_alone_is_seen_by_readers(tmp_path):
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(10), time=START)
        topic.flush()
        assert topic.unsubscribe_many(["s3", "s4", "nobody", "s3"]) == 2
        topic.flush()
        assert len(View.open(tmp_path)) == 8


@pytest.mark.parametrize("aggregate", ["sum", "max"])
def test_relaxed_and_similar_equal_the_embedded_engine(tmp_path, aggregate):
    """A view answers as the topic does; Spark only carries the batches."""
    events = EVENTS.drop_columns(["time"])
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(60).append_column("price.weight", pa.array([0.5] * 60)), time=START)
        topic.subscribe("like", "A_CONTAINS(about, ('w1', 'w2')) AND S_INTERSECTS(place, BBOX(0, 0, 6, 6))", similarity=(0.5, 0.3))
        topic.flush()
        view, time = View.open(tmp_path), 1_800_000_000_000_000
        want = topic.match_batch(events, k=4, relaxed=True, aggregate=aggregate)
        assert rows_of(view.match(events, 4, True, aggregate, time=time).drop_columns(["row"])) == rows_of(want)
        assert rows_of(view.match(events, time=time).drop_columns(["row"])) == rows_of(topic.match_batch(events))


def test_refused_events_come_out_with_the_reason(spark, topic):
    bad = EVENTS.slice(0, 3).set_column(1, "price", pa.array([1.0, np.nan, 2.0]))
    frame = match(spark.createDataFrame(bad), topic.folder, corrupt=True)
    refused = frame.where("_corrupt IS NOT NULL").collect()
    assert [(row.event, row.subscription) for row in refused] == [(bad["id"][1].as_py(), None)]
    assert "price is nan" in refused[0]._corrupt
    good = bad.take(pa.array([0, 2]))
    assert rows_of(frame.where("_corrupt IS NULL").drop("_corrupt")) == rows_of(match(spark.createDataFrame(good), topic.folder))
    with pytest.raises(Exception, match="price is nan"):
        match(spark.createDataFrame(bad), topic.folder).collect()


def test_mistakes_are_said_in_one_sentence(spark, topic, tmp_path):
    events = spark.createDataFrame(EVENTS)
    with pytest.raises(StorageError, match=r"holds no manifest\.json"):
        match(events, tmp_path)
    with pytest.raises(SchemaError, match="price"):
        match(events.withColumn("price", events.brand), topic.folder)
    with pytest.raises(SchemaError, match="events have no column 'id'"):
        match(events.drop("id"), topic.folder)
    with pytest.raises(SchemaError, match="events have id, colour: at least one attribute is accepted, of price"):
        match(events.selectExpr("id", "brand AS colour"), topic.folder)
    with pytest.raises(SchemaError, match="carry has 'colour': a column of the events is accepted"):
        match(events, topic.folder, carry=["colour"])
    with pytest.raises(SchemaError, match="carry has 'score', which matches have"):
        match(events.selectExpr("*", "1 AS score"), topic.folder, carry=["score"])


@pytest.mark.parametrize("form", ["frame", "files"])
@pytest.mark.parametrize("asked", [{}, {"k": 2}, {"ranking": True}])
def test_other_columns_are_ignored_or_carried(spark, topic, tmp_path, form, asked):
    wide = EVENTS.append_column("region", pa.array([{"name": f"r{i}"} for i in range(len(EVENTS))])).append_column(
        "a.b", pa.array([f"x{i}" for i in range(len(EVENTS))])
    )
    pq.write_table(wide, tmp_path / "wide.parquet")
    source = tmp_path / "wide.parquet" if form == "files" else spark.createDataFrame(wide).repartition(3)
    plain = match(spark.createDataFrame(EVENTS), topic.folder, **asked)
    assert plain.columns == match(source, topic.folder, **asked).columns
    got = match(source, topic.folder, carry=["a.b", "region", "price"], **asked).toArrow()
    assert rows_of(got.drop_columns(["a.b", "region", "price"])) == rows_of(plain)
    assert got.column_names[-3:] == ["a.b", "region", "price"]
    number = {id: i for i, id in enumerate(EVENTS["id"].to_pylist())}
    for row in got.to_pylist():
        i = number[row["event"]]
        assert (row["a.b"], row["region"], row["price"]) == (f"x{i}", {"name": f"r{i}"}, EVENTS["price"][i].as_py())


def test_an_event_without_an_id_is_refused(spark, topic):
    ids = pa.array([None, *EVENTS["id"].to_pylist()[1:]])
    frame = spark.createDataFrame(EVENTS.set_column(0, "id", ids))
    with pytest.raises(Exception, match="id is null: an event on Spark has an id"):
        match(frame, topic.folder).collect()
    got = match(frame, topic.folder, corrupt=True, carry=["brand"])
    (refused,) = got.where("_corrupt IS NOT NULL").collect()
    assert (refused.event, refused.brand) == (None, EVENTS["brand"][0].as_py())
    want = match(spark.createDataFrame(EVENTS.slice(1)), topic.folder)
    assert rows_of(got.where("_corrupt IS NULL").drop("_corrupt", "brand")) == rows_of(want)


@pytest.mark.parametrize("ranking", [False, True])
def test_few_rows_are_held_at_once(topic, monkeypatch, ranking):
    """However many an event matches: the slices follow what the last one gave, and all together give the answer."""
    place = snapshots_at(topic.folder)
    pin = newest(place)
    view = view_of(place, pin.manifest)
    task = MatchTask(place, pin, ranking=ranking)
    (batch,) = EVENTS.combine_chunks().to_batches()
    whole = pa.Table.from_batches(task.match(view, batch, pin.time))
    most, held = 300, []
    monkeypatch.setattr(arrow_stage, "HELD_ROWS", most)
    monkeypatch.setattr(match_task, "_at_once", {})
    monkeypatch.setattr(match_task, "FIRST", 1)
    monkeypatch.setattr(match_task, "learn", lambda *a, real=match_task.learn: held.append(a[2]) or real(*a))
    cut = pa.Table.from_batches(task.match(view, batch, pin.time))
    assert rows_of(cut.drop_columns(["expires"] if ranking else [])) == rows_of(whole.drop_columns(["expires"] if ranking else []))
    assert len(whole) > 5 * most
    assert max(held) < 2 * most
    assert len(held) < len(EVENTS) / 2, "and they grow"


def test_a_damaged_segment_stops_the_query(spark, tmp_path):
    folder = tmp_path / "offers"
    build(spark.createDataFrame(subscriptions(100)), folder, "offers", SCHEMA, time=START)
    frame = match(spark.createDataFrame(EVENTS).repartition(2), folder)
    segment = next((folder / "segments").glob("*.segment"))
    body = bytearray(segment.read_bytes())
    body[-100] ^= 255
    segment.unlink()
    segment.write_bytes(body)
    with pytest.raises(Exception, match=r"is damaged: array .* does not have the check sum"):
        frame.collect()


@pytest.mark.parametrize("form", ["columns", "files", "filter"])
def test_build_makes_the_topic_that_subscribing_makes(spark, tmp_path, form):
    table = subscriptions(300)
    given = tmp_path / "given.parquet"
    if form == "filter":
        filters = [f"price <= {i % 90} AND brand IN ('b{i % 5}', 'b{i % 3}')" for i in range(len(table))]
        filters[5] = "price <= 50 AND price + size > 60"
        table = table.select(["id", "score", "k", "window"]).append_column("filter", pa.array(filters))
    folder = tmp_path / "built"
    pq.write_table(table, given, row_group_size=100)
    source = given if form == "files" else spark.createDataFrame(table).repartition(3)
    assert build(source, folder, "offers", SCHEMA, time=START) == len(table)
    with td.Topic("offers", SCHEMA) as plain:
        plain.subscribe_many(table, time=START)
        want = rows_of(plain.match_batch(EVENTS))
    View.open(folder).check()
    assert rows_of(match(spark.createDataFrame(EVENTS), folder)) == want
    with td.open(folder) as built:
        assert rows_of(built.match_batch(EVENTS)) == want
        assert built.subscription("s3").k == 3
    for derived in folder.glob("manifest*.json"):
        derived.unlink()
    with td.open(folder) as rebuilt:
        assert rows_of(rebuilt.match_batch(EVENTS)) == want


def test_build_refuses_and_leaves_nothing_behind(spark, tmp_path):
    table = subscriptions(20)
    twice = spark.createDataFrame(pa.concat_tables([table, table])).repartition(2)
    folder = tmp_path / "built"
    with pytest.raises(SubscriptionError, match=r"an id stands once|which an earlier row has"):
        build(twice, folder, "offers", SCHEMA)
    wrong = table.set_column(table.column_names.index("score"), "score", pa.array([np.nan] * 20))
    with pytest.raises(SubscriptionError, match="20 subscriptions refused, nothing was built"):
        build(spark.createDataFrame(wrong).repartition(2), folder, "offers", SCHEMA)
    assert not [path for path in Path(folder).iterdir() if path.name != "segments"]
    assert build(spark.createDataFrame(table), folder, "offers", SCHEMA) == 20
    with pytest.raises(StorageError, match="holds a topic already"):
        build(spark.createDataFrame(table), folder, "offers", SCHEMA)
