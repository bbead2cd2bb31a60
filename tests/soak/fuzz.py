"""Fuzzing by the million: whatever comes in is taken or refused by an error of `tidings.errors`, in time and memory; then it is
packed, the topic is opened again, and every answer is that of a topic in memory that was told the same and never packed.

An input may take SECONDS of its thread's time and BYTES more than there were. Each is tried at the door; of what the door takes, a
part (all would be the same few thousand over and over) is done to a topic in memory and to a durable one, which must agree.
"""

from __future__ import annotations

import json
import resource
import shutil
import time as wall_clock
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from numba.core.event import Event, Listener, register

import tidings as td
from tests.soak.drawing import SCHEMA, Drawer
from tidings.errors import NeverMatchesWarning, TidingsError
from tidings.match.store import housekeeping, merging
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscription_at, subscriptions_from_arrow
from tidings.model.columns.tables import events_from_arrow
from tidings.model.door.event import EventReader
from tidings.model.door.event_record import event_from_record, event_to_record
from tidings.model.door.subscription import make_subscription
from tidings.model.door.subscription_record import from_record, to_record
from tidings.model.filter.compile import compile_filter
from tidings.spark.job.job_reading import load_job

SECONDS, BYTES = 1.0, 100 << 20
SHARES = {"events": 35, "filters": 20, "subscriptions": 20, "schemas": 12, "jobs": 8, "tables": 5}
"""Of the inputs, in hundredths: a table of a few rows costs as much as fifty events."""
REFUSED = "refused"
EMPTY: tuple[dict[str, Any], ...] = (
    {},
    {"price": 1e308, "size": -8.0},
    {"price": 0.0, "size": 0.0, "brand": "a", "sold": True, "day": 0},
)


class Slow(AssertionError):
    """An input took more time or memory than it may."""


class Compiling(Listener):  # type: ignore[misc]
    """How many kernels were compiled or loaded; while one is, an input is not timed."""

    count = 0

    def on_start(self, event: Event) -> None:
        self.count += 1

    def on_end(self, event: Event) -> None:
        self.count += 1


COMPILING = Compiling()
register("numba:compile", COMPILING)


class Fuzz:
    """One seed's topics, and what was drawn for them. `key` makes both keyed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw = Drawer(seed)
        self.folder = folder
        self.key = "sku" if seed % 3 == 0 else None
        self.memory: Any = td.Topic("t", SCHEMA, key=self.key)
        self.durable: Any = td.open(folder / "topic", "t", SCHEMA, key=self.key)
        self.reader = EventReader(SCHEMA, self.key)
        self.time = 0
        self.taken: list[Any] = []
        self.counts: dict[str, int] = {}
        self.held = rss()

    def run(self, inputs: int) -> None:
        """Try so many inputs; then pack, open again and compare."""
        kinds = [getattr(self, name) for name, share in SHARES.items() for _ in range(share)]
        self.held = rss()
        for _ in range(inputs):
            kind = self.draw.choice(*kinds)
            kind()
            name = f"fuzzed inputs: {kind.__name__}"
            self.counts[name] = self.counts.get(name, 0) + 1
        self.publish()
        self.durable.flush()
        self.durable.close()
        self.durable = td.open(self.folder / "topic")
        now, then = answers(self.durable, self.probes(), self.time), answers(self.memory, self.probes(), self.time)
        assert now == then, f"after a restart: {[(what, now[what], then[what]) for what in now if now[what] != then[what]]}"
        self.counts["restarts after fuzzing, all answers compared"] = (
            self.counts.get("restarts after fuzzing, all answers compared", 0) + 1
        )

    def close(self) -> None:
        self.memory.close()
        self.durable.close()

    def tried(self, what: Any, call: Callable[[], Any]) -> Any:
        """What the call gives; REFUSED if it is refused as it should be."""
        began, peak, compiled = wall_clock.thread_time(), peak_rss(), COMPILING.count
        try:
            return call()
        except TidingsError:
            return REFUSED
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} ({error}) for {what!r}"[:2000]) from error
        finally:
            if COMPILING.count != compiled:
                self.held = rss()  # compilers take their time and memory once
            elif (took := wall_clock.thread_time() - began) > SECONDS:
                raise Slow(f"{took:.1f} s for {what!r}"[:2000])
            elif (now := peak_rss()) > peak and now - self.held > BYTES:
                raise Slow(f"{(now - self.held) >> 20} MB more for {what!r}"[:2000])

    def both(self, what: Any, call: Callable[[Any], Any]) -> Any:
        """Do it to both topics, which must say the same."""
        one, other = (self.tried(what, lambda topic=topic: call(topic)) for topic in (self.memory, self.durable))
        assert one == other, f"{[x for x in one if x not in other]} and {[x for x in other if x not in one]}: {what!r}"
        return one

    # Each tries one input

    def filters(self) -> None:
        filter = self.draw.any_filter()
        clauses = self.tried(filter, lambda: compile_filter(SCHEMA, filter))
        if clauses is not REFUSED:
            for values in EMPTY:
                self.tried(filter, lambda values=values: [clause.holds(SCHEMA, values) for clause in clauses])
            if self.draw.chance(0.02):
                self.both(filter, lambda topic: topic.search(filter, time=self.time).to_pylist())

    def events(self) -> None:
        event = self.draw.event(self.key or "id")
        read = self.tried(event, lambda: self.reader(event))
        if read is not REFUSED and not read.vague:
            assert event_from_record(SCHEMA, json.loads(json.dumps(event_to_record(read)))) == read
            # Else it was given an id of its own, each time another.
            if self.draw.chance(0.03) and self.reader(event).id == read.id:
                self.taken.append(event)
        if len(self.taken) == 20:
            self.publish()

    def publish(self) -> None:
        self.time += 1
        batch, self.taken = self.taken, []
        seen: dict[str, Any] = {read.id: event for event in batch if (read := self.reader(event))}
        self.both(batch, lambda topic: told(topic.publish_batch(list(seen.values()), time=self.time)))

    def subscriptions(self) -> None:
        id, filter, ranking = drawn = self.draw.subscription()
        made = self.tried(drawn, lambda: make_subscription(SCHEMA, id, filter, **ranking))
        if made is REFUSED:
            return
        assert from_record(SCHEMA, json.loads(json.dumps(to_record(made)))) == made
        for values in EMPTY:
            assert isinstance(self.tried(drawn, lambda values=values: made.score_of(values)), float)
        if self.draw.chance(0.1):
            replay = self.draw.chance(0.3)
            self.both(drawn, lambda topic: told(topic.subscribe(id, filter, **ranking, replay=replay, time=self.time)))
        elif self.draw.chance(0.03):
            self.both(id, lambda topic: topic.unsubscribe(id))

    def tables(self) -> None:
        if self.draw.chance(0.5):
            self.events_tables()
        else:
            table = self.draw.subscriptions_table()
            self.subscriptions_tables(table, "raise")
            self.subscriptions_tables(table, "skip")

    def subscriptions_tables(self, table: pa.Table, on_error: str) -> None:
        loaded = self.tried(table, lambda: subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), table, on_error=on_error))
        if loaded is not REFUSED:
            self.tried(table, lambda: [subscription_at(loaded, row) for row in range(len(loaded))])
            if self.draw.chance(0.05):
                self.both(table, lambda topic: topic.subscribe_many(table, on_error=on_error, time=self.time))

    def events_tables(self) -> None:
        table = self.draw.events_table(self.key or "id")
        batch = self.tried(table, lambda: events_from_arrow(SCHEMA, Vocabularies(SCHEMA), table, key=self.key, on_error="skip"))
        if batch is not REFUSED:
            assert len(self.tried(table, batch.events)) == len(batch)
        ids = [table[i] for i, name in enumerate(table.column_names) if name == (self.key or "id")]
        if self.draw.chance(0.05) and ids and all(ids[0].to_pylist()):
            self.time += 1
            self.both(table, lambda topic: told(topic.publish_batch(table, time=self.time)))

    def schemas(self) -> None:
        source = self.draw.schema()
        for make in (td.Schema, td.Schema.from_dict, td.Schema.from_json, td.Schema.from_toml):
            schema = self.tried(source, lambda make=make: make(source))
            if schema is not REFUSED:
                assert td.Schema.from_json(schema.to_json()) == schema
                if self.draw.chance(0.002):
                    self.reopened(schema)

    def reopened(self, schema: td.Schema) -> None:
        folder = self.folder / "schema"
        td.open(folder, "t", schema).close()
        with td.open(folder) as topic:
            assert topic.schema == schema
        shutil.rmtree(folder)

    def jobs(self) -> None:
        raw, changes = drawn = self.draw.job()
        path = self.folder / "job.toml"
        path.write_bytes(raw)
        job = self.tried(drawn, lambda: load_job(path, changes))
        if job is not REFUSED:
            self.tried(drawn, lambda: (job.topic.schema_given, job.run.spark_trigger))

    def probes(self) -> list[Any]:
        return [
            {self.key or "id": f"p{i}", "price": i - 4.0, "size": i / 2, "brand": "ab"[i % 2], "about": "red a"} for i in range(8)
        ]


def told(notes: Any) -> list[Any]:
    """Similarities are summed in the order of word codes, which is not that of another topic."""
    return sorted(((*note[:2], round(note.score, 9), *note[3:]) for note in notes), key=repr)


def answers(topic: Any, probes: list[Any], time: int) -> dict[str, Any]:
    """What can be asked. Similarity goes by the rarity of words at the last generation, which opening begins anew: left out."""
    kept = {s.id: s for s in topic.store.subscriptions() if s.similarity is None}
    return {
        "ids": sorted(s.id for s in topic.store.subscriptions()),
        "match": [[(m.subscription, m.score) for m in topic.match(probe, time=time) if m.subscription in kept] for probe in probes],
        "best": [
            [(m.subscription, m.score) for m in topic.match(probe, k=10**6, time=time) if m.subscription in kept]
            for probe in probes
        ],
        "relaxed": [
            [(m.subscription, m.score) for m in topic.match(probe, k=10**6, relaxed=True, time=time) if m.subscription in kept]
            for probe in probes
        ],
        "live": topic.search(None, time=time).to_pylist(),
        "top": {id: [tuple(m) for m in topic.top(id, time=time)] for id, s in kept.items() if s.k is not None},
    }


def rss() -> int:
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


def peak_rss() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextmanager
def packed_often() -> Iterator[None]:
    before = merging.FLUSH_AT, merging.MERGE_WIDTH, housekeeping.QUIET
    merging.FLUSH_AT, merging.MERGE_WIDTH, housekeeping.QUIET = 64, 3, 0.01
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NeverMatchesWarning)
            yield
    finally:
        merging.FLUSH_AT, merging.MERGE_WIDTH, housekeeping.QUIET = before


def fuzz(seed: int, folder: Path, inputs: int, rounds: int) -> dict[str, int]:
    with packed_often():
        one = Fuzz(seed, folder)
        try:
            for _ in range(rounds):
                one.run(inputs // rounds)
        finally:
            one.close()
    return one.counts
