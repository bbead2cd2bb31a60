"""Windows as Spark state: whatever a worker still has of a shard, it goes on from the state and answers as the engine does."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import Row

import tidings as td
from tests.hostile import hostile, ordinary
from tests.spark.samples import EVENTS, SCHEMA, START, rows_of, subscribe_paced, subscriptions, told
from tests.spark.state.state_tester import StateTester
from tests.spark.transforms.test_notify import CHANGES
from tidings.durable.snapshots import snapshots_at, view_of
from tidings.errors import StorageError
from tidings.spark.frames.match_task import MatchTask
from tidings.spark.frames.pins import newest
from tidings.spark.state import shard_log, window_processor
from tidings.spark.state.notification_rows import ON_THE_WAY, with_ids
from tidings.spark.state.shard_records import ShardPacker
from tidings.spark.state.state_format import from_bytes
from tidings.spark.state.window_processor import WindowProcessor

TURNS = 12
SHUFFLED = [*range(35), *range(45, 60), *range(35, 45), *range(60, 120)]


def sample(n: int) -> pa.Table:
    """Exact and bounded lists, time and count windows, k = 0 and none, relevance by nearness and decay; some of them end."""
    table = subscriptions(n)
    error = [0.05 if row % 5 == 0 and row % 7 else None for row in range(n)]
    k = [None if row % 11 == 3 else k for row, k in enumerate(table["k"].to_pylist())]
    near, fading = json.dumps({"near": {"price": 40.0, "size": 10.0}}), json.dumps({"by": "-price", "decay": "5 s"})
    by = [(near, fading, by)[min(row % 9, 2)] for row, by in enumerate(table["by"].to_pylist())]
    start = datetime.fromisoformat(START)
    ends = [start + timedelta(seconds=20 + row) if row % 6 == 4 else None for row in range(n)]
    columns = {"error": pa.array(error, pa.float64()), "k": pa.array(k, pa.int32()), "by": pa.array(by, pa.string())}
    columns["expires"] = pa.array(ends, pa.timestamp("us", "UTC"))
    kept = [name for name in table.column_names if name not in columns]
    return pa.table({name: table[name] for name in kept} | columns)


class Stream:
    """Turns of a topic's events through one shard: by `WindowProcessor`, and by the topic itself."""

    def __init__(self, folder, topic: td.Topic, delay: bool = False) -> None:
        self.place, self.topic = snapshots_at(folder), topic
        topic.flush()
        self.processor = WindowProcessor(self.place, newest(self.place), 1, delay)
        self.tester = StateTester(self.processor)

    def pack(self, events: pa.Table) -> list[Row]:
        """The records that the matches of two partitions make."""
        records = []
        for part in (events.slice(0, len(events) // 2), events.slice(len(events) // 2)):
            for batch in part.combine_chunks().to_batches():
                pin = newest(self.place)
                found = MatchTask(self.place, pin, ranking=True).match(view_of(self.place, pin.manifest), batch, pin.time)
                packed = ShardPacker(self.place, pin, 1)(found)
                records += [Row(**row) for one in packed for row in one.to_pylist()]
        return records

    def turn(self, events: pa.Table) -> pa.Table:
        self.topic.flush()
        self.processor.pin = newest(self.place)
        return notes_of(self.tester.test(self.pack(events)))


def notes_of(rows: list[Row]) -> pa.Table:
    form = pa.schema(list(ON_THE_WAY.items()))
    return with_ids(pa.concat_tables([form.empty_table(), *(from_bytes(row.body) for row in rows)]))


def forget_nothing(rng: random.Random, kept: dict) -> None:
    """The next task runs where the last one did."""


def forget_all(rng: random.Random, kept: dict) -> None:
    """Every task runs in a new worker."""
    shard_log._copies.clear()


def swap(rng: random.Random, kept: dict) -> None:
    """Tasks alternate between workers, so arrays are some steps behind."""
    here = rng.randrange(3)
    kept[kept.pop("here", 0)] = dict(shard_log._copies)
    kept["here"] = here
    shard_log._copies.clear()
    shard_log._copies.update(kept.pop(here, {}))


@pytest.mark.parametrize("worker", [forget_nothing, forget_all, swap])
@pytest.mark.parametrize("small", [0, 2_000, 10**9], ids=["always packed", "packed at times", "never packed"])
def test_any_worker_goes_on_from_the_state(tmp_path, monkeypatch, worker, small):
    monkeypatch.setattr(shard_log, "SMALL", small)
    monkeypatch.setattr(window_processor, "CHUNK", 16)
    monkeypatch.setattr(shard_log, "_copies", {})
    rng, kept, got, want = random.Random(5), {}, [], []
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe_many(sample(80), time=START)
        subscribe_paced(topic)
        for id, ranking in hostile("price", START).items():
            topic.subscribe(id, **ranking, time=START)
        stream = Stream(tmp_path, topic)
        shuffled = EVENTS.take(pa.array(SHUFFLED))
        for number in range(TURNS):
            part = shuffled.slice(number * 10, 10).sort_by([("time", "ascending"), ("id", "ascending")])
            got += rows_of(stream.turn(part))
            want += told(topic.publish_batch(part))
            if number % 3 == 1:
                CHANGES[number // 3 % len(CHANGES)](topic, part["time"][-1].as_py())
            worker(rng, kept)
    assert sorted(ordinary(got)) == sorted(ordinary(want))
    assert {row[5] for row in want} == {"matched", "entered", "promoted", "digest"}


def test_a_partition_whose_events_were_all_refused_is_counted_and_has_no_time(tmp_path):
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe_many(sample(10), time=START)
        topic.flush()
        place = snapshots_at(tmp_path)
        pin = newest(place)
        task = MatchTask(place, pin, ranking=True, corrupt=True)
        bad = EVENTS.slice(0, 2).set_column(1, "price", pa.array([float("nan")] * 2)).combine_chunks().to_batches()[0]
        (packed,) = ShardPacker(place, pin, 3)(task.match(view_of(place, pin.manifest), bad, pin.time))
    assert packed["refused"].to_pylist() == [2, 0, 0]
    assert packed["clock"].null_count == 3
    assert packed["body"].to_pylist() == [b"", b"", b""]
    assert packed["matched"].to_pylist() == packed["rows"].to_pylist() == [0, 0, 0]


def test_a_retry_is_not_taken_twice(tmp_path, monkeypatch):
    """A worker that did a step which was never committed has arrays that the state does not know."""
    monkeypatch.setattr(shard_log, "_copies", {})
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe_many(sample(40), time=START)
        stream = Stream(tmp_path, topic)
        stream.turn(EVENTS.slice(0, 30))
        head, log = stream.tester.value_states["head"].value, dict(stream.tester.map_states["log"].values)
        first = rows_of(stream.turn(EVENTS.slice(30, 30)))
        stream.tester.value_states["head"].value = head
        stream.tester.map_states["log"].values = log
        assert rows_of(stream.turn(EVENTS.slice(30, 30))) == first
        topic.publish_batch(EVENTS.slice(0, 60))
        assert rows_of(stream.turn(EVENTS.slice(60, 60))) == told(topic.publish_batch(EVENTS.slice(60, 60)))


def test_by_event_time_the_order_of_arrival_does_not_matter(tmp_path, monkeypatch):
    """Timers tell what the watermark has passed, at its exact instant; what waits is published in order."""
    monkeypatch.setattr(shard_log, "_copies", {})
    rng = random.Random(7)
    got = []
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe_many(sample(80), time=START)
        subscribe_paced(topic)
        stream = Stream(tmp_path, topic, delay=True)
        begin = pc.min(EVENTS["time"]).cast(pa.int64()).as_py() // 1000
        # Events come up to ten seconds after their time, and the watermark stays ten behind.
        at = [(t + rng.randrange(10_000_000), row) for row, t in enumerate(EVENTS["time"].cast(pa.int64()).to_pylist())]
        arrival = [row for _, row in sorted(at)]
        for number in range(TURNS):
            part = EVENTS.take(pa.array(arrival[number * 10 : number * 10 + 10]))
            got += rows_of(stream.turn(part))
            if number % 4 == 2:
                shard_log._copies.clear()
            seen = pc.max(EVENTS.take(pa.array(arrival[: number * 10 + 10]))["time"]).cast(pa.int64()).as_py()
            mark = seen // 1000 - 10_000
            if mark > stream.tester.watermark and mark > begin - 10_000:
                got += rows_of(notes_of(stream.tester.set_watermark(mark)))
        end = pc.max(EVENTS["time"]).cast(pa.int64()).as_py() + 200_000_000
        got += rows_of(notes_of(stream.tester.set_watermark(end // 1000)))
        want = told([*topic.publish_batch(EVENTS), *topic.advance(end / 1_000_000)])
    assert sorted(got) == want


def test_what_comes_after_the_watermark_has_passed_it_is_told_at_the_watermark(tmp_path, monkeypatch):
    """It competes with its own time: in a window that has ended for it, nobody hears of it."""
    monkeypatch.setattr(shard_log, "_copies", {})
    times = EVENTS["time"].cast(pa.int64()).to_numpy()
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe("long", "price >= 0", k=200, window="1 hour", time=START)
        topic.subscribe("short", "price >= 0", k=200, window="2 s", time=START)
        stream = Stream(tmp_path, topic, delay=True)
        stream.turn(EVENTS.slice(0, 1))
        mark = int(times[0] // 1000 + 10_000)
        stream.tester.set_watermark(mark)
        one = EVENTS.slice(1, 1).set_column(
            EVENTS.column_names.index("expires"), "expires", pa.array([None], pa.timestamp("us", "UTC"))
        )
        (note,) = stream.turn(one).to_pylist()
    assert (note["subscription"], note["why"]) == ("long", "entered")
    assert int(note["at"].timestamp() * 1000) == mark > times[1] // 1000 + 2_000


def test_a_checkpoint_keeps_its_shards_and_its_delay(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_log, "_copies", {})
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe_many(sample(10), time=START)
        stream = Stream(tmp_path, topic)
        stream.turn(EVENTS.slice(0, 10))
        stream.processor.shards = 2
        with pytest.raises(StorageError, match="made with 1 shards, not 2"):
            stream.turn(EVENTS.slice(10, 10))
        stream.processor.shards, stream.processor.waits = 1, True
        with pytest.raises(StorageError, match="made without a delay"):
            stream.turn(EVENTS.slice(10, 10))


def test_state_that_was_written_without_a_version_is_read(tmp_path, monkeypatch):
    """Then the head was flat; log and chunks were what they are."""
    monkeypatch.setattr(shard_log, "_copies", {})
    monkeypatch.setattr(shard_log, "SMALL", 2_000)
    with td.open(tmp_path, "offers", SCHEMA) as topic:
        topic.subscribe_many(sample(40), time=START)
        stream = Stream(tmp_path, topic)
        for first in range(0, 120, 20):
            part = EVENTS.slice(first, 20)
            assert rows_of(stream.turn(part)) == told(topic.publish_batch(part))
            head = json.loads(stream.tester.value_states["head"].value[0])
            assert head.pop("format") == 4
            facts = head.pop("facts")
            stream.tester.value_states["head"].value = (json.dumps(head | facts),)
            shard_log._copies.clear()
