"""The gateway's thread: Kafka's group says which zones are its own; it loads them, follows their messages and says how far it is.

A zone comes with three partitions of the same number (`range` assigns them together): its watchers, which are read from the
beginning, then its messages from what was committed, and other subscriptions' notes. A zone that is taken away and given back in
one rebalance is kept as it is. Committed is what is older than `hold` seconds and sent to whoever is called: a successor goes
back so far, and tells what came since to those who come back from the gateway that is gone.

Lists are changed in this thread alone. Others ask by `do`, which runs a call between two records.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from tidings.errors import TidingsError
from tidings.kafka.layout import TAIL, Plan, named
from tidings.kafka.records import PATIENCE, Origin, Partition, Watcher, consumer_of, header
from tidings.kafka.replica import Replica
from tidings.kafka.writer import read_plan
from tidings.serve.gateway.hearer import Hearer
from tidings.serve.gateway.zone import LAST, Position, Start, Zone, number_of
from tidings.serve.hearing.notes import Note

log = logging.getLogger("tidings.gateway")
Result = TypeVar("Result")
POLL = 0.02
COMMIT = 1.0
"""Seconds."""
OPEN = 120
"""Seconds after which no transaction is open any more."""


def group_of(topic: str) -> str:
    return f"tidings-gateways-{topic}"


class Consuming:
    def __init__(self, brokers: str, plan: Plan, url: str, hearer: Hearer, hold: float, statistics: Any = None) -> None:
        self.plan, self.zones = plan, dict[int, Zone]()
        self.replica: Replica
        self._brokers, self._hearer, self._hold = brokers, hearer, hold
        self._starts: dict[int, Start] = {}
        """of zones that load"""
        self._ignored: set[int] = set()
        """zones that began anew: what is left of their records at hand comes again"""
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._stop = threading.Event()
        self._settings: dict[str, Any] = {
            "group.id": group_of(plan.topic),
            "client.id": url,
            "partition.assignment.strategy": "range",
            "session.timeout.ms": 10_000,
            "topic.metadata.refresh.interval.ms": 2_000,
            "on_commit": self._taken,
        }
        if statistics is not None:
            self._settings |= {"statistics.interval.ms": 500, "stats_cb": statistics}
        self._consumer: Consumer
        kinds = [named(plan.topic, kind) for kind in ("messages", "watchers", "notes")]
        self._messages, self._watchers, self._notes = kinds
        self._thread = threading.Thread(target=self._run, name="the gateway's thread", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def do(self, call: Callable[[], Result]) -> Future[Result]:
        future: Future[Result] = Future()
        self._jobs.put((call, future))
        if self._stop.is_set():
            self._give_up()
        return future

    def _give_up(self) -> None:
        """Nobody does what was asked for any more."""
        while not self._jobs.empty():
            self._jobs.get()[1].set_exception(TidingsError("the gateway is stopping"))

    def _run(self) -> None:
        """Until it is stopped; when Kafka is away for long, or a zone cannot be loaded, everything begins anew."""
        try:
            while not self._stop.is_set():
                try:
                    self._follow()
                except (KafkaException, TidingsError) as error:
                    log.warning("the gateway begins anew: %s", error)
                    self._stop.wait(COMMIT)
        except BaseException as error:
            log.exception("the gateway's thread ends")
            self.failure = error
            raise
        finally:
            self._stop.set()
            self._give_up()

    def _follow(self) -> None:
        self._consumer = consumer_of(self._brokers, **self._settings)
        self.replica = Replica(self._brokers, self.plan)
        self._consumer.subscribe(
            [self._messages, self._watchers, self._notes], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        committed = 0.0
        try:
            while not self._stop.is_set():
                self._work()
                self._ignored.clear()
                first = self._consumer.poll(POLL)  # `consume` alone would wait for more to come
                for record in () if first is None else (first, *self._consumer.consume(200, 0)):
                    if record.partition() not in self._ignored:
                        self._take(record)
                if time.monotonic() - committed > COMMIT:
                    committed = time.monotonic()
                    self._commit()
        finally:
            for zone in list(self.zones.values()):
                self._drop(zone)
            self._consumer.close()
            self.replica.close()

    def _work(self) -> None:
        while True:
            try:
                call, future = self._jobs.get_nowait()
            except Empty:
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except (TidingsError, KafkaException, LookupError) as error:
                    future.set_exception(error)

    # Which zones

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        mine = sorted({p.partition for p in partitions if p.topic == self._messages})
        if any(number >= self.plan.partitions for number in mine):
            self.plan = read_plan(self._brokers, self.plan.topic) or self.plan
        for gone in [zone for number, zone in self.zones.items() if number not in mine or not zone.ready]:
            self._drop(gone)
        fresh = [number for number in mine if number not in self.zones]
        begin = self._committed(fresh)
        offsets = []
        for part in partitions:
            zone = self.zones.get(part.partition)
            if zone is None and part.partition in begin:
                zone = self.zones[part.partition] = Zone(self.plan, part.partition)
                zone.offset, zone.noted = begin[part.partition][self._messages], begin[part.partition][self._notes]
                zone.settled = self._starts[part.partition].sequence is not None
            if part.topic == self._watchers:
                part.offset = OFFSET_BEGINNING if zone is None or not zone.ready else zone.watched
            elif zone is not None and zone.number in begin:
                part.offset = begin[zone.number][part.topic]
            elif zone is not None:
                part.offset = zone.offset if part.topic == self._messages else zone.noted
            offsets.append(part)
        consumer.assign(offsets)
        loading = [p for p in offsets if p.topic != self._watchers and p.partition in begin]
        if loading:
            consumer.pause(loading)

    def _committed(self, numbers: list[int]) -> dict[int, dict[str, int]]:
        """Where the records of new zones begin."""
        begin = {}
        for number in numbers:
            messages, notes = TopicPartition(self._messages, number), TopicPartition(self._notes, number)
            messages, notes = self._consumer.committed([messages, notes], PATIENCE)
            said = json.loads(messages.metadata) if messages.offset >= 0 and messages.metadata else None
            if said is not None and time.time() - said["time"] < TAIL / 1000 - OPEN:
                self._starts[number] = Start(said["sequence"], said["sent"], Origin.of(said.get("origin")))
            else:
                since = int((time.time() - OPEN) * 1000)
                [messages] = self._consumer.offsets_for_times([TopicPartition(self._messages, number, since)], PATIENCE)
                self._starts[number] = Start()
            # Where there is none nothing was written lately, so nothing is open, or nobody has heard of notes yet.
            begin[number] = {
                part.topic: part.offset if part.offset >= 0 else self._consumer.get_watermark_offsets(part, timeout=PATIENCE)[1]
                for part in (messages, notes)
            }
        return begin

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Nothing is dropped yet: most zones come back at once."""
        consumer.unassign()

    def _drop(self, zone: Zone) -> None:
        del self.zones[zone.number]
        self._starts.pop(zone.number, None)
        if zone.ready:
            self._hearer.closed(zone)

    # Records

    def _take(self, record: Message) -> None:
        problem = record.error()
        if problem is not None:
            if problem.code() == KafkaError._PARTITION_EOF:
                self._at_end(record)
            elif problem.fatal():
                raise KafkaException(problem)
            else:
                log.warning("Kafka: %s", problem.str())
            return
        zone = self.zones.get(record.partition())
        if zone is None:
            return
        if record.topic() == self._watchers:
            self._watch(zone, record)
        elif not zone.ready:
            return
        elif record.topic() == self._notes:
            zone.note_positions.append((time.monotonic(), record.offset()))
            zone.noted = record.offset() + 1
            self._hearer.noted(zone, record)
        elif header(record, "version") == 0:
            self._split(zone, record)
        else:
            self._hearer.told(zone, *zone.hear(record, time.monotonic()))

    def _at_end(self, record: Message) -> None:
        zone = self.zones.get(record.partition())
        if zone is None:
            return
        if record.topic() == self._messages:
            zone.offset = max(zone.offset, record.offset())
            if zone.ready and len(zone.followers) > 1:
                self._hearer.told(zone, *zone.complete())
        elif record.topic() == self._notes:
            zone.noted = max(zone.noted, record.offset())
        else:
            zone.watched = max(zone.watched, record.offset())
            if not zone.ready:
                self._load(zone)

    def _load(self, zone: Zone) -> None:
        sequence, sent, origin = self._starts.pop(zone.number)
        if sequence is None and origin is None:
            origin = next((watcher.moved for watcher in zone.waiting.values() if watcher.moved is not None), None)
        told: list[tuple[list[Note], int]] = []
        if origin is not None:
            sent = max(sent, origin.sent)
            self._load_from(zone, origin.oldest_first()[0].sequence)
            told = self._told_before(zone, origin)
        elif sequence is not None:
            self._load_from(zone, sequence)
        else:
            # The newest objects: watchers whose first list is older than they are miss what came between, and are told so (`gap`).
            zone.load(self.replica.advance(), self.replica)
            zone.positions.append(Position(-math.inf, zone.offset, zone.sequence))
            zone.note_positions.append((-math.inf, zone.noted - 1))
        self._hearer.opened(zone, sent)
        for notes, upto in told:
            self._hearer.told(zone, notes, upto)
        for watcher in list(zone.called.values()):
            self._hearer.called(zone, watcher)
        self._commit(asynchronous=False)
        self._consumer.resume([TopicPartition(name, zone.number) for name in (self._messages, self._notes)])

    def _load_from(self, zone: Zone, sequence: int) -> None:
        replica = Replica(self._brokers, self.plan)
        try:
            zone.load(replica.reach(sequence), replica)
        finally:
            replica.close()

    def _told_before(self, zone: Zone, origin: Origin) -> list[tuple[list[Note], int]]:
        """What watchers were told where they came from, from its records; then the zone's own partition is read from its first."""
        told, zone.origin = [], origin
        for at in origin.oldest_first():
            partition = Partition(self._brokers, self._messages, at.zone, at.offset)
            try:
                for record in partition.to_end():
                    if header(record, "sequence") >= at.split:
                        break
                    if header(record, "version"):
                        told.append(zone.hear(record, 0.0))
                told.append(zone.complete())
            finally:
                partition.close()
        place = TopicPartition(self._messages, zone.number)
        zone.offset = place.offset = self._consumer.get_watermark_offsets(place, timeout=PATIENCE)[0]
        self._consumer.seek(place)
        zone.sequence = max(zone.sequence, origin.split)
        zone.positions = deque([Position(time.monotonic(), zone.offset, zone.sequence)])
        zone.owed = self._said(zone, zone.positions[0], origin.sent)
        return [*told, ([], number_of(zone.sequence, LAST))]

    def _watch(self, zone: Zone, record: Message) -> None:
        zone.watched = record.offset() + 1
        if record.offset() in zone.own:
            zone.own.discard(record.offset())
            return
        id = record.key().decode()
        watcher = None if record.value() is None else Watcher.from_json(record.value())
        if not zone.ready:
            zone.waiting.pop(id, None)
            if watcher is not None:
                zone.waiting[id] = watcher
        elif watcher is None:
            if zone.find(id) is not None:
                self._hearer.silent(zone, id)
                zone.end(id)
        elif not zone.knows(watcher):
            self.begin(zone, watcher)

    def begin(self, zone: Zone, watcher: Watcher) -> None:
        """With its first list; who replaces another of its name ends that first. One that comes late, from a zone that was split or
        a gateway that had lost its zone, has missed messages, so the zone goes back to where it began."""
        if zone.find(watcher.id) is not None:
            self._hearer.silent(zone, watcher.id)
            zone.end(watcher.id)
        if watcher.since < max(zone.sequence, self.replica.sequence):
            self.reload(zone, watcher.since if watcher.moved is None else None)
            return
        zone.begin([watcher], self.replica, self.replica.reach(watcher.since))
        if watcher.told:
            self._hearer.called(zone, watcher)

    def reload(self, zone: Zone, since: int | None) -> None:
        """Begin a zone anew from a sequence, or from what a successor would begin from, and tell again what came after it. None is
        where its watchers came from."""
        first, since = zone.first, None if zone.origin is not None else since
        self._drop(zone)
        anew = self.zones[zone.number] = Zone(self.plan, zone.number)
        anew.noted, anew.settled, anew.owed = zone.noted, zone.settled, zone.owed
        self._starts[zone.number] = Start(None if since is None else min(since, first.sequence), origin=zone.origin)
        self._ignored.add(zone.number)
        offset = OFFSET_BEGINNING if since is None or first.sequence > since else first.offset
        messages, notes = TopicPartition(self._messages, zone.number, offset), TopicPartition(self._notes, zone.number)
        self._consumer.pause([messages, notes])
        self._consumer.seek(messages)
        self._consumer.seek(TopicPartition(self._watchers, zone.number, OFFSET_BEGINNING))

    def _split(self, zone: Zone, record: Message) -> None:
        sequence, plan = header(record, "sequence"), Plan.from_json(record.value())
        zone.positions.append(Position(time.monotonic(), record.offset(), zone.sequence))
        zone.sequence, zone.offset = max(zone.sequence, sequence), record.offset() + 1
        if plan.epoch > self.plan.epoch:
            self.plan = plan
        self._hearer.told(zone, *zone.complete())
        self._hearer.split(zone, plan)

    # How far

    def _commit(self, asynchronous: bool = True) -> None:
        """Say where a successor begins, and again what Kafka has not taken: while zones change hands it takes nothing."""
        now, offsets = time.monotonic(), []
        for zone in self.zones.values():
            found = zone.commit_at(now - self._hold, self._hearer.sent(zone)) if zone.ready else None
            if found is not None:
                zone.origin = None
                zone.owed = self._said(zone, found, min(self._hearer.sent(zone), zone.sequence))
            if zone.owed is not None:
                offsets.append(zone.owed)
            while zone.note_positions and zone.note_positions[0][0] <= now - self._hold:
                offset = zone.note_positions.popleft()[1] + 1
                if not zone.note_positions or zone.note_positions[0][0] > now - self._hold:
                    offsets.append(TopicPartition(self._notes, zone.number, offset))
        if offsets:
            try:
                taken = self._consumer.commit(offsets=offsets, asynchronous=asynchronous)
            except KafkaException as error:
                log.warning("how far the gateway is was not taken: %s", error)
            else:
                self._taken(None, taken or [])

    def _said(self, zone: Zone, at: Position, sent: int) -> TopicPartition:
        said = {"sequence": at.sequence, "sent": sent, "time": time.time(), "origin": zone.origin}
        return TopicPartition(self._messages, zone.number, at.offset, metadata=json.dumps(said))

    def _taken(self, problem: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for part in partitions if problem is None else ():
            zone = self.zones.get(part.partition) if part.topic == self._messages and part.error is None else None
            if zone is not None and zone.owed is not None and zone.owed.offset == part.offset:
                zone.owed, zone.settled = None, True
