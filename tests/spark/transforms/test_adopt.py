"""Leases: what a frame or a query reads stays while its lease holds; after that it says what to do, and `adopt` does it."""

from __future__ import annotations

import json
import shutil
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, drain, rows_of, subscriptions
from tidings.durable.leases import LEASE, held_in
from tidings.durable.snapshots import snapshots_at
from tidings.errors import StorageError
from tidings.spark import adopt, match
from tidings.spark.frames.pins import pinned

pytestmark = SPARK


def flushes(topic: td.Topic, count: int, name: str) -> None:
    for turn in range(count):
        topic.subscribe(f"{name}{turn}", "price > 1000", time=START)
        topic.flush()


def expire(folder) -> None:
    """As if everybody's lease had ended."""
    for pin in folder.glob("pins/*/*.json"):
        pin.write_text(json.dumps({**json.loads(pin.read_text()), "until": time.time() - 1}))


@pytest.fixture
def topic(tmp_path):
    with td.open(tmp_path / "topic", "offers", SCHEMA) as made:
        made.subscribe_many(subscriptions(30), time=START)
        made.flush()
        yield made


def test_a_batch_frame_outlives_flushes_and_not_its_lease(spark, topic):
    events = EVENTS.drop_columns(["time"])
    want = rows_of(topic.match_batch(events))
    frame = match(spark.createDataFrame(events), topic.folder)
    flushes(topic, 11, "n")
    assert rows_of(frame) == want
    expire(topic.folder)
    flushes(topic, 1, "m")
    later = match(spark.createDataFrame(events), topic.folder)
    expire(topic.folder)
    flushes(topic, 11, "k")
    with pytest.raises(Exception, match=r"no longer has manifest .*the lease of this DataFrame has ended: make it anew"):
        later.count()


def test_pins_may_go_while_a_flush_lists_them(topic):
    folder, stop = topic.folder, threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            for query in range(20):
                (folder / "pins" / f"q{query}").mkdir(parents=True, exist_ok=True)
                (folder / "pins" / f"q{query}" / "0.json").write_text('{"manifest": 1, "time": 0}')
            shutil.rmtree(folder / "pins", ignore_errors=True)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        flushes(topic, 30, "n")
    finally:
        stop.set()
        thread.join()


def test_a_lease_is_in_the_pin_and_holds_its_manifest(topic):
    place = snapshots_at(topic.folder)
    pin = pinned(place, "query", 0)
    written = json.loads((topic.folder / "pins" / "query" / "0.json").read_text())
    assert abs(written["until"] - time.time() - LEASE) < 60
    assert held_in(topic.folder) == {pin.manifest}
    expire(topic.folder)
    assert held_in(topic.folder) == set()


@pytest.mark.deep
def test_a_query_whose_lease_ended_says_so_and_goes_on_when_told(spark, tmp_path, topic):
    """It was stopped within its second micro-batch, whose manifest is gone when it comes back."""
    source, form = tmp_path / "events", spark.createDataFrame(EVENTS).schema
    source.mkdir()

    def run(folder) -> None:
        stream = spark.readStream.schema(form).parquet(str(source))
        drain(match(stream, folder), tmp_path / "sink", tmp_path / "checkpoint")

    for turn in range(2):
        pq.write_table(EVENTS.slice(turn * 60, 60), source / f"{turn}.parquet")
        if turn:
            topic.unsubscribe("s1")
            topic.flush()
        run(topic.folder)
    # As a driver leaves it that was killed before the commit of the second.
    for path in [*(tmp_path / "checkpoint" / "commits").glob("*1"), *(tmp_path / "checkpoint" / "commits").glob(".1.crc")]:
        path.unlink()
    shutil.rmtree(tmp_path / "sink")
    expire(topic.folder)
    flushes(topic, 11, "n")
    # Under another path, since a worker that still has the manifest mapped could go on.
    folder = shutil.copytree(topic.folder, tmp_path / "moved")
    with pytest.raises(Exception, match=r"micro-batch 1 has ended: tidings\.spark\.adopt\(topic, checkpoint\)"):
        run(folder)
    adopt(folder, tmp_path / "checkpoint")
    run(folder)
    told = pa.concat_tables(map(pq.read_table, (tmp_path / "sink").glob("*.parquet")))
    assert rows_of(told) == rows_of(topic.match_batch(EVENTS.slice(60, 60)))


def test_adopt_takes_a_checkpoint(tmp_path, topic):
    with pytest.raises(StorageError, match="is no checkpoint of a streaming query"):
        adopt(topic.folder, tmp_path / "nothing")
