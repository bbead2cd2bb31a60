"""Boards as Spark state: whatever a worker still has of a shard, it goes on from the state and tells what the engine tells."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from pyspark.sql import Row

from tests.spark.samples import rows_of
from tests.spark.state.state_tester import StateTester
from tests.spark.state.test_state import forget_all, forget_nothing, swap
from tests.spark.transforms.test_board import CHANGES, EACH, TURNS, UPDATES, flats, told, told_rows
from tidings.durable.snapshots import snapshots_at
from tidings.errors import StorageError
from tidings.spark.frames.pins import newest
from tidings.spark.state import board_processor, shard_log
from tidings.spark.state.board_processor import BoardProcessor
from tidings.spark.state.notification_rows import with_ids
from tidings.spark.state.state_format import from_bytes, to_bytes

__all__ = ["flats"]


class Stream:
    """The updates of a topic through one shard of boards in a tester, four batches in each turn's."""

    def __init__(self, topic) -> None:
        self.topic = topic
        self.place = snapshots_at(topic.folder)
        self.processor = BoardProcessor(self.place, newest(self.place), 1)
        self.tester = StateTester(self.processor)

    def turn(self, updates: pa.Table) -> list[tuple]:
        self.processor.pin = newest(self.place)
        rows = self.tester.test([Row(shard=0, partition=0, body=to_bytes(updates))])
        return told_rows([note for row in rows for note in rows_of(with_ids(from_bytes(row.body)))])


def pieces() -> list[pa.Table]:
    return [UPDATES.slice(first, EACH // 4) for first in range(0, TURNS * EACH, EACH // 4)]


def wanted(topic, piece: pa.Table) -> list:
    return topic.publish_batch(piece, time=piece["time"][-1].as_py())


@pytest.mark.parametrize("worker", [forget_nothing, forget_all, swap])
@pytest.mark.parametrize("small", [0, 2_000, 10**9], ids=["always packed", "packed at times", "never packed"])
def test_any_worker_goes_on_from_the_state(flats, monkeypatch, worker, small):
    monkeypatch.setattr(shard_log, "SMALL", small)
    monkeypatch.setattr(board_processor, "CHUNK", 7)
    monkeypatch.setattr(shard_log, "_copies", {})
    rng, kept, stream, begun = random.Random(5), {}, Stream(flats), []
    for number, piece in enumerate(pieces()):
        assert stream.turn(piece) == told([*begun, *wanted(flats, piece)])
        begun = []
        if number % 4 == 3:
            begun = CHANGES[number // 4](flats, piece["time"][-1].as_py()) or []
            flats.flush()
        worker(rng, kept)


def test_state_that_was_written_without_a_version_is_read(flats, monkeypatch):
    """Then all of it, also what was packed, stood in the log, and was numbered from 0."""
    monkeypatch.setattr(shard_log, "_copies", {})
    stream, many = Stream(flats), pieces()
    for piece in many[:5]:
        assert stream.turn(piece) == told(wanted(flats, piece))
    facts = json.loads(stream.tester.value_states["head"].value[0])["facts"]
    old = {"first": 0, "next": 5, "written": 900, "packed": 0, "token": "gone", **facts}
    log = stream.tester.map_states["log"].values
    stream.tester.value_states["head"].value = (json.dumps(old),)
    stream.tester.map_states["log"].values = {(step[0] - 1,): body for step, body in log.items()}
    monkeypatch.setattr(shard_log, "SMALL", 0)
    for piece in many[5:]:
        assert stream.turn(piece) == told(wanted(flats, piece))


def test_state_of_a_later_version_is_refused(flats, monkeypatch):
    monkeypatch.setattr(shard_log, "_copies", {})
    stream = Stream(flats)
    stream.turn(pieces()[0])
    head = json.loads(stream.tester.value_states["head"].value[0])
    stream.tester.value_states["head"].value = (json.dumps({**head, "format": 99}),)
    with pytest.raises(StorageError, match="has state of format 99, and this version of tidings reads 4: run the version"):
        stream.turn(pieces()[1])
