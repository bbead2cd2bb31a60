"""Boards of a keyed topic in parts tell what the embedded engine tells, in batch and streaming, changed by `follow` in between."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.spark.samples import SPARK, START, drain
from tests.spark.transforms.test_board import EACH, SCHEMA, UPDATES, rows, told, watchers
from tidings.durable.snapshots import snapshots_at
from tidings.spark import board, build
from tidings.spark.transforms.follow_lake import LakeFollower, RefusedChanges

pytestmark = [*SPARK, pytest.mark.deep]


def test_boards_on_parts(spark, tmp_path):
    parts, source = tmp_path / "parts", tmp_path / "updates"
    build(spark.createDataFrame(watchers(40)), parts, "flats", SCHEMA, key="address", time=START, part_by="size", parts=3)
    source.mkdir()
    want = []
    with td.Topic("flats", SCHEMA, key="address") as topic:
        topic.subscribe_many(watchers(40), time=START)
        for turn in range(2):
            piece = UPDATES.slice(turn * EACH, EACH)
            pq.write_table(piece, source / f"{turn}.parquet")
            stream = spark.readStream.schema(spark.createDataFrame(UPDATES).schema).parquet(str(source))
            drain(board(stream, parts, shards=2), tmp_path / "sink", tmp_path / "checkpoint")
            want += topic.publish_batch(piece, time=piece["time"][-1].as_py())
            if not turn:
                topic.unsubscribe_many(["s4", "s5"])
                gone = pa.table({"id": ["s4", "s5"], "op": ["delete", "delete"]})
                LakeFollower(snapshots_at(parts), RefusedChanges(tmp_path / "followed", "raise"))(spark.createDataFrame(gone), 0)
    assert rows(spark.read.parquet(str(tmp_path / "sink"))) == told(want)
    assert want
