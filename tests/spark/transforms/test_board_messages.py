"""`board(messages=True)` on a real local Spark writes the messages that the embedded topic gives, in batch and streaming."""

from __future__ import annotations

import pytest

import tidings as td
from tests.spark.samples import SPARK, START, drain
from tests.spark.transforms.test_board import EACH, SCHEMA, TURNS, UPDATES
from tidings.boards.messages.table import MESSAGE
from tidings.errors import SchemaError
from tidings.spark import board

pytestmark = [*SPARK, pytest.mark.deep]
FAMILIES = ["size:-rent:3", "size:rent + size:2"]


@pytest.fixture
def flats(tmp_path):
    with td.open(tmp_path / "flats", "flats", SCHEMA, key="address") as topic:
        topic.subscribe("somebody", "size > 1", k=1, by="rent", time=START)
        topic.flush()
        for family in FAMILIES:
            attribute, by, k = family.split(":")
            topic.add_family(attribute, by=by, k=int(k))
        yield topic


def rows(frame) -> list[dict]:
    return sorted((row.asDict() for row in frame.collect()), key=repr)


def without_sequence(table_rows: list[dict]) -> list[dict]:
    return sorted(({k: v for k, v in row.items() if k not in ("sequence", "snapshot")} for row in table_rows), key=repr)


def test_batch_and_stream_write_the_messages_of_the_embedded_topic(spark, flats, tmp_path):
    source, form = tmp_path / "updates", spark.createDataFrame(UPDATES).schema
    want = []
    for turn in range(TURNS):
        part = UPDATES.slice(turn * EACH, EACH)
        spark.createDataFrame(part).coalesce(1).write.mode("append").parquet(str(source))
        stream = spark.readStream.schema(form).parquet(str(source))
        drain(board(stream, flats.folder, messages=True, families=FAMILIES), tmp_path / "sink", tmp_path / "checkpoint")
        want += flats.publish_batch(part, time=part["time"][-1].as_py(), as_messages=True).to_pylist()
    got = rows(spark.read.parquet(str(tmp_path / "sink")))
    assert got == sorted(want, key=repr)
    assert {row["sequence"] for row in got} == set(range(1, TURNS + 1))

    with td.Topic("flats", SCHEMA, key="address") as other:
        other.add_family("size", by="-rent", k=3)
        instants = sorted(set(UPDATES["time"].to_pylist()))
        every = [UPDATES.filter([t == at for t in UPDATES["time"].to_pylist()]) for at in instants]
        due = [row for part in every for row in other.publish_batch(part, as_messages=True).to_pylist()]
    replayed = board(spark.createDataFrame(UPDATES).coalesce(1), flats.folder, messages=True, families=FAMILIES[:1])
    assert replayed.columns == MESSAGE.names
    assert without_sequence(rows(replayed)) == without_sequence(due)


def test_messages_need_families(spark, flats):
    with pytest.raises(SchemaError, match="families is empty"):
        board(spark.createDataFrame(UPDATES), flats.folder, messages=True)
