"""A gateway: the watchers of its zones, who are told over streams and webhooks by the service's own delivery."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
from confluent_kafka import KafkaException, Message, Producer

from tidings.durable.waiting import Waiting
from tidings.errors import TidingsError
from tidings.kafka.layout import Plan, await_topics, named
from tidings.kafka.records import PATIENCE, Origin, Watcher
from tidings.kafka.sketch import RECTANGLES, boxes_json, sketch_key
from tidings.kafka.writer import read_plan
from tidings.serve.access.callers import EVERYBODY, Caller
from tidings.serve.access.keys import Keys
from tidings.serve.delivery.couriers import Courier
from tidings.serve.delivery.letters import Letters
from tidings.serve.delivery.senders import Http, Webhooks
from tidings.serve.delivery.sinks import WEBHOOK, Secret, Sink, Target
from tidings.serve.gateway.consuming import Consuming
from tidings.serve.gateway.handing import Handing
from tidings.serve.gateway.zone import FURTHEST, LAST, SHIFT, Zone, ZoneTail, number_of
from tidings.serve.hearing.listening import Selection
from tidings.serve.hearing.notes import Note
from tidings.serve.hosting.ledger import Ledger
from tidings.serve.refusals import NotReady, Unauthorized

log = logging.getLogger("tidings.gateway")
Result = TypeVar("Result")
BEAT = 15
ADOPTED = 10.0
"""Seconds within which the painter takes in a wider sketch."""


class Elsewhere(LookupError):
    """A watcher of a zone that this gateway does not have."""

    def __init__(self, zone: int) -> None:
        super().__init__(f"zone {zone} is not served here")
        self.zone = zone


@dataclass(frozen=True)
class GatewaySettings:
    """`folder` has keys and dead letters; what was told within `hold` seconds is told again by whoever takes a zone over."""

    topic: str
    brokers: str
    folder: Path
    open: bool = False
    hold: float = 30.0
    allow: tuple[str, ...] = ()
    log: str = "info"
    body: int = 2**20
    statistics: Any = None


class Gateway:
    def __init__(self, settings: GatewaySettings, url: str) -> None:
        self.settings, self.url = settings, url
        self.ledger = Ledger(settings.folder)
        self.keys, self.letters = Keys(self.ledger), Letters(self.ledger)
        self.handing = Handing(settings.brokers, settings.topic, url)
        self.tails: dict[int, ZoneTail] = {}
        self.notes: dict[int, ZoneTail] = {}
        """of other subscriptions, by zone"""
        self.couriers: dict[str, tuple[int, Courier]] = {}
        self._sent: dict[int, int] = {}
        self._covered: dict[tuple[int, int], np.ndarray[Any, Any]] = {}
        known = {"bootstrap.servers": settings.brokers, "topic.metadata.refresh.interval.ms": 1_000}
        self._producer = Producer(known | {"enable.idempotence": True, "linger.ms": 0})
        self._http = Http(settings.allow)
        self._tasks: list[asyncio.Task[None]] = []
        """couriers that end"""
        self._beating: asyncio.Task[None] | None = None
        self.consuming: Consuming | None = None

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        while (plan := await asyncio.to_thread(self._plan)) is None:
            await asyncio.sleep(0.5)
        self.consuming = Consuming(self.settings.brokers, plan, self.url, self, self.settings.hold, self.settings.statistics)
        self.consuming.start()
        self._beating = asyncio.create_task(self._beat())

    def _plan(self) -> Plan | None:
        try:
            return read_plan(self.settings.brokers, self.settings.topic)
        except (KafkaException, TidingsError) as error:
            log.warning("there is no plan of topic %s yet: %s", self.settings.topic, error)
            return None

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            for tail in [*self.tails.values(), *self.notes.values()]:
                tail.wake_all()

    @property
    def ready(self) -> bool:
        return self.consuming is not None and self.consuming.failure is None

    def thread(self) -> Consuming:
        if self.consuming is None or self.consuming.failure is not None:
            raise NotReady("the gateway has no plan of its topic yet, or has lost Kafka")
        return self.consuming

    async def ask(self, call: Callable[[Consuming], Result]) -> Result:
        """In the gateway's thread, between two records."""
        consuming = self.thread()
        try:
            return await asyncio.wrap_future(consuming.do(lambda: call(consuming)))
        except (KafkaException, TidingsError) as error:
            raise NotReady(f"Kafka is away: {error}") from error

    def caller(self, authorization: str | None) -> Caller:
        if authorization is None and self.settings.open:
            return EVERYBODY
        known = self.keys.caller((authorization or "").partition(" ")[2].strip())
        if known is None:
            raise Unauthorized("no key was given that is known here: send it as `Authorization: Bearer td_...`")
        return known

    def end_streams(self) -> None:
        for tail in [*self.tails.values(), *self.notes.values()]:
            tail.end()

    async def stop(self) -> None:
        self.end_streams()
        if self.consuming is not None:
            await asyncio.to_thread(self.consuming.stop)
        if self._beating is not None:
            self._beating.cancel()
        for id in list(self.couriers):
            self._hang_up(id)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.close()
        await self.handing.close()
        self.ledger.close()

    # In the gateway's thread: watchers come and go

    def register(self, consuming: Consuming, watcher: Watcher) -> tuple[list[tuple[str, float]], int]:
        """Begin a watcher of one of our zones: its list, and the number after which it hears of changes."""
        family = consuming.plan.family(watcher.family)
        at = consuming.plan.zones[family].owner(watcher.l, watcher.r)
        zone = consuming.zones.get(at)
        if zone is None or not (zone.ready and zone.settled):
            raise Elsewhere(at)
        for other in consuming.zones.values():
            if other is not zone and other.find(watcher.id) is not None:
                self.remove(consuming, watcher.id)
        if consuming.plan.sparse:
            self._cover(consuming, zone, family, watcher)
        consuming.replica.advance()
        consuming.replica.reach(zone.sequence)
        begun = replace(watcher, since=max(consuming.replica.sequence, zone.sequence))
        zone.own.add(self._write("watchers", watcher.id, begun.to_json(), at))
        consuming.begin(zone, begun)
        followers = zone.find(watcher.id)
        assert followers is not None
        return followers.top(watcher.id), number_of(begun.since, LAST)

    def remove(self, consuming: Consuming, id: str) -> bool:
        """Whether it was here."""
        zone = next((zone for zone in consuming.zones.values() if zone.find(id) is not None), None)
        if zone is None:
            return False
        zone.own.add(self._write("watchers", id, None, zone.number))
        self.silent(zone, id)
        zone.end(id)
        return True

    def listed(self, consuming: Consuming, id: str) -> dict[str, Any] | None:
        for zone in consuming.zones.values():
            followers = zone.find(id) if zone.ready else None
            if followers is not None:
                owner = zone.called[id].owner if id in zone.called else None
                said: dict[str, Any] = {"id": id, "zone": zone.number, "sequence": zone.sequence, "owner": owner}
                return said | {"list": followers.top(id)}
        return None

    def _cover(self, consuming: Consuming, zone: Zone, family: int, watcher: Watcher) -> None:
        """Say where the zone's watchers are if this one lies outside of it, and wait until the painter knows."""
        boxes = self._covered.get((zone.number, family), np.empty((0, 2, 2)))
        point = np.array([watcher.l, watcher.r])
        if ((boxes[:, 0] <= point) & (point <= boxes[:, 1])).all(1).any():
            return
        there = zone.followers[family].sketch(RECTANGLES) if len(zone.followers[family]) else np.empty((0, 2, 2))
        boxes = np.concatenate([there, [[point, point]]])
        offset = self._write("sketch", sketch_key(watcher.family, zone.number), boxes_json(boxes), 0)
        deadline = time.monotonic() + ADOPTED
        while consuming.replica.sketched < offset:
            if time.monotonic() > deadline:
                raise TidingsError("the painter does not answer: nobody can begin until it is back")
            consuming.replica.advance()
            time.sleep(0.005)
        self._covered[zone.number, family] = boxes

    def _write(self, kind: str, key: str, value: bytes | None, partition: int) -> int:
        """The offset that it has, once all in-sync replicas have it."""
        done: list[Any] = []
        self._producer.produce(
            named(self.settings.topic, kind),
            value,
            key,
            partition,
            on_delivery=lambda problem, record: done.append((problem, record)),
        )
        self._producer.flush(PATIENCE)
        if not done or done[0][0] is not None:
            raise TidingsError(f"Kafka did not take the watcher {key!r}: {done[0][0] if done else 'no answer'}")
        return int(done[0][1].offset())

    # What the thread tells (`hearer.Hearer`)

    def opened(self, zone: Zone, sent: int) -> None:
        self._sent[zone.number] = max(zone.began, sent)
        for family, followers in enumerate(zone.followers):
            self._covered.pop((zone.number, family), None)
            if zone.plan.sparse and len(followers):
                boxes = self._covered[zone.number, family] = followers.sketch(RECTANGLES)
                self._write("sketch", sketch_key(zone.plan.families[family].name, zone.number), boxes_json(boxes), 0)
        painted, noted = ZoneTail(self.settings.topic, number_of(zone.began, LAST)), ZoneTail(self.settings.topic, 0)
        self._loop.call_soon_threadsafe(self._open, zone.number, painted, noted)

    def _open(self, number: int, painted: ZoneTail, noted: ZoneTail) -> None:
        self.tails[number], self.notes[number] = painted, noted

    def told(self, zone: Zone, notes: list[Note], upto: int) -> None:
        self._loop.call_soon_threadsafe(self._tell, self.tails, zone.number, notes, upto)

    def noted(self, zone: Zone, record: Message) -> None:
        """A notification of the service's own outbox; its number here is its offset, which every gateway counts alike."""
        said = orjson.loads(record.value())
        event = orjson.dumps(said.pop("event"))
        number = record.offset() + 1
        row = Waiting(**{name: said.get(name) for name in Waiting._fields} | {"number": number, "event": ""})
        self._loop.call_soon_threadsafe(self._tell, self.notes, zone.number, [Note(self.settings.topic, row, event)], number)

    def _tell(self, tails: dict[int, ZoneTail], number: int, notes: list[Note], upto: int) -> None:
        if number in tails:
            tails[number].tell(notes, upto)

    def called(self, zone: Zone, watcher: Watcher) -> None:
        if watcher.url is not None:
            cursor = number_of(max(watcher.since, self._sent.get(zone.number, 0)), LAST)
            self._loop.call_soon_threadsafe(self._call, zone.number, watcher, cursor)

    def _call(self, number: int, watcher: Watcher, cursor: int) -> None:
        assert watcher.url is not None
        target = Target(WEBHOOK, url=watcher.url, headers=watcher.headers, subscription=watcher.id)
        sink = Sink(watcher.id, target, [Secret(watcher.secret or "")], cursor)
        courier = Courier(self.tails[number], sink, Webhooks(self._http, sink), self.letters, lambda: None)
        self.couriers[watcher.id] = number, courier

    def silent(self, zone: Zone, id: str) -> None:
        """It is not served here any more: who hears it has to ask again where it is."""
        self._loop.call_soon_threadsafe(self._silence, zone.number, id)

    def _silence(self, number: int, id: str) -> None:
        if number in self.tails:
            self.tails[number].end(Selection(id))
        self._hang_up(id)

    def _hang_up(self, id: str) -> None:
        """At once, for another may be called by that name next."""
        _, courier = self.couriers.pop(id, (0, None))
        if courier is not None:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks.append(asyncio.create_task(courier.stop()))

    def closed(self, zone: Zone) -> None:
        self._loop.call_soon_threadsafe(self._close, zone.number)

    def _close(self, number: int) -> None:
        for tails in (self.tails, self.notes):
            tail = tails.pop(number, None)
            if tail is not None:
                tail.end()
        for id in [id for id, (at, _) in self.couriers.items() if at == number]:
            self._hang_up(id)

    def sent(self, zone: Zone) -> int:
        """The sequence up to which webhooks of a zone have taken everything."""
        cursors = [courier.sink.cursor >> SHIFT for at, courier in list(self.couriers.values()) if at == zone.number]
        return min(cursors, default=FURTHEST)

    def split(self, zone: Zone, plan: Plan) -> None:
        """Hand on the watchers that are another zone's now, which tells again what this one would."""
        await_topics(self._producer, self.settings.topic, plan.partitions)
        at = zone.first
        origin = Origin(zone.number, at.offset, at.sequence, min(self.sent(zone), zone.sequence), plan.since, zone.origin)
        for family, followers in zip(plan.families, zone.followers, strict=True):
            ids = list(followers.row)
            points = followers.points()
            owners = plan.zones[plan.family(family.name)].owners(points)
            for owner in sorted(set(owners[owners != zone.number].tolist())) if plan.sparse else ():
                boxes = np.stack([points[owners == owner].min(0), points[owners == owner].max(0)])[None]
                self._write("sketch", sketch_key(family.name, owner), boxes_json(boxes), 0)
            for id, owner in zip(ids, owners.tolist(), strict=True):
                if owner == zone.number:
                    continue
                l, r = followers.point(id)
                there = zone.called.get(id, Watcher(id, family.name, l, r, followers.limit(id), 0, told=False))
                self._write("watchers", id, replace(there, moved=origin).to_json(), owner)
                zone.own.add(self._write("watchers", id, None, zone.number))
                self.silent(zone, id)
                zone.end(id)
