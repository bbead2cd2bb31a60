"""The pipeline on a topic at a URL, on a real S3 server: build, match, follow, notify, a job; the server restarts in between."""

from __future__ import annotations

import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import tidings as td
from tests.durable.lake.s3_server import S3Server
from tests.spark.parts.test_parts import events, table
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, drain, rows_of, subscriptions
from tidings.durable.snapshots import snapshots_at
from tidings.errors import StorageError
from tidings.spark import adopt, build, follow, match, notify, search
from tidings.spark.frames.pins import Pin, pin_body
from tidings.spark.job.job_reading import job_of
from tidings.spark.job.runner import run

pytestmark = [*SPARK, pytest.mark.lake]
URL = "s3a://bucket/offers"


@pytest.fixture(scope="module")
def server(spark, tmp_path_factory):
    """One for the module. `spark.executorEnv` would say it to the workers of a session that begins; this one runs already."""
    folder = tmp_path_factory.mktemp("s3")
    made = S3Server(folder / "s3")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**made.environment, "TIDINGS_CACHE": str(folder / "cache")}.items():
            patch.setenv(name, value)
            patch.setitem(spark.sparkContext.environment, name, value)
        yield made
    made.stop()


@pytest.fixture
def url(server, request):
    return f"s3a://bucket/{request.node.name.partition('[')[0]}{len(request.node.name)}"


@pytest.mark.parametrize("by", [None, "place"])
def test_build_match_and_follow_equal_the_embedded_engine(spark, tmp_path, url, by):
    frame, source = spark.createDataFrame(events()), tmp_path / "changes"
    assert build(spark.createDataFrame(table()).repartition(2), url, "offers", SCHEMA, time=START, part_by=by, parts=4) == 200
    with td.Topic("offers", SCHEMA) as topic:
        topic.subscribe_many(table(), time=START)
        assert rows_of(match(frame, url, 3)) == rows_of(topic.match_batch(events(), k=3))
        change = pa.table({"id": ["s1", "s2", "n"], "op": ["delete", None, None], "price.hi": [None, 5.0, 70.0], "seq": [1, 2, 3]})
        source.mkdir()
        pq.write_table(change, source / "0.parquet")
        stream = spark.readStream.schema(spark.createDataFrame(change).schema).parquet(str(source))
        follow(stream, url, tmp_path / "checkpoint", trigger={"availableNow": True}).awaitTermination()
        topic.unsubscribe("s1")
        topic.subscribe("s2", "price <= 5")
        topic.subscribe("n", "price <= 70")
        assert rows_of(match(frame, url)) == rows_of(topic.match_batch(events()))
    with td.open(url, mode="r") as read:
        assert rows_of(read.match_batch(events())) == rows_of(match(frame, url))


def test_windows_on_a_url_tell_what_they_tell_on_a_folder_while_the_server_restarts(spark, tmp_path, server, url):
    given, source, whole = spark.createDataFrame(subscriptions(60)), tmp_path / "events", tmp_path / "whole"
    build(given, whole, "offers", SCHEMA, time=START)
    build(given, url, "offers", SCHEMA, time=START)
    source.mkdir()
    for turn in range(3):
        pq.write_table(EVENTS.slice(turn * 40, 40), source / f"{turn}.parquet")
    form = spark.createDataFrame(EVENTS).schema

    def told(place: object, name: str) -> list[tuple]:
        stream = spark.readStream.schema(form).option("maxFilesPerTrigger", "1").parquet(str(source))
        drain(notify(match(stream, place, ranking=True), place, shards=3), tmp_path / name, tmp_path / f"checkpoint-{name}")
        return rows_of(spark.read.parquet(str(tmp_path / name)).drop("id"))

    want = told(whole, "folder")

    def restart() -> None:
        server.stop()
        server.start()

    timer = threading.Timer(2.0, restart)
    timer.start()
    got = told(url, "url")
    timer.join()
    assert got == want
    assert want


def test_a_job_on_a_url(spark, tmp_path, url):
    pq.write_table(subscriptions(40), tmp_path / "subscriptions.parquet")
    (tmp_path / "events").mkdir()
    pq.write_table(EVENTS, tmp_path / "events" / "0.parquet")
    job = job_of(
        {
            "topic": {"path": url, "name": "offers", "schema": SCHEMA.to_dict()},
            "subscriptions": {"format": "parquet", "options": {"path": str(tmp_path / "subscriptions.parquet")}},
            "events": {"format": "parquet", "options": {"path": str(tmp_path / "events")}},
            "sink": {"format": "parquet", "options": {"path": str(tmp_path / "sink")}},
            "run": {"checkpoint": str(tmp_path / "checkpoint"), "report": str(tmp_path / "report.html")},
        }
    )
    progress = run(job, "local[2]", Console(quiet=True))
    assert progress.total.notifications == spark.read.parquet(str(tmp_path / "sink")).count() > 0


def test_search_finds_what_was_pushed(spark, tmp_path, url):
    """In batch, and in a stream, whose micro-batches each see the newest push."""
    source, filters = tmp_path / "searches", pa.table({"id": ["cheap", "far"], "filter": ["price <= 40", "size > 90"]})
    source.mkdir()
    frame = spark.createDataFrame(filters)
    stream = spark.readStream.schema(frame.schema).parquet(str(source))

    def wanted(topic: td.Topic) -> list[tuple]:
        rows = zip(*(filters[name].to_pylist() for name in filters.column_names), strict=True)
        return sorted((id, event, 1.0) for id, text in rows for event in topic.search(text, time=START)["id"].to_pylist())

    want = []
    with td.open(tmp_path / "topic", "offers", SCHEMA) as topic:
        for turn in range(2):
            topic.publish_batch(EVENTS.slice(turn * 60, 60))
            topic.push(url)
            assert rows_of(search(frame, url, time=START)) == wanted(topic)
            pq.write_table(filters, source / f"{turn}.parquet")
            drain(search(stream, url, time=START), tmp_path / "found", tmp_path / "checkpoint")
            want += wanted(topic)
    assert rows_of(spark.read.parquet(str(tmp_path / "found"))) == sorted(want)


def test_a_query_goes_over_to_a_topic_that_was_built_anew(spark, tmp_path, url):
    build(spark.createDataFrame(subscriptions(30)), url, "offers", SCHEMA, time=START)
    moved, source = f"{url}-anew", tmp_path / "events"
    build(spark.createDataFrame(subscriptions(30).slice(0, 20)), moved, "offers", SCHEMA, time=START)
    source.mkdir()
    form = spark.createDataFrame(EVENTS).schema

    def told(place: str, turn: int) -> None:
        pq.write_table(EVENTS.slice(turn * 30, 30), source / f"{turn}.parquet")
        stream = spark.readStream.schema(form).parquet(str(source))
        drain(match(stream, place), tmp_path / "sink", tmp_path / "checkpoint")

    told(url, 0)
    told(url, 1)
    with pytest.raises(Exception, match=r"has not read .*tidings\.spark\.adopt\(topic, checkpoint\)"):
        told(moved, 2)
    adopt(moved, tmp_path / "checkpoint")
    told(moved, 3)
    with td.Topic("offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(30), time=START)
        want = topic.match_batch(EVENTS.slice(0, 60))
        topic.unsubscribe_many([f"s{i}" for i in range(20, 30)])
        want = rows_of(pa.concat_tables([want, topic.match_batch(EVENTS.slice(60, 60))]))
    assert rows_of(spark.read.parquet(str(tmp_path / "sink"))) == want


def test_a_batch_frame_holds_what_it_reads(spark, tmp_path, url, monkeypatch):
    """After many commits, with nothing in the cache: its lease keeps the objects, and without one it says what to do."""
    from tidings.durable.lake import lake as lakes
    from tidings.spark.transforms.follow_lake import LakeFollower, RefusedChanges

    monkeypatch.setattr(lakes, "GRACE", -1.0)
    build(spark.createDataFrame(table()), url, "offers", SCHEMA, time=START)
    held = match(spark.createDataFrame(events()), url)
    topic = snapshots_at(url)
    follower = LakeFollower(topic, RefusedChanges(tmp_path / "checkpoint", "raise"))
    for batch in range(12):
        follower(spark.createDataFrame(pa.table({"key": [f"k{batch}"], "value": ['{"filter": "price < 1"}']})), batch)
    numbers = topic.lake.numbers()
    assert numbers[0] == 1, "the frame's manifest is there"
    assert numbers[1:] == list(range(6, 14))
    with td.Topic("offers", SCHEMA) as one:
        one.subscribe_many(table(), time=START)
        assert rows_of(held) == rows_of(one.match_batch(events()))
    lost = match(spark.createDataFrame(events()), url)
    for pin in topic.notes.listed("pins/"):
        topic.notes.put(pin.name, pin_body(Pin(1, 0)).replace(b'"until": 1', b'"until": -1'))
    for batch in range(12, 22):
        follower(spark.createDataFrame(pa.table({"key": [f"k{batch}"], "value": ['{"filter": "price < 1"}']})), batch)
    assert 13 not in topic.lake.numbers()
    with pytest.raises(Exception, match=r"no longer has manifest 13 .* the lease of this DataFrame has ended: make it anew"):
        lost.count()


def test_a_topic_that_is_not_there(spark, server, monkeypatch, tmp_path):
    frame = spark.createDataFrame(events())
    monkeypatch.chdir(tmp_path)
    for act in (
        lambda: build(spark.createDataFrame(table()), "hdfs://host/offers", "offers", SCHEMA),
        lambda: match(frame, "wasb://host/offers"),
        lambda: notify(frame.selectExpr("1.0 relevance", "1 time", "1 expires"), "ftp://host/offers"),
        lambda: follow(frame, "https://host/offers", tmp_path / "checkpoint"),
    ):
        with pytest.raises(StorageError, match="has the scheme"):
            act()
    with pytest.raises(StorageError, match="holds no topic"):
        match(frame, "s3a://bucket/nothing")
    assert not list(tmp_path.iterdir())
