"""What does not fit stops a streaming query with one sentence and without a commit, and mended it goes on where it was."""

from __future__ import annotations

import json
import shutil

import pytest

import tidings as td
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, drain, rows_of, subscriptions
from tidings.durable.manifest import _checksum, load_manifest
from tidings.errors import StorageError
from tidings.spark import match

pytestmark = SPARK


class Stream:
    """A query that matches what is written to `source`, run from its checkpoint at every turn."""

    def __init__(self, spark, folder):
        self.spark, self.folder = spark, folder
        self.form = spark.createDataFrame(EVENTS).schema

    def turn(self, topic, part):
        source = self.folder / "events"
        self.spark.createDataFrame(EVENTS.slice(part * 30, 30)).coalesce(1).write.mode("append").parquet(str(source))
        self.again(topic)

    def again(self, topic):
        stream = self.spark.readStream.schema(self.form).parquet(str(self.folder / "events"))
        drain(match(stream, topic), self.folder / "sink", self.folder / "checkpoint")

    def committed(self):
        return len(list((self.folder / "checkpoint" / "commits").glob("[0-9]*")))

    def rows(self):
        return rows_of(self.spark.read.parquet(str(self.folder / "sink")))


def test_a_segment_damaged_under_a_running_query(spark, tmp_path):
    stream = Stream(spark, tmp_path)
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(60), time=START)
        topic.flush()
        stream.turn(topic.folder, 0)
        want = rows_of(topic.match_batch(EVENTS.slice(0, 30)))
        topic.subscribe("new", "price <= 90", time=START)
        topic.flush()
        want += rows_of(topic.match_batch(EVENTS.slice(30, 30)))
        file, _ = load_manifest(topic.folder).segments[-1]
        segment = topic.folder / file
        sound = segment.read_bytes()
        body = bytearray(sound)
        body[-9] ^= 255
        segment.unlink()
        segment.write_bytes(body)
        with pytest.raises(Exception, match=r"is damaged: array .* does not have the check sum"):
            stream.turn(topic.folder, 1)
        assert stream.committed() == 1
        segment.write_bytes(sound)
        stream.again(topic.folder)
    assert stream.rows() == sorted(want)
    assert stream.committed() == 2


def test_a_checkpoint_of_another_job_and_an_older_index(spark, tmp_path):
    stream = Stream(spark, tmp_path)
    for name in ("one", "other"):
        with td.open(tmp_path / name, "offers", SCHEMA) as topic:
            topic.subscribe_many(subscriptions(60), time=START)
    shutil.copytree(tmp_path / "one", tmp_path / "older")
    with td.open(tmp_path / "one") as topic:
        topic.subscribe("new", "price <= 90", time=START)
    for part in range(2):
        stream.turn(tmp_path / "one", part)
    with pytest.raises(Exception, match="this checkpoint is of a query that has not read"):
        stream.turn(tmp_path / "other", 2)
    shutil.copytree(tmp_path / "one" / "pins", tmp_path / "older" / "pins")
    with pytest.raises(Exception, match="is at manifest 1, older than 2, which this query has read"):
        stream.again(tmp_path / "older")
    assert stream.committed() == 2
    stream.again(tmp_path / "one")
    assert stream.committed() == 3


def test_an_index_that_is_not_there_or_of_another_version(spark, tmp_path):
    events = spark.createDataFrame(EVENTS)
    with pytest.raises(StorageError, match=r"holds no manifest\.json"):
        match(events, tmp_path / "nowhere")
    with td.open(tmp_path / "offers", "offers", SCHEMA) as topic:
        topic.subscribe("a", "price <= 90", time=START)
    path = tmp_path / "offers" / "manifest.json"
    fields = json.loads(path.read_text()) | {"format": 0}
    fields.pop("crc")
    path.write_text(json.dumps(fields | {"crc": _checksum(fields)}))
    with pytest.raises(StorageError, match="has format 0; this version of tidings reads up to format 4"):
        match(events, tmp_path / "offers")
